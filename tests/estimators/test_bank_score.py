"""The score of a bank on samples without labels, and the fallback to nearest centroids."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from hotshot import BaseClasses, CentroidClassifier, HOTClassifier
from hotshot.errors import InputError, ParameterError
from hotshot.estimators import bank_score, held_out
from hotshot.estimators.bank_score import BankScore, Carrier, ExpectedGain
from hotshot.method.pseudo_tasks import QUERIES, WAYS, clusters, draw_tasks

WIDTH, SHARED = 40, 5
CONSTANTS = {"mean_rule": "posterior", "epsilon": 0.02, "n_generated": 300, "support_weight": 20.0, "power": 1.0}


def classes(n, directions, seed, per_class=20):
    """Classes whose means differ along some axes only, with noise along all, and their labels."""
    rng = np.random.default_rng(seed)
    means = np.zeros((n, WIDTH))
    means[:, directions] = rng.normal(size=(n, len(directions)))
    y = np.repeat(np.arange(n), per_class)
    return means[y] + 0.35 * rng.normal(size=(len(y), WIDTH)), y


LIKE, UNLIKE = np.arange(SHARED), np.arange(SHARED, 2 * SHARED)
BASE = BaseClasses.from_samples(*classes(18, LIKE, 0))


@pytest.fixture(scope="module", autouse=True)
def few_tasks():
    """As many tasks as these large effects need."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bank_score, "TASKS", 150)
        patch.setattr(bank_score, "FOLD_TASKS", 20)
        patch.setattr(held_out, "TASKS", 60)
        yield


@pytest.fixture(scope="module")
def scores(few_tasks):
    model = HOTClassifier(BASE, **CONSTANTS)
    return {name: model.score_bank(classes(15, axes, 3)[0]) for name, axes in (("like", LIKE), ("unlike", UNLIKE))}


def test_a_bank_helps_if_its_classes_differ_where_those_of_the_pool_do(scores):
    assert scores["like"].verdict == "helps"
    assert scores["like"].points > 0.5
    assert scores["like"].settings == {}


def test_a_bank_whose_classes_differ_elsewhere_does_not_help(scores):
    assert scores["unlike"].verdict == "harms"
    assert scores["unlike"].points < scores["like"].points - 5
    assert scores["unlike"].settings["head"] == "centroid"
    assert scores["unlike"].distance > scores["like"].distance


def test_the_order_of_the_pool_and_repeats_do_not_matter(scores):
    X, _ = classes(15, LIKE, 3)
    shuffled = np.random.default_rng(2).permutation(np.concatenate([X, X[:50]]))
    assert HOTClassifier(BASE, **CONSTANTS).score_bank(shuffled) == scores["like"]


def test_the_scale_of_all_features_does_not_matter(scores):
    scaled = HOTClassifier(BASE.transform(lambda x: 8 * x), **CONSTANTS).score_bank(8 * classes(15, LIKE, 3)[0])
    assert scaled.points == pytest.approx(scores["like"].points, abs=1e-6)


def test_base_classes_like_the_pool_carry_it():
    """Two base classes are the classes of the pool; the others point elsewhere."""
    X, y = classes(12, np.arange(WIDTH), 3)
    pool = X[y < 2] + 0.1 * np.random.default_rng(4).normal(size=(40, WIDTH))
    pool = np.concatenate([pool, pool + 0.1])
    score = HOTClassifier(BaseClasses.from_samples(X, y), **CONSTANTS).score_bank(pool)
    assert {carrier.name for carrier in score.carriers[:2]} == {0, 1}
    assert sum(carrier.share for carrier in score.carriers) == pytest.approx(1)
    assert sum(carrier.nearest for carrier in score.carriers[:2]) == pytest.approx(1)


@pytest.mark.parametrize("seen", [True, False])
def test_base_classes_are_held_out_unless_the_extractor_has_seen_them(seen):
    X, y = classes(20, LIKE, 0)
    base = BaseClasses.from_samples(X, y, seen_in_training=seen)
    score = HOTClassifier(base, **CONSTANTS).score_bank(classes(15, LIKE, 3)[0])
    assert score.held_out is not seen
    assert score.points > 0.5


def test_the_fallback_is_nearest_centroids():
    X, y = classes(15, UNLIKE, 3)
    support = np.arange(0, len(y), 20)
    model = HOTClassifier(BASE, **CONSTANTS, per="sample").for_pool(X).fit(X[support], y[support])
    assert model.head == "centroid"
    expected = CentroidClassifier(BASE).fit(X[support], y[support])
    assert np.array_equal(model.predict(X), expected.predict(X))


def test_a_bank_that_helps_leaves_the_classifier_as_it_is():
    model = HOTClassifier(BASE, **CONSTANTS)
    assert model.for_pool(classes(15, LIKE, 3)[0]).get_params() == model.get_params()


def test_a_compact_bank_can_be_scored_and_falls_back_in_its_own_axes(tmp_path):
    model = HOTClassifier(BASE, **CONSTANTS)
    BASE.save(tmp_path / "small.bank", samples=False, covariance="low-rank", spaces=[model._space(model.settings())])
    compact = HOTClassifier(BaseClasses.load(tmp_path / "small.bank"), **CONSTANTS, cost="mean-cosine")
    X, y = classes(15, UNLIKE, 3)
    score = compact.score_bank(X)
    assert score.verdict == "harms"
    assert "n_components" not in score.settings
    assert compact.for_pool(X).fit(X[::20], y[::20]).score(X, y) > 0.5


def test_a_score_prints_in_one_line_and_converts_to_json(scores):
    assert repr(scores["like"]).startswith("BankScore(helps: +")
    assert "\n" not in repr(scores["like"])
    found = json.loads(json.dumps(scores["unlike"].to_dict()))
    assert found["verdict"] == "harms"
    assert [gain["shots"] for gain in found["gains"]] == [1, 5]
    assert len(found["base_classes"]) == 18


@pytest.mark.parametrize(("points", "verdict"), [(1.0, "helps"), (0.4, "neutral"), (-0.4, "neutral"), (-1.0, "harms")])
def test_the_interval_decides_on_the_verdict(points, verdict):
    gain = ExpectedGain(1, points, 0.5)
    score = BankScore((gain,), (Carrier("a", 1.0, 1.0),), 1.0, 100, False, {})
    assert score.verdict == verdict
    assert replace(gain, half_width=0.0).verdict != "neutral"


@pytest.mark.parametrize(
    ("model", "pool", "error", "message"),
    [
        (HOTClassifier(BASE), np.ones((60, WIDTH)), InputError, "1 different samples, and a score needs 50"),
        (HOTClassifier(BASE), np.ones((60, 3)), InputError, "3 features and the base classes have 40"),
        (HOTClassifier(BASE), np.full((60, WIDTH), np.nan), InputError, "X_pool"),
        (HOTClassifier(), np.ones((60, 3)), ParameterError, "pass base"),
        (HOTClassifier(BASE, include_base=True), np.ones((60, 3)), ParameterError, "include_base=False"),
    ],
)
def test_mistakes_are_named(model, pool, error, message):
    with pytest.raises(error, match=message):
        model.for_pool(pool)


def test_tasks_have_no_sample_in_support_and_queries():
    labels = clusters(classes(12, LIKE, 5)[0])
    support, queries = draw_tasks(labels, 5, 30)
    assert support.shape == (30, 5 * WAYS)
    assert queries.shape == (30, QUERIES * WAYS)
    for own, asked in zip(support, queries, strict=True):
        assert len(np.unique(own)) == len(own)
        assert not np.isin(own, asked).any()
        assert np.array_equal(labels[own[::5]], labels[asked[::QUERIES]])
    assert draw_tasks(np.arange(40), 1, 30) is None
