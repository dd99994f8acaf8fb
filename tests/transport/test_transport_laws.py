"""Laws of entropic transport: what a change of the problem does to the plan, exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotshot.arrays import to_numpy
from hotshot.transport import solve

from .checker import check_solution
from .generators import problems, random_problem

ATOL = 1e-7


def plan_of(p, cost=None, a=None, b=None, epsilon=None):
    """The plan of a problem, with some of its parts replaced."""
    cost, a, b = (old if new is None else new for new, old in zip((cost, a, b), (p.cost, p.a, p.b), strict=True))
    return solve(cost, a, b, epsilon=epsilon or p.epsilon).plan


@given(p=problems(batch=(2,)))
def test_a_converged_solution_is_one(p):
    check_solution(p.cost, p.a, p.b, p.epsilon, solve(p.cost, p.a, p.b, epsilon=p.epsilon))


@given(p=problems(), seed=st.integers(0, 1000))
def test_permuted_rows_and_columns_permute_the_plan(p, seed):
    rng = np.random.default_rng(seed)
    rows, columns = (rng.permutation(size) for size in p.cost.shape)
    permuted = plan_of(p, p.cost[rows][:, columns], p.a[rows], p.b[columns])
    np.testing.assert_allclose(permuted, plan_of(p)[rows][:, columns], atol=ATOL)


@given(p=problems(batch=(4,)), order=st.permutations(range(4)))
def test_permuted_problems_permute_the_plans(p, order):
    permuted = plan_of(p, p.cost[order], p.a[order], p.b[order])
    np.testing.assert_allclose(permuted, plan_of(p)[order], atol=ATOL)


@given(p=problems(), seed=st.integers(0, 1000), size=st.floats(0, 10))
def test_costs_of_leaving_and_arriving_leave_the_plan(p, seed, size):
    rng = np.random.default_rng(seed)
    rows, columns = p.cost.shape
    shifted = p.cost + size * rng.normal(size=(rows, 1)) + size * rng.normal(size=columns)
    np.testing.assert_allclose(plan_of(p, shifted), plan_of(p), atol=ATOL)


@given(p=problems(), power=st.floats(-6, 6))
def test_cost_and_epsilon_in_other_units_leave_the_plan(p, power):
    unit = 10.0**power
    np.testing.assert_allclose(plan_of(p, p.cost * unit, epsilon=p.epsilon * unit), plan_of(p), atol=ATOL)


@given(p=problems(), power=st.floats(-6, 6))
def test_more_mass_scales_plan_and_cost(p, power):
    mass = 10.0**power
    one = solve(p.cost, p.a, p.b, epsilon=p.epsilon)
    scaled = solve(p.cost, p.a * mass, p.b * mass, epsilon=p.epsilon)
    check_solution(p.cost, p.a * mass, p.b * mass, p.epsilon, scaled)
    np.testing.assert_allclose(scaled.plan / mass, one.plan, atol=ATOL)
    np.testing.assert_allclose(scaled.cost / mass, one.cost, atol=ATOL)


@given(p=problems())
def test_transposed_problems_have_transposed_plans(p):
    np.testing.assert_allclose(plan_of(p, p.cost.T, p.b, p.a), plan_of(p).T, atol=ATOL)


@given(p=problems(), share=st.floats(0.05, 0.95))
def test_a_row_split_in_two_splits_its_plan(p, share):
    a = np.concatenate([p.a[:1] * share, p.a[:1] * (1 - share), p.a[1:]])
    plan = plan_of(p)
    expected = np.concatenate([plan[:1] * share, plan[:1] * (1 - share), plan[1:]])
    np.testing.assert_allclose(plan_of(p, p.cost[[0, *range(len(p.a))]], a), expected, atol=ATOL)


@given(p=problems(), factor=st.floats(1.0, 100.0))
def test_cost_never_falls_as_epsilon_grows(p, factor):
    low, high = (solve(p.cost, p.a, p.b, epsilon=e) for e in (p.epsilon, p.epsilon * factor))
    assert low.cost <= high.cost + 1e-8


@given(p=problems(lowest_epsilon=0.03))
def test_cost_plus_epsilon_log_plan_is_separable(p):
    """The first-order condition: C + epsilon log T = f_j + g_n, so that its double differences vanish."""
    potentials = p.cost / p.epsilon + np.log(plan_of(p))
    interaction = potentials - potentials[:1] - potentials[:, :1] + potentials[0, 0]
    np.testing.assert_allclose(interaction, 0, atol=1e-6)


@given(p=problems(lowest_epsilon=0.1))
def test_newton_and_sinkhorn_find_one_plan(p):
    one, other = (solve(p.cost, p.a, p.b, epsilon=p.epsilon, method=m) for m in ("newton", "sinkhorn"))
    check_solution(p.cost, p.a, p.b, p.epsilon, other)
    np.testing.assert_allclose(one.plan, other.plan, atol=ATOL)


@pytest.mark.parametrize("family", ["uniform", "tied"])
def test_laws_hold_on_every_array_library(xp, family):
    p = random_problem(family, epsilon=0.02, batch=(3,))
    cost, a, b = (xp.asarray(x) for x in (p.cost, p.a, p.b))
    one = solve(cost, a, b, epsilon=0.02)
    check_solution(cost, a, b, 0.02, one)
    for other in (
        solve(cost + 5.0, a, b, epsilon=0.02),
        solve(cost * 4.0, a, b, epsilon=0.08),
        solve(cost, a * 8.0, b * 8.0, epsilon=0.02),
    ):
        plan = to_numpy(other.plan) / to_numpy(other.plan).sum(axis=(1, 2), keepdims=True)
        np.testing.assert_allclose(plan, to_numpy(one.plan), atol=ATOL)
    transposed = solve(xp.matrix_transpose(cost), b, a, epsilon=0.02)
    np.testing.assert_allclose(np.swapaxes(to_numpy(transposed.plan), 1, 2), to_numpy(one.plan), atol=ATOL)
