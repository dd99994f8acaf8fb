"""A bounded sample of a file tells which classes are whole, their ranks and their deviations."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from inspected_files import classes, codes, inspected, measured

from hotshot.bank import BaseClasses
from hotshot.classifiers import FreeLunchClassifier
from hotshot.errors import ScaleWarning
from hotshot.evaluation.inspection.measure import BoundedSample
from hotshot.evaluation.inspection.spread import Sample, class_ranks, covariance_rank, deviation_within_classes


@pytest.mark.parametrize("rows", [7, 64, 1000])
def test_the_sample_is_bounded_and_says_which_classes_are_whole(rows):
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.full(5, 0), rng.integers(1, 12, size=995)])
    X = np.arange(1000.0)[:, None]
    sample = BoundedSample(4, 6, 1, X.dtype)
    for start in range(0, 1000, rows):
        part = slice(start, start + rows)
        sample.add(X[part], labels[part], np.arange(len(X[part])), start)
    kept = sample.take()
    numbers, counts = np.unique(kept.labels, return_counts=True)
    assert len(numbers) == 4
    assert counts.max() == 6
    np.testing.assert_array_equal(labels[kept.X[:, 0].astype(int)], kept.labels)
    for label, count in zip(numbers, counts, strict=True):
        assert (label in kept.whole) == (count == np.sum(labels == label))


def test_a_class_of_exactly_the_limit_is_whole():
    sample = BoundedSample(3, 10, 1, np.dtype(float))
    sample.add(np.ones((10, 1)), np.zeros(10, dtype=int), np.arange(10), 0)
    assert sample.take().whole == {0}
    sample.add(np.ones((1, 1)), np.zeros(1, dtype=int), np.arange(1), 10)
    kept = sample.take()
    assert (len(kept.X), kept.whole) == (10, set())


def test_the_sample_is_spread_over_the_file():
    sample = BoundedSample(1, 100, 1, np.dtype(float))
    sample.add(np.arange(10_000.0)[:, None], np.zeros(10_000, dtype=int), np.arange(10_000), 0)
    kept = sample.take().X[:, 0]
    assert np.diff(kept).max() < 300
    assert kept[0] < 300
    assert kept[-1] > 9_700


@given(st.integers(2, 30), st.integers(1, 12), st.integers(1, 12), st.sampled_from([1e-6, 1.0, 1e6]))
@example(4, 4, 1, 1e6)
def test_rank_is_that_of_the_centred_samples(n, width, rank, scale):
    rng = np.random.default_rng([n, width, rank])
    rank = min(rank, width)
    rows = scale * (rng.normal(size=(n, rank)) @ rng.normal(size=(rank, width)) + 5)
    expected = np.linalg.matrix_rank(rows - rows.mean(axis=0), tol=1e-9 * scale)
    assert covariance_rank(rows) == expected
    assert covariance_rank(rows.astype(np.float32)) == expected


def test_ranks_of_classes():
    rng = np.random.default_rng(0)
    sizes = (2, 5, 40, 1, 30)
    labels = np.repeat(np.arange(5), sizes)
    X = rng.normal(size=(len(labels), 8))
    X[labels == 4, 3] = 0
    assert class_ranks(Sample(X, labels, frozenset(range(5)))) == {
        "looked_at": 4,
        "smallest": 1,
        "median": np.median([1, 4, 8, 7]),
        "largest": 8,
        "possible": [1, 8],
        "singular": 3,
        "deficient": 1,
    }
    assert class_ranks(Sample(X[:1], labels[:1], frozenset({0}))) is None


def test_a_part_of_a_class_tells_its_rank_only_with_many_rows():
    X = np.random.default_rng(0).normal(size=(16, 8))
    labels = np.zeros(16, dtype=int)
    assert class_ranks(Sample(X, labels))["smallest"] == 8
    assert class_ranks(Sample(X[:15], labels[:15])) is None


def test_large_classes_are_ranked_by_the_few_that_are_kept_whole():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 160)).astype(np.float32), np.repeat(np.arange(10), 300)
    ranks = measured(X, y).values["ranks"]
    assert (ranks["looked_at"], ranks["smallest"], ranks["singular"]) == (10, 160, 0)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_deviation_is_that_of_the_pooled_covariance(scale):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [4, 10, 1])
    X = rng.normal(size=(15, 6)) * rng.uniform(1, 3, size=6)
    squares = sum(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum(axis=0) for c in range(3))
    expected = scale * np.sqrt(np.mean(squares / 12))
    assert deviation_within_classes(Sample(scale * X, labels)) == pytest.approx(expected, rel=1e-12)
    alone = deviation_within_classes(Sample(scale * X, np.arange(15)))
    assert alone == pytest.approx(scale * np.sqrt(X.var(axis=0, ddof=1).mean()))


@pytest.mark.parametrize("scale", [0.01, 0.2, 1.0, 10.0, 50.0])
def test_the_finding_about_scale_is_the_warning_of_the_estimator(scale):
    X, y = classes(10, 20, 6)
    X = scale * X
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ScaleWarning)
        FreeLunchClassifier(BaseClasses.from_samples(X, y), random_state=0).fit(X[:40:20], ["a", "b"])
    warned = any(issubclass(w.category, ScaleWarning) for w in caught)
    assert ("scale" in codes(inspected((X, y)))) == warned
