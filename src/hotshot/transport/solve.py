"""Solve batches of entropic transport problems: check them, choose a solver, report a status per problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from numbers import Real
from typing import Any

import numpy as np

from hotshot.arrays import NO_OVERFLOW_WARNINGS, Array, as_floats, is_single, multiply_into, namespace, slices, to_numpy
from hotshot.errors import InputError, ParameterError, TransportError
from hotshot.transport.semidual import BlockSolution, newton
from hotshot.transport.sinkhorn import sinkhorn

SOLVERS = {"newton": newton, "sinkhorn": sinkhorn}
# Newton factors an S x S matrix per iteration, and still takes a sixth of the time of Sinkhorn at this size.
LARGEST_NEWTON_SIDE = 256
MAX_ITERATIONS = {"newton": 1000, "sinkhorn": 20_000}
# Entries of a block of problems that are solved together: small enough to stay in a core's cache.
BLOCK_ENTRIES = 2**17
# The most that a plan of the right total can violate both marginals, as a share of the mass.
LARGEST_ERROR = 4.0
# Rounding errors of a marginal that are ignored, in units of the precision.
ROUNDING = 64
# Single precision cannot resolve costs whose range is more epsilons than this.
SINGLE_PRECISION_RANGE = 300


class Status(IntEnum):
    """How the solve of one problem ended; ``explanation`` tells what happened, the usual cause, and the remedy."""

    CONVERGED = 0
    MAX_ITERATIONS = 1
    NOT_FINITE = 2
    BAD_MASS = 3
    UNBALANCED = 4

    @property
    def explanation(self) -> str:
        """One sentence."""
        return EXPLANATIONS[self]


EXPLANATIONS = {
    Status.CONVERGED: "The plan meets both marginals to the tolerance.",
    Status.MAX_ITERATIONS: (
        "The iterations ran out before the marginals were met, because epsilon is tiny compared to the range of the "
        "costs or the tolerance is below what the precision of the numbers allows: raise epsilon, the tolerance or "
        "max_iterations, or pass float64."
    ),
    Status.NOT_FINITE: (
        "The cost, alone or divided by epsilon, or a marginal holds NaN or infinity, or the range of the costs is too "
        "many epsilons for the precision of the numbers, so nothing was transported: the plan is zero; remove or "
        "repair those entries, or raise epsilon."
    ),
    Status.BAD_MASS: (
        "The marginals are negative, empty or of different totals, so nothing was transported: the plan is zero; pass "
        "non-negative marginals of equal, positive total."
    ),
    Status.UNBALANCED: (
        "The totals of the marginals differ by more than the tolerance, so that no plan meets both: this plan has the "
        "total of a and the proportions of b; scale the marginals to one total, or raise the tolerance."
    ),
}


@dataclass(frozen=True)
class Solution:
    """Solutions of a batch of entropic transport problems, as ``solve`` returns them.

    Attributes
    ----------
    plan : array (…, J, S)
        Non-negative; rows sum to ``a`` and columns to ``b``. Zero if the status is NOT_FINITE or BAD_MASS.
    cost, marginal_error : arrays (…)
        Transport cost ``sum(C * plan)``, and sum of absolute violations of both marginals, as a share of the mass;
        infinite if nothing was transported. With a relaxation, of ``a`` and of the condition that columns sum to
        ``b * exp(-h / relaxation)`` for their potential h.
    iterations, status : integer arrays (…)
        Iterations spent on the problem's block, and ``Status`` of each problem.
    """

    plan: Array
    cost: Array
    marginal_error: Array
    iterations: Array
    status: Array

    @property
    def converged(self) -> bool:
        """Whether all problems of the batch converged."""
        return bool(namespace(self.status).all(self.status == int(Status.CONVERGED)))

    def raise_for_status(self) -> Solution:
        """Return self, or raise ``TransportError`` if nothing was transported in some problem."""
        counts = count_statuses(self.status)
        for status in (Status.NOT_FINITE, Status.BAD_MASS):
            if status in counts:
                raise TransportError(f"{counts[status]} transport problem(s) failed: {status.explanation}")
        return self


def count_statuses(status: Array) -> dict[Status, int]:
    """Number of problems by status, without statuses that did not occur."""
    values, counts = np.unique(to_numpy(status), return_counts=True)
    return {Status(int(v)): int(n) for v, n in zip(values, counts, strict=True)}


@NO_OVERFLOW_WARNINGS
def solve(
    cost: Array,
    a: Array | None = None,
    b: Array | None = None,
    *,
    epsilon: float,
    relaxation: float | Array | None = None,
    method: str = "auto",
    tolerance: float | None = None,
    max_iterations: int | None = None,
) -> Solution:
    r"""Solve a batch of entropic optimal transport problems.

    .. math::
        \min_{T \ge 0} \sum_{jn} C_{jn} T_{jn} + \epsilon \sum_{jn} T_{jn} \log T_{jn}
        \quad \text{with} \quad T 1 = a, \; T^\top 1 = b.

    With a relaxation :math:`\rho`, the penalty :math:`\rho \, KL(T^\top 1 | b)` takes the place of the constraint
    :math:`T^\top 1 = b` (unbalanced transport), where :math:`KL(x | y) = \sum_n x_n \log(x_n / y_n) - x_n + y_n`.

    Parameters
    ----------
    cost : array (…, J, S)
        Costs, one matrix per problem, from any array library that follows the array API standard.
    a, b : arrays (…, J) and (…, S), optional
        Marginals of equal total, uniform by default. A zero removes its row or column, so that problems of
        different sizes can share a batch.
    epsilon : float
        Strength of the entropy, in the units of the cost.
    relaxation : float or array (…), optional
        Strength of the penalty for column sums other than ``b``, in the units of the cost, for all problems or for
        each: near 0 the column sums are free, and the larger it is, the closer they are to ``b``. The totals of ``a``
        and ``b`` may then differ. By default the column sums are ``b``.
    method : {"auto", "newton", "sinkhorn"}
        Solver. "auto" uses Newton's method if the smaller side (with a relaxation: the side of ``b``) has at most 256
        points, else Sinkhorn's.
    tolerance : float, optional
        Accepted sum of absolute violations of the marginal of the smaller side, as a share of the mass; the
        other is met by construction. By default 1e-9, and 1e-5 in single precision.
    max_iterations : int, optional
        By default 1000 for Newton's method and 20000 for Sinkhorn's.

    Returns
    -------
    Solution
        Plans, costs, errors and a status per problem. A bad problem never affects the others.

    See Also
    --------
    pairwise_cost : Costs between two sets of points.
    Solution : All that is returned.

    Examples
    --------
    >>> import numpy as np
    >>> from hotshot.transport import solve
    >>> solution = solve(np.array([[0.0, 1.0], [1.0, 0.0]]), epsilon=0.1)
    >>> solution.plan.round(3)
    array([[0.5, 0. ],
           [0. , 0.5]])
    >>> solution.converged
    True
    """
    if not isinstance(method, str) or method not in ("auto", *SOLVERS):
        raise ParameterError(f"method must be 'auto', 'newton' or 'sinkhorn', got {method!r}.")
    epsilon = _positive("epsilon", epsilon)
    cost = as_floats(cost, "cost")
    if cost.ndim < 2 or 0 in cost.shape:
        raise InputError(
            f"cost must be an (…, J, S) array with at least one problem, row and column, got shape {tuple(cost.shape)}."
        )
    a, b = (mass if mass is None else as_floats(mass, name) for mass, name in ((a, "a"), (b, "b")))
    xp = namespace(cost, a, b)
    *batch, rows, columns = cost.shape
    problems = math.prod(batch)
    a = xp.reshape(_marginal(a, "a", batch, rows, cost), (problems, rows))
    b = xp.reshape(_marginal(b, "b", batch, columns, cost), (problems, columns))
    strength = None if relaxation is None else _strength(relaxation, epsilon, batch, cost)
    if method == "auto":
        small_side = columns if strength is not None else min(rows, columns)
        method = "newton" if small_side <= LARGEST_NEWTON_SIDE else "sinkhorn"
    usual_tolerance = 1e-5 if is_single(cost) else 1e-9
    tolerance = usual_tolerance if tolerance is None else _positive("tolerance", tolerance)
    most = MAX_ITERATIONS[method] if max_iterations is None else _positive("max_iterations", max_iterations, whole=True)

    flat_cost = xp.reshape(cost, (problems, rows, columns))
    status, imbalance = _inspect(flat_cost, a, b, epsilon, strength is not None)
    is_sound = status == int(Status.CONVERGED)
    if not bool(xp.all(is_sound)):
        # In place of problems that cannot be solved, some that can.
        flat_cost = xp.where(is_sound[:, None, None], flat_cost, xp.zeros_like(flat_cost))
        a, b = (xp.where(is_sound[:, None], x, xp.full_like(x, 1.0 / x.shape[1])) for x in (a, b))
    mass = xp.sum(a, axis=1, keepdims=True)
    a, b = a / mass, b / (xp.sum(b, axis=1, keepdims=True) if strength is None else mass)
    is_transposed = strength is not None or columns <= rows
    large, small = (a, b) if is_transposed else (b, a)
    if is_transposed:
        flat_cost = xp.matrix_transpose(flat_cost)

    plan = xp.empty(flat_cost.shape, dtype=cost.dtype, device=cost.device)
    parts = []
    for block in slices(problems, max(1, BLOCK_ENTRIES // (rows * columns))):
        marginals = large[block, ...], small[block, ...], None if strength is None else strength[block]
        solution, *values = _solve_block(method, flat_cost[block, ...], *marginals, epsilon, tolerance, int(most))
        multiply_into(plan[block, ...], xp.astype(solution.plan, cost.dtype, copy=False), mass[block, :, None])
        parts.append((*values, xp.full(values[0].shape, solution.iterations, device=cost.device), solution.converged))
    moved, error, iterations, converged = (xp.concat(x, axis=0) for x in zip(*parts, strict=True))

    # A plan that violates its marginals is never reported as converged; NaN is not below any bound.
    status = xp.where(is_sound & ~(error <= LARGEST_ERROR), int(Status.NOT_FINITE), status)
    is_sound = status == int(Status.CONVERGED)
    if not bool(xp.all(is_sound)):
        plan = xp.where(is_sound[:, None, None], plan, xp.zeros_like(plan))
    slack = ROUNDING * float(xp.finfo(cost.dtype).eps)
    status = xp.where(is_sound & (imbalance > max(tolerance, slack)), int(Status.UNBALANCED), status)
    is_met = converged & (error <= 2 * tolerance + slack)
    status = xp.where(is_sound & ~is_met, int(Status.MAX_ITERATIONS), status)

    def or_infinite(value: Array) -> Array:
        return xp.reshape(xp.where(is_sound, value, xp.full_like(value, float("inf"))), tuple(batch))

    return Solution(
        plan=xp.reshape(xp.matrix_transpose(plan) if is_transposed else plan, cost.shape),
        cost=or_infinite(moved * mass[:, 0]),
        marginal_error=or_infinite(error + imbalance),
        iterations=xp.reshape(iterations, tuple(batch)),
        status=xp.reshape(status, tuple(batch)),
    )


def _positive(name: str, value: Any, *, whole: bool = False) -> float:
    is_number = isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < math.inf
    if not is_number or (whole and value != int(value)):
        raise ParameterError(f"{name} must be a positive, {'whole' if whole else 'finite'} number, got {value!r}.")
    return float(value)


def _strength(relaxation: Any, epsilon: float, batch: Sequence[int], cost: Array) -> Array:
    """The relaxation of each problem in units of epsilon (problems,)."""
    try:
        given = np.broadcast_to(to_numpy(relaxation), batch) / epsilon
        is_sound = given.dtype.kind == "f" and not isinstance(relaxation, (bool, list)) and np.isfinite(given).all()
    except (TypeError, ValueError):
        is_sound = False
    if not is_sound or not (given > 0).all():
        raise ParameterError(
            f"relaxation must be a positive, finite number for all problems or for each, or None, got {relaxation!r}: "
            "epsilon is a usual value."
        )
    return namespace(cost).asarray(given.reshape(-1), dtype=cost.dtype, device=cost.device)


def _marginal(mass: Array | None, name: str, batch: Sequence[int], size: int, cost: Array) -> Array:
    xp = namespace(cost)
    shape = (*batch, size)
    if mass is None:
        return xp.full(shape, 1.0 / size, dtype=cost.dtype, device=cost.device)
    mass = xp.astype(mass, cost.dtype, copy=False)
    try:
        return xp.broadcast_to(mass, shape) + xp.zeros(shape, dtype=cost.dtype, device=cost.device)
    except (ValueError, RuntimeError):
        raise InputError(f"{name} must have shape {shape} to fit the cost, got {tuple(mass.shape)}.") from None


def _inspect(cost: Array, a: Array, b: Array, epsilon: float, is_relaxed: bool) -> tuple[Array, Array]:
    """NOT_FINITE or BAD_MASS for problems that cannot be solved (P,), else CONVERGED, and the imbalance (P,).

    That is the share by which the total of ``b`` differs from that of ``a``, if it may not.
    """
    xp = namespace(cost)
    # An epsilon without a reciprocal divides no cost, not even 0.
    largest = float(xp.finfo(cost.dtype).max) / 8 * min(epsilon, 1.0) if math.isfinite(1 / epsilon) else -1.0
    is_finite = (xp.max(cost, axis=(1, 2)) <= largest) & (xp.min(cost, axis=(1, 2)) >= -largest)
    has_mass = xp.ones_like(is_finite)
    for marginal in (a, b):
        is_finite = is_finite & xp.all(xp.isfinite(marginal), axis=1)
        has_mass = has_mass & xp.all(marginal >= 0, axis=1) & (xp.sum(marginal, axis=1) > 0)
    total = xp.sum(a, axis=1)
    imbalance = xp.zeros_like(total) if is_relaxed else xp.abs(total - xp.sum(b, axis=1)) / total
    has_mass = has_mass & (imbalance <= (1e-4 if is_single(cost) else 1e-6))
    status = xp.full(total.shape, int(Status.CONVERGED), device=cost.device)
    status = xp.where(has_mass, status, int(Status.BAD_MASS))
    return xp.where(is_finite, status, int(Status.NOT_FINITE)), imbalance


def _solve_block(
    method: str,
    cost: Array,
    large: Array,
    small: Array,
    strength: Array | None,
    epsilon: float,
    tolerance: float,
    max_iterations: int,
) -> tuple[BlockSolution, Array, Array]:
    """The solution of P problems of unit mass, their costs and their marginal errors (P,).

    ``cost`` is (P, S, J), with the marginals of the large and the small side, and the strengths of a relaxation (P,).
    """
    xp, dtype = namespace(cost), cost.dtype
    lowest = xp.min(cost, axis=(1, 2))
    if is_single(cost) and bool(xp.any(xp.max(cost, axis=(1, 2)) - lowest > SINGLE_PRECISION_RANGE * epsilon)):
        cost, large, small, lowest = (xp.astype(x, xp.float64) for x in (cost, large, small, lowest))
        large = large / xp.sum(large, axis=1, keepdims=True)
        small = small / xp.sum(small, axis=1, keepdims=True) if strength is None else small
        strength = None if strength is None else xp.astype(strength, xp.float64)
    # A constant in the cost does not change the plan, but loses precision. The array is made first, so that its
    # layout, and with it every rounding, does not depend on the layout of the input.
    relative = xp.empty(cost.shape, dtype=cost.dtype, device=cost.device)
    multiply_into(relative, cost, 1 / epsilon)
    relative -= lowest[:, None, None] / epsilon
    solution = SOLVERS[method](relative, large, small, strength, tolerance, max_iterations)
    columns = xp.sum(solution.plan, axis=2)
    error = xp.sum(xp.abs(columns - solution.wanted), axis=1)
    error = error + xp.sum(xp.abs(xp.sum(solution.plan, axis=1) - large), axis=1)
    moved = epsilon * xp.sum(xp.vecdot(relative, solution.plan), axis=1) + lowest * xp.sum(columns, axis=1)
    return solution, *(xp.astype(x, dtype, copy=False) for x in (moved, error))
