"""Banks from one pass over batches, and from parts of the features, are those of all samples in memory."""

from __future__ import annotations

import re
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import make_bank
from few_shot_problems import RAGGED, ragged_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.bank import Space
from hotshot.bank import bank as bank_module
from hotshot.errors import InputError, ParameterError

NAMES = np.array(["zebra", "ant", "mole", "bee", "elk", "owl"])


def shuffled(sizes=RAGGED, width=6, dtype=np.float64, power=1, seed=0):
    """Samples of ragged classes in any order, and their names; never negative where the power is not 1."""
    bank = ragged_bank(sizes=sizes, width=width, dtype=dtype, seed=seed)
    order = np.random.default_rng(seed + 1).permutation(len(bank.samples))
    X = bank.samples[order] * 3
    return X if power == 1 else np.abs(X) + dtype(0.01), NAMES[bank.labels[order]]


def batches(X, y, cuts=(5, 6, 40)):
    """Batches between the cuts, once."""
    for rows in np.split(np.arange(len(X)), sorted(cuts)):
        if len(rows):
            yield X[rows], y[rows]


def task(width=6, dtype=np.float64, power=1):
    X, y = make_bank(3, 9, width, seed=9, spread=0.8)
    X = (3 * X if power == 1 else np.abs(3 * X) + 0.01).astype(dtype)
    return X[::3], y[::3], X


def probabilities(bank, dtype=np.float64, **settings):
    """Predictions for one task with that bank."""
    X, y, queries = task(bank.n_features, dtype, settings.get("power", 1))
    return HOTClassifier(bank, **settings).fit(X, y).predict_proba(queries)


# --- one pass over batches ----------------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.lists(st.integers(0, sum(RAGGED)), max_size=6), st.integers(0, 9))
def test_a_bank_from_batches_is_that_of_all_samples(tmp_path_factory, cuts, seed):
    X, y = shuffled(seed=seed)
    expected = BaseClasses.from_samples(X, y)
    path = tmp_path_factory.mktemp("banks") / "one.bank"
    bank = BaseClasses.from_batches(batches(X, y, cuts), path)
    np.testing.assert_array_equal(bank.samples, expected.samples)
    assert bank.names.tolist() == expected.names.tolist()
    assert bank.counts.tolist() == expected.counts.tolist()
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
    BaseClasses.from_samples(X, y).save(tmp_path / "two.bank", samples=False, covariance=covariance)
    expected = BaseClasses.load(tmp_path / "two.bank")
    assert bank.fingerprint == expected.fingerprint
    np.testing.assert_array_equal(probabilities(bank, cost="mean-cosine"), probabilities(expected, cost="mean-cosine"))


# --- what goes wrong leaves nothing behind ------------------------------------------------------------------

X, Y = shuffled()


def after_two(error):
    yield X[:5], Y[:5]
    yield X[5:9], Y[5:9]
    raise error


WRONG = {
    "the source fails": (lambda: after_two(RuntimeError("no more")), RuntimeError, "no more"),
    "the disk of the source fails": (lambda: after_two(OSError(5, "I/O error")), InputError, "cannot be read"),
    "no batch": (lambda: iter(()), InputError, "No batch of features"),
    "NaN": (lambda: [(X, Y), (X * np.nan, Y)], InputError, "X_base holds NaN"),
    "an empty batch": (lambda: [(X, Y), (X[:0], Y[:0])], InputError, "at least one sample"),
    "other width": (lambda: [(X, Y), (X[:, :4], Y)], InputError, "4 features, but 6 were expected"),
    "too few labels": (lambda: [(X, Y[:5])], InputError, "one label per sample"),
    "labels of two types": (lambda: [(X, Y), (X, np.arange(len(X)))], InputError, "Labels must be of one type"),
    "longer floats later": (
        lambda: [(X.astype(np.float32), Y), (X, Y)], InputError, "float32 in the first batch and float64",
    ),
    "no pairs": (lambda: [X, Y], InputError, "pairs of features and labels"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_goes_wrong_leaves_what_was_there_and_nothing_else(case, tmp_path):
    make, kind, message = WRONG[case]
    path = tmp_path / "one.bank"
    ragged_bank().save(path)
    with pytest.raises(kind, match=message) as error:
        BaseClasses.from_batches(make(), path, overwrite=True)
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


@pytest.mark.parametrize("what", ["spool_samples", "write_bank", "prepare"])
def test_an_interruption_leaves_nothing_behind(what, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(bank_module, what, interrupted)
    with pytest.raises(KeyboardInterrupt):
        BaseClasses.from_batches(batches(X, Y), tmp_path / "one.bank")
    assert list(tmp_path.iterdir()) == []


def untouched():
    pytest.fail("batches were asked for although the bank cannot be written")
    yield


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "pass overwrite=True"),
        ({"about": {"made": object()}}, "about must hold only what JSON can"),
        ({"samples": False}, "covariance must be one of low-rank, dense, diagonal, pooled if samples are not saved"),
        ({"samples": False, "covariance": "factored"}, "got 'factored'"),
        ({"covariance": "diagonal"}, "pass samples=False"),
    ],
)
def test_what_cannot_be_saved_is_refused_before_the_batches_are_read(settings, message, tmp_path):
    path = tmp_path / "one.bank"
    ragged_bank().save(path)
    with pytest.raises((InputError, ParameterError), match=message):
        BaseClasses.from_batches(untouched(), path, **settings)
    assert list(tmp_path.iterdir()) == [path]
    assert BaseClasses.load(path).fingerprint == ragged_bank().fingerprint


# --- from parts, without samples ----------------------------------------------------------------------------

SPACES = {
    "default": {},
    "few axes": {"n_components": 3},
    "all axes": {"n_components": None},
    "not normalised": {"normalize": None, "n_components": None},
    "not normalised, reduced": {"normalize": None, "n_components": 0.9},
    "square roots": {"power": 0.5},
    "logarithms": {"power": 0.0},
    "offset": {"power": 0.5, "power_offset": 1.0},
    "published": {"power": 0.5, "power_on_base": False, "normalize": None, "n_components": None},
}


def parts_of(X, y, cuts=(5, 6, 40)):
    return [lambda part=part: part for part in batches(X, y, cuts)]


def saved_without_samples(X, y, covariance, space, path):
    bank = BaseClasses.from_samples(X, y)
    bank.prepare(Space(**{"power": 1.0, **space}))
    bank.save(path, samples=False, covariance=covariance)
    return BaseClasses.load(path)


@pytest.mark.filterwarnings("ignore::hotshot.errors.ScaleWarning")
@pytest.mark.parametrize("covariance", ["dense", "diagonal", "pooled"])
@pytest.mark.parametrize(
    ("name", "dtype"), [*((name, np.float64) for name in SPACES), ("default", np.float32), ("square roots", np.float32)]
)
def test_a_bank_from_parts_is_one_saved_without_samples(name, covariance, dtype, tmp_path):
    space = SPACES[name]
    power = space.get("power", 1)
    X, y = shuffled(dtype=dtype, power=power)
    # Features that are never negative get the power 1/2 by themselves.
    stated = {key: x for key, x in space.items() if (key, x) != ("power", 0.5)}
    gathered = BaseClasses.from_partitions(parts_of(X, y), covariance=covariance, **stated)
    expected = saved_without_samples(X, y, covariance, space, tmp_path / "one.bank")
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
        np.testing.assert_allclose(
            gathered.centre(one), BaseClasses.from_samples(X, y).centre(one), rtol=max(1e-9, tight)
        )
    gathered.save(tmp_path / "two.bank")
    loaded = BaseClasses.load(tmp_path / "two.bank")
    assert loaded.fingerprint == gathered.fingerprint
    settings = {**space, "cost": "mean-cosine"}
    got, again, wanted = (probabilities(bank, dtype, **settings) for bank in (gathered, loaded, expected))
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


def parts_with(bad):
    return [*parts_of(X, Y), bad]


BAD_PARTS = {
    "none": ([], {}, ParameterError, "partitions is empty"),
    "no such file": (parts_with("nowhere.npz"), {}, InputError, "nowhere.npz"),
    "other labels": (parts_with(lambda: (X, np.arange(len(X)))), {}, InputError, "Labels must be of one type"),
    "no batch at all": ([lambda: iter(())], {}, InputError, "hold no samples: pass feature files"),
    "negatives under a root": (parts_of(X, Y), {"power": 0.5}, InputError, "power=1"),
    "classifier weights": (
        parts_of(X, Y), {"sample_weights": "classifier"}, ParameterError, "sample_weights='uniform'",
    ),
    "factored": (parts_of(X, Y), {"covariance": "factored"}, ParameterError, "dense, diagonal or pooled"),
    "too many axes": (parts_of(X, Y), {"n_components": 7}, ParameterError, "n_components must be at most"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_PARTS)
def test_bad_parts_are_one_sentence(case):
    parts, settings, kind, message = BAD_PARTS[case]
    with pytest.raises(kind, match=re.escape(message)) as error:
        BaseClasses.from_partitions(parts, **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 5, 1), (4,)])
@pytest.mark.parametrize("covariance", ["dense", "diagonal", "pooled"])
def test_classes_of_one_sample_are_gathered_too(sizes, covariance, tmp_path):
    X, y = shuffled(sizes=sizes)
    gathered = BaseClasses.from_partitions(parts_of(X, y, (1, 2)), covariance=covariance, n_components=2)
    expected = saved_without_samples(X, y, covariance, {"n_components": 2}, tmp_path / "one.bank")
    settings = {"cost": "mean-cosine", "n_components": 2}
    a, b = (probabilities(bank, **settings) for bank in (gathered, expected))
    np.testing.assert_allclose(a, b, atol=1e-6)
