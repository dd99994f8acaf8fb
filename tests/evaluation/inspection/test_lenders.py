"""The costs that an inspection tells of are those of the classifier."""

from __future__ import annotations

import numpy as np
import pytest
from inspected_files import classes, codes, inspected

from hotshot.bank import BaseClasses
from hotshot.classifiers import HOTClassifier
from hotshot.evaluation.inspection.spread import Sample, transport_costs


def test_lenders_are_those_of_the_classifier():
    X, y = classes(9, 12, 7)
    novel, _ = classes(5, 1, 7, seed=3)
    base = Sample(X, np.repeat(np.arange(9), 12))
    found = transport_costs(base, Sample(novel, np.arange(5)), float(min(X.min(), novel.min())))
    # With the root, as for banks of 20 classes or more.
    model = HOTClassifier(BaseClasses.from_samples(X, y), power=0.5).fit(novel, list("abcde"))
    weights = model.transfer_weights_.astype(np.float64)
    lenders = np.exp(-np.sum(weights * np.log(weights), axis=1)).mean()
    assert found["lenders"] == pytest.approx(lenders, rel=1e-4)
    assert found["epsilon"] == model.chosen_["epsilon"]
    assert (found["ways"], found["base_classes"], found["most"]) == (5, 9, 9)
    assert found["fewest"] <= found["lenders"] <= found["most"]
    assert found["plan"] == "selective"


def test_costs_are_measured_over_all_samples():
    rng = np.random.default_rng(0)
    X, novel = rng.normal(size=(30, 4)), rng.normal(size=(2, 4))
    found = transport_costs(Sample(X, np.repeat(np.arange(3), 10)), Sample(novel, np.arange(2)), -1.0)
    z, targets = (x - X.mean(axis=0) for x in (X, novel))
    z, targets = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (z, targets))
    costs = 1 - z @ targets.T
    # All four axes are needed for 98% of the variance here.
    assert found["deviation"] == pytest.approx(costs.std())
    assert found["median"] == pytest.approx(np.median(costs))
    assert found["quartile_range"] == pytest.approx(np.subtract(*np.percentile(costs, [75, 25])))
    assert found["epsilon_over_deviation"] == pytest.approx(found["epsilon"] / costs.std())


def test_classes_are_held_out_where_there_is_no_novel_file():
    X, _ = classes(60, 5, 7)
    found = transport_costs(Sample(X, np.repeat(np.arange(60), 5)), None, 0.0)
    assert (found["ways"], found["base_classes"]) == (5, 48)


def test_wide_features_are_thinned_to_a_bound(monkeypatch):
    monkeypatch.setattr("hotshot.evaluation.inspection.spread.MOST_FEATURES", 8)
    (X, _), labels = classes(9, 12, 20), np.repeat(np.arange(9), 12)
    thinned = transport_costs(Sample(X[:, ::3], labels), None, 0.0)
    assert transport_costs(Sample(X, labels), None, 0.0) == thinned


def test_files_of_scales_that_no_space_holds_have_no_costs():
    X, labels = classes(6, 5, 4)[0].astype(np.float64), np.repeat(np.arange(6), 5)
    assert transport_costs(Sample(1e-300 * X, labels), Sample(1e300 * X, labels), 0.0) is None


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_too_few_classes_have_no_costs(n_classes):
    X = np.random.default_rng(0).normal(size=(12, 3))
    labels = np.sort(np.arange(12) % n_classes)
    assert transport_costs(Sample(X, labels), None, -1.0) is None


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
    assert found.files[0].values["costs"]["plan"] == "uniform"
