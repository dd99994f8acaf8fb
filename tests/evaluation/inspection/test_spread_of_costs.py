"""The costs that an inspection tells of are those of the classifier."""

from __future__ import annotations

import numpy as np
import pytest
from inspected_files import classes, codes, inspected

from hotshot.base import BaseClasses
from hotshot.estimators import (
    HOTClassifier,
)
from hotshot.evaluation.inspection.costs import cost_spread
from hotshot.evaluation.inspection.sampling import Sample


def test_lenders_are_those_of_the_classifier():
    X, y = classes(9, 12, 7)
    novel, _ = classes(5, 1, 7, seed=3)
    base = Sample(X, np.repeat(np.arange(9), 12))
    spread = cost_spread(base, Sample(novel, np.arange(5)), 0.5)
    model = HOTClassifier(BaseClasses.from_samples(X, y), power=0.5, n_components=None).fit(
        novel, list("abcde")
    )
    weights = model.transfer_weights_.astype(np.float64)
    lenders = np.exp(-np.sum(weights * np.log(weights), axis=1)).mean()
    assert spread.lenders == pytest.approx(lenders, rel=1e-3)
    assert spread.epsilon == model.epsilon
    assert (spread.ways, spread.base_classes, spread.most) == (5, 9, 9)
    assert spread.fewest <= spread.lenders <= spread.most
    assert spread.plan == "selective"


def test_spread_of_costs_is_measured_over_all_samples():
    rng = np.random.default_rng(0)
    X, novel = rng.normal(size=(30, 4)), rng.normal(size=(2, 4))
    spread = cost_spread(Sample(X, np.repeat(np.arange(3), 10)), Sample(novel, np.arange(2)), 1.0)
    z, targets = (x - X.mean(axis=0) for x in (X, novel))
    z, targets = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (z, targets))
    costs = 1 - z @ targets.T
    assert spread.deviation == pytest.approx(costs.std())
    assert spread.median == pytest.approx(np.median(costs))
    assert spread.quartile_range == pytest.approx(np.subtract(*np.percentile(costs, [75, 25])))


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_too_few_classes_have_no_costs(n_classes):
    X = np.random.default_rng(0).normal(size=(12, 3))
    assert cost_spread(Sample(X, np.arange(12) % n_classes), None, 1.0) is None


def far_apart():
    """Ten base classes in five directions, and five novel classes in the same."""
    rng = np.random.default_rng(0)
    directions = np.eye(5) * 5 + 5
    y, y_novel = np.repeat(np.arange(10), 20), np.repeat(np.arange(100, 105), 20)
    X = directions[y % 5] + 0.3 * rng.normal(size=(200, 5))
    return (X, y), (directions[y_novel % 5] + 0.3 * rng.normal(size=(100, 5)), y_novel)


def test_an_epsilon_too_small_or_too_large_is_said():
    assert codes(inspected(*far_apart())) == {"epsilon-small"}
    rng = np.random.default_rng(0)
    noise = np.exp(0.5 * rng.normal(size=(4000, 100)))
    found = inspected((noise, np.repeat(np.arange(20), 200)))
    assert codes(found) == {"epsilon-large"}
    assert found.files[0].costs.plan == "uniform"
