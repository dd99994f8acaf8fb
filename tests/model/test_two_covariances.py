"""Ratios of likelihoods under the two-covariance model, against densities of SciPy."""

from __future__ import annotations

import numpy as np
from scipy.stats import multivariate_normal

from few_shot_problems import prepared_bank
from hotshot.model.two_covariances import OUTLIER_SHRINKAGE, KnownClasses, estimate, posterior, two_covariances


def dense_covariances(two):
    within = np.diag(two.deviations**2)
    rotated = two.deviations[:, None] * two.axes
    return within, rotated * two.ratios @ rotated.T


def test_ratios_are_those_of_dense_gaussians():
    base = prepared_bank()
    two, centre = two_covariances(base, *OUTLIER_SHRINKAGE), base.means.mean(axis=0)
    within, between = dense_covariances(two)
    rng = np.random.default_rng(0)
    means, x, shots = rng.normal(size=(3, 6)), rng.normal(size=(4, 6)), np.array([1.0, 2.0, 7.0])
    got = KnownClasses(two, centre, means, shots).ratios(x)
    for c, (mean, k) in enumerate(zip(means, shots, strict=True)):
        pull = between @ np.linalg.inv(between + within / k)
        own = multivariate_normal(centre + pull @ (mean - centre), within + between - pull @ between)
        expected = own.logpdf(x) - multivariate_normal(centre, within + between).logpdf(x)
        np.testing.assert_allclose(got[:, c], expected, rtol=1e-8, atol=1e-8)


def test_support_fits_beside_the_others_of_its_class_and_alone_by_its_distance_from_the_centre():
    base = prepared_bank()
    two, centre = two_covariances(base, *OUTLIER_SHRINKAGE), base.means.mean(axis=0)
    x, labels = np.random.default_rng(0).normal(size=(6, 6)), np.array([0, 0, 0, 1, 1, 2])
    means, sizes = np.stack([x[labels == c].mean(axis=0) for c in range(3)]), np.array([3.0, 2.0, 1.0])
    got = KnownClasses(two, centre, means, sizes).support_fits(x, labels)
    for i, label in enumerate(labels[:-1]):
        others = (labels == label) & (np.arange(6) != i)
        shots = np.array([float(others.sum())])
        expected = KnownClasses(two, centre, x[others].mean(axis=0)[None], shots).ratios(x[i][None])
        np.testing.assert_allclose(got[i], expected[0, 0], rtol=1e-8)
    off_centre, total = x[-1] - centre, sum(dense_covariances(two))
    np.testing.assert_allclose(got[-1], off_centre @ np.linalg.solve(total, off_centre) / 2, rtol=1e-8)


def test_without_samples_the_posterior_is_the_prior():
    ratios, prior = np.array([2.0, 0.5, 0.0]), np.array([[1.0, -2.0, 3.0]])
    mean, variances = posterior(ratios, prior, np.zeros((1, 3)), np.array([0.0]))
    np.testing.assert_array_equal(mean, prior)
    np.testing.assert_array_equal(variances, ratios[None])


def test_the_best_class_is_that_of_the_largest_ratio_however_many_rows():
    base = prepared_bank()
    known = KnownClasses(two_covariances(base, *OUTLIER_SHRINKAGE), base.means.mean(axis=0), base.means, np.ones(6))
    x = np.random.default_rng(0).normal(size=(5000, 6))
    places, scores = known.best(x)
    ratios = known.ratios(x)
    assert np.array_equal(places, ratios.argmax(axis=1))
    np.testing.assert_allclose(scores, ratios.max(axis=1))
    assert [len(found) for found in known.best(x[:0])] == [0, 0]


def test_variance_between_classes_is_without_the_noise_of_their_means():
    rng = np.random.default_rng(0)
    between, within, samples = np.array([2.0, 0.5, 0.0]), np.array([1.0, 2.0, 4.0]), 2
    centres = rng.normal(size=(20_000, 1, 3)) * np.sqrt(between)
    x = (centres + rng.normal(size=(20_000, samples, 3)) * np.sqrt(within)).mean(axis=1)
    two = estimate(x, within, np.full(len(x), samples), 0.0, 0.0, 1.0)
    got = two.deviations[:, None] * two.axes
    np.testing.assert_allclose(got * two.ratios @ got.T, np.diag(between), atol=0.2)
