"""Problems whose plan is known are solved to that plan, by every method and on every array library."""

import numpy as np
import pytest

from hotshot.arrays import to_numpy
from hotshot.transport import solve

from .checker import check_solution
from .generators import KNOWN, separable, two_by_two

SINKHORN_IS_TOO_SLOW = {"sorted line"}


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("method", ["newton", "sinkhorn"])
def test_plan_is_the_known_one(name, method):
    if method == "sinkhorn" and name in SINKHORN_IS_TOO_SLOW:
        method = "auto"
    p = KNOWN[name]()
    solution = solve(p.cost, p.a, p.b, epsilon=p.epsilon, method=method)
    check_solution(p.cost, p.a, p.b, p.epsilon, solution)
    np.testing.assert_allclose(solution.plan, p.plan, atol=p.within)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", KNOWN)
def test_plan_is_the_known_one_on_every_array_library(xp, name, dtype):
    p = KNOWN[name]().astype(dtype)
    cost, a, b = (xp.asarray(x) for x in (p.cost, p.a, p.b))
    solution = solve(cost, a, b, epsilon=p.epsilon)
    check_solution(cost, a, b, p.epsilon, solution)
    assert type(solution.plan) is type(cost)
    assert solution.plan.dtype == cost.dtype
    np.testing.assert_allclose(to_numpy(solution.plan), p.plan, atol=p.within + (dtype == "float32") * 2e-5)


@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0])
def test_closed_forms_at_any_epsilon(epsilon):
    for p in (separable(epsilon), *(two_by_two(epsilon, seed) for seed in range(10))):
        np.testing.assert_allclose(solve(p.cost, p.a, p.b, epsilon=epsilon).plan, p.plan, atol=1e-8)


def test_inputs_are_left_as_they_were():
    p = KNOWN["diracs"]()
    before = [x.copy() for x in (p.cost, p.a, p.b)]
    solve(p.cost, p.a, p.b, epsilon=p.epsilon)
    for x, y in zip((p.cost, p.a, p.b), before, strict=True):
        np.testing.assert_array_equal(x, y)
