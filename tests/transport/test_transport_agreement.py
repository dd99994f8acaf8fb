"""Plans agree with POT's Sinkhorn; with the exact plan as epsilon vanishes, and with the product as it grows."""

import numpy as np
import pytest

from hotshot.transport import solve

from .checker import check_solution
from .generators import FAMILIES, random_problem

ot = pytest.importorskip("ot")
CASES = {
    **{f"epsilon {e}, {m}": ((30, 6), e, m, "sinkhorn") for e in (0.05, 0.2, 1.0) for m in ("newton", "sinkhorn")},
    "small epsilon": ((12, 4), 0.01, "newton", "sinkhorn_log"),
    "wide": ((5, 40), 0.05, "auto", "sinkhorn"),
    "large": ((100, 80), 0.05, "auto", "sinkhorn"),
}


@pytest.mark.parametrize(("shape", "epsilon", "method", "of_pot"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("family", FAMILIES)
def test_plan_agrees_with_pot(family, shape, epsilon, method, of_pot):
    p = random_problem(family, *shape, epsilon=epsilon, seed=11)
    expected = ot.sinkhorn(p.a, p.b, p.cost, epsilon, method=of_pot, numItermax=100_000, stopThr=1e-12)
    np.testing.assert_allclose(solve(p.cost, p.a, p.b, epsilon=epsilon, method=method).plan, expected, atol=1e-6)


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


@pytest.mark.parametrize("epsilon", [10.0, 1e3, 1e6])
@pytest.mark.parametrize("family", FAMILIES)
def test_plan_tends_to_the_product_as_one_over_epsilon(family, epsilon):
    p = random_problem(family, rows=25, columns=6, epsilon=epsilon, seed=14)
    product = np.outer(p.a, p.b)
    plan = solve(p.cost, p.a, p.b, epsilon=epsilon).plan
    # A potential ranges no wider than the cost, so the exponent of plan / product is within twice that.
    assert (np.abs(plan - product) <= product * np.expm1(2 * np.ptp(p.cost) / epsilon) + 1e-9).all()
