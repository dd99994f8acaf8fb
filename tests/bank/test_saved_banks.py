"""What is saved of a bank comes back to the bit: mapped, read-only, quick, and an object like any other."""

from __future__ import annotations

import json
import mmap
import pickle
import shutil

import numpy as np
import pytest
from bank_file_examples import HOW, STATISTICS, arrays_of, backing, features, probabilities, saved, task
from sklearn.base import clone

from conftest import make_bank
from few_shot_problems import plain_space, ragged_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.bank import covariances
from hotshot.errors import InputError
from hotshot.files.objects import file_digest

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
    np.testing.assert_array_equal(*(probabilities(one, power=1.0, n_components=2) for one in (loaded, bank)))
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


def test_a_bank_is_saved_in_the_default_space_and_again_as_it_was(tmp_path):
    bank = BaseClasses.from_samples(*features(power=0.5))
    loaded = saved(bank, tmp_path / "one.bank")
    assert list(loaded.prepared) == [plain_space(power=0.5, n_components=0.98)]
    loaded.prepare(plain_space(n_components=2))
    again = saved(loaded, tmp_path / "two.bank")
    assert again.fingerprint == bank.fingerprint
    assert len(again.prepared) == 2
    one, two = ((tmp_path / name / "space-0.safetensors").read_bytes() for name in ("one.bank", "two.bank"))
    assert one == two


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


# --- a loaded bank


def test_all_arrays_of_a_loaded_bank_are_views_of_its_files(tmp_path):
    bank = ragged_bank()
    bank.prepare(plain_space())
    bank.prepare(plain_space(covariance="factored", normalize=None))
    loaded = saved(bank, tmp_path / "one.bank")
    arrays = [loaded.samples, *(x for p in loaded.prepared.values() for x in arrays_of(p))]
    assert len(arrays) > 20
    for array in arrays:
        assert isinstance(backing(array), mmap.mmap)
        assert not array.flags.writeable
        assert type(array) is np.ndarray
    with pytest.raises(ValueError, match="read-only"):
        loaded.samples[0, 0] = 1.0


@pytest.mark.parametrize("file", ["bank.json", "samples.safetensors", "space-0.safetensors", "names"])
def test_files_of_another_bank_and_edited_descriptions_are_refused(tmp_path, file):
    one, other = tmp_path / "one.bank", tmp_path / "other.bank"
    for seed, path in enumerate((one, other)):
        ragged_bank(seed=seed).save(path)
    if file == "names":
        description = json.loads((one / "bank.json").read_text())
        (one / "bank.json").write_text(json.dumps({**description, "names": description["names"][::-1]}))
    else:
        shutil.copy(other / file, one / file)
    with pytest.raises(InputError, match=r"one\.bank is not a valid bank \(.*(was not written with it|was changed)"):
        BaseClasses.load(one)


@pytest.mark.parametrize("size", [0, 2**16, 2**24 + 1])
def test_the_digest_of_a_file_tells_files_apart_that_differ_at_either_end_or_in_size(tmp_path, size):
    content = np.random.default_rng(size).bytes(size)
    contents = {content, content + b"x", *({content[:-1] + b"?", b"?" + content[1:]} if size else ())}
    digests = set()
    for name, some in enumerate(contents):
        (tmp_path / str(name)).write_bytes(some)
        digests.add(file_digest(tmp_path / str(name)))
    assert len(digests) == len(contents)


@pytest.mark.parametrize("how", HOW.values(), ids=HOW)
def test_loaded_banks_are_pickled_and_cloned(how, tmp_path):
    bank = saved(ragged_bank(), tmp_path / "one.bank", **how)
    X, y, queries = task()
    model = HOTClassifier(bank, cost="mean-cosine").fit(X, y)
    copied_bank, copied_model = pickle.loads(pickle.dumps((bank, model)))
    assert copied_model.base is copied_bank
    assert copied_bank.fingerprint == bank.fingerprint
    for again in (copied_model, clone(copied_model).fit(X, y)):
        np.testing.assert_array_equal(again.predict_proba(queries), model.predict_proba(queries))
    assert clone(model).base is bank


def test_different_banks_have_different_fingerprints(tmp_path):
    bank = ragged_bank()
    others = (
        ragged_bank(seed=1),
        ragged_bank(dtype=np.float32),
        BaseClasses.from_samples(bank.samples, bank.labels + 1),
    )
    ways = [({}, one) for one in (bank, *others)] + [(HOW["statistics"], one) for one in others]
    ways += [({"samples": False, "covariance": form}, bank) for form in STATISTICS]
    fingerprints = {saved(one, tmp_path / str(i), **how).fingerprint for i, (how, one) in enumerate(ways)}
    assert len(fingerprints) == len(ways)


# --- nothing is replaced unasked, and nothing is lost where replacing fails


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
@pytest.mark.parametrize("at", [1, 2])
def test_the_old_bank_is_back_where_the_new_one_cannot_take_its_place(error, at, tmp_path, monkeypatch):
    path = tmp_path / "one.bank"
    ragged_bank().save(path)
    # As on systems that cannot let two names change places.
    rename, calls = type(path).rename, []

    def failing(self, target):
        calls.append(target)
        if len(calls) == at:
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
