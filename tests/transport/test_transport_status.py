"""Every ending has a name, an explanation and a remedy, and none is passed off as another."""

import numpy as np
import pytest

from hotshot.errors import HotshotError, TransportError
from hotshot.transport import Status, solve

from .generators import Problem, random_problem, separable

REMEDIES = ("raise", "pass", "remove", "repair")


@pytest.mark.parametrize("status", Status)
def test_explanations_are_sentences(status):
    assert status.explanation[0].isupper()
    assert status.explanation.endswith(".")


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.CONVERGED])
def test_explanations_name_a_remedy(status):
    assert any(remedy in status.explanation for remedy in REMEDIES)


@pytest.mark.parametrize("method", ["newton", "sinkhorn"])
def test_iterations_that_run_out_are_reported(method):
    p = random_problem("uniform", 30, 6, epsilon=1e-4, batch=(2,))
    solution = solve(p.cost, p.a, p.b, epsilon=1e-4, method=method, max_iterations=1)
    assert (solution.status == Status.MAX_ITERATIONS).all()
    assert (solution.iterations == 1).all()
    assert not solution.converged
    assert solution.raise_for_status() is solution


@pytest.mark.parametrize("epsilon", [1e-3, 0.01])
@pytest.mark.parametrize("method", ["newton", "sinkhorn"])
def test_an_unconverged_plan_moves_the_mass_and_its_values_are_its_own(method, epsilon):
    p = random_problem("uniform", 30, 6, epsilon=epsilon)
    for max_iterations in (1, 2, 3, 4, 5):
        solution = solve(p.cost, p.a, p.b, epsilon=epsilon, method=method, max_iterations=max_iterations)
        assert solution.status == Status.MAX_ITERATIONS
        assert (solution.plan >= 0).all()
        np.testing.assert_allclose(solution.plan.sum(), 1.0, atol=1e-9)
        _assert_values_belong_to_the_plan(p, solution)


@pytest.mark.parametrize("method", ["newton", "sinkhorn"])
def test_what_is_called_converged_is_solved_at_the_epsilon_asked_for(method):
    p = separable(epsilon=1e-4)
    for max_iterations in range(1, 12):
        solution = solve(p.cost, p.a, p.b, epsilon=1e-4, method=method, max_iterations=max_iterations)
        if solution.converged:
            _assert_values_belong_to_the_plan(p, solution)


@pytest.mark.parametrize("method", ["newton", "sinkhorn"])
def test_a_loose_tolerance_does_not_stop_at_another_epsilon(method):
    p = random_problem("uniform", 6, 3, epsilon=1e-4)
    for max_iterations in range(1, 12):
        solution = solve(p.cost, p.a, p.b, epsilon=1e-4, method=method, tolerance=0.2, max_iterations=max_iterations)
        if solution.converged:
            _assert_values_belong_to_the_plan(p, solution)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("method", ["newton", "sinkhorn"])
def test_numbers_that_overflow_are_never_called_converged(method):
    cost = random_problem("uniform", 6, 3).cost.copy()
    cost[0, 0] = 1e308
    solution = solve(cost, epsilon=0.01, method=method, max_iterations=50)
    assert solution.status != Status.CONVERGED
    assert np.isfinite(solution.plan).all()


@pytest.mark.parametrize(
    ("cost", "mass", "status"),
    [(np.nan, 1.0, Status.NOT_FINITE), (0.5, -1.0, Status.BAD_MASS)],
    ids=["NaN", "negative mass"],
)
def test_raise_for_status_explains(cost, mass, status):
    solution = solve(np.full((2, 3, 2), cost), np.full(3, mass), epsilon=0.1)
    assert solution.status_counts() == {status: 2}
    with pytest.raises(TransportError, match="2 transport problem") as error:
        solution.raise_for_status()
    assert status.explanation in str(error.value)
    assert isinstance(error.value, HotshotError)


def _assert_values_belong_to_the_plan(p: Problem, solution) -> None:
    plan = solution.plan
    linear = (p.cost * plan).sum()
    entropy = (plan * np.log(np.where(plan > 0, plan, 1.0))).sum()
    np.testing.assert_allclose(solution.cost, linear, atol=1e-9)
    np.testing.assert_allclose(solution.primal, linear + p.epsilon * entropy, atol=1e-9)
