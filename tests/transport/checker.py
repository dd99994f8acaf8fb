"""Everything that must hold for a converged solution, whoever made the problem and whoever solved it."""

from __future__ import annotations

import numpy as np

from hotshot.arrays import to_numpy
from hotshot.transport import Solution, Status, count_statuses

# The default tolerances of `solve` hold for each marginal.
TOLERANCE = {"float64": 2e-9, "float32": 2e-5}
ROUNDING = {"float64": 1e-12, "float32": 2e-6}
# Smallest share of the largest entry that a solver resolves: of a kernel, or of a number.
SMALLEST = {"float64": 1e-100, "float32": 1e-5}


def check_solution(cost, a, b, epsilon: float, solution: Solution) -> None:
    """Assert what (…, J, S) costs with marginals `a`, `b` (None: uniform) and a solution of them must satisfy."""
    precision = to_numpy(solution.plan).dtype.name
    tolerance, rounding = TOLERANCE[precision], ROUNDING[precision]
    wide, plan = as_float64(cost), as_float64(solution.plan)
    *batch, rows, columns = wide.shape
    a = np.broadcast_to(as_float64(a) if a is not None else 1 / rows, (*batch, rows))
    b = np.broadcast_to(as_float64(b) if b is not None else 1 / columns, (*batch, columns))
    mass = a.sum(axis=-1)

    assert plan.shape == wide.shape
    for name in ("cost", "marginal_error", "iterations", "status"):
        value = to_numpy(getattr(solution, name))
        assert value.shape == tuple(batch), name
        assert value.dtype.name == precision if name in ("cost", "marginal_error") else value.dtype.kind == "i", name
        assert np.isfinite(value).all(), name
    assert (to_numpy(solution.status) == Status.CONVERGED).all(), count_statuses(solution.status)
    assert solution.converged
    assert solution.raise_for_status() is solution

    assert (plan >= 0).all()
    assert (plan[a == 0] == 0).all(), "a row without mass carries something"
    assert (np.swapaxes(plan, -1, -2)[b == 0] == 0).all(), "a column without mass carries something"
    error = np.abs(plan.sum(axis=-1) - a).sum(axis=-1) + np.abs(plan.sum(axis=-2) - b).sum(axis=-1)
    assert (error <= (tolerance + rounding) * mass).all(), f"marginals missed by {error.max()}"
    assert (np.abs(as_float64(solution.marginal_error) - error / mass) <= rounding).all()
    check_cost(cost, solution)
    check_odds(cost, epsilon, solution)


def check_cost(cost, solution: Solution) -> None:
    """Assert that the cost is that of the plan."""
    cost, plan = as_float64(cost), as_float64(solution.plan)
    scale = np.abs(cost).max(axis=(-1, -2)) * plan.sum(axis=(-1, -2))
    difference = np.abs(as_float64(solution.cost) - (cost * plan).sum(axis=(-1, -2)))
    assert (difference <= 2 * ROUNDING[to_numpy(solution.plan).dtype.name] * scale).all()


def check_odds(cost, epsilon: float, solution: Solution) -> None:
    """Assert T_jn T_kl exp((C_jn + C_kl - C_jl - C_kn) / epsilon) = T_jl T_kn: with its marginals, T is the plan.

    It holds for a plan at this epsilon, converged or not, and for no other.
    """
    precision = to_numpy(solution.plan).dtype.name
    cost, plan = as_float64(cost) / epsilon, as_float64(solution.plan)
    within = 200 * np.finfo(precision).eps * (1 + np.abs(cost).max())
    for rows, columns in [(1, 1), (2, 1), (1, 2), (5, 3)]:
        turns = [(-rows, -columns), (-rows, 0), (0, -columns)]
        costs, plans = ([x, *(np.roll(x, turn, axis=(-2, -1)) for turn in turns)] for x in (cost, plan))
        exponent = costs[0] + costs[1] - costs[2] - costs[3]
        straight = plans[0] * plans[1] * np.exp(np.minimum(exponent, 0))
        crossed = plans[2] * plans[3] * np.exp(np.minimum(-exponent, 0))
        allowed = within * np.maximum(straight, crossed) + SMALLEST[precision] * plan.max() ** 2
        assert (np.abs(straight - crossed) <= allowed).all()


def as_float64(x) -> np.ndarray:
    return to_numpy(x).astype(np.float64)
