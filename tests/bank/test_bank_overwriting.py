"""Nothing is replaced unasked, and nothing is lost where replacing fails."""

from __future__ import annotations

import pytest

from few_shot_problems import ragged_bank
from hotshot import BaseClasses
from hotshot.errors import InputError


def test_nothing_is_replaced_unasked_and_only_banks_ever(tmp_path):
    path = tmp_path / "one.bank"
    ragged_bank().save(path)
    with pytest.raises(InputError, match="pass overwrite=True to replace it"):
        ragged_bank(seed=1).save(path)
    assert BaseClasses.load(path).fingerprint == ragged_bank().fingerprint
    ragged_bank(seed=1).save(path, overwrite=True)
    assert BaseClasses.load(path).fingerprint == ragged_bank(seed=1).fingerprint
    (path / "bank.json").unlink()
    with pytest.raises(InputError, match="choose another name"):
        ragged_bank().save(path, overwrite=True)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", ["first", "second"])
def test_the_old_bank_is_back_where_the_new_one_cannot_take_its_place(error, at, tmp_path, monkeypatch):
    path = tmp_path / "one.bank"
    ragged_bank().save(path)
    # As on systems that cannot let two names change places.
    rename, calls = type(path).rename, []

    def failing(self, target):
        calls.append(target)
        if len(calls) == ("first", "second").index(at) + 1:
            raise error
        return rename(self, target)

    monkeypatch.setattr(type(path), "rename", failing)
    with pytest.raises((InputError, KeyboardInterrupt)):
        ragged_bank(seed=1).save(path, overwrite=True)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == [path]
    assert BaseClasses.load(path).fingerprint == ragged_bank().fingerprint


def test_a_link_to_a_bank_stays_a_link(tmp_path):
    ragged_bank().save(tmp_path / "one.bank")
    link = tmp_path / "link.bank"
    link.symlink_to("one.bank")
    ragged_bank(seed=1).save(link, overwrite=True)
    assert link.is_symlink()
    assert BaseClasses.load(tmp_path / "one.bank").fingerprint == ragged_bank(seed=1).fingerprint
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.bank", "one.bank"]
