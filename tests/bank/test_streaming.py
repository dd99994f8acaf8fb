"""Statistics from batches are those of all samples together, however these are batched, ordered and merged."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from few_shot_problems import RAGGED
from hotshot.bank import ClassStatistics
from hotshot.errors import InputError, ParameterError

FORMS = ("dense", "diagonal")


def samples(sizes=RAGGED, width=4, seed=0, offset=0.0):
    """Shuffled samples of Gaussian classes of these sizes, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return offset + rng.normal(size=(len(sizes), width))[y] + rng.normal(size=(len(y), width)), y


def gathered(X, y, cuts=(), form="dense"):
    """Statistics of X cut into batches."""
    statistics = ClassStatistics(form)
    for rows in np.split(np.arange(len(X)), sorted(cuts)):
        if len(rows):
            statistics.partial_fit(X[rows], y[rows])
    return statistics


def check(statistics, X, y, rtol=1e-10):
    """Against NumPy's own mean and covariance of each class, relative to the largest entry."""
    X = np.asarray(X, dtype=np.float64)
    names = np.unique(y)
    classes = [X[y == name] for name in names]
    within = sum((x - x.mean(axis=0)).T @ (x - x.mean(axis=0)) for x in classes)
    pooled = within / (len(X) - len(names)) if len(X) > len(names) else np.cov(X.T)
    covariances = np.stack([np.cov(x.T) if len(x) > 1 else pooled for x in classes])
    assert statistics.names.tolist() == names.tolist()
    assert statistics.counts.tolist() == [len(x) for x in classes]
    close(statistics.means, [x.mean(axis=0) for x in classes], rtol)
    close(statistics.mean, X.mean(axis=0), rtol)
    close(statistics.pooled_covariance, pooled, rtol)
    close(
        statistics.covariances, covariances if statistics.form == "dense" else np.einsum("bvv->bv", covariances), rtol
    )
    centre = X.mean(axis=0)
    close(statistics.moment(centre), (X - centre).T @ (X - centre), rtol)
    assert (statistics.smallest, statistics.largest) == (X.min(), X.max())


def close(got, expected, rtol):
    expected = np.asarray(expected)
    np.testing.assert_allclose(got, expected, rtol=0, atol=rtol * np.abs(expected).max())


SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=5).filter(lambda sizes: sum(sizes) > 1)


@given(SIZES, st.data(), st.sampled_from(FORMS), st.integers(0, 99))
def test_any_batches_and_any_tree_of_merges_give_the_statistics_of_all_samples(sizes, data, form, seed):
    X, y = samples(sizes, width=3, seed=seed)
    cuts = data.draw(st.lists(st.integers(0, len(X)), max_size=6))
    check(gathered(X, y, cuts, form), X, y)
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
    # What the samples themselves are rounded to is all that is lost.
    check(gathered(X, y, range(0, len(X), 7), form), X, y, rtol=1e-14 * abs(offset))
    merged = gathered(X[:100], y[:100], (), form).merge(gathered(X[100:], y[100:], (50,), form))
    check(merged, X, y, rtol=1e-14 * abs(offset))


def test_a_single_sample_has_no_spread():
    X, y = samples(sizes=(1,))
    np.testing.assert_array_equal(gathered(X, y).covariances, np.zeros((1, 4, 4)))


@pytest.mark.parametrize(
    "names",
    [np.array(["zebra", "ant", "mole", "bee", "é", "owl"]), np.array(["zebra", "ant", "mole", "bee", "é", "owl"], "O"),
     np.array([5, -3, 9, 0, 7, 2]), np.array([0.5, -3.0, 9.0, 0.0, 7.25, 2.0]), np.array([False, True] * 3)],
    ids=["text", "objects", "integers", "floats", "truths"],
)  # fmt: skip
def test_names_are_the_labels_sorted(names):
    X, y = samples()
    y = names[y]
    check(gathered(X, y, range(0, len(y), 4)), X, y)
    listed = ClassStatistics().partial_fit(X.tolist(), y.tolist())
    check(listed.merge(gathered(X, y)), np.tile(X, (2, 1)), np.tile(y, 2))


@pytest.mark.parametrize("form", FORMS)
def test_merging_changes_none_of_its_parts(form):
    X, y = samples()
    parts = [gathered(X[:20], y[:20], (), form), gathered(X[20:], y[20:], (), form), ClassStatistics(form)]
    before = [pickle.dumps(part) for part in parts]
    merged = parts[0].merge(*parts[1:])
    assert [pickle.dumps(part) for part in parts] == before
    check(merged, X, y)
    # Nor does going on with the merged ones, or with a part.
    merged.partial_fit(X, y)
    assert [pickle.dumps(part) for part in parts] == before
    after = pickle.dumps(merged)
    parts[0].partial_fit(X, y)
    assert pickle.dumps(merged) == after


# --- what is refused ----------------------------------------------------------------------------------------

X, Y = samples(width=3)
BAD_BATCHES = {
    "other width": (X[:, :2], Y, "2 features, but 3 were expected"),
    "NaN": (np.where(np.arange(3) == 1, np.nan, X), Y, "NaN or infinity"),
    "too few labels": (X, Y[:-1], "one label per sample"),
    "labels of text": (X, Y.astype(str), "Labels must be of one type"),
    "labels of both": (X[:2], [1, "a"], "mixes labels that cannot be sorted"),
}


@pytest.mark.parametrize("case", BAD_BATCHES)
def test_a_bad_batch_is_refused_and_changes_nothing(case):
    bad_X, bad_y, message = BAD_BATCHES[case]
    statistics = gathered(X, Y)
    before = pickle.dumps(statistics)
    with pytest.raises(InputError, match=message):
        statistics.partial_fit(bad_X, bad_y)
    assert pickle.dumps(statistics) == before


BAD_MERGES = {
    "other form": (gathered(X, Y, (), "diagonal"), ParameterError, "forms 'dense' and 'diagonal'"),
    "empty of another form": (ClassStatistics("diagonal"), ParameterError, "use one form"),
    "other width": (gathered(X[:, :2], Y), InputError, "of 3 and of 2 features"),
    "other labels": (gathered(X, Y.astype(str)), InputError, "Labels must be of one type"),
}


@pytest.mark.parametrize("case", BAD_MERGES)
def test_statistics_of_other_kinds_do_not_merge(case):
    other, kind, message = BAD_MERGES[case]
    statistics = gathered(X, Y)
    with pytest.raises(kind, match=message):
        statistics.merge(other)
    check(statistics, X, Y)


def test_other_forms_are_refused():
    with pytest.raises(ParameterError, match="form must be dense or diagonal, got 'full'"):
        ClassStatistics("full")
