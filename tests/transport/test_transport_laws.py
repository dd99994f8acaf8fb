"""Laws of entropic transport: what a change of the problem does to the plan, exactly."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotshot.transport import solve

from .checker import check_solution
from .generators import problems

ATOL = 1e-7


def plan_of(p, **options):
    return solve(p.cost, p.a, p.b, epsilon=p.epsilon, **options).plan


# A changed problem, and what the change does to the plan.


def permuted(p, rng):
    rows, columns = (rng.permutation(size) for size in p.cost.shape)
    return replace(p, cost=p.cost[rows][:, columns], a=p.a[rows], b=p.b[columns]), lambda x: x[rows][:, columns]


def costs_of_leaving_and_arriving(p, rng):
    rows, columns = p.cost.shape
    return replace(p, cost=p.cost + 10 * rng.normal(size=(rows, 1)) + 10 * rng.normal(size=columns)), lambda x: x


def other_units(p, rng):
    unit = 10 ** rng.uniform(-6, 6)
    return replace(p, cost=p.cost * unit, epsilon=p.epsilon * unit), lambda x: x


def more_mass(p, rng):
    mass = 10 ** rng.uniform(-6, 3)
    return replace(p, a=p.a * mass, b=p.b * mass), lambda x: x * mass


def transposed(p, rng):
    return replace(p, cost=p.cost.T, a=p.b, b=p.a), lambda x: x.T


def a_row_split_in_two(p, rng):
    rows, parts = [0, *range(len(p.a))], np.ones(len(p.a) + 1)
    parts[:2] = (share := rng.uniform(0.05, 0.95)), 1 - share
    return replace(p, cost=p.cost[rows], a=parts * p.a[rows]), lambda x: parts[:, None] * x[rows]


LAWS = [permuted, costs_of_leaving_and_arriving, other_units, more_mass, transposed, a_row_split_in_two]


@pytest.mark.parametrize("law", LAWS)
@given(p=problems(), seed=st.integers(0, 1000))
def test_a_changed_problem_has_the_changed_plan(law, p, seed):
    changed, plan_change = law(p, np.random.default_rng(seed))
    expected = plan_change(plan_of(p))
    solution = solve(changed.cost, changed.a, changed.b, epsilon=changed.epsilon)
    check_solution(changed.cost, changed.a, changed.b, changed.epsilon, solution)
    np.testing.assert_allclose(solution.plan, expected, atol=ATOL * max(1, expected.sum()))


@given(p=problems(), factor=st.floats(1.0, 100.0))
def test_cost_never_falls_as_epsilon_grows(p, factor):
    low, high = (solve(p.cost, p.a, p.b, epsilon=e) for e in (p.epsilon, p.epsilon * factor))
    assert low.cost <= high.cost + 1e-8


@given(p=problems(lowest_epsilon=0.1))
def test_newton_and_sinkhorn_find_one_plan(p):
    other = solve(p.cost, p.a, p.b, epsilon=p.epsilon, method="sinkhorn")
    check_solution(p.cost, p.a, p.b, p.epsilon, other)
    np.testing.assert_allclose(plan_of(p, method="newton"), other.plan, atol=ATOL)
