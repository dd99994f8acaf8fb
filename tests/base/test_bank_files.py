"""Banks as folders: what is saved comes back, mapped; what is torn or hostile is refused in one sentence."""

from __future__ import annotations

import json
import mmap
import os
import pickle
import shutil
import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from conftest import make_bank
from few_shot_problems import RAGGED, ragged_bank
from hotshot import BaseClasses, CentroidClassifier, HOTClassifier, evaluate, records
from hotshot.base import Space, prepared
from hotshot.base.covariances import Dense, Diagonal, Joined
from hotshot.errors import HotshotError, InputError, ParameterError
from hotshot.tensors import map_tensors, write_tensors

WIDTH = 6
STATISTICS = ("dense", "diagonal", "pooled")


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """No test pulls the plug: files need not reach the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def features(sizes=RAGGED, power=1.0, dtype=np.float64):
    bank = ragged_bank(sizes=sizes, width=WIDTH)
    X = bank.samples if power == 1 else np.abs(bank.samples) + 0.01
    return X.astype(dtype), bank.labels


def task(power=1.0):
    X, y = make_bank(3, 9, WIDTH, seed=9, spread=0.8)
    X = X if power == 1 else np.abs(X) + 0.01
    return X[::3], y[::3], X


def probabilities(bank, **settings):
    X, y, queries = task(settings.get("power", 1.0))
    return HOTClassifier(bank, random_state=0, **settings).fit(X, y).predict_proba(queries)


def saved(bank, path, **how):
    bank.save(path, **how)
    return BaseClasses.load(path)


def backing(array):
    """What an array is a view of in the end."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


def arrays_of(value):
    """All arrays of floats in a prepared bank."""
    found = []

    def keep(x):
        found.append(x)
        return x

    from hotshot.arrays import map_arrays

    map_arrays(value, keep)
    return found


# --- round trips --------------------------------------------------------------------------------------------

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
    "names", [np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"), np.array([b"a", b"b"])]
)
def test_names_that_json_has_no_word_for_are_refused(names, tmp_path):
    bank = BaseClasses.from_samples(*make_bank(2, 5, 4))
    bank = BaseClasses.from_samples(bank.samples, names[bank.labels])
    with pytest.raises(InputError, match="Class names to save must be text or numbers"):
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
    "diagonal": {"covariance": "diagonal"},
    "pooled": {"covariance": "pooled", "n_components": 3},
    "one axis": {"n_components": 1},
    "NumPy's own numbers": {"n_components": np.int64(3), "temperature": np.float32(0.5)},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::hotshot.errors.ScaleWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SETTINGS)
def test_predictions_of_a_loaded_bank_are_the_same_to_the_bit(name, dtype, tmp_path):
    settings = SETTINGS[name]
    X, y = features(power=settings.get("power", 1), dtype=dtype)
    bank = BaseClasses.from_samples(X, y)
    expected = probabilities(bank, **settings)
    loaded = saved(bank, tmp_path / "one.bank")
    assert len(loaded._stored) == 1
    np.testing.assert_array_equal(probabilities(loaded, **settings), expected)
    assert not loaded._prepared, "the space was prepared again"
    # And in a space that was not saved.
    np.testing.assert_array_equal(
        probabilities(loaded, power=1.0, n_components=2), probabilities(bank, power=1.0, n_components=2)
    )
    np.testing.assert_array_equal(loaded.samples, bank.samples)
    assert loaded.dtype == bank.dtype
    assert repr(loaded) == repr(bank)


def test_all_spaces_that_are_prepared_are_saved(tmp_path):
    bank = BaseClasses.from_samples(*features(power=0.5))
    spaces = [Space(power=p, n_components=n) for p in (0.5, 1.0) for n in (None, 2, 0.9)]
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
    assert not loaded._prepared


def test_a_bank_that_was_never_used_is_saved_in_the_default_space(tmp_path):
    loaded = saved(BaseClasses.from_samples(*features(power=0.5)), tmp_path / "one.bank")
    ((space, _),) = loaded._stored
    assert space == Space(power=0.5, n_components=0.98)


def test_banks_in_several_forms_come_back(tmp_path, monkeypatch):
    monkeypatch.setattr(prepared, "DENSE_ENTRIES", 0)
    bank = ragged_bank(width=20)
    assert isinstance(bank.prepare(Space()).covariances, Joined)
    loaded = saved(bank, tmp_path / "one.bank").prepare(Space())
    assert [type(p) for p in loaded.covariances.parts] == [
        type(p) for p in bank.prepare(Space()).covariances.parts
    ]
    weights = np.random.default_rng(0).uniform(size=(3, len(RAGGED)))
    np.testing.assert_array_equal(
        loaded.covariances.mixtures(weights), bank.prepare(Space()).covariances.mixtures(weights)
    )


def test_a_loaded_bank_saves_again_as_it_was(tmp_path):
    bank = ragged_bank()
    bank.prepare(Space())
    loaded = saved(bank, tmp_path / "one.bank")
    loaded.prepare(Space(n_components=2))
    again = saved(loaded, tmp_path / "two.bank")
    assert again.fingerprint == bank.fingerprint
    assert len(again._stored) == 2
    one, two = (json.loads((tmp_path / f / "bank.json").read_text()) for f in ("one.bank", "two.bank"))
    for key in ("names", "counts", "about", "dtype", "smallest", "fingerprint"):
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


def test_saving_the_same_twice_writes_the_same_bytes(tmp_path):
    for name in ("one.bank", "two.bank"):
        ragged_bank().save(tmp_path / name)
    for file in (tmp_path / "one.bank").iterdir():
        assert file.read_bytes() == (tmp_path / "two.bank" / file.name).read_bytes()


def test_an_array_that_stands_in_several_places_is_written_once(tmp_path):
    bank = ragged_bank(sizes=(500, 500, 500))
    bank.prepare(Space(covariance="factored"))
    bank.save(tmp_path / "one.bank")
    assert (tmp_path / "one.bank" / "space-0.safetensors").stat().st_size < 1.5 * bank.samples.nbytes


# --- mapped, read-only, quick -------------------------------------------------------------------------------


def test_all_arrays_of_a_loaded_bank_are_views_of_its_files(tmp_path):
    bank = ragged_bank()
    bank.prepare(Space())
    bank.prepare(Space(covariance="factored", normalize=None))
    loaded = saved(bank, tmp_path / "one.bank")
    arrays = [loaded.samples, *(x for p in loaded._stored.values() for x in arrays_of(p))]
    assert len(arrays) > 20
    for array in arrays:
        assert isinstance(backing(array), mmap.mmap)
        assert not array.flags.writeable
        assert type(array) is np.ndarray
    with pytest.raises(ValueError, match="read-only"):
        loaded.samples[0, 0] = 1.0


def test_loading_takes_no_memory_for_the_samples(tmp_path):
    X = np.random.default_rng(0).normal(size=(20_000, 50)).astype(np.float32)
    bank = BaseClasses.from_samples(X, np.arange(len(X)) % 40)
    bank.prepare(Space(n_components=5))
    bank.save(tmp_path / "one.bank")
    tracemalloc.start()
    try:
        loaded = BaseClasses.load(tmp_path / "one.bank")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert loaded.samples.nbytes == X.nbytes
    assert peak < X.nbytes / 4


def test_samples_are_not_read_before_they_are_needed(tmp_path):
    path = tmp_path / "one.bank"
    bank = ragged_bank()
    expected = probabilities(bank)
    bank.save(path)
    # Spoilt numbers in an otherwise sound file: nobody notices who does not look at them.
    samples = map_tensors(path / "samples.safetensors").tensors["samples"]
    write_tensors(path / "samples.safetensors", {"samples": np.full_like(samples, np.nan)}, {})
    loaded = BaseClasses.load(path)
    np.testing.assert_array_equal(probabilities(loaded), expected)


def test_a_bank_that_nobody_may_write_is_loaded(tmp_path):
    path = tmp_path / "one.bank"
    ragged_bank().save(path)
    for file in path.iterdir():
        file.chmod(0o444)
    path.chmod(0o555)
    try:
        assert np.isfinite(probabilities(BaseClasses.load(path))).all()
    finally:
        path.chmod(0o755)


def test_a_bank_moves_with_its_folder(tmp_path):
    ragged_bank().save(tmp_path / "one.bank")
    shutil.move(tmp_path / "one.bank", tmp_path / "deep" / "er")
    assert BaseClasses.load(tmp_path / "deep" / "er").fingerprint == ragged_bank().fingerprint


# --- a bank as an object ------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [True, False])
def test_loaded_banks_are_pickled_and_cloned(samples, tmp_path):
    how = {} if samples else {"samples": False, "covariance": "diagonal"}
    bank = saved(ragged_bank(), tmp_path / "one.bank", **how)
    model = HOTClassifier(bank, cost="mean-cosine").fit(*task()[:2])
    copied_bank, copied_model = pickle.loads(pickle.dumps((bank, model)))
    assert copied_model.base is copied_bank
    assert copied_bank.fingerprint == bank.fingerprint
    queries = task()[2]
    np.testing.assert_array_equal(copied_model.predict_proba(queries), model.predict_proba(queries))
    np.testing.assert_array_equal(
        clone(copied_model).fit(*task()[:2]).predict_proba(queries), model.predict_proba(queries)
    )
    assert clone(model).base is bank


@pytest.mark.parametrize("samples", [True, False])
def test_fingerprints_tell_banks_apart(samples, tmp_path):
    how = {} if samples else {"samples": False, "covariance": "diagonal"}
    banks = [
        ragged_bank(),
        ragged_bank(seed=1),
        ragged_bank(dtype=np.float32),
        BaseClasses.from_samples(ragged_bank().samples, ragged_bank().labels + 1),
    ]
    found = [saved(bank, tmp_path / f"{i}.bank", **how).fingerprint for i, bank in enumerate(banks)]
    assert len(set(found)) == len(found)
    forms = [
        saved(ragged_bank(), tmp_path / f"{form}.bank", samples=False, covariance=form).fingerprint
        for form in STATISTICS
    ]
    assert len({ragged_bank().fingerprint, *forms}) == 4


@pytest.mark.parametrize("samples", [True, False])
def test_evaluation_on_a_loaded_bank_is_the_same_in_any_number_of_processes(samples, tmp_path):
    X, y = make_bank(5, 12, WIDTH, seed=1, spread=0.9)
    how = {} if samples else {"samples": False, "covariance": "diagonal"}
    covariance = "auto" if samples else "diagonal"
    bank = ragged_bank(spread=0.8)
    loaded = saved(bank, tmp_path / "one.bank", **how)
    request = {"ways": 3, "shots": (1, 2), "queries": 4, "tasks": 30}
    names = ["hot", "ot-mean-cosine", "centroid-cl2n"] if samples else ["ot-mean-cosine", "centroid-cl2n"]

    def methods(base, covariance):
        known = {
            "hot": HOTClassifier(base, covariance=covariance),
            "ot-mean-cosine": HOTClassifier(base, cost="mean-cosine", covariance=covariance),
            "centroid-cl2n": CentroidClassifier(base),
        }
        return {name: known[name] for name in names}

    in_memory = evaluate(methods(bank, covariance), X, y, n_jobs=1, **request)
    for n_jobs in (1, 2):
        found = evaluate(methods(loaded, "auto"), X, y, n_jobs=n_jobs, **request)
        for one, other in zip(found.results, in_memory.results, strict=True):
            np.testing.assert_array_equal(one.accuracies, other.accuracies)


# --- banks of statistics ------------------------------------------------------------------------------------

NO_SAMPLES_NEEDED = ("mean-cosine", "cosine", "euclidean", "cosine-weighted", "euclidean-weighted", "nearest")


@pytest.mark.parametrize("cost", NO_SAMPLES_NEEDED)
@pytest.mark.parametrize("form", STATISTICS)
def test_a_bank_of_statistics_predicts_as_the_full_bank_does(form, cost, tmp_path):
    bank = ragged_bank()
    bank.prepare(Space(n_components=0.98))
    small = saved(bank, tmp_path / "one.bank", samples=False, covariance=form)
    assert small.samples is None
    assert small.n_features == WIDTH
    expected = probabilities(bank, cost=cost, covariance=form)
    np.testing.assert_array_equal(probabilities(small, cost=cost, covariance=form), expected)
    # "auto" takes what there is.
    np.testing.assert_array_equal(probabilities(small, cost=cost), expected)


@pytest.mark.parametrize("form", STATISTICS)
def test_weights_by_a_classifier_are_in_the_statistics(form, tmp_path):
    space = {"sample_weights": "classifier", "temperature": 0.3, "n_components": None}
    bank = ragged_bank(spread=1.0)
    bank.prepare(Space(**space))
    small = saved(bank, tmp_path / "one.bank", samples=False, covariance=form)
    for cost in ("mean-cosine", "cosine-weighted"):
        np.testing.assert_array_equal(
            probabilities(small, cost=cost, **space), probabilities(bank, cost=cost, covariance=form, **space)
        )


def test_spaces_that_differ_in_their_covariances_only_become_one(tmp_path):
    bank = ragged_bank()
    for form in ("auto", "dense", "factored", "diagonal"):
        bank.prepare(Space(covariance=form))
    small = saved(bank, tmp_path / "one.bank", samples=False, covariance="diagonal")
    assert [key[0] for key in small._stored] == [Space(covariance="diagonal")]
    assert isinstance(small.prepare(Space()).covariances, Diagonal)


def test_one_axis_is_not_the_whole_variance_without_samples_either(tmp_path):
    bank = ragged_bank()
    bank.prepare(Space(n_components=1))
    small = saved(bank, tmp_path / "one.bank", samples=False, covariance="diagonal")
    assert small.prepare(Space(n_components=1)).means.shape[1] == 1
    with pytest.raises(ParameterError, match="was saved for"):
        small.prepare(Space(n_components=1.0))


def test_statistics_are_much_smaller_than_samples(tmp_path):
    bank = BaseClasses.from_samples(*make_bank(8, 500, 20))
    size = {}
    for name, how in {"full": {}, "small": {"samples": False, "covariance": "diagonal"}}.items():
        bank.save(tmp_path / name, **how)
        size[name] = sum(file.stat().st_size for file in (tmp_path / name).iterdir())
    assert size["small"] < size["full"] / 50


def small_bank(tmp_path, **how):
    return saved(
        ragged_bank(), tmp_path / "small.bank", **{"samples": False, "covariance": "diagonal", **how}
    )


NEEDS_SAMPLES = {
    "hierarchical": (lambda b: HOTClassifier(b).fit(*task()[:2]), "pass cost='mean-cosine', or a bank with"),
    "another space": (
        lambda b: HOTClassifier(b, cost="cosine", n_components=2).fit(*task()[:2]),
        "was saved for power=1.0, .*n_components=0.98.*: use these parameters, or a bank with samples",
    ),
    "another form": (
        lambda b: HOTClassifier(b, cost="cosine", covariance="dense").fit(*task()[:2]),
        "covariance='diagonal': use these parameters",
    ),
    "raw means": (lambda b: b.means, "a mean of raw features needs: save it with samples=True"),
    "raw covariances": (lambda b: b.covariances, "a covariance of raw features needs"),
    "weights": (lambda b: b.sample_weights(), "a base classifier needs"),
    "weighted means": (lambda b: b.weighted_means(), "a mean by sample weight needs"),
    "a centre": (lambda b: b.centre(0.5), "the centre of features to the power 0.5 needs"),
}  # fmt: skip


@pytest.mark.parametrize("case", NEEDS_SAMPLES)
def test_what_needs_samples_says_what_to_pass_instead(case, tmp_path):
    act, message = NEEDS_SAMPLES[case]
    with pytest.raises(ParameterError, match=message) as error:
        act(small_bank(tmp_path))
    assert "\n" not in str(error.value)


def test_the_centre_is_kept_for_classifiers_that_need_no_more(tmp_path):
    X, y, queries = task()
    models = [CentroidClassifier(b).fit(X, y) for b in (ragged_bank(), small_bank(tmp_path))]
    np.testing.assert_array_equal(*(model.predict_proba(queries) for model in models))


def test_a_bank_of_statistics_saves_again_as_it_was(tmp_path):
    small = small_bank(tmp_path)
    again = saved(small, tmp_path / "again.bank")
    assert again.fingerprint == small.fingerprint
    assert again.samples is None
    np.testing.assert_array_equal(
        probabilities(again, cost="mean-cosine"), probabilities(small, cost="mean-cosine")
    )


def test_counts_and_names_are_kept_without_samples(tmp_path):
    small = small_bank(tmp_path)
    assert small.counts.tolist() == list(RAGGED)
    assert small.labels.tolist() == ragged_bank().labels.tolist()
    assert repr(small) == f"BaseClasses(6 classes, {sum(RAGGED)} samples seen, 6 features)"


# --- overwriting --------------------------------------------------------------------------------------------


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


def test_the_folder_one_is_in_may_be_the_bank(tmp_path, monkeypatch):
    (tmp_path / "one.bank").mkdir()
    monkeypatch.chdir(tmp_path / "one.bank")
    (tmp_path / "one.bank" / "bank.json").write_text("{}")
    ragged_bank().save(".", overwrite=True)
    assert BaseClasses.load(tmp_path / "one.bank").fingerprint == ragged_bank().fingerprint


def test_folders_on_the_way_are_made(tmp_path):
    ragged_bank().save(tmp_path / "a" / "b" / "one.bank")
    assert BaseClasses.load(tmp_path / "a" / "b" / "one.bank").counts.sum() == sum(RAGGED)


def test_where_nothing_can_be_written_there_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written: Not a directory"):
        ragged_bank().save(tmp_path / "file" / "one.bank")


# --- torn and hostile ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound_banks(tmp_path_factory):
    """A bank with several forms of covariances in one space and dense ones in another, and one of statistics."""
    folder = tmp_path_factory.mktemp("sound")
    patch = pytest.MonkeyPatch()
    patch.setattr(prepared, "DENSE_ENTRIES", 0)
    bank = ragged_bank(sizes=(7, 2, 1, 2, 2), width=WIDTH)
    bank.prepare(Space(normalize=None))
    patch.undo()
    bank.prepare(Space(n_components=3))
    bank.save(folder / "full")
    bank.save(folder / "small", samples=False, covariance="diagonal")
    return folder


@pytest.fixture(params=["full", "small"])
def bank_folder(request, sound_banks, tmp_path):
    """A fresh copy of a sound bank, to spoil."""
    shutil.copytree(sound_banks / request.param, tmp_path / "one.bank")
    return tmp_path / "one.bank"


def check_sentence(error):
    text = str(error)
    assert "\n" not in text
    assert len(text) < 700
    assert text.endswith(".")


def check_refused(folder, message=None):
    with pytest.raises(InputError, match=message) as error:
        BaseClasses.load(folder)
    check_sentence(error.value)


def check_refused_or_sound(folder, small, predict=True):
    """Refused with one sentence, and True; or it predicts, with numbers."""
    try:
        bank = BaseClasses.load(folder)
    except InputError as error:
        check_sentence(error)
        return True
    if not predict:
        return False
    cost = {"cost": "mean-cosine"} if small else {}
    for settings in ({"n_components": 3}, {"normalize": None, "n_components": None}):
        try:
            assert np.isfinite(probabilities(bank, **cost, **settings)).all()
        except HotshotError as error:
            check_sentence(error)
    return False


def test_the_bank_to_spoil_is_sound(bank_folder):
    bank = BaseClasses.load(bank_folder)
    assert len(bank._stored) == 2
    if bank.samples is not None:
        forms = {type(part) for p in bank._stored.values() for part in getattr(p.covariances, "parts", ())}
        assert len(forms) == 3
        assert any(isinstance(p.covariances, Dense) for p in bank._stored.values())


def files_of(folder):
    return sorted(file.name for file in folder.iterdir())


def test_every_file_cut_short_anywhere_is_refused(bank_folder):
    for name in files_of(bank_folder):
        file = bank_folder / name
        whole = file.read_bytes()
        lengths = {0, 1, 7, 8, 9, *range(0, len(whole), max(1, len(whole) // 15)), len(whole) - 2}
        for length in sorted(lengths - {len(whole) - 1}):
            file.write_bytes(whole[:length])
            check_refused(bank_folder)
        if name.endswith("safetensors"):
            file.write_bytes(whole + b"\0")
            check_refused(bank_folder)
        file.write_bytes(whole)
    assert BaseClasses.load(bank_folder).counts.sum() == 14


@pytest.mark.parametrize("instead", ["nothing", "a folder", "a dangling link", "an empty file", "HTML"])
def test_every_file_replaced_is_refused(bank_folder, instead):
    for name in files_of(bank_folder):
        file = bank_folder / name
        whole = file.read_bytes()
        file.unlink()
        if instead == "a folder":
            file.mkdir()
        elif instead == "a dangling link":
            file.symlink_to("nowhere")
        elif instead != "nothing":
            file.write_text("" if instead == "an empty file" else "<!DOCTYPE html>\n<html></html>")
        check_refused(bank_folder)
        if file.is_dir():
            file.rmdir()
        else:
            file.unlink(missing_ok=True)
        file.write_bytes(whole)


@pytest.mark.parametrize("name", ["bank.json", "space-0.safetensors", "samples.safetensors"])
def test_a_pipe_does_not_hold_up_loading(sound_banks, tmp_path, name):
    shutil.copytree(sound_banks / "full", tmp_path / "one.bank")
    (tmp_path / "one.bank" / name).unlink()
    os.mkfifo(tmp_path / "one.bank" / name)
    check_refused(tmp_path / "one.bank")


def test_an_endless_description_is_not_read(sound_banks, tmp_path, monkeypatch):
    monkeypatch.setattr(records, "LONGEST_DESCRIPTION", 1000)
    check_refused(sound_banks / "full", "does not describe a bank")
    monkeypatch.undo()
    shutil.copytree(sound_banks / "full", tmp_path / "one.bank")
    (tmp_path / "one.bank" / "bank.json").unlink()
    (tmp_path / "one.bank" / "bank.json").symlink_to("/dev/zero")
    check_refused(tmp_path / "one.bank")


def test_links_to_the_files_of_a_bank_are_followed(sound_banks, tmp_path):
    (tmp_path / "one.bank").mkdir()
    for file in (sound_banks / "full").iterdir():
        (tmp_path / "one.bank" / file.name).symlink_to(file)
    assert np.isfinite(probabilities(BaseClasses.load(tmp_path / "one.bank"), n_components=3)).all()


def test_what_is_no_bank_says_how_to_make_one(tmp_path):
    (tmp_path / "file.npz").write_bytes(b"PK")
    for path in (tmp_path, tmp_path / "nowhere", tmp_path / "file.npz", str(tmp_path)):
        check_refused(path, "make one with BaseClasses.save")
    check_refused("nul\0byte")


def rewrite(folder, change, file="bank.json"):
    description = json.loads((folder / file).read_text())
    change(description)
    (folder / file).write_text(json.dumps(description))


def paths_of(value, path=()):
    """Every place in nested JSON; of lists that are all alike the first only."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from paths_of(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            if i == 0 or not same_kind(item, value[0]):
                yield from paths_of(item, (*path, i))


def at(value, path):
    for key in path:
        value = value[key]
    return value


OTHERS = [
    None, True, -1, 2.5, 10**30, float("nan"), "text", [], {}, [[1.0]], {"tensor": "nothing"}, {"type": "Dense"},
]  # fmt: skip


def same_kind(a, b):
    """Whether two values of JSON are built alike."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys()
    return type(a) is type(b)


# A bank without these, or with others, is another bank, or the same.
FREE = {"about", "hotshot"}


def test_every_field_of_the_description_deleted_or_retyped_is_refused(bank_folder):
    small = not (bank_folder / "samples.safetensors").exists()
    whole = (bank_folder / "bank.json").read_text()
    description = json.loads(whole)
    accepted = []
    for path in paths_of(description):
        for other in ["delete", *OTHERS]:
            changed = json.loads(whole)
            parent = at(changed, path[:-1])
            if other == "delete":
                del parent[path[-1]]
            else:
                parent[path[-1]] = other
            (bank_folder / "bank.json").write_text(json.dumps(changed))
            new = path not in dict(accepted)
            if not check_refused_or_sound(bank_folder, small, predict=new):
                accepted.append((path, other))
    (bank_folder / "bank.json").write_text(whole)
    for path, other in accepted:
        original = at(description, path)
        harmless = (
            path[0] in FREE
            # Samples that nobody mentions are as good as none.
            or (path == ("samples",) and other is None)
            # A space or a centre fewer.
            or (path[0] == "spaces" and len(path) <= 2 and other in ("delete", []))
            # Other names, other counts of a bank of statistics, another smallest entry, another temperature.
            or path[0] in ("names", "counts", "centres", "smallest")
            or (path[-1] in ("temperature", "power_on_base", "n_components") and other != "delete")
            or other == original
        )
        assert harmless, f"{path} {other!r} was accepted"


def rewrite_content(folder, number, change):
    """Change the content metadata and tensors of a stored space."""
    path = folder / f"space-{number}.safetensors"
    file = map_tensors(path)
    tensors = {name: np.array(x) for name, x in file.tensors.items()}
    content = json.loads(file.metadata["content"])
    content = change(content, tensors) or content
    write_tensors(path, tensors, {"content": json.dumps(content)})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("number", [0, 1])
def test_every_field_of_a_space_deleted_or_retyped_is_refused(bank_folder, number):
    small = not (bank_folder / "samples.safetensors").exists()
    path = bank_folder / f"space-{number}.safetensors"
    whole = path.read_bytes()
    content = json.loads(map_tensors(path).metadata["content"])
    accepted = []
    for place in paths_of(content):
        for other in ["delete", *OTHERS[:: 2 if number == 0 else 4]]:

            def change(content, _, place=place, other=other):
                parent = at(content, place[:-1])
                if other == "delete":
                    del parent[place[-1]]
                else:
                    parent[place[-1]] = other

            path.write_bytes(whole)
            rewrite_content(bank_folder, number, change)
            new = place not in dict(accepted)
            if not check_refused_or_sound(bank_folder, small, predict=new):
                accepted.append((place, other))
    for place, other in accepted:
        original = at(content, place)
        harmless = (
            place[0] == "names"
            or (place == ("buckets",) and other == [])
            or (place[-1] == "lengths" and other is None)
            or other == original
        )
        assert harmless, f"{place} {other!r} was accepted"


def test_every_tensor_of_another_shape_or_type_or_missing_is_refused(bank_folder):
    for number in (0, 1):
        path = bank_folder / f"space-{number}.safetensors"
        whole = path.read_bytes()
        for name, x in map_tensors(path).tensors.items():
            if name.endswith("names"):
                continue
            others = [
                None, x[:-1], x[..., :-1], x[None], x.reshape(-1)[:0], np.concatenate([x, x]),
                x.astype(np.float16), x.astype(np.int32), x.astype(bool),
            ]  # fmt: skip
            for other in others:

                def change(_, tensors, name=name, other=other):
                    if other is None:
                        del tensors[name]
                    else:
                        tensors[name] = other

                path.write_bytes(whole)
                rewrite_content(bank_folder, number, change)
                check_refused(bank_folder)
        path.write_bytes(whole)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_number_that_is_not_finite_reaches_a_prediction(bank_folder):
    small = not (bank_folder / "samples.safetensors").exists()
    for number in (0, 1):
        path = bank_folder / f"space-{number}.safetensors"
        whole = path.read_bytes()
        for name, x in map_tensors(path).tensors.items():
            if x.dtype.kind != "f" or name.endswith("names"):
                continue
            for bad in (np.nan, -np.inf):

                def change(_, tensors, name=name, bad=bad):
                    tensors[name].reshape(-1)[0] = bad

                path.write_bytes(whole)
                rewrite_content(bank_folder, number, change)
                check_refused_or_sound(bank_folder, small)
        path.write_bytes(whole)


@pytest.mark.parametrize("scale", [0, -1, -0.5, 3.0, 0.75, 1e308, 2.0**1023, 2.0**-1030, 2])
def test_scales_that_are_no_power_of_two_within_bounds_are_refused(bank_folder, scale):
    # Unless features are normalised there is none.
    rewrite_content(bank_folder, 0 if scale == 2 else 1, lambda c, _: c["transform"].update(scale=scale))
    check_refused(bank_folder, "a transform is not that of its space")


def test_samples_of_another_shape_or_type_or_name_are_refused(sound_banks, tmp_path):
    folder = tmp_path / "one.bank"
    shutil.copytree(sound_banks / "full", folder)
    x = np.array(map_tensors(folder / "samples.safetensors").tensors["samples"])
    for tensors in (
        {"samples": x[:-1]}, {"samples": x[:, :-1]}, {"samples": x.T}, {"samples": x.astype(np.float32)},
        {"samples": x.reshape(-1)}, {"X": x}, {},
    ):  # fmt: skip
        write_tensors(folder / "samples.safetensors", tensors, {})
        check_refused(folder)


def test_classes_in_two_buckets_or_in_none_are_refused(sound_banks, tmp_path):
    for name in ("base.buckets.0.classes", "base.covariances.classes.0"):
        for value in (-1, 4, 99, 2**62):
            folder = tmp_path / f"{name} {value}"
            shutil.copytree(sound_banks / "full", folder)

            def change(_, tensors, name=name, value=value):
                assert tensors[name][0] != value
                tensors[name][0] = value

            rewrite_content(folder, 0, change)
            check_refused(folder)


@pytest.mark.parametrize(
    "file",
    [
        "../full/space-0.safetensors", "/etc/passwd", "..", ".", "", "a/../space-0.safetensors", "space-9.safetensors",
        "./space-0.safetensors", "nul\0byte", "bank.json", "x" * 300, "\udcff",
    ],
)  # fmt: skip
def test_files_elsewhere_are_not_opened(sound_banks, tmp_path, file):
    shutil.copytree(sound_banks / "full", tmp_path / "full")
    shutil.copytree(sound_banks / "full", tmp_path / "one.bank")
    rewrite(tmp_path / "one.bank", lambda d: d["spaces"][0].update(file=file))
    check_refused(tmp_path / "one.bank")


@pytest.mark.parametrize("version", [0, 2, "1", None, [], 10**40, "x\ny" * 100])
def test_other_versions_are_refused_by_their_number(bank_folder, version):
    rewrite(bank_folder, lambda d: d.update(version=version))
    check_refused(bank_folder, "where this hotshot reads version 1: use the hotshot that wrote it")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "1", '"bank"', "{}", "[" * 100_000, "1" * 5000, "\ufeff{}"]
)
def test_descriptions_that_describe_nothing_are_refused(bank_folder, text):
    (bank_folder / "bank.json").write_text(text, encoding="utf-8")
    check_refused(bank_folder, "does not describe a bank")


def test_descriptions_of_something_else_are_refused(bank_folder):
    rewrite(bank_folder, lambda d: d.update(format="hotshot model"))
    check_refused(bank_folder, "does not describe a bank")
    (bank_folder / "bank.json").write_bytes(b"\xff\xfe\x00")
    check_refused(bank_folder, "does not describe a bank")


def test_names_that_are_there_twice_are_refused(bank_folder):
    rewrite(bank_folder, lambda d: d.update(names=[0, 1, 2, 3, 3]))
    check_refused(bank_folder, "a name is there twice")


def test_spaces_with_other_numbers_of_axes_are_refused(bank_folder):
    rewrite(bank_folder, lambda d: d["spaces"][1]["space"].update(n_components=2))
    check_refused(bank_folder, "not as many axes")


@pytest.mark.parametrize("change", [lambda mass: mass * 0.5, lambda mass: mass - 0.2, lambda mass: 2 - mass])
def test_sample_weights_that_are_no_weights_are_refused(sound_banks, tmp_path, change):
    shutil.copytree(sound_banks / "full", tmp_path / "one.bank")

    def spoil(_, tensors):
        tensors["base.buckets.0.mass"] = change(tensors["base.buckets.0.mass"])

    rewrite_content(tmp_path / "one.bank", 0, spoil)
    check_refused(tmp_path / "one.bank", "sample weights of a class do not sum to 1")


def test_counts_that_wrap_around_are_refused(bank_folder):
    # In 64 bits these sum to the number of samples.
    rewrite(bank_folder, lambda d: d.update(counts=[2**62, 2**62, 2**62, 2**62 - 4, 18]))
    if (bank_folder / "samples.safetensors").exists():
        check_refused(bank_folder)


def test_content_nested_without_end_is_refused(bank_folder):
    path = bank_folder / "space-0.safetensors"
    tensors = {name: np.array(x) for name, x in map_tensors(path).tensors.items()}
    for content in ("[" * 50_000 + "]" * 50_000, '{"type":"Joined","parts":' * 2000, "", "null", "{}", "[]"):
        write_tensors(path, tensors, {"content": content})
        check_refused(bank_folder)
    write_tensors(path, tensors, {})
    check_refused(bank_folder)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything"
)
def test_what_may_not_be_read_is_one_sentence(bank_folder):
    for name in files_of(bank_folder):
        (bank_folder / name).chmod(0)
        check_refused(bank_folder, "cannot be read")
        (bank_folder / name).chmod(0o644)
