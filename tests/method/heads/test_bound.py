"""The bound: values against independent formulas, gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from few_shot_problems import (
    gaussians_of,
    prepared_bank,
    problem_of,
    random_problem,
    random_tasks,
    random_theta,
    random_weights,
)
from hotshot.method.heads import bound
from hotshot.method.heads.bound import BoundPoint, apply_metric, bound_objective


def cross_entropy(logits, label):
    """-log p_label of logits (…, N)."""
    return logsumexp(logits, axis=-1) - logits[..., label]


def naive_value(problem, theta, gaussian_loss):
    """Value of task 0; `gaussian_loss(mean, covariance, label, theta)` integrates one Gaussian's loss."""
    theta = theta[0]
    total = np.sum(theta[:, :-1] ** 2) / (2 * problem.C)
    for i, (point, members, count) in enumerate(
        zip(problem.points[0], problem.members[0], problem.counts[0], strict=True)
    ):
        label = int(np.argmax(members))
        if i < problem.n_gaussians:
            total += count * gaussian_loss(point[:-1], problem.covariances.matrices[0, i], label, theta)
        else:
            total += count * cross_entropy(theta @ point, label)
    return total


def jensens_bound(mean, covariance, label, theta):
    m = theta[:, :-1] @ mean + theta[:, -1]
    terms = []
    for j in range(len(m)):
        difference = theta[j, :-1] - theta[label, :-1]
        terms.append(m[j] - m[label] + difference @ covariance @ difference / 2)
    return logsumexp(terms)


def hermite_integral(mean, covariance, label, theta, nodes=48):
    """Expected loss by a product of Gauss-Hermite rules over all N logits."""
    m = theta[:, :-1] @ mean + theta[:, -1]
    values, vectors = np.linalg.eigh(theta[:, :-1] @ covariance @ theta[:, :-1].T)
    root = vectors * np.sqrt(np.maximum(values, 0))
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(*[x] * len(m), indexing="ij"), axis=-1).reshape(-1, len(m))
    weight = np.prod(np.stack(np.meshgrid(*[w] * len(m), indexing="ij"), axis=-1).reshape(-1, len(m)), axis=1)
    return weight @ cross_entropy(m + grid @ root.T, label) / weight.sum()


# --- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("spread", [0.0, 1e-4, 1.0, 30.0])
def test_bound_is_jensens(n_classes, spread):
    problem = random_problem(n_classes=n_classes, spread=spread, per_class=2, shots=2)
    theta = random_theta(problem)
    expected = naive_value(problem, theta, jensens_bound)
    assert bound_objective(problem, theta).value[0] == pytest.approx(expected, rel=1e-12)


@given(
    st.integers(0, 10_000),
    st.sampled_from([2, 3]),
    st.floats(-6, 0).map(lambda x: 10**x),
    st.floats(-3, 0.5).map(lambda x: 10**x),
)
def test_bound_is_never_below_the_expected_loss(seed, n_classes, spread, scale):
    problem = random_problem(n_classes=n_classes, spread=spread, seed=seed, tasks=1)
    theta = random_theta(problem, scale, seed)
    expected = naive_value(problem, theta, hermite_integral)
    assert bound_objective(problem, theta).value[0] >= expected * (1 - 1e-6)


@given(st.integers(0, 10_000), st.floats(-3, 2).map(lambda x: 10**x))
def test_bound_is_convex_and_finite(seed, spread):
    problem = random_problem(n_classes=3, spread=spread, seed=seed, tasks=1)
    a, b = (random_theta(problem, 10.0**power, seed=seed + i) for i, power in ((1, seed % 5), (2, 0)))
    points = [bound_objective(problem, theta) for theta in (a, b, (a + b) / 2)]
    assert points[2].value[0] <= (points[0].value[0] + points[1].value[0]) / 2
    assert all(np.isfinite(x).all() for at in points for x in (at.gradient, at.diagonal, at.rays))
    assert all((at.diagonal > 0).all() and (at.rays >= 0).all() for at in points)


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
    expected = central_differences(lambda x: bound_objective(problem, x).value[0], theta)
    got = bound_objective(problem, theta).gradient
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())


# --- metric -----------------------------------------------------------------------------------------------


def random_metric(problem, seed=0):
    rng = np.random.default_rng(seed)
    tasks, n_points, width = problem.points.shape
    diagonal = rng.uniform(0.5, 2, size=(tasks, problem.members.shape[2], width))
    rays = rng.uniform(size=(tasks, problem.members.shape[2], n_points))
    return BoundPoint(np.zeros(tasks), np.zeros_like(diagonal), diagonal, rays, np.zeros((tasks, n_points, 3)))


@pytest.mark.parametrize("shots", [1, 4, 12])
def test_metric_is_the_inverse_of_the_diagonal_plus_the_rays(shots):
    problem = random_problem(n_classes=3, shots=shots)
    metric, x = random_metric(problem), random_theta(problem)
    got = apply_metric(problem, metric, x)
    for t in range(2):
        for c in range(3):
            matrix = np.diag(metric.diagonal[t, c])
            for h, point in zip(metric.rays[t, c], problem.points[t], strict=True):
                matrix = matrix + h * np.outer(point, point)
            np.testing.assert_allclose(got[t, c], np.linalg.solve(matrix, x[t, c]), rtol=1e-8, atol=1e-10)


def test_metric_of_many_points_on_many_axes_takes_the_diagonal_of_the_rays(monkeypatch):
    problem = random_problem(n_classes=2, shots=10)
    monkeypatch.setattr(bound, "MOST_RAYS", 4)
    metric, x = random_metric(problem), random_theta(problem)
    got = apply_metric(problem, metric, x)
    diagonal = metric.diagonal + np.einsum("tcp,tpv->tcv", metric.rays, problem.points**2)
    np.testing.assert_allclose(got, x / diagonal, rtol=1e-12)


# --- from a bank ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaussian_shots", [(1, 1, 1), (1, 2, 3), (4, 4, 4)])
def test_points_are_means_and_support_with_their_classes_and_weights(gaussian_shots):
    base = prepared_bank()
    means, gaussian_labels = random_tasks(base, 2, gaussian_shots, seed=1)
    support, labels = random_tasks(base, 2, (2, 1, 3), seed=2)
    gaussians = gaussians_of(base, means, gaussian_labels, random_weights(2, 6, means.shape[1]))
    problem = problem_of(base, gaussians, support, labels, n_classes=3, n_generated=60, support_weight=3.0)
    np.testing.assert_array_equal(problem.points[..., :-1], np.concatenate([gaussians.means, support], axis=1))
    np.testing.assert_array_equal(problem.points[..., -1], 1)
    np.testing.assert_array_equal(problem.members, np.eye(3)[np.concatenate([gaussian_labels, labels], axis=1)])
    # The Gaussians of a class share its generated features.
    expected = [60 / shots for shots in gaussian_shots for _ in range(shots)]
    np.testing.assert_allclose(problem.counts, np.tile([*expected, *[3.0] * 6], (2, 1)))
