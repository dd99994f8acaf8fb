"""The rivals agree with their formulas computed by hand, and depend neither on order nor on scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from conftest import make_bank
from hotshot import (
    BaseClasses,
    CentroidClassifier,
    CosineClassifier,
    FreeLunchClassifier,
    HOTClassifier,
    MatchingClassifier,
    named_method,
    parameter_set,
)
from hotshot.bank import Space, pooled_covariance
from hotshot.classifiers import (
    AlphaTIMClassifier,
    BDCSPNClassifier,
    DiscriminantClassifier,
    LaplacianShotClassifier,
    LogisticClassifier,
    PTMAPClassifier,
    SoftmaxCalibrationClassifier,
    TunedFreeLunchClassifier,
    TwoCovarianceClassifier,
)
from hotshot.errors import InputError, ParameterError

WIDTH = 6
X_BASE, Y_BASE = make_bank(8, 15, WIDTH, seed=1)
BASE = BaseClasses.from_samples(X_BASE, Y_BASE)
X, Y = make_bank(4, 3, WIDTH, seed=2, spread=0.8)
# Classes of different sizes.
X, Y = X[1:], Y[1:]
QUERIES, _ = make_bank(4, 5, WIDTH, seed=3)

RIVALS = {
    "hot": HOTClassifier(BASE),
    "hot per sample": HOTClassifier(BASE, per="sample"),
    "logistic": LogisticClassifier(BASE),
    "discriminant": DiscriminantClassifier(BASE),
    "two covariances": TwoCovarianceClassifier(BASE),
    "softmax calibration": SoftmaxCalibrationClassifier(BASE),
    "free lunch": TunedFreeLunchClassifier(BASE),
    "pt-map": PTMAPClassifier(BASE),
    "bd-cspn": BDCSPNClassifier(BASE),
    "laplacian-shot": LaplacianShotClassifier(BASE),
    "alpha-tim": AlphaTIMClassifier(BASE),
}
every_rival = pytest.mark.parametrize("rival", RIVALS.values(), ids=RIVALS)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def class_means(z, labels):
    return np.stack([z[labels == c].mean(axis=0) for c in np.unique(labels)])


def normalised(power=1.0):
    """Support, queries and base samples in the default space, each class of the bank after the other."""
    transform = BASE.prepare(Space(power=power)).transform
    return transform(X), transform(QUERIES), transform(BASE.samples)


def check_same_up_to_a_constant(found, expected):
    """Logits that differ by a number per query give the same probabilities."""
    shift = found - expected
    np.testing.assert_allclose(shift - shift.mean(axis=1, keepdims=True), 0, atol=1e-6 * np.abs(expected).max())


# --- formulas ------------------------------------------------------------------------------------------------


def test_centroid_is_the_nearest_mean():
    model = CentroidClassifier(normalize=None).fit(X, Y)
    distances = np.linalg.norm(QUERIES[:, None] - class_means(X, Y), axis=2)
    assert np.array_equal(model.predict(QUERIES), distances.argmin(axis=1))
    np.testing.assert_allclose(model.decision_function(QUERIES), -(distances**2))


@pytest.mark.parametrize("base", [BASE, None], ids=["bank", "no bank"])
def test_cl2n_centres_on_the_base_or_the_support_then_scales_to_unit_norm(base):
    centre = (X if base is None else X_BASE).mean(axis=0)
    distances = np.linalg.norm(unit(QUERIES - centre)[:, None] - class_means(unit(X - centre), Y), axis=2)
    assert np.array_equal(CentroidClassifier(base).fit(X, Y).predict(QUERIES), distances.argmin(axis=1))


def test_cosine_is_the_largest_cosine_to_the_mean_direction():
    model = CosineClassifier(scale=7).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(QUERIES), 7 * unit(QUERIES) @ unit(class_means(unit(X), Y)).T)


def test_matching_votes_by_softmax_of_cosines():
    votes = np.exp(3 * unit(QUERIES) @ unit(X).T)
    expected = np.stack([votes[:, c == Y].sum(axis=1) for c in range(4)], axis=1) / votes.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(MatchingClassifier(scale=3).fit(X, Y).predict_proba(QUERIES), expected)
    assert np.isfinite(MatchingClassifier(scale=1e6).fit(X, Y).predict_proba(QUERIES)).all()


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("normalize", ["centre-l2", "l2"])
@pytest.mark.parametrize("C", [1.0, 30.0])
def test_logistic_is_that_of_scikit_learn_on_transformed_features(n_classes, normalize, C):
    centre = X_BASE.mean(axis=0) if normalize == "centre-l2" else 0
    some = n_classes > Y
    expected = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(unit(X[some] - centre), Y[some])
    model = LogisticClassifier(BASE, normalize=normalize, C=C).fit(X[some], Y[some])
    np.testing.assert_allclose(
        model.predict_proba(QUERIES), expected.predict_proba(unit(QUERIES - centre)), atol=1e-5 * C
    )
    assert model.converged_


@pytest.mark.parametrize("shrinkage", [0.0, 0.3, 1.0])
def test_discriminant_is_half_the_mahalanobis_distance(shrinkage):
    support, queries, samples = normalised()
    covariance = pooled_covariance(samples, BASE.counts)
    covariance = (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / len(covariance) * np.eye(
        len(covariance)
    )
    difference = queries[:, None] - class_means(support, Y)
    expected = -np.einsum("qci,ij,qcj->qc", difference, np.linalg.inv(covariance), difference) / 2
    found = DiscriminantClassifier(BASE, shrinkage=shrinkage).fit(X, Y).decision_function(QUERIES)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("within", "between", "scale"), [(0.2, 0.5, 0.5), (0.8, 0.1, 2.0)])
def test_two_covariances_are_gaussian_densities(within, between, scale):
    """The joint Gaussian of the support of a class and a query, conditioned on the support, without any diagonal."""
    support, queries, samples = normalised()
    means = class_means(samples, Y_BASE)
    pooled = pooled_covariance(samples, BASE.counts)
    variances, axes = np.linalg.eigh(np.cov(means.T) - np.mean(1 / BASE.counts) * pooled)
    inner, outer = (
        (1 - share) * covariance + share * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        for share, covariance in ((within, pooled), (between, axes * np.maximum(variances, 0) @ axes.T))
    )
    outer, centre = scale * outer, means.mean(axis=0)
    expected = []
    for c in np.unique(Y):
        seen = support[c == Y] - centre
        count = len(seen)
        joint = np.kron(np.ones((count, count)), outer) + np.kron(np.eye(count), inner)
        across = np.kron(np.ones((1, count)), outer)
        gain = across @ np.linalg.inv(joint)
        found = multivariate_normal(centre + gain @ seen.ravel(), inner + outer - gain @ across.T)
        expected.append(found.logpdf(queries))
    model = TwoCovarianceClassifier(BASE, within=within, between=between, scale=scale).fit(X, Y)
    check_same_up_to_a_constant(model.decision_function(QUERIES), np.stack(expected, axis=1))


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_softmax_calibration_pulls_by_the_softmax_of_cosines(alpha):
    support, queries, samples = normalised()
    means, lenders = class_means(support, Y), class_means(samples, Y_BASE)
    weights = np.exp(16 * unit(means) @ unit(lenders).T)
    pulled = alpha * means + (1 - alpha) * weights @ lenders / weights.sum(axis=1, keepdims=True)
    model = SoftmaxCalibrationClassifier(BASE, alpha=alpha, tau=16, scale=7).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(QUERIES), 7 * queries @ unit(pulled).T)


@pytest.mark.parametrize("estimator", [DiscriminantClassifier, TwoCovarianceClassifier, SoftmaxCalibrationClassifier])
def test_without_base_classes_it_is_the_nearest_class_mean_of_unit_vectors(estimator):
    one = np.unique(Y, return_index=True)[1]
    found = estimator().fit(X[one], Y[one]).predict(QUERIES)
    assert np.array_equal(found, (unit(QUERIES) @ unit(X[one]).T).argmax(axis=1))


def test_free_lunch_stays_as_published():
    model = FreeLunchClassifier(BASE)
    assert model.settings() == {**model.get_params(), "power": BASE.power("auto")}
    assert (model.k, model.alpha, model.normalize, model.head) == (2, 0.21, None, "sampled")


# --- laws ----------------------------------------------------------------------------------------------------


@every_rival
def test_the_order_of_samples_and_of_classes_does_not_matter(rival):
    expected = clone(rival).fit(X, Y).predict_proba(QUERIES)
    order = np.random.default_rng(0).permutation(len(X))
    found = clone(rival).fit(X[order], 3 - Y[order]).predict_proba(QUERIES)
    np.testing.assert_allclose(found[:, ::-1], expected, atol=1e-5)


@every_rival
def test_the_scale_of_the_features_does_not_matter(rival):
    expected = clone(rival).fit(X, Y).predict_proba(QUERIES)
    larger = clone(rival).set_params(base=BaseClasses.from_samples(1000 * X_BASE, Y_BASE))
    np.testing.assert_allclose(larger.fit(1000 * X, Y).predict_proba(1000 * QUERIES), expected, atol=1e-5)


@every_rival
def test_what_is_chosen_is_what_settings_say(rival):
    model = clone(rival).fit(X, Y)
    chosen = {name: value for name, value in model.settings().items() if name in model._choices and name != "power"}
    assert "auto" not in chosen.values()
    explicit = clone(rival).set_params(**chosen).fit(X, Y)
    np.testing.assert_array_equal(explicit.predict_proba(QUERIES), model.predict_proba(QUERIES))


@every_rival
def test_every_value_to_choose_from_is_a_valid_setting(rival):
    non_negative = BaseClasses.from_samples(np.abs(X_BASE), Y_BASE)
    for name, values in rival._choices.items():
        for value in values:
            model = clone(rival).set_params(base=non_negative, **{name: value}).fit(np.abs(X), Y)
            predict = getattr(model, "predict_proba_batch", model.predict_proba)
            assert np.isfinite(predict(np.abs(QUERIES))).all()


# --- the power, and what is refused --------------------------------------------------------------------------


@every_rival
@pytest.mark.parametrize("with_base", [True, False])
def test_signed_features_have_the_power_one_and_no_other(rival, with_base):
    base = BASE if with_base else None
    assert clone(rival).set_params(base=base).fit(X, Y).power_ == 1
    with pytest.raises(InputError, match="power=1"):
        clone(rival).set_params(base=base, power=0.5).fit(X, Y)


@every_rival
def test_the_power_is_taken_of_base_and_novel_features(rival):
    X_base, support, queries = (np.abs(x) + 0.1 for x in (X_BASE, X, QUERIES))
    taken = clone(rival).set_params(base=BaseClasses.from_samples(X_base, Y_BASE), power=0.5).fit(support, Y)
    roots = clone(rival).set_params(base=BaseClasses.from_samples(np.sqrt(X_base), Y_BASE), power=1.0)
    roots = roots.fit(np.sqrt(support), Y)
    np.testing.assert_allclose(taken.predict_proba(queries), roots.predict_proba(np.sqrt(queries)), atol=1e-5)


@pytest.mark.parametrize("estimator", [DiscriminantClassifier, TwoCovarianceClassifier])
def test_base_classes_without_variance_are_refused(estimator):
    alike = BaseClasses.from_samples(np.repeat(X_BASE[::15], 3, axis=0), np.repeat(np.arange(8), 3))
    with pytest.raises(InputError, match="identical: pass base classes whose samples differ"):
        estimator(alike).fit(X, Y)


@pytest.mark.parametrize("estimator", [CentroidClassifier, CosineClassifier, MatchingClassifier])
def test_zero_vectors_have_a_defined_result(estimator):
    model = estimator().fit(np.concatenate([X, np.zeros((1, WIDTH))]), [*Y, 0])
    assert np.isfinite(model.predict_proba(np.zeros((2, WIDTH)))).all()


@pytest.mark.parametrize(
    "rival",
    [
        LogisticClassifier(C=0),
        DiscriminantClassifier(shrinkage=1.5),
        TwoCovarianceClassifier(between="some"),
        PTMAPClassifier(normalize="l2"),
        BDCSPNClassifier(shift="often"),
        LaplacianShotClassifier(k=0),
        AlphaTIMClassifier(alpha=0.5),
    ],
    ids=repr,
)
def test_parameters_out_of_range_are_refused_in_fit(rival):
    with pytest.raises(ParameterError, match="parameter of"):
        rival.fit(X, Y)


# --- by name -------------------------------------------------------------------------------------------------


def test_unknown_names_are_refused_with_the_known_ones():
    with pytest.raises(ParameterError, match="free-lunch"):
        named_method("lunch", None)
    with pytest.raises(ParameterError, match="'authors'"):
        parameter_set("author")
