"""Everything that must hold for a converged solution, whoever made the problem and whoever solved it."""

from __future__ import annotations

import numpy as np

from hotshot.arrays import to_numpy
from hotshot.transport import Solution, Status

# The default tolerances of `solve` hold for each marginal.
TOLERANCE = {"float64": 2e-9, "float32": 2e-5}
ROUNDING = {"float64": 1e-12, "float32": 2e-6}


def check_solution(cost, a, b, epsilon: float, solution: Solution) -> None:
    """Assert what (…, J, S) costs with marginals `a`, `b` (None: uniform) and a solution of them must satisfy."""
    precision = to_numpy(solution.plan).dtype.name
    tolerance, rounding = TOLERANCE[precision], ROUNDING[precision]
    cost, plan = _wide(cost), _wide(solution.plan)
    *batch, rows, columns = cost.shape
    a = _wide(a) if a is not None else np.full((*batch, rows), 1 / rows)
    b = _wide(b) if b is not None else np.full((*batch, columns), 1 / columns)
    a, b = np.broadcast_to(a, (*batch, rows)), np.broadcast_to(b, (*batch, columns))
    mass = a.sum(axis=-1)

    assert plan.shape == cost.shape
    for name in ("cost", "primal", "dual", "marginal_error", "iterations", "status"):
        assert getattr(solution, name).shape == tuple(batch), name
    for name in ("cost", "primal", "dual", "marginal_error"):
        value = to_numpy(getattr(solution, name))
        assert value.dtype.name == precision, name
        assert np.isfinite(value).all(), name
    assert to_numpy(solution.status).dtype.kind == to_numpy(solution.iterations).dtype.kind == "i"
    assert (to_numpy(solution.status) == Status.CONVERGED).all(), solution.status_counts()
    assert solution.converged
    assert solution.raise_for_status() is solution

    assert np.isfinite(plan).all()
    assert (plan >= 0).all()
    assert (plan[a == 0] == 0).all(), "a row without mass carries something"
    assert (np.swapaxes(plan, -1, -2)[b == 0] == 0).all(), "a column without mass carries something"

    error = np.abs(plan.sum(axis=-1) - a).sum(axis=-1) + np.abs(plan.sum(axis=-2) - b).sum(axis=-1)
    assert (error <= (tolerance + rounding) * mass).all(), f"marginals missed by {error.max()}"
    _assert_close(solution.marginal_error, error / mass, rounding, "marginal_error")

    scale = mass * (np.abs(cost).max(axis=(-1, -2)) + epsilon * (np.log(rows * columns) + np.abs(np.log(mass))))
    linear = (cost * plan).sum(axis=(-1, -2))
    _assert_close(solution.cost, linear, rounding * scale, "cost")
    entropy = (plan * np.log(np.where(plan > 0, plan, 1.0))).sum(axis=(-1, -2))
    _assert_close(solution.primal, linear + epsilon * entropy, 2 * rounding * scale, "primal")
    # Primal minus dual is the missed mass times its price, which the costs and epsilon bound.
    price = np.log(1 / np.where(b > 0, b / mass[..., None], 1.0)).max(axis=-1)
    slack = (tolerance + 2 * rounding) * (4 * scale + epsilon * mass * price)
    _assert_close(solution.dual, solution.primal, slack, "dual")


def _wide(x) -> np.ndarray:
    return to_numpy(x).astype(np.float64) if hasattr(x, "shape") else np.asarray(x, dtype=np.float64)


def _assert_close(got, expected, atol, name: str) -> None:
    got, expected = _wide(got), _wide(expected)
    assert (np.abs(got - expected) <= atol).all(), f"{name}: got {got}, expected {expected} to {atol}"
