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
SIZES = st.lists(st.integers(1, 9), min_size=1, max_size=5).filter(lambda sizes: sum(sizes) > 1)


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
    names = np.unique(y)
    classes = [X[y == name] for name in names]
    within = sum((x - x.mean(axis=0)).T @ (x - x.mean(axis=0)) for x in classes)
    pooled = within / (len(X) - len(names)) if len(X) > len(names) else np.cov(X.T)
    covariances = np.stack([np.cov(x.T) if len(x) > 1 else pooled for x in classes])
    if statistics.form == "diagonal":
        covariances = np.einsum("bvv->bv", covariances)
    assert statistics.names.tolist() == names.tolist()
    assert statistics.counts.tolist() == [len(x) for x in classes]
    assert (statistics.smallest, statistics.largest) == (X.min(), X.max())
    centre = X.mean(axis=0)
    for got, expected in (
        (statistics.means, [x.mean(axis=0) for x in classes]),
        (statistics.mean, centre),
        (statistics.pooled_covariance, pooled),
        (statistics.covariances, covariances),
        (statistics.moment(centre), (X - centre).T @ (X - centre)),
    ):
        np.testing.assert_allclose(got, expected, rtol=0, atol=rtol * np.abs(expected).max())


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
    np.testing.assert_array_equal(gathered(*samples(sizes=(1,))).covariances, np.zeros((1, 4, 4)))


@pytest.mark.parametrize("names", [np.array(["b", "a", "m", "e", "é", "o"]), np.array([0.5, -3.0, 9.0, 0.0, 7.2, 2.0])])
def test_lists_and_labels_of_any_type_are_merged(names):
    X, y = samples()
    y = names[y]
    listed = ClassStatistics().partial_fit(X.tolist(), y.tolist())
    check(listed.merge(gathered(X, y, (9, 30))), np.tile(X, (2, 1)), np.tile(y, 2))


def test_merging_changes_none_of_its_parts():
    X, y = samples()
    parts = [gathered(X[:20], y[:20]), gathered(X[20:], y[20:]), ClassStatistics()]
    before = [pickle.dumps(part) for part in parts]
    merged = parts[0].merge(*parts[1:])
    check(merged, X, y)
    # Nor does going on with the merged ones.
    merged.partial_fit(X, y)
    assert [pickle.dumps(part) for part in parts] == before


# --- what is refused ----------------------------------------------------------------------------------------

X, Y = samples(width=3)
BAD_BATCHES = {
    "other width": (X[:, :2], Y, "2 features, but 3 were expected"),
    "NaN": (np.where(np.arange(3) == 1, np.nan, X), Y, "NaN or infinity"),
    "labels of text": (X, Y.astype(str), "Labels must be of one type"),
}
BAD_MERGES = {
    "other form": (gathered(X, Y, (), "diagonal"), "forms 'dense' and 'diagonal' do not merge: use one form"),
    "empty of another form": (ClassStatistics("diagonal"), "use one form"),
    "other width": (gathered(X[:, :2], Y), "of 3 and of 2 features"),
    "other labels": (gathered(X, Y.astype(str)), "Labels must be of one type"),
}


@pytest.mark.parametrize(("bad_X", "bad_y", "message"), BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_a_bad_batch_is_refused_and_changes_nothing(bad_X, bad_y, message):
    statistics = gathered(X, Y)
    before = pickle.dumps(statistics)
    with pytest.raises(InputError, match=message):
        statistics.partial_fit(bad_X, bad_y)
    assert pickle.dumps(statistics) == before


@pytest.mark.parametrize(("other", "message"), BAD_MERGES.values(), ids=BAD_MERGES)
def test_statistics_of_other_kinds_do_not_merge(other, message):
    with pytest.raises((InputError, ParameterError), match=message):
        gathered(X, Y).merge(other)
    with pytest.raises(ParameterError, match="form must be dense or diagonal, got 'full'"):
        ClassStatistics("full")
