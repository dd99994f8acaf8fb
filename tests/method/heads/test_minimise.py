"""The minimiser against SciPy's, and heads against scikit-learn's logistic regression."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from sklearn.linear_model import LogisticRegression

from conftest import make_bank
from few_shot_problems import (
    gaussians_of,
    heads_of,
    plain_space,
    prepared_bank,
    probabilities,
    problem_of,
    random_problem,
    random_tasks,
    random_weights,
    transfer_of,
)
from hotshot.bank import BaseClasses
from hotshot.bank.covariances import Dense
from hotshot.method.heads.bound import MOST_RAYS, RayMetric
from hotshot.method.heads.problem import minimise


def bank_problem(n_classes=3, shots=1, tasks=3, *, width=24, n_generated=200.0, C=1.0, **alpha):
    """The problem that the method poses, on a bank of ten classes."""
    base = BaseClasses.from_samples(*make_bank(10, 30, width, spread=1.0)).prepare(plain_space())
    support, labels = random_tasks(base, tasks, (shots,) * n_classes)
    gaussians = gaussians_of(base, support, labels, transfer_of(base, support).weights, **alpha)
    settings = {"n_generated": n_generated, "support_weight": 10.0, "C": C}
    return problem_of(base, gaussians, support, labels, n_classes=n_classes, **settings)


def task_of(problem, t):
    names, spread = ("means", "mean_labels", "mean_counts", "samples", "labels", "counts"), problem.spread
    if spread.mixing is None:
        part = {"covariances": Dense(spread.covariances.matrices[t : t + 1])}
    else:
        part = {"mixing": spread.mixing[t : t + 1]}
    spread = replace(spread, members=spread.members[t : t + 1], **part)
    return replace(problem, spread=spread, **{name: getattr(problem, name)[t : t + 1] for name in names})


def zeros(problem):
    return np.zeros((len(problem.means), problem.mean_labels.max() + 1, problem.means.shape[2]))


def scipy_minimum(problem, start):
    """L-BFGS-B on one task, to the end of what its numbers can resolve."""

    def value_and_gradient(x):
        at = problem.objective(x.reshape(start.shape))
        return at.value[0], at.gradient.ravel()

    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 20_000, "maxcor": 20}
    return optimize.minimize(value_and_gradient, start.ravel(), jac=True, method="L-BFGS-B", options=options)


def check_minimum(problem, theta, *, tolerance=1e-6):
    """Value and predictions of every task are those of SciPy's minimum; returns SciPy's evaluations."""
    queries = np.random.default_rng(0).normal(size=(200, problem.means.shape[2] - 1))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    evaluations = []
    for t in range(len(problem.means)):
        task = task_of(problem, t)
        best = scipy_minimum(task, zeros(task))
        value = task.objective(theta[t : t + 1]).value[0]
        assert value == pytest.approx(best.fun, rel=tolerance)
        expected = probabilities(best.x.reshape(theta.shape[1:]), queries)
        np.testing.assert_allclose(probabilities(theta[t], queries), expected, atol=1e-3)
        evaluations.append(best.nfev)
    return evaluations


def metric_of(problem):
    spread, width = problem.spread, problem.means.shape[2] - 1
    variances = spread.covariances.variances.reshape(-1, width).mean(axis=0)
    return RayMetric(problem, variances if spread.variances is None else variances + spread.variances).apply


def minimum(problem, start=None, metric=None):
    start = zeros(problem) if start is None else start
    return minimise(problem.objective, metric or metric_of(problem), start)


PROBLEMS = {
    "one shot": lambda: bank_problem(),
    "two classes": lambda: bank_problem(n_classes=2),
    "five shots": lambda: bank_problem(n_classes=4, shots=5, tasks=1),
    "strong penalty": lambda: bank_problem(C=0.01, tasks=2),
    "few features": lambda: bank_problem(n_generated=1.0, tasks=2),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_minimum_is_scipys_in_fewer_evaluations(kind):
    problem = PROBLEMS[kind]()
    found = minimum(problem)
    assert found.converged.all()
    assert found.iterations + 1 < min(check_minimum(problem, found.theta))


HARD_PROBLEMS = {
    "weak penalty": lambda: bank_problem(C=100.0, tasks=2),
    "hardly any penalty": lambda: bank_problem(C=1e4, tasks=2),
    "far from the metric": lambda: random_problem(n_classes=3, per_class=2, shots=2, spread=3.0, C=10.0),
    "more points than rays": lambda: random_problem(n_classes=2, width=3, shots=MOST_RAYS // 2 + 1, seed=4),
}


@pytest.mark.parametrize("kind", HARD_PROBLEMS)
@pytest.mark.parametrize("scale", [0, 5])
def test_hard_problems_are_solved_from_any_start(kind, scale):
    problem = HARD_PROBLEMS[kind]()
    # A minimum that the penalty hardly holds is known less exactly from far away.
    tolerance = 1e-3 if scale and kind == "hardly any penalty" else 1e-5
    start = scale * np.random.default_rng(0).normal(size=zeros(problem).shape)
    found = minimum(problem, start)
    assert found.converged.all()
    check_minimum(problem, found.theta, tolerance=tolerance)


@pytest.mark.parametrize("calls", [{0}, {3}, {0, 1, 2, 5, 8}])
def test_a_direction_uphill_is_no_sign_of_a_minimum(calls):
    problem, seen = bank_problem(tasks=2), []

    def metric(at, x):
        seen.append(1)
        return metric_of(problem)(at, x) * (-1 if len(seen) - 1 in calls else 1)

    found = minimum(problem, metric=metric)
    assert found.converged.all()
    check_minimum(problem, found.theta)


def test_a_batch_is_its_tasks_one_at_a_time_also_beside_a_hard_one():
    problem = bank_problem(tasks=4)
    factors = np.array([[1], [1e4], [1], [1]])
    problem = replace(problem, counts=factors * problem.counts, mean_counts=factors * problem.mean_counts)
    together = minimum(problem).theta
    for t in (0, 2, 3):
        alone = minimum(task_of(problem, t)).theta
        values = [task_of(problem, t).objective(theta).value[0] for theta in (together[t : t + 1], alone)]
        assert values[0] == pytest.approx(values[1], rel=1e-8)
        np.testing.assert_allclose(together[t], alone[0], atol=3e-3 * np.abs(alone).max())


def test_a_converged_task_is_left_alone():
    problem = bank_problem(tasks=2)
    theta = zeros(problem)
    theta[:1] = scipy_minimum(task_of(problem, 0), theta[:1]).x.reshape(theta[:1].shape)
    found = minimum(problem, theta)
    np.testing.assert_array_equal(found.theta[0], theta[0])
    assert np.abs(found.theta[1]).max() > 0.1
    again = minimum(problem, found.theta)
    np.testing.assert_array_equal(again.theta, found.theta)
    assert again.iterations == 0


# --- the head --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shots", [(1, 1, 1), (3, 1, 2), (1, 1), (2, 4)])
@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_without_covariance_a_head_is_weighted_logistic_regression(shots, C):
    base = prepared_bank()
    base = replace(base, covariances=Dense(np.zeros_like(base.covariances.matrices)))
    support, labels = random_tasks(base, 2, shots)
    gaussians = gaussians_of(base, support, labels, random_weights(2, 6, sum(shots)))
    settings = {"n_generated": 30, "support_weight": 2.5, "C": C}
    theta = heads_of(base, gaussians, support, labels, n_classes=len(shots), **settings)[0]
    queries = np.random.default_rng(0).normal(size=(100, 6))
    for t in range(2):
        counts = [30 / shots[label] for label in labels[t]] + [2.5] * sum(shots)
        X = np.concatenate([gaussians.means[t], support[t]])
        y = np.concatenate([labels[t], labels[t]])
        model = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, y, sample_weight=counts)
        np.testing.assert_allclose(probabilities(theta[t], queries), model.predict_proba(queries), atol=1e-2)
