"""Retrieval by default: all base classes of small banks lend, of large ones each target's nearest."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import make_bank
from few_shot_problems import RAGGED, plain_space, ragged_bank, random_tasks, transfer_of
from hotshot import BaseClasses, FreeLunchClassifier, HOTClassifier, evaluate
from hotshot.arrays import like, to_numpy
from hotshot.evaluation.tasks import Episodes
from hotshot.method import hierarchy
from hotshot.method.hierarchy import COSTS

B = len(RAGGED)


@pytest.fixture(scope="module")
def base():
    return ragged_bank(spread=1.0).prepare(plain_space())


@pytest.mark.parametrize("cost", ["hierarchical", "mean-cosine"])
@pytest.mark.parametrize("limit", [B, B + 1])
def test_up_to_the_limit_auto_is_all(base, cost, limit, monkeypatch):
    monkeypatch.setattr(hierarchy, "ALL_UP_TO", limit)
    monkeypatch.setattr(hierarchy, "RETRIEVED", 1)
    targets, _ = random_tasks(base)
    auto, every = (transfer_of(base, targets, cost=cost, n_retrieved=n) for n in ("auto", None))
    np.testing.assert_array_equal(auto.weights, every.weights)


@pytest.mark.parametrize("cost", ["hierarchical", "euclidean"])
@pytest.mark.parametrize("retrieved", [1, B - 1])
def test_beyond_the_limit_auto_is_the_nearest(xp, base, cost, retrieved, monkeypatch):
    monkeypatch.setattr(hierarchy, "ALL_UP_TO", B - 1)
    monkeypatch.setattr(hierarchy, "RETRIEVED", retrieved)
    reference = xp.asarray([0.0], dtype=xp.float64)
    targets = like(random_tasks(base, n_tasks=2)[0], reference)
    there = base.to(reference)
    auto, some = (transfer_of(there, targets, cost=cost, n_retrieved=n) for n in ("auto", retrieved))
    np.testing.assert_array_equal(to_numpy(auto.weights), to_numpy(some.weights))
    assert ((to_numpy(auto.weights) > 0).sum(axis=1) == retrieved).all()


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("retrieved", [B, 100])
def test_where_all_are_retrieved_nothing_changes(base, cost, retrieved, monkeypatch):
    monkeypatch.setattr(hierarchy, "ALL_UP_TO", 0)
    monkeypatch.setattr(hierarchy, "RETRIEVED", retrieved)
    targets, _ = random_tasks(base)
    auto, every = (transfer_of(base, targets, cost=cost, n_retrieved=n) for n in ("auto", None))
    np.testing.assert_array_equal(auto.weights, every.weights)


def test_classifiers_retrieve_by_default(monkeypatch):
    bank = ragged_bank()
    X, y = make_bank(3, 4, 6, seed=3)
    every = HOTClassifier(bank).fit(X, y)
    np.testing.assert_array_equal(HOTClassifier(bank, n_retrieved=None).fit(X, y).coef_, every.coef_)
    monkeypatch.setattr(hierarchy, "ALL_UP_TO", 2)
    monkeypatch.setattr(hierarchy, "RETRIEVED", 2)
    some = HOTClassifier(bank).fit(X, y)
    assert ((some.transfer_weights_ > 0).sum(axis=1) == 2).all()
    np.testing.assert_array_equal(HOTClassifier(bank, n_retrieved=2).fit(X, y).coef_, some.coef_)
    np.testing.assert_array_equal(HOTClassifier(bank, n_retrieved=None).fit(X, y).coef_, every.coef_)


def test_the_nearest_two_lend_where_only_the_nearest_do(monkeypatch):
    monkeypatch.setattr(hierarchy, "ALL_UP_TO", 0)
    assert hierarchy.neighbours("auto", 50) == hierarchy.neighbours(None, 50) == 2
    assert hierarchy.neighbours(7, 50) == hierarchy.neighbours(np.int64(7), 50) == 7
    assert hierarchy.neighbours(70, 50) == 50
    X, y = make_bank(3, 1, 6, seed=3)
    weights = HOTClassifier(ragged_bank(), cost="nearest").fit(X, y).transfer_weights_
    np.testing.assert_array_equal(np.sort(weights, axis=1)[:, -3:], np.tile([0, 0.5, 0.5], (3, 1)))
    lending = FreeLunchClassifier(ragged_bank(), k=3, random_state=0).fit(X, y).transfer_weights_ > 0
    assert (lending.sum(axis=1) == 3).all()


# --- a bank of thousands of classes -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def large():
    """2,000 classes of 5 samples, and 8 novel classes among them."""
    X, y = make_bank(2008, 5, 32, spread=0.3, dtype=np.float32)
    more, labels = make_bank(2008, 20, 32, spread=0.3, dtype=np.float32)
    novel = labels >= 2000
    return BaseClasses.from_samples(X[y < 2000], y[y < 2000]), more[novel], labels[novel]


def test_a_large_bank_lends_to_a_classifier(large):
    bank, X, y = large
    support = np.concatenate([np.flatnonzero(y == c)[:2] for c in range(2000, 2005)])
    model = HOTClassifier(bank).fit(X[support], y[support])
    assert model.transfer_weights_.shape == (5, 2000)
    assert ((model.transfer_weights_ > 0).sum(axis=1) == 100).all()
    np.testing.assert_allclose(model.transfer_weights_.sum(axis=1), 1, rtol=1e-5)
    near = np.isin(y, range(2000, 2005))
    assert model.score(X[near], y[near]) > 0.9
    assert len(model.explain().loans[0].lenders) == 100


@pytest.mark.parametrize("cost", ["hierarchical", "mean-cosine"])
def test_a_large_bank_is_evaluated_as_its_classifiers_are_one_by_one(large, cost):
    bank, X, y = large
    request = {"ways": 4, "shots": 1, "queries": 3}
    estimator = HOTClassifier(bank, cost=cost)
    found = evaluate({"hot": estimator}, X, y, tasks=12, n_jobs=1, **request)["hot", 1].accuracies
    assert found.mean() > 0.9
    one_by_one = [
        np.mean(estimator.fit(X[t.support], t.support_labels).predict(X[t.query]) == t.query_labels)
        for t in Episodes(y, **request).take(12)
    ]
    np.testing.assert_array_equal(found, one_by_one)
