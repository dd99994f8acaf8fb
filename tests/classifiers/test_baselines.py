"""The baselines agree with their formulas, and each named method is what its name says."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import make_bank
from hotshot import BaseClasses, CentroidClassifier, CosineClassifier, MatchingClassifier, named_method, parameter_set
from hotshot.classifiers import METHOD_NAMES
from hotshot.errors import InputError, ParameterError


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


X, Y = make_bank(4, 5, 6, seed=3)
QUERIES, _ = make_bank(4, 5, 6, seed=4)


def test_centroid_is_nearest_mean():
    model = CentroidClassifier(normalize=None).fit(X, Y)
    means = np.stack([X[c == Y].mean(axis=0) for c in range(4)])
    distances = np.linalg.norm(QUERIES[:, None] - means, axis=2)
    assert np.array_equal(model.predict(QUERIES), distances.argmin(axis=1))
    assert np.allclose(model.decision_function(QUERIES), -(distances**2))


@pytest.mark.parametrize("with_base", [True, False])
def test_cl2n_centres_on_the_base_then_scales_to_unit_norm(with_base):
    base = BaseClasses.from_samples(*make_bank(6, 20, 6, seed=9))
    model = CentroidClassifier(base if with_base else None).fit(X, Y)
    centre = (base.samples if with_base else X).mean(axis=0)
    means = np.stack([unit(X - centre)[c == Y].mean(axis=0) for c in range(4)])
    distances = np.linalg.norm(unit(QUERIES - centre)[:, None] - means, axis=2)
    assert np.array_equal(model.predict(QUERIES), distances.argmin(axis=1))


def test_cosine_is_the_largest_cosine_to_the_mean_direction():
    model = CosineClassifier(scale=7).fit(X, Y)
    directions = unit(np.stack([unit(X)[c == Y].mean(axis=0) for c in range(4)]))
    assert np.allclose(model.decision_function(QUERIES), 7 * unit(QUERIES) @ directions.T)


def test_matching_votes_by_softmax_of_cosines():
    model = MatchingClassifier(scale=3).fit(X, Y)
    votes = np.exp(3 * unit(QUERIES) @ unit(X).T)
    shares = votes / votes.sum(axis=1, keepdims=True)
    expected = np.stack([shares[:, c == Y].sum(axis=1) for c in range(4)], axis=1)
    assert np.allclose(model.predict_proba(QUERIES), expected)


def test_matching_survives_a_huge_scale():
    probabilities = MatchingClassifier(scale=1e6).fit(X, Y).predict_proba(QUERIES)
    assert np.isfinite(probabilities).all()


@pytest.mark.parametrize("power", ["auto", 0.5])
def test_power_transform_is_applied_to_non_negative_features(power):
    model = CosineClassifier(power=power).fit(np.abs(X), Y)
    plain = CosineClassifier(power=1).fit(np.sqrt(np.abs(X)), Y)
    assert np.allclose(model.decision_function(np.abs(QUERIES)), plain.decision_function(np.sqrt(np.abs(QUERIES))))
    with pytest.raises(InputError, match="power=1"):
        model.predict(QUERIES)


@pytest.mark.parametrize("estimator", [CentroidClassifier, CosineClassifier, MatchingClassifier])
def test_zero_vectors_have_a_defined_result(estimator):
    model = estimator().fit(np.concatenate([X, np.zeros((1, 6))]), [*Y, 0])
    assert np.isfinite(model.predict_proba(np.zeros((2, 6)))).all()


@pytest.mark.filterwarnings("ignore::hotshot.errors.ScaleWarning")
@pytest.mark.parametrize("name", METHOD_NAMES)
def test_named_methods_fit_and_predict(name):
    bank_X, bank_y = make_bank(10, 20, 6, seed=5)
    base = BaseClasses.from_samples(bank_X[bank_y < 6], bank_y[bank_y < 6])
    novel = bank_y >= 6
    model = named_method(name, base).fit(bank_X[novel], bank_y[novel])
    assert model.score(bank_X[novel], bank_y[novel]) > 0.8


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match="free-lunch"):
        named_method("lunch", None)
    with pytest.raises(ParameterError, match="'authors'"):
        parameter_set("author")
