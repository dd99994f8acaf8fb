"""Banks from one pass over batches, and from parts of the features, are those of all samples in memory."""

from __future__ import annotations

import re
import weakref

import numpy as np
import pytest
from bank_file_examples import features, probabilities, saved
from hypothesis import given, settings
from hypothesis import strategies as st

from few_shot_problems import RAGGED, ragged_bank
from hotshot import BaseClasses
from hotshot.bank import Space
from hotshot.errors import InputError, ParameterError

NAMES = np.array(["zebra", "ant", "mole", "bee", "elk", "owl"])


def shuffled(seed=0, **how):
    """Samples of ragged classes in any order, and their names."""
    X, labels = features(seed=seed, **how)
    order = np.random.default_rng(seed + 1).permutation(len(X))
    return X[order], NAMES[labels[order]]


def batches(X, y, cuts=(5, 6, 40)):
    """Batches between the cuts, once."""
    for rows in np.split(np.arange(len(X)), sorted(cuts)):
        if len(rows):
            yield X[rows], y[rows]


# --- one pass over batches ----------------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.lists(st.integers(0, sum(RAGGED)), max_size=6), st.integers(0, 9))
def test_a_bank_from_batches_is_that_of_all_samples(tmp_path_factory, cuts, seed):
    X, y = shuffled(seed=seed)
    expected = BaseClasses.from_samples(X, y)
    path = tmp_path_factory.mktemp("banks") / "one.bank"
    bank = BaseClasses.from_batches(batches(X, y, cuts), path)
    np.testing.assert_array_equal(bank.samples, expected.samples)
    # Of names and counts too.
    assert bank.fingerprint == expected.fingerprint == BaseClasses.load(path).fingerprint
    np.testing.assert_array_equal(probabilities(bank), probabilities(expected))


def test_batches_are_read_once_and_released(tmp_path):
    X, y = shuffled()
    seen = []

    def arriving():
        for a, b in batches(X, y, range(0, 66, 6)):
            # The one before last is gone by now.
            assert all(reference() is None for reference in seen[:-1])
            a = a.copy()
            seen.append(weakref.ref(a))
            yield a, b
            del a

    BaseClasses.from_batches(arriving(), tmp_path / "one.bank")
    assert len(seen) == 11


@pytest.mark.parametrize("arriving", [np.float16, np.int32, list])
@pytest.mark.parametrize("kind", ["text", "integers", "floats", "truths"])
def test_features_and_labels_of_every_type_arrive(kind, arriving, tmp_path):
    X, y = shuffled()
    index = np.searchsorted(np.sort(NAMES), y)
    y = {"text": y, "integers": index - 3, "floats": index / 4, "truths": index > 2}[kind]
    X = np.round(X * 8)
    if arriving is list:
        given_ = ((a.tolist(), b.tolist()) for a, b in batches(X, y))
    else:
        X = X.astype(arriving)
        given_ = batches(X, y)
    bank, expected = BaseClasses.from_batches(given_, tmp_path / "one.bank"), BaseClasses.from_samples(X, y)
    assert bank.names.tolist() == expected.names.tolist()
    assert bank.names.dtype.kind == expected.names.dtype.kind
    assert bank.samples.dtype == bank.dtype == (np.float32 if arriving is np.float16 else np.float64)
    np.testing.assert_array_equal(bank.samples, expected.samples)
    assert bank.fingerprint == expected.fingerprint


@pytest.mark.parametrize("covariance", ["dense", "diagonal", "pooled"])
def test_samples_may_be_left_out_at_once(covariance, tmp_path):
    X, y = shuffled()
    bank = BaseClasses.from_batches(batches(X, y), tmp_path / "one.bank", samples=False, covariance=covariance)
    assert bank.samples is None
    assert not list(tmp_path.rglob("samples*"))
    assert sorted(p.name for p in (tmp_path / "one.bank").iterdir()) == ["bank.json", "space-0.safetensors"]
    expected = saved(BaseClasses.from_samples(X, y), tmp_path / "two.bank", samples=False, covariance=covariance)
    assert bank.fingerprint == expected.fingerprint
    np.testing.assert_array_equal(*(probabilities(one, cost="mean-cosine") for one in (bank, expected)))


# --- what goes wrong leaves nothing behind ------------------------------------------------------------------

X, Y = shuffled()


def batches_then(error):
    yield X[:5], Y[:5]
    yield X[5:9], Y[5:9]
    raise error


def untouched():
    pytest.fail("batches were asked for although the bank cannot be written")
    yield


# Batches, how to save them, and the error.
WRONG = {
    "the source fails": (lambda: batches_then(RuntimeError("no more")), {}, RuntimeError, "no more"),
    "an interruption": (lambda: batches_then(KeyboardInterrupt()), {}, KeyboardInterrupt, None),
    "the disk of the source fails": (
        lambda: batches_then(OSError(5, "I/O error")), {}, InputError, "batches .* cannot be read: .*I/O error",
    ),
    "no batch": (lambda: iter(()), {}, InputError, "No batch of features"),
    "NaN": (lambda: [(X, Y), (X * np.nan, Y)], {}, InputError, "X_base holds NaN"),
    "an empty batch": (lambda: [(X, Y), (X[:0], Y[:0])], {}, InputError, "at least one sample"),
    "other width": (lambda: [(X, Y), (X[:, :4], Y)], {}, InputError, "4 features, but 6 were expected"),
    "too few labels": (lambda: [(X, Y[:5])], {}, InputError, "one label per sample"),
    "labels of two types": (lambda: [(X, Y), (X, np.arange(len(X)))], {}, InputError, "Labels must be of one type"),
    "longer floats later": (
        lambda: [(X.astype(np.float32), Y), (X, Y)], {}, InputError, "float32 in the first batch and float64",
    ),
    "no pairs": (lambda: [X, Y], {}, InputError, "pairs of features and labels"),
    # What cannot be saved is refused before the batches are read.
    "a bank is there": (untouched, {"overwrite": False}, InputError, "pass overwrite=True"),
    "about": (untouched, {"about": {"made": object()}}, ParameterError, "about must hold only what JSON can"),
    "no form": (
        untouched, {"samples": False}, ParameterError, "must be one of low-rank, dense, diagonal, pooled if samples",
    ),
    "another form": (untouched, {"samples": False, "covariance": "factored"}, ParameterError, "got 'factored'"),
    "a form beside samples": (untouched, {"covariance": "diagonal"}, ParameterError, "pass samples=False"),
}  # fmt: skip


@pytest.mark.parametrize(("batches", "how", "kind", "message"), WRONG.values(), ids=WRONG)
def test_what_goes_wrong_leaves_what_was_there_and_nothing_else(batches, how, kind, message, tmp_path):
    path = tmp_path / "one.bank"
    ragged_bank().save(path)
    with pytest.raises(kind, match=message) as error:
        BaseClasses.from_batches(batches(), path, **{"overwrite": True, **how})
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == [path]
    assert BaseClasses.load(path).fingerprint == ragged_bank().fingerprint


@pytest.mark.parametrize("size", [500, 3200, 3500], ids=["batches", "samples", "statistics"])
def test_a_full_disk_is_one_sentence_and_leaves_nothing_behind(size, tmp_path):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # No file grows beyond so many bytes, as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        with pytest.raises(InputError, match="cannot be written: ") as error:
            BaseClasses.from_batches(batches(X, Y), tmp_path / "one.bank")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(error.value)
    assert list(tmp_path.iterdir()) == []


# --- from parts, without samples ----------------------------------------------------------------------------

SPACES = {
    "default": {},
    "few axes": {"n_components": 3},
    "two axes": {"n_components": 2},
    "all axes": {"n_components": None},
    "not normalised": {"normalize": None, "n_components": None},
    "not normalised, reduced": {"normalize": None, "n_components": 0.9},
    "square roots": {"power": 0.5},
    "logarithms": {"power": 0.0},
    "offset": {"power": 0.5, "power_offset": 1.0},
    "published": {"power": 0.5, "power_on_base": False, "normalize": None, "n_components": None},
}
CASES = [
    *((space, RAGGED, np.float64) for space in SPACES),
    *((space, RAGGED, np.float32) for space in ("default", "square roots")),
    *(("two axes", sizes, np.float64) for sizes in [(1, 1, 1), (1, 5, 1), (4,)]),
]


def parts_of(X, y, cuts=(5, 6, 40)):
    return [lambda part=part: part for part in batches(X, y, cuts)]


@pytest.mark.filterwarnings("ignore::hotshot.errors.ScaleWarning")
@pytest.mark.parametrize("covariance", ["dense", "diagonal", "pooled"])
@pytest.mark.parametrize(("name", "sizes", "dtype"), CASES)
def test_a_bank_from_parts_is_one_saved_without_samples(name, sizes, covariance, dtype, tmp_path):
    space = SPACES[name]
    X, y = shuffled(sizes=sizes, dtype=dtype, power=space.get("power", 1))
    # Features that are never negative get the power 1/2 by themselves.
    stated = {key: x for key, x in space.items() if (key, x) != ("power", 0.5)}
    gathered = BaseClasses.from_partitions(parts_of(X, y), covariance=covariance, **stated)
    full = BaseClasses.from_samples(X, y)
    full.prepare(Space(**{"power": 1.0, **space}))
    expected = saved(full, tmp_path / "one.bank", samples=False, covariance=covariance)
    tight = 1e-4 if dtype is np.float32 else 1e-6
    assert repr(gathered) == repr(expected)
    assert (gathered.names.tolist(), gathered.counts.tolist()) == (expected.names.tolist(), expected.counts.tolist())
    assert gathered.dtype == dtype
    ((mine, a),), ((theirs, b),) = gathered.prepared.items(), expected.prepared.items()
    assert mine == theirs
    assert a.means.dtype == b.means.dtype == dtype
    np.testing.assert_allclose(a.spectrum, b.spectrum, atol=tight * b.spectrum.max())
    # The signs of axes are arbitrary.
    for one in ("means", "weighted_means", "mean_units"):
        x, z = (getattr(p, one) @ p.transform.axes.T for p in (a, b))
        np.testing.assert_allclose(x, z, atol=tight * np.abs(z).max())
    np.testing.assert_allclose(np.abs(a.covariances.variances), np.abs(b.covariances.variances), atol=tight)
    for one in gathered.centres:
        np.testing.assert_allclose(gathered.centre(one), full.centre(one), rtol=max(1e-9, tight))
    loaded = saved(gathered, tmp_path / "two.bank")
    assert loaded.fingerprint == gathered.fingerprint
    settings = {**space, "cost": "mean-cosine"}
    got, again, wanted = (probabilities(bank, **settings) for bank in (gathered, loaded, expected))
    np.testing.assert_array_equal(got, again)
    np.testing.assert_allclose(got, wanted, atol=10 * tight if dtype is np.float32 else tight)


def test_a_centre_that_no_pass_has_seen_needs_the_samples():
    # The centre with an offset says nothing of the one without.
    X, y = shuffled(power=0.5)
    bank = BaseClasses.from_partitions(parts_of(X, y), power=0.5, power_offset=1.0)
    for power in (0.5, 0.8):
        with pytest.raises(ParameterError, match="keeps no samples, which the centre"):
            bank.centre(power)


def test_a_part_may_be_a_batch_or_batches_or_a_file(tmp_path):
    X, y = shuffled()
    np.savez(tmp_path / "three.npz", X=X[30:], y=y[30:])
    mixed = [
        lambda: (X[:10], y[:10]),
        lambda: batches(X[10:20], y[10:20], (3,)),
        lambda: list(batches(X[20:30], y[20:30], (1, 3))),
        tmp_path / "three.npz",
    ]
    gathered = BaseClasses.from_partitions(mixed)
    whole = BaseClasses.from_partitions(parts_of(X, y, ()))
    assert gathered.counts.tolist() == whole.counts.tolist()
    a, b = (probabilities(bank, cost="mean-cosine") for bank in (gathered, whole))
    np.testing.assert_allclose(a, b, atol=1e-9)
    assert BaseClasses.from_partitions([str(tmp_path / "three.npz")]).counts.sum() == 36


BAD_PARTS = {
    "none": ([], {}, ParameterError, "partitions is empty"),
    "no such file": ([*parts_of(X, Y), "nowhere.npz"], {}, InputError, "nowhere.npz"),
    "other labels": (
        [*parts_of(X, Y), lambda: (X, np.arange(len(X)))], {}, InputError, "Labels must be of one type",
    ),
    "no batch at all": ([lambda: iter(())], {}, InputError, "hold no samples: pass feature files"),
    "negatives under a root": (parts_of(X, Y), {"power": 0.5}, InputError, "power=1"),
    "classifier weights": (
        parts_of(X, Y), {"sample_weights": "classifier"}, ParameterError, "sample_weights='uniform'",
    ),
    "factored": (parts_of(X, Y), {"covariance": "factored"}, ParameterError, "dense, diagonal or pooled"),
    "too many axes": (parts_of(X, Y), {"n_components": 7}, ParameterError, "n_components must be at most"),
}  # fmt: skip


@pytest.mark.parametrize(("parts", "settings", "kind", "message"), BAD_PARTS.values(), ids=BAD_PARTS)
def test_bad_parts_are_one_sentence(parts, settings, kind, message):
    with pytest.raises(kind, match=re.escape(message)) as error:
        BaseClasses.from_partitions(parts, **settings)
    assert "\n" not in str(error.value)
