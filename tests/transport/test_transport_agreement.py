"""Plans agree with POT's Sinkhorn, with the exact plan as epsilon vanishes, with the product as it grows."""

import numpy as np
import pytest

from hotshot.transport import solve

from .checker import check_solution
from .generators import FAMILIES, random_problem, sorted_line

ot = pytest.importorskip("ot")


@pytest.mark.parametrize("method", ["newton", "sinkhorn"])
@pytest.mark.parametrize("epsilon", [0.05, 0.2, 1.0])
@pytest.mark.parametrize("family", FAMILIES)
def test_plan_agrees_with_pot_sinkhorn(family, epsilon, method):
    p = random_problem(family, rows=30, columns=6, epsilon=epsilon, seed=11)
    expected = ot.sinkhorn(p.a, p.b, p.cost, epsilon, numItermax=100_000, stopThr=1e-12)
    solution = solve(p.cost, p.a, p.b, epsilon=epsilon, method=method)
    np.testing.assert_allclose(solution.plan, expected, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_plan_agrees_with_pot_log_sinkhorn_at_small_epsilon(family):
    p = random_problem(family, rows=12, columns=4, epsilon=0.01, seed=12)
    expected = ot.sinkhorn(p.a, p.b, p.cost, p.epsilon, method="sinkhorn_log", numItermax=100_000, stopThr=1e-10)
    np.testing.assert_allclose(solve(p.cost, p.a, p.b, epsilon=p.epsilon).plan, expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(5, 40), (100, 80)])
def test_plan_agrees_with_pot_for_other_shapes(shape):
    p = random_problem("cosine", *shape, epsilon=0.05, seed=13)
    expected = ot.sinkhorn(p.a, p.b, p.cost, p.epsilon, numItermax=100_000, stopThr=1e-12)
    np.testing.assert_allclose(solve(p.cost, p.a, p.b, epsilon=p.epsilon).plan, expected, atol=1e-6)


@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 1e-2, 0.1])
@pytest.mark.parametrize("family", FAMILIES)
def test_cost_exceeds_the_exact_one_by_at_most_epsilon_times_the_entropy(family, epsilon):
    for seed in range(5):
        p = random_problem(family, rows=25, columns=6, epsilon=epsilon, seed=seed)
        exact = ot.emd2(p.a, p.b, p.cost)
        solution = solve(p.cost, p.a, p.b, epsilon=epsilon)
        check_solution(p.cost, p.a, p.b, epsilon, solution)
        entropy_of_the_small_side = -(p.b * np.log(p.b)).sum()
        assert exact - 1e-8 <= solution.cost <= exact + epsilon * entropy_of_the_small_side + 1e-8


def test_plan_tends_to_the_exact_one():
    p = sorted_line()
    np.testing.assert_allclose(ot.emd(p.a, p.b, p.cost), p.plan, atol=1e-12)
    distances = [
        np.abs(solve(p.cost, p.a, p.b, epsilon=epsilon).plan - p.plan).max() for epsilon in (0.1, 0.03, 0.01, 1e-4)
    ]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 1e-6


@pytest.mark.parametrize("epsilon", [10.0, 1e3, 1e6])
@pytest.mark.parametrize("family", FAMILIES)
def test_plan_tends_to_the_product_as_one_over_epsilon(family, epsilon):
    p = random_problem(family, rows=25, columns=6, epsilon=epsilon, seed=14)
    product = np.outer(p.a, p.b)
    plan = solve(p.cost, p.a, p.b, epsilon=epsilon).plan
    # A potential ranges no wider than the cost, so the exponent of plan / product is within twice that.
    assert (np.abs(plan - product) <= product * np.expm1(2 * np.ptp(p.cost) / epsilon) + 1e-9).all()
