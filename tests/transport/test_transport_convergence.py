"""Every reasonable problem converges: five orders of epsilon, both precisions, all shapes, both methods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotshot.transport import solve

from .checker import check_solution
from .generators import FAMILIES, Problem, problems, random_problem

EPSILONS = [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_epsilon_converges(family, epsilon, dtype):
    for shape in [(60, 5), (5, 30), (12, 12), (200, 1)]:
        p = random_problem(family, *shape, epsilon=epsilon, seed=21, batch=(6,)).astype(dtype)
        check_solution(p.cost, p.a, p.b, epsilon, solve(p.cost, p.a, p.b, epsilon=epsilon))
    cost = random_problem(family, 600, 25, seed=22, batch=(2,)).cost.astype(dtype)
    check_solution(cost, None, None, epsilon, solve(cost, epsilon=epsilon))
    if epsilon >= 0.1:
        p = random_problem(family, 40, 6, epsilon=epsilon, seed=23, batch=(2,)).astype(dtype)
        solution = solve(p.cost, p.a, p.b, epsilon=epsilon, method="sinkhorn")
        check_solution(p.cost, p.a, p.b, epsilon, solution)


@given(p=problems(lowest_epsilon=1e-4, batch=(3,)), dtype=st.sampled_from(["float64", "float32"]))
def test_any_small_problem_converges(p, dtype):
    p = p.astype(dtype)
    check_solution(p.cost, p.a, p.b, p.epsilon, solve(p.cost, p.a, p.b, epsilon=p.epsilon))


@pytest.mark.parametrize("method", ["auto", "newton", "sinkhorn"])
@pytest.mark.parametrize("shape", [(300, 90), (90, 300), (300, 280)])
def test_two_large_sides_converge(shape, method):
    p = random_problem("cosine", *shape, epsilon=0.1, seed=24)
    solution = solve(p.cost, p.a, p.b, epsilon=0.1, method=method)
    check_solution(p.cost, p.a, p.b, 0.1, solution)


@pytest.mark.parametrize(("dtype", "offset"), [("float64", 1e6), ("float32", 100.0), ("float32", -2.0)])
def test_costs_far_from_zero_converge(dtype, offset):
    p = random_problem("tied", 30, 4, epsilon=0.01, seed=25, batch=(4,)).astype(dtype)
    shifted = (3 * p.cost + offset) / 3
    solution = solve(shifted, p.a, p.b, epsilon=0.01)
    check_solution(shifted, p.a, p.b, 0.01, solution)
    assert solution.iterations.max() < 100


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_masses_over_ten_orders_converge(dtype):
    p = random_problem("uniform", 30, 6, epsilon=0.01, batch=(4,))
    a, b = p.a ** np.linspace(1, 6, 30), p.b ** np.linspace(1, 6, 6)
    p = Problem(p.cost, a / a.sum(-1, keepdims=True), b / b.sum(-1, keepdims=True), 0.01).astype(dtype)
    check_solution(p.cost, p.a, p.b, 0.01, solve(p.cost, p.a, p.b, epsilon=0.01))


def test_newton_needs_few_iterations_where_sinkhorn_needs_many():
    p = random_problem("cosine", 600, 5, epsilon=0.005, batch=(8,))
    assert solve(p.cost, epsilon=0.005, method="newton").iterations.max() <= 20
    assert solve(p.cost, epsilon=0.005, method="sinkhorn").iterations.max() > 20


def test_a_tighter_tolerance_is_met():
    p = random_problem("uniform", 30, 5, epsilon=0.05)
    errors = [solve(p.cost, p.a, p.b, epsilon=0.05, tolerance=t).marginal_error for t in (1e-3, 1e-12)]
    assert errors[0] <= 2e-3
    assert errors[1] <= 2e-12
