"""Classifiers that answer base classes beside new ones, and their scores for outliers."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from conftest import make_bank
from hotshot import BaseClasses, CentroidClassifier, HOTClassifier
from hotshot.classifiers import (
    DiscriminantClassifier,
    LogisticClassifier,
    SoftmaxCalibrationClassifier,
    TwoCovarianceClassifier,
    discriminant,
    held_out,
    logistic,
)
from hotshot.errors import InputError, ParameterError

X_ALL, LABELS = make_bank(14, 12, 6, seed=1, spread=0.3)
OLD = LABELS >= 4
# New classes come first and last in the order of names.
NAMES = np.array(["a new", "b new", "y new", "z new", *(f"old {c:02}" for c in range(10))])
BASE = BaseClasses.from_samples(X_ALL[OLD], NAMES[LABELS[OLD]])
X, Y = X_ALL[~OLD][::4], NAMES[LABELS[~OLD]][::4]

CLASSIFIERS = {
    "hot": HOTClassifier(BASE, cost="mean-cosine"),
    "centroid": CentroidClassifier(BASE),
    "logistic": LogisticClassifier(BASE),
    "discriminant": DiscriminantClassifier(BASE),
    "two covariances": TwoCovarianceClassifier(BASE),
    "softmax calibration": SoftmaxCalibrationClassifier(BASE),
}
every_classifier = pytest.mark.parametrize("classifier", CLASSIFIERS.values(), ids=CLASSIFIERS)


def joint(classifier):
    return clone(classifier).set_params(include_base=True).fit(X, Y)


@every_classifier
def test_old_and_new_classes_are_answered_in_sorted_order(classifier):
    model = joint(classifier)
    assert model.classes_.tolist() == sorted(NAMES.tolist())
    assert model.classes_[model.is_new_].tolist() == sorted(set(Y))
    right = model.predict(X_ALL) == NAMES[LABELS]
    assert right[OLD].mean() > 0.85
    assert right[~OLD].mean() > 0.75


@every_classifier
def test_one_new_class_is_enough_beside_base_classes(classifier):
    model = clone(classifier).set_params(include_base=True).fit(X[:1], Y[:1])
    assert len(model.classes_) == 11


@pytest.mark.parametrize("name", ["centroid", "discriminant", "two covariances", "softmax calibration"])
def test_new_classes_have_the_logits_that_they_have_alone(name):
    classifier = CLASSIFIERS[name]
    model, alone = joint(classifier), clone(classifier).fit(X, Y)
    found = model.decision_function(X_ALL)[:, model.is_new_]
    np.testing.assert_allclose(found, alone.decision_function(X_ALL), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["centroid", "discriminant", "softmax calibration"])
def test_base_classes_are_those_of_a_model_fitted_to_their_samples(name):
    """In the space of this bank a class is its mean, whether its samples are base or support."""
    model = joint(CLASSIFIERS[name])
    plain = clone(CLASSIFIERS[name])
    if name == "softmax calibration":
        # Base classes are not pulled.
        plain.set_params(alpha=1)
    plain.fit(X_ALL[OLD], LABELS[OLD])
    found = model.decision_function(X_ALL)[:, ~model.is_new_]
    np.testing.assert_allclose(found, plain.decision_function(X_ALL), rtol=1e-6, atol=1e-6)


def test_logistic_regression_weighs_all_classes_alike():
    z = X_ALL - BASE.centre(1.0)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    samples = np.concatenate([z[OLD], z[~OLD][::4]])
    expected = LogisticRegression(C=3, class_weight="balanced", tol=1e-10, max_iter=10_000)
    expected.fit(samples, np.concatenate([NAMES[LABELS[OLD]], Y]))
    model = LogisticClassifier(BASE, C=3, normalize="centre-l2", include_base=True).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X_ALL), expected.predict_proba(z), atol=1e-3)


def test_logistic_regression_takes_so_many_samples_of_a_base_class_at_most(monkeypatch):
    samples, labels = logistic.some_samples(BASE, 5)
    assert np.bincount(labels).tolist() == [5] * 10
    assert all((BASE.samples[BASE.labels == c] == x).all(axis=1).any() for x, c in zip(samples, labels, strict=True))
    monkeypatch.setattr(logistic, "MOST_POINTS", 80)
    assert len(joint(LogisticClassifier(BASE)).classes_) == 14


def test_densities_do_not_depend_on_how_many_differences_fit_into_memory(monkeypatch):
    model = joint(CLASSIFIERS["two covariances"])
    expected = model.decision_function(X_ALL)
    monkeypatch.setattr(discriminant, "MOST_DIFFERENCES", 3 * model.means_.size)
    assert np.array_equal(model.decision_function(X_ALL), expected)


@every_classifier
def test_outliers_have_larger_scores(classifier):
    model = clone(classifier).fit(X, Y)
    scores = model.outlier_score(X_ALL)
    assert scores.shape == (len(X_ALL),)
    assert np.median(scores[OLD]) > np.median(scores[~OLD])


def test_outlier_scores_are_the_best_logit_cosine_or_probability():
    model = clone(CLASSIFIERS["discriminant"]).fit(X, Y)
    assert np.array_equal(model.outlier_score(X_ALL), -model.decision_function(X_ALL).max(axis=1))
    model = clone(CLASSIFIERS["logistic"]).fit(X, Y)
    assert np.array_equal(model.outlier_score(X_ALL), -model.predict_proba(X_ALL).max(axis=1))
    model = clone(CLASSIFIERS["centroid"]).fit(X, Y)
    z, means = X_ALL - model.transform_.centre, model.centroids_
    cosines = z @ means.T / np.linalg.norm(z, axis=1)[:, None] / np.linalg.norm(means, axis=1)
    np.testing.assert_allclose(model.outlier_score(X_ALL), -cosines.max(axis=1))


@every_classifier
def test_classes_that_cannot_be_combined_are_refused(classifier):
    own = clone(classifier).set_params(include_base=True)
    with pytest.raises(InputError, match="'old 03' is a base class and a new class"):
        own.fit(X, np.where(Y == "a new", "old 03", Y))
    with pytest.raises(InputError, match="Labels must be of one type"):
        own.fit(X, np.unique(Y, return_inverse=True)[1])
    with pytest.raises(ParameterError, match="include_base needs base classes: pass base"):
        clone(own).set_params(base=None).fit(X, Y)
    with pytest.raises(ParameterError, match="include_base"):
        clone(own).set_params(include_base="both").fit(X, Y)


@pytest.mark.parametrize("change", [{"head": "sampled"}, {"alpha": 0.2}, {"power_on_base": False}])
def test_settings_of_hot_that_do_not_go_together_are_refused(change):
    with pytest.raises(ParameterError, match="include_base needs head"):
        HOTClassifier(BASE, include_base=True, **change).fit(X, Y)


@pytest.mark.parametrize("name", ["hot", "centroid", "logistic"])
def test_means_and_samples_need_a_bank_with_samples(name, tmp_path):
    BASE.save(tmp_path / "bank", samples=False, covariance="pooled")
    own = clone(CLASSIFIERS[name]).set_params(base=BaseClasses.load(tmp_path / "bank"), include_base=True)
    with pytest.raises(ParameterError, match="needs a bank with samples"):
        own.fit(X, Y)


@pytest.mark.parametrize("name", [name for name in CLASSIFIERS if name != "hot"])
def test_settings_are_chosen_as_in_a_closed_set(name, monkeypatch):
    monkeypatch.setattr(held_out, "FIRST_TASKS", 1)
    monkeypatch.setattr(held_out, "TASKS", 2)
    X_base, labels = make_bank(24, 12, 6, seed=5)
    closed, beside = (
        clone(CLASSIFIERS[name])
        .set_params(base=BaseClasses.from_samples(np.abs(X_base), labels, seen_in_training=False), include_base=own)
        .choice()
        for own in (False, True)
    )
    assert closed == beside
    assert closed.trials
