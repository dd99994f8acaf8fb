"""Statistics from batches are those of all samples together, however these are batched, ordered and merged."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from few_shot_problems import RAGGED, ragged_bank
from hotshot import BaseClasses
from hotshot.bank import ClassStatistics
from hotshot.bank.space import FeatureTransform
from hotshot.errors import InputError, ParameterError

FORMS = ("dense", "diagonal", "pooled")


def samples(sizes=RAGGED, width=4, seed=0, offset=0.0, spread=1.0):
    """Shuffled samples of Gaussian classes of these sizes, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    X = offset + rng.normal(size=(len(sizes), width))[y] + spread * rng.normal(size=(len(y), width))
    return X, y


def gathered(X, y, cuts=(), form="dense", **kwargs):
    """Statistics of X cut into batches."""
    found = ClassStatistics(form, **kwargs)
    for rows in np.split(np.arange(len(X)), sorted(cuts)):
        if len(rows):
            found.partial_fit(X[rows], y[rows])
    return found


def check(found, X, y, rtol=1e-10):
    """Against NumPy's own mean and covariance of each class, relative to the largest entry."""
    X = np.asarray(X, dtype=np.float64)
    names = np.unique(y)
    own = [X[y == name] for name in names]
    assert found.names.tolist() == names.tolist()
    assert found.counts.tolist() == [len(x) for x in own]
    close(found.means, [x.mean(axis=0) for x in own], rtol)
    close(found.mean, X.mean(axis=0), rtol)
    units = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in own]
    close(found.unit_means, [u.mean(axis=0) for u in units], rtol)
    within = sum((x - x.mean(axis=0)).T @ (x - x.mean(axis=0)) for x in own)
    pooled = within / (len(X) - len(names)) if len(X) > len(names) else np.cov(X.T)
    close(found.pooled_covariance, pooled, rtol)
    covariances = np.stack([np.cov(x.T) if len(x) > 1 else pooled for x in own])
    if found.form == "dense":
        close(found.covariances, covariances, rtol)
    if found.form != "pooled":
        close(found.variances, np.einsum("bvv->bv", covariances), rtol)
    centre = X.mean(axis=0)
    close(found.moment(centre), (X - centre).T @ (X - centre), rtol)
    close(found.moment(), X.T @ X, rtol)
    assert (found.smallest, found.largest) == (X.min(), X.max())


def close(got, expected, rtol):
    expected = np.asarray(expected)
    np.testing.assert_allclose(got, expected, rtol=0, atol=rtol * np.abs(expected).max())


# --- any batching, order and tree of merges -----------------------------------------------------------------

SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=5).filter(lambda sizes: sum(sizes) > 1)


@given(SIZES, st.data(), st.sampled_from(FORMS), st.integers(0, 99))
def test_batches_of_any_sizes_give_the_statistics_of_all_samples(sizes, data, form, seed):
    X, y = samples(sizes, width=3, seed=seed)
    cuts = data.draw(st.lists(st.integers(0, len(X)), max_size=8))
    check(gathered(X, y, cuts, form), X, y)


@given(SIZES, st.data(), st.sampled_from(FORMS), st.integers(0, 99))
def test_any_tree_of_merges_gives_the_statistics_of_all_samples(sizes, data, form, seed):
    X, y = samples(sizes, width=3, seed=seed)
    cuts = data.draw(st.lists(st.integers(0, len(X)), max_size=6))
    parts = [gathered(X[rows], y[rows], (), form) for rows in np.split(np.arange(len(X)), sorted(cuts))]
    while len(parts) > 1:
        parts = data.draw(st.permutations(parts))
        taken = data.draw(st.integers(2, len(parts)))
        parts = [parts[0].merge(*parts[1:taken]), *parts[taken:]]
    check(parts[0], X, y)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("offset", [1e6, -1e9])
def test_samples_far_from_zero_lose_no_digits_of_their_spread(form, offset):
    X, y = samples(sizes=(200, 150, 3), offset=offset)
    found = gathered(X, y, range(0, len(X), 7), form)
    # What the samples themselves are rounded to is all that is lost.
    check(found, X, y, rtol=1e-14 * abs(offset))
    merged = gathered(X[:100], y[:100], (), form).merge(gathered(X[100:], y[100:], (50,), form))
    check(merged, X, y, rtol=1e-14 * abs(offset))


@pytest.mark.parametrize("form", FORMS)
def test_where_all_classes_have_one_sample_they_share_the_covariance_of_all(form):
    X, y = samples(sizes=(1,) * 7)
    found = gathered(X, y, (3,), form)
    check(found, X, y)
    alone = gathered(X[:1], y[:1], (), form)
    np.testing.assert_array_equal(alone.pooled_covariance, np.zeros((4, 4)))


LABELS = {
    "text": np.array(["zebra", "ant", "mole", "bee", "é", "owl"]),
    "objects": np.array(["zebra", "ant", "mole", "bee", "é", "owl"], dtype=object),
    "integers": np.array([5, -3, 9, 0, 7, 2]),
    "floats": np.array([0.5, -3.0, 9.0, 0.0, 7.25, 2.0]),
    "truths": np.array([False, True] * 3),
}


@pytest.mark.parametrize("kind", LABELS)
def test_names_are_the_labels_sorted(kind):
    X, y = samples()
    y = LABELS[kind][y]
    check(gathered(X, y, range(0, len(y), 4)), X, y)
    listed = ClassStatistics().partial_fit(X.tolist(), y.tolist())
    check(listed.merge(gathered(X, y)), np.tile(X, (2, 1)), np.tile(y, 2))


# --- against the statistics in memory -----------------------------------------------------------------------


def test_a_transform_is_applied_to_every_batch():
    bank = ragged_bank()
    X = np.abs(bank.samples)
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.normal(size=(6, 4)))[0]
    transform = FeatureTransform(0.5, 0.1, 2.0, rng.normal(size=6), axes, unit=True)
    found = gathered(X, bank.labels, (11, 30), transform=transform)
    inside = BaseClasses.from_samples(transform(X), bank.labels)
    close(found.means, inside.means, 1e-12)
    close(found.covariances, inside.covariances, 1e-12)
    # Extent and dtype are of the features as they came.
    assert (found.smallest, found.largest) == (X.min(), X.max())
    copied = copy.deepcopy(transform)
    merged = found.merge(gathered(X, bank.labels, (), transform=copied))
    assert merged.counts.tolist() == (2 * bank.counts).tolist()


# --- merging leaves its parts alone -------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_merging_changes_none_of_its_parts(form):
    X, y = samples()
    parts = [gathered(X[:20], y[:20], (), form), gathered(X[20:], y[20:], (), form), ClassStatistics(form)]
    before = [pickle.dumps(part) for part in parts]
    merged = parts[0].merge(*parts[1:])
    assert [pickle.dumps(part) for part in parts] == before
    # Nor does going on with the merged ones, or with a part.
    merged.partial_fit(X, y)
    assert [pickle.dumps(part) for part in parts] == before
    kept = pickle.dumps(merged)
    parts[0].partial_fit(X, y)
    assert pickle.dumps(merged) == kept


def test_a_part_without_samples_adds_nothing():
    X, y = samples()
    found = gathered(X, y)
    check(found.merge(ClassStatistics()), X, y)
    check(ClassStatistics().merge(found, ClassStatistics()), X, y)
    check(found.merge(), X, y)


# --- what is refused ----------------------------------------------------------------------------------------

X, Y = samples(width=3)
BAD_BATCHES = {
    "other width": (X[:, :2], Y, InputError, "2 features, but 3 were expected"),
    "NaN": (np.where(np.arange(3) == 1, np.nan, X), Y, InputError, "NaN or infinity"),
    "no samples": (X[:0], Y[:0], InputError, "at least one sample"),
    "too few labels": (X, Y[:-1], InputError, "one label per sample"),
    "labels of text": (X, Y.astype(str), InputError, "mixes labels that cannot be sorted"),
    "labels of both": (X[:2], [1, "a"], InputError, "mixes labels that cannot be sorted"),
    "labels missing": (X[:2], [1.0, np.nan], InputError, "NaN"),
}


@pytest.mark.parametrize("case", BAD_BATCHES)
def test_a_bad_batch_is_refused_and_changes_nothing(case):
    bad_X, bad_y, kind, message = BAD_BATCHES[case]
    found = gathered(X, Y)
    before = pickle.dumps(found)
    with pytest.raises(kind, match=message) as error:
        found.partial_fit(bad_X, bad_y)
    assert "\n" not in str(error.value)
    assert pickle.dumps(found) == before
    check(found, X, Y)


def test_there_are_no_results_before_the_first_batch():
    for name in ("names", "counts", "means", "unit_means", "covariances", "variances", "pooled_covariance", "mean"):
        with pytest.raises(InputError, match="call partial_fit first"):
            getattr(ClassStatistics(), name)
    with pytest.raises(InputError, match="call partial_fit first"):
        ClassStatistics().moment()


@pytest.mark.parametrize(
    ("form", "name", "remedy"),
    [("diagonal", "covariances", "dense"), ("pooled", "covariances", "dense"), ("pooled", "variances", "diagonal")],
)
def test_forms_without_covariances_name_one_that_has_them(form, name, remedy):
    with pytest.raises(ParameterError, match=f"use form '{remedy}'"):
        getattr(gathered(X, Y, (), form), name)


def test_other_forms_are_refused():
    with pytest.raises(ParameterError, match="form must be one of dense, diagonal, pooled, got 'full'"):
        ClassStatistics("full")


TRANSFORM = FeatureTransform(1.0, 0.0, 1.0, np.zeros(3), np.eye(3), unit=False)
BAD_MERGES = {
    "other form": (lambda: gathered(X, Y, (), "pooled", transform=TRANSFORM), ParameterError, "'dense' and 'pooled'"),
    "empty of another form": (lambda: ClassStatistics("pooled"), ParameterError, "one form"),
    "other width": (lambda: gathered(X[:, :2], Y), InputError, "of 3 and of 2 features"),
    "other labels": (lambda: gathered(X, Y.astype(str), transform=TRANSFORM), InputError, "mixes labels"),
    "no transform": (lambda: gathered(X, Y), ParameterError, "one transform"),
} | {
    f"other {name}": (
        lambda name=name, value=value: gathered(X, Y, transform=replace(TRANSFORM, **{name: value})),
        ParameterError, "one transform",
    )
    for name, value in {"power": 2.0, "scale": 2.0, "centre": np.ones(3), "axes": -np.eye(3), "unit": True}.items()
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_MERGES)
def test_statistics_of_other_kinds_do_not_merge(case):
    make, kind, message = BAD_MERGES[case]
    mine, other = gathered(X, Y, transform=None if case == "other width" else TRANSFORM), make()
    with pytest.raises(kind, match=message) as error:
        mine.merge(other)
    assert "\n" not in str(error.value)
    check(mine, X, Y)
