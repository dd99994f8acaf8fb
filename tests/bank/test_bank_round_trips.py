"""What is saved of a bank comes back to the bit, and again."""

from __future__ import annotations

import json

import numpy as np
import pytest
from bank_file_examples import arrays_of, features, probabilities, saved, task

from conftest import make_bank
from few_shot_problems import plain_space, ragged_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.bank import covariances
from hotshot.errors import InputError

NAMES = {
    "text": np.array(["zebra", "ant", "", "naïve", "日本", "a b/c\n"]),
    "objects": np.array(["zebra", "ant", "", "naïve", "日本", "a b/c\n"], dtype=object),
    "undecodable text": np.array(["zebra", "ant", "mole", "caf\udce9", "日本", "owl"]),
    "integers": np.array([2**62, -3, 9, 0, 7, 2]),
    "small integers": np.array([5, 200, 9, 0, 7, 2], dtype=np.uint8),
    "floats": np.array([0.1, -3.0, 1e300, 0.0, 7.25, 2.0]),
    "truths": np.array([False, True] * 3),
}


@pytest.mark.parametrize("kind", NAMES)
def test_names_come_back(kind, tmp_path):
    X, labels = features()
    bank = BaseClasses.from_samples(X, NAMES[kind][labels])
    loaded = saved(bank, tmp_path / "one.bank")
    assert loaded.names.tolist() == bank.names.tolist()
    assert loaded.counts.tolist() == bank.counts.tolist()
    assert loaded.fingerprint == bank.fingerprint
    np.testing.assert_array_equal(probabilities(loaded), probabilities(bank))
    ((loan, *_), again) = (HOTClassifier(one).fit(*task()[:2]).explain().loans for one in (bank, loaded))
    assert loan.lenders == again[0].lenders


@pytest.mark.parametrize(
    "names", [np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"), np.array([(1, 2), (3, 4)], dtype="i,i")]
)
def test_names_that_json_cannot_hold_are_refused(names, tmp_path):
    bank = BaseClasses.from_samples(*make_bank(2, 5, 4))
    bank = BaseClasses.from_samples(bank.samples, names[bank.labels])
    with pytest.raises(InputError, match="Class names must be text or numbers to be saved"):
        bank.save(tmp_path / "one.bank")
    assert list(tmp_path.iterdir()) == []


SETTINGS = {
    "default": {},
    "root": {"power": 0.5},
    "published": {
        "power": 0.5, "power_on_base": False, "normalize": None, "n_components": None, "alpha": 0.21,
        "sample_weights": "classifier", "head": "sampled", "per": "sample", "n_generated": 30,
    },
    "classifier": {"sample_weights": "classifier", "temperature": 0.3},
    "factored": {"covariance": "factored"},
    "factored, not normalised": {"covariance": "factored", "normalize": None},
    "several forms": {"covariance": "auto", "n_components": None},
    "diagonal": {"covariance": "diagonal"},
    "pooled": {"covariance": "pooled", "n_components": 3},
    "one axis": {"n_components": 1},
    "NumPy's own numbers": {"n_components": np.int64(3), "temperature": np.float32(0.5)},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::hotshot.errors.ScaleWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SETTINGS)
def test_predictions_of_a_loaded_bank_are_the_same_to_the_bit(name, dtype, tmp_path, monkeypatch):
    settings = SETTINGS[name]
    if name == "several forms":
        monkeypatch.setattr(covariances, "DENSE_ENTRIES", 0)
    X, y = features(power=settings.get("power", 1), dtype=dtype)
    bank = BaseClasses.from_samples(X, y)
    expected = probabilities(bank, **settings)
    loaded = saved(bank, tmp_path / "one.bank")
    assert len(loaded.prepared) == 1
    np.testing.assert_array_equal(probabilities(loaded, **settings), expected)
    assert len(loaded.prepared) == 1, "the space was prepared again"
    # And in a space that was not saved.
    np.testing.assert_array_equal(
        probabilities(loaded, power=1.0, n_components=2), probabilities(bank, power=1.0, n_components=2)
    )
    np.testing.assert_array_equal(loaded.samples, bank.samples)
    assert loaded.dtype == bank.dtype
    assert repr(loaded) == repr(bank)


def test_all_spaces_that_are_prepared_are_saved(tmp_path):
    bank = BaseClasses.from_samples(*features(power=0.5))
    spaces = [plain_space(power=p, n_components=n) for p in (0.5, 1.0) for n in (None, 2, 0.9)]
    for space in spaces:
        bank.prepare(space)
    loaded = saved(bank, tmp_path / "one.bank")
    assert len(list((tmp_path / "one.bank").iterdir())) == 2 + len(spaces)
    for space in spaces:
        a, b = bank.prepare(space), loaded.prepare(space)
        assert loaded.prepare(space) is b
        np.testing.assert_array_equal(a.means, b.means)
        for x, y in zip(arrays_of(a), arrays_of(b), strict=True):
            np.testing.assert_array_equal(x, y)
    assert len(loaded.prepared) == len(spaces)


def test_a_bank_that_was_never_used_is_saved_in_the_default_space(tmp_path):
    loaded = saved(BaseClasses.from_samples(*features(power=0.5)), tmp_path / "one.bank")
    (space,) = loaded.prepared
    assert space == plain_space(power=0.5, n_components=0.98)


def test_a_loaded_bank_saves_again_as_it_was(tmp_path):
    bank = ragged_bank()
    bank.prepare(plain_space())
    loaded = saved(bank, tmp_path / "one.bank")
    loaded.prepare(plain_space(n_components=2))
    again = saved(loaded, tmp_path / "two.bank")
    assert again.fingerprint == bank.fingerprint
    assert len(again.prepared) == 2
    one, two = (json.loads((tmp_path / f / "bank.json").read_text()) for f in ("one.bank", "two.bank"))
    for key in ("names", "counts", "about", "dtype", "smallest", "content_hash"):
        assert one[key] == two[key]
    first = "space-0.safetensors"
    assert (tmp_path / "one.bank" / first).read_bytes() == (tmp_path / "two.bank" / first).read_bytes()


def test_a_bank_may_be_saved_over_itself(tmp_path):
    path = tmp_path / "one.bank"
    loaded = saved(ragged_bank(), path)
    expected = probabilities(loaded, n_components=2)
    loaded.save(path, overwrite=True)
    np.testing.assert_array_equal(probabilities(loaded, n_components=2), expected)
    np.testing.assert_array_equal(probabilities(BaseClasses.load(path), n_components=2), expected)
    assert list(tmp_path.iterdir()) == [path]


def test_an_array_that_stands_in_several_places_is_written_once(tmp_path):
    bank = ragged_bank(sizes=(500, 500, 500))
    bank.prepare(plain_space(covariance="factored"))
    bank.save(tmp_path / "one.bank")
    assert (tmp_path / "one.bank" / "space-0.safetensors").stat().st_size < 1.5 * bank.samples.nbytes
