"""The paper's head: generated features and logistic regression, and its limit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from few_shot_problems import (
    gaussians_of,
    heads_of,
    prepared_bank,
    probabilities,
    random_covariances,
    random_tasks,
    random_weights,
)
from hotshot.method.heads import sampled
from hotshot.method.heads.sampled import generate_features

RNG = np.random.default_rng(0)
KINDS = {
    "positive definite": random_covariances(RNG, 1, 4)[0],
    "rank deficient": random_covariances(RNG, 1, 4, rank=2)[0],
    "alpha in every entry": random_covariances(RNG, 1, 4, rank=2)[0] + 0.21,
    "zero": np.zeros((4, 4)),
    "constant": np.full((4, 4), 0.21),
    # Negative eigenvalues count as zero.
    "indefinite": np.diag([1.0, 0.3, 0.0, -0.5]),
}


@pytest.mark.parametrize("rank", [0, 1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_generated_features_have_the_moments_of_their_gaussian_and_the_shift(kind, rank):
    covariance, mean = KINDS[kind], np.arange(4, dtype=float)
    shift = np.random.default_rng(1).normal(size=(4, rank)) if rank else None
    # Two more Gaussians come before and after it.
    means, counts = np.stack([mean + 100, mean, mean - 100]), np.array([3, 60_000, 2])
    drawn = generate_features(means, np.stack([covariance] * 3), counts, np.random.default_rng(0), shift)
    assert (np.abs(drawn[:3] - means[0]).max(axis=1) < 50).all()
    assert (np.abs(drawn[-2:] - means[2]).max(axis=1) < 50).all()
    drawn, count = drawn[3:-2], 60_000
    covariance = np.maximum(covariance, 0) if kind == "indefinite" else covariance
    covariance = covariance if shift is None else covariance + shift @ shift.T
    # Within five standard errors, which are at most deviation * deviation * sqrt(2 / n).
    deviation = np.sqrt(np.diag(covariance))
    assert (np.abs(drawn.mean(axis=0) - mean) <= 5 * deviation / np.sqrt(count) + 1e-12).all()
    error = 5 * np.outer(deviation, deviation) * np.sqrt(2 / count)
    assert (np.abs(np.cov(drawn.T) - covariance) <= error + 1e-12).all()


# --- one task ---------------------------------------------------------------------------------------------


def fit(shots=(1, 2, 3), *, seed=0, **changes):
    """Theta of one task with these Gaussians and support samples, and its support."""
    base = prepared_bank(width=4)
    support, labels = random_tasks(base, 1, shots)
    gaussians = gaussians_of(base, support, labels, random_weights(1, 6, len(labels[0])))
    settings = {"n_generated": 60, "support_weight": 2.0, "C": 1.0, **changes}
    theta, converged, slopes = heads_of(
        base, gaussians, support, labels, n_classes=len(shots), head="sampled", seeds=[seed], **settings
    )
    assert converged.all()
    return theta[0], slopes[0], support[0], labels[0]


def recorded_fits(monkeypatch):
    """What the sampled head passes to logistic regression."""
    fits = []

    class Recorder(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            fits.append((X, y, sample_weight))
            return super().fit(X, y, sample_weight)

    monkeypatch.setattr(sampled, "LogisticRegression", Recorder)
    return fits


@pytest.mark.parametrize(("n_generated", "per_gaussian"), [(60, (60, 30, 20)), (1, (1, 1, 1)), (5, (5, 2, 2))])
def test_the_gaussians_of_a_class_share_its_features_and_support_has_its_weight(monkeypatch, n_generated, per_gaussian):
    fits = recorded_fits(monkeypatch)
    _, _, support, labels = fit(n_generated=n_generated, support_weight=7.0)
    ((X, y, weight),) = fits
    drawn = [k * shots for k, shots in zip(per_gaussian, (1, 2, 3), strict=True)]
    generated = sum(drawn)
    assert np.bincount(y[:generated]).tolist() == drawn
    np.testing.assert_array_equal(weight[:generated], 1)
    np.testing.assert_array_equal(X[generated:], support)
    np.testing.assert_array_equal(y[generated:], labels)
    np.testing.assert_array_equal(weight[generated:], 7)


@pytest.mark.parametrize("shots", [(1, 2, 3), (1, 2)])
def test_the_classifier_is_logistic_regressions_and_slopes_are_its_errors(monkeypatch, shots):
    fits = recorded_fits(monkeypatch)
    theta, slopes, *_ = fit(shots, C=0.3)
    ((X, y, weight),) = fits
    model = LogisticRegression(C=0.3, tol=1e-8, max_iter=1000).fit(X, y, weight)
    np.testing.assert_allclose(probabilities(theta, X), model.predict_proba(X), atol=1e-2)
    if len(shots) == 2:
        np.testing.assert_array_equal(theta[0], -theta[1])
    errors = weight[:, None] * (probabilities(theta, X) - np.eye(len(shots))[y])
    n_support = sum(shots)
    np.testing.assert_allclose(slopes[-n_support:], errors[-n_support:], atol=1e-9)
    np.testing.assert_allclose(slopes.sum(axis=0), errors.sum(axis=0), atol=1e-9)


def test_one_class_is_no_problem():
    assert np.isfinite(fit((2,))[0]).all()


# --- through the table of heads ------------------------------------------------------------------------------------


def random_gaussians(base, shots, **kwargs):
    support, labels = random_tasks(base, 2, shots)
    weights = random_weights(2, len(base.names), support.shape[1])
    return gaussians_of(base, support, labels, weights, **kwargs), support, labels


@pytest.mark.parametrize("shots", [(1, 1, 1), (2, 1, 3), (1, 2)])
def test_with_ever_more_features_the_seed_does_not_matter_and_the_bound_is_near(shots):
    base = prepared_bank()
    gaussians, support, labels = random_gaussians(base, shots, mix=0.5)
    rng = np.random.default_rng(3)
    queries = support[:, rng.integers(support.shape[1], size=500)] + 0.3 * rng.normal(size=(2, 500, 6))

    def theta(factor, **options):
        # With the support and the penalty scaled as well the minimum stays where it is.
        settings = {"n_generated": 200 * factor, "support_weight": 10.0 * factor, "C": 1 / factor, **options}
        return heads_of(base, gaussians, support, labels, n_classes=len(shots), **settings)[0]

    a, b = (theta(150, head="sampled", seeds=[seed] * 2) for seed in (0, 1))
    bound = theta(1, head="bound")
    for task in range(2):
        one, other, closed = (probabilities(x[task], queries[task]) for x in (a, b, bound))
        assert len(np.unique(one.argmax(axis=1))) > 1
        for x, share, difference in ((other, 0.99, 0.01), (closed, 0.9, 0.1)):
            assert np.mean(one.argmax(axis=1) == x.argmax(axis=1)) >= share
            assert np.abs(one - x).mean() <= difference
