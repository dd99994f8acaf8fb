"""Every ending has a name, an explanation and a remedy, and none is passed off as another."""

import numpy as np
import pytest

from hotshot.errors import TransportError
from hotshot.transport import Status, count_statuses, solve

from .checker import check_cost, check_odds
from .generators import random_problem, separable

METHODS = pytest.mark.parametrize("method", ["newton", "sinkhorn"])
REMEDIES = ("raise", "pass", "remove", "repair")


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.CONVERGED])
def test_explanations_name_a_remedy(status):
    assert any(remedy in status.explanation for remedy in REMEDIES)


@METHODS
@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 0.01])
def test_iterations_that_run_out_are_reported_and_the_plan_is_for_the_epsilon(method, epsilon):
    p = random_problem("uniform", 30, 6, epsilon=epsilon, batch=(2,))
    for max_iterations in (1, 2, 3, 4, 5):
        solution = solve(p.cost, p.a, p.b, epsilon=epsilon, method=method, max_iterations=max_iterations)
        assert (solution.status == Status.MAX_ITERATIONS).all()
        assert (solution.iterations == max_iterations).all()
        assert not solution.converged
        assert solution.raise_for_status() is solution
        assert (solution.plan >= 0).all()
        np.testing.assert_allclose(solution.plan.sum(axis=(1, 2)), 1.0, atol=1e-9)
        check_cost(p.cost, solution)
        check_odds(p.cost, epsilon, solution)


@METHODS
@pytest.mark.parametrize("tolerance", [None, 0.2])
def test_what_is_called_converged_is_solved_at_the_epsilon_asked_for(method, tolerance):
    for p in (separable(epsilon=1e-4), random_problem("uniform", 6, 3, epsilon=1e-4)):
        for max_iterations in range(1, 12):
            solution = solve(
                p.cost, p.a, p.b, epsilon=1e-4, method=method, tolerance=tolerance, max_iterations=max_iterations
            )
            if solution.converged:
                check_odds(p.cost, 1e-4, solution)


@pytest.mark.parametrize(
    ("cost", "mass", "status"),
    [(np.nan, 1.0, Status.NOT_FINITE), (0.5, -1.0, Status.BAD_MASS)],
    ids=["NaN", "negative mass"],
)
def test_raise_for_status_explains(cost, mass, status):
    solution = solve(np.full((2, 3, 2), cost), np.full(3, mass), epsilon=0.1)
    assert count_statuses(solution.status) == {status: 2}
    with pytest.raises(TransportError, match="2 transport problem") as error:
        solution.raise_for_status()
    assert status.explanation in str(error.value)


@METHODS
@pytest.mark.parametrize(("dtype", "share"), [(np.float64, 9e-7), (np.float64, -1e-8), (np.float32, 9e-5)])
def test_unbalanced_marginals_have_a_status_and_an_error(method, dtype, share):
    p = random_problem("uniform", 6, 4, epsilon=0.05)
    a, b = p.a.astype(dtype), (p.b * (1 + share)).astype(dtype)
    solution = solve(p.cost.astype(dtype), a, b, epsilon=0.05, method=method)
    assert solution.status == Status.UNBALANCED
    assert not solution.converged
    violation = np.abs(solution.plan.sum(axis=1) - a).sum() + np.abs(solution.plan.sum(axis=0) - b).sum()
    assert solution.marginal_error >= 0.99 * violation
    assert solution.marginal_error <= 1.2 * abs(share)


@METHODS
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("epsilon", [5e-324, 1e-310, 1e-300, 1e-40, 1e-20, 1e-18, 1e-16])
def test_a_plan_that_violates_its_marginals_is_not_called_converged(method, dtype, epsilon):
    cost = np.stack([random_problem("uniform", 6, 4, epsilon=0.1, seed=s).cost for s in range(3)]).astype(dtype)
    cost[2] = 0.01
    solution = solve(cost, epsilon=epsilon, method=method, max_iterations=60)
    assert np.isfinite(solution.plan).all()
    for plan, status, error in zip(solution.plan, solution.status, solution.marginal_error, strict=True):
        violation = np.abs(plan.sum(axis=1) - 1 / 6).sum() + np.abs(plan.sum(axis=0) - 1 / 4).sum()
        if status == Status.NOT_FINITE:
            assert not plan.any()
            assert np.isinf(error)
        else:
            assert abs(plan.sum() - 1) <= 2
            assert error >= violation - 1e-6
            assert status != Status.CONVERGED or violation < 3e-5
    if Status.NOT_FINITE in solution.status:
        with pytest.raises(TransportError, match="raise epsilon"):
            solution.raise_for_status()
