"""The bound: values against independent formulas, gradients against differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from few_shot_problems import random_problem, random_theta
from hotshot.arrays import like, map_arrays, to_numpy
from hotshot.bank.covariances import Dense
from hotshot.method.heads import problem as problem_module
from hotshot.method.heads.bound import bound_objective
from hotshot.method.heads.problem import LocalModel, apply_metric, softmax

OBJECTIVES = [bound_objective]


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


def without_spread(mean, covariance, label, theta):
    return cross_entropy(theta[:, :-1] @ mean + theta[:, -1], label)


# --- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("spread", [1e-4, 1.0, 30.0])
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


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_without_covariance_the_value_is_the_plain_cross_entropy(objective, n_classes):
    problem = random_problem(n_classes=n_classes, spread=0.0)
    theta = random_theta(problem)
    expected = naive_value(problem, theta, without_spread)
    assert objective(problem, theta).value[0] == pytest.approx(expected, rel=1e-10)


@given(st.integers(0, 10_000), st.floats(-3, 2).map(lambda x: 10**x))
def test_bound_is_convex(seed, spread):
    problem = random_problem(n_classes=3, spread=spread, seed=seed, tasks=1)
    a, b = (random_theta(problem, 2.0, seed=seed + i) for i in (1, 2))
    ends = [bound_objective(problem, theta).value[0] for theta in (a, b)]
    assert bound_objective(problem, (a + b) / 2).value[0] <= sum(ends) / 2


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_batch_is_its_tasks_one_at_a_time(objective):
    problem = random_problem(n_classes=3, tasks=4)
    theta = random_theta(problem)
    together = objective(problem, theta)
    for t in range(4):
        parts = {name: getattr(problem, name)[t : t + 1] for name in ("points", "members", "counts")}
        parts["covariances"] = Dense(problem.covariances.matrices[t : t + 1])
        alone = objective(replace(problem, **parts), theta[t : t + 1])
        for name in ("value", "gradient", "diagonal", "rays"):
            np.testing.assert_allclose(getattr(alone, name)[0], getattr(together, name)[t], rtol=1e-10)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_every_array_library_agrees_with_numpy(xp, objective, precision):
    problem = random_problem(n_classes=3)
    theta = random_theta(problem)
    expected = objective(problem, theta)
    reference = xp.asarray([0.0], dtype=getattr(xp, precision))
    there = map_arrays(problem, lambda x: like(x, reference))
    got = objective(there, like(theta, reference))
    tolerance = {"rtol": 1e-10} if precision == "float64" else {"rtol": 1e-3, "atol": 1e-3}
    for name in ("value", "gradient", "diagonal", "rays"):
        assert getattr(got, name).dtype == reference.dtype
        np.testing.assert_allclose(to_numpy(getattr(got, name)), getattr(expected, name), **tolerance)


# --- gradients --------------------------------------------------------------------------------------------


def central_differences(value, theta, step=1e-5):
    gradient = np.empty_like(theta)
    for place in np.ndindex(theta.shape):
        shift = np.zeros_like(theta)
        shift[place] = step
        gradient[place] = (value(theta + shift) - value(theta - shift)) / (2 * step)
    return gradient


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("scale", [1.0, 0.0, 1e-8, 1e-3])
@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_gradients_are_those_of_the_value(objective, n_classes, scale, spread):
    problem = random_problem(n_classes=n_classes, tasks=1, per_class=2, spread=spread)
    theta = random_theta(problem, scale)
    expected = central_differences(lambda x: objective(problem, x).value[0], theta)
    got = objective(problem, theta).gradient
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradients_of_coinciding_classes_are_those_of_the_value(objective):
    problem = random_problem(n_classes=3, tasks=1)
    theta = random_theta(problem)
    theta[:, 1] = theta[:, 0]
    expected = central_differences(lambda x: objective(problem, x).value[0], theta)
    np.testing.assert_allclose(objective(problem, theta).gradient, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_huge_weights_give_finite_values_and_gradients(objective):
    problem = random_problem(n_classes=3)
    at = objective(problem, random_theta(problem, 1e4))
    assert np.isfinite(at.value).all()
    assert np.isfinite(at.gradient).all()


# --- metric -----------------------------------------------------------------------------------------------


def random_metric(problem, seed=0):
    rng = np.random.default_rng(seed)
    tasks, n_points, width = problem.points.shape
    diagonal = rng.uniform(0.5, 2, size=(tasks, problem.n_classes, width))
    rays = rng.uniform(size=(tasks, problem.n_classes, n_points))
    slopes = np.zeros((tasks, n_points, problem.n_classes))
    return LocalModel(np.zeros(tasks), np.zeros_like(diagonal), diagonal, rays, slopes)


@pytest.mark.parametrize("shots", [1, 4, 12])
def test_metric_is_the_inverse_of_the_diagonal_plus_the_rays(xp, shots):
    problem = random_problem(n_classes=3, shots=shots)
    metric, x = random_metric(problem), random_theta(problem)
    reference = xp.asarray([0.0], dtype=xp.float64)
    there = replace(problem, points=like(problem.points, reference))
    at = map_arrays(metric, lambda x: like(x, reference))
    got = to_numpy(apply_metric(there, at, like(x, reference)))
    for t in range(2):
        for c in range(3):
            matrix = np.diag(metric.diagonal[t, c])
            for h, point in zip(metric.rays[t, c], problem.points[t], strict=True):
                matrix = matrix + h * np.outer(point, point)
            np.testing.assert_allclose(got[t, c], np.linalg.solve(matrix, x[t, c]), rtol=1e-8, atol=1e-10)


def test_metric_of_many_points_on_many_axes_takes_the_diagonal_of_the_rays(monkeypatch):
    problem = random_problem(n_classes=2, shots=10)
    monkeypatch.setattr(problem_module, "MOST_RAYS", 4)
    metric, x = random_metric(problem), random_theta(problem)
    got = apply_metric(problem, metric, x)
    diagonal = metric.diagonal + np.einsum("tcp,tpv->tcv", metric.rays, problem.points**2)
    np.testing.assert_allclose(got, x / diagonal, rtol=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_metric_of_an_evaluation_is_positive(objective):
    problem = random_problem(n_classes=3)
    at = objective(problem, random_theta(problem))
    assert (at.diagonal > 0).all()
    assert (at.rays >= 0).all()


@given(st.lists(st.floats(-1000, 1000), min_size=2, max_size=5))
def test_softmax_is_safe_and_sums_to_one(logits):
    p, log_total = softmax(np.array(logits))
    assert p.sum() == pytest.approx(1)
    assert log_total == pytest.approx(logsumexp(logits))
