"""The bound: values against independent formulas, gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from few_shot_problems import random_problem, random_theta, spectrum_of
from hotshot.method.heads import bound
from hotshot.method.heads.bound import RayMetric


def naive_value(problem, theta):
    """Value of task 0."""
    theta = theta[0]
    total = np.sum(theta[:, :-1] ** 2) / (2 * problem.C)
    for i, (mean, label) in enumerate(zip(problem.means[0], problem.mean_labels[0], strict=True)):
        covariance = problem.spread.covariances.matrices[0, i]
        total += problem.mean_counts[0, i] * jensens_bound(mean[:-1], covariance, label, theta)
    for x, label, count in zip(problem.samples[0], problem.labels[0], problem.counts[0], strict=True):
        total += count * (logsumexp(theta @ x) - theta[label] @ x)
    return total


def jensens_bound(mean, covariance, label, theta):
    m = theta[:, :-1] @ mean + theta[:, -1]
    terms = []
    for j in range(len(m)):
        difference = theta[j, :-1] - theta[label, :-1]
        terms.append(m[j] - m[label] + difference @ covariance @ difference / 2)
    return logsumexp(terms)


# --- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("spread", [0.0, 1e-4, 1.0, 30.0])
def test_bound_is_jensens(n_classes, spread):
    problem = random_problem(n_classes=n_classes, spread=spread, per_class=2, shots=2)
    theta = random_theta(problem)
    assert problem.objective(theta).value[0] == pytest.approx(naive_value(problem, theta), rel=1e-12)


@given(st.integers(0, 10_000), st.floats(-3, 2).map(lambda x: 10**x))
def test_bound_is_convex_and_finite(seed, spread):
    problem = random_problem(n_classes=3, spread=spread, seed=seed, tasks=1)
    a, b = (random_theta(problem, 10.0**power, seed=seed + i) for i, power in ((1, seed % 5), (2, 0)))
    points = [problem.objective(theta) for theta in (a, b, (a + b) / 2)]
    assert points[2].value[0] <= (points[0].value[0] + points[1].value[0]) / 2
    assert all(np.isfinite(at.gradient).all() for at in points)
    metric = RayMetric(problem, spectrum_of(problem))
    assert all((diagonal > 0).all() and (rays >= 0).all() for diagonal, rays in map(metric.curvatures, points))


# --- gradients --------------------------------------------------------------------------------------------


def central_differences(value, theta, step=1e-5):
    gradient = np.empty_like(theta)
    for place in np.ndindex(theta.shape):
        shift = np.zeros_like(theta)
        shift[place] = step
        gradient[place] = (value(theta + shift) - value(theta - shift)) / (2 * step)
    return gradient


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("scale", [1.0, 0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_gradients_are_those_of_the_value(n_classes, scale, spread):
    problem = random_problem(n_classes=n_classes, tasks=1, per_class=2, spread=spread)
    theta = random_theta(problem, scale)
    # Of five classes two coincide.
    theta[:, 1] = theta[:, 0] if n_classes == 5 else theta[:, 1]
    expected = central_differences(lambda x: problem.objective(x).value[0], theta)
    got = problem.objective(theta).gradient
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())


# --- metric -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shots", "most_rays"), [(1, 256), (4, 256), (12, 256), (10, 4)])
def test_metric_is_the_inverse_of_the_diagonal_plus_the_rays(shots, most_rays, monkeypatch):
    monkeypatch.setattr(bound, "MOST_RAYS", most_rays)
    problem = random_problem(n_classes=3, shots=shots)
    metric, x = RayMetric(problem, spectrum_of(problem)), random_theta(problem)
    at = problem.objective(random_theta(problem, seed=4))
    got, (diagonal, rays) = metric.apply(at, x), metric.curvatures(at)
    points = np.concatenate([problem.means, problem.samples], axis=1)
    for t in range(2):
        for c in range(3):
            matrix = (points[t] * rays[t, c][:, None]).T @ points[t]
            # Of many points on many axes it takes the diagonal.
            matrix = np.diag(np.diag(matrix)) if most_rays < 5 else matrix
            np.testing.assert_allclose(got[t, c], np.linalg.solve(matrix + np.diag(diagonal[t, c]), x[t, c]), rtol=1e-7)


# --- from a bank ------------------------------------------------------------------------------------------
