"""Solve batches of entropic transport problems: check them, choose a solver, report a status per problem."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from array_api_compat import device

from hotshot.arrays import (
    NO_OVERFLOW_WARNINGS,
    Array,
    as_floats,
    indices,
    is_single,
    multiply_into,
    namespace,
    slices,
    to_numpy,
)
from hotshot.errors import InputError, ParameterError, TransportError
from hotshot.transport.newton import BlockSolution, newton
from hotshot.transport.relaxed import relaxed
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
SINGLE_PRECISION_SPREAD = 300


class Status(IntEnum):
    """How the solve of one problem ended.

    Attributes
    ----------
    CONVERGED, MAX_ITERATIONS, NOT_FINITE, BAD_MASS, UNBALANCED
        The members; ``explanation`` tells what each means.

    Examples
    --------
    >>> Status.CONVERGED.explanation
    'The plan meets both marginals to the tolerance.'
    """

    CONVERGED = 0
    MAX_ITERATIONS = 1
    NOT_FINITE = 2
    BAD_MASS = 3
    UNBALANCED = 4

    @property
    def explanation(self) -> str:
        """What happened, the usual cause, and the remedy."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    Status.CONVERGED: "The plan meets both marginals to the tolerance.",
    Status.MAX_ITERATIONS: (
        "The iterations ran out before the marginals were met, because epsilon is tiny compared to the range of "
        "the costs or the tolerance is below what the precision of the numbers allows: raise epsilon, "
        "the tolerance or max_iterations, or pass float64."
    ),
    Status.NOT_FINITE: (
        "The cost, alone or divided by epsilon, or a marginal holds NaN or infinity, or the range of the costs is too "
        "many epsilons for the precision of the numbers, so nothing was transported: the plan is zero; remove or "
        "repair those entries, or raise epsilon."
    ),
    Status.BAD_MASS: (
        "The marginals are negative, empty or of different totals, so nothing was transported: the plan "
        "is zero; pass non-negative marginals of equal, positive total."
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
    cost : array (…)
        Transport cost ``sum(C * plan)``; infinite if nothing was transported.
    primal, dual : array (…)
        Value of the regularised problem, ``sum(C * plan) + epsilon * sum(plan * log(plan))`` with the penalty of a
        relaxation, and of its dual. They are equal at the solution; before it, the dual is lower.
    marginal_error : array (…)
        Sum of absolute violations of both marginals, as a share of the mass; infinite if nothing was transported. With
        a relaxation, of ``a`` and of the condition that columns sum to ``b * exp(-h / relaxation)`` for their potential
        h.
    iterations : integer array (…)
        Iterations spent on the problem's block.
    status : integer array (…)
        ``Status`` of each problem.

    See Also
    --------
    solve : Compute a solution.
    Status : The meaning of each status.

    Examples
    --------
    >>> import numpy as np
    >>> from hotshot.transport import solve
    >>> solve(np.zeros((3, 2, 2)), epsilon=0.1).status_counts()
    {<Status.CONVERGED: 0>: 3}
    """

    plan: Array
    cost: Array
    primal: Array
    dual: Array
    marginal_error: Array
    iterations: Array
    status: Array

    @property
    def converged(self) -> bool:
        """Whether all problems of the batch converged."""
        return bool(namespace(self.status).all(self.status == int(Status.CONVERGED)))

    def status_counts(self) -> dict[Status, int]:
        """Number of problems by status, without statuses that did not occur.

        Returns
        -------
        dict of Status to int
            Number of problems by status.
        """
        return count_statuses(self.status)

    def raise_for_status(self) -> Solution:
        """Return self, or raise ``TransportError`` if nothing was transported in some problem.

        Returns
        -------
        Solution
            This solution.
        """
        counts = self.status_counts()
        for status in (Status.NOT_FINITE, Status.BAD_MASS):
            if status in counts:
                raise TransportError(f"{counts[status]} transport problem(s) failed: {status.explanation}")
        return self


def count_statuses(status: Array) -> dict[Status, int]:
    """Number of problems by status, without statuses that did not occur.

    Parameters
    ----------
    status : integer array
        Statuses of problems, such as ``Solution.status``.

    Returns
    -------
    dict of Status to int
        Number of problems by status.

    Examples
    --------
    >>> count_statuses([0, 0, 1])
    {<Status.CONVERGED: 0>: 2, <Status.MAX_ITERATIONS: 1>: 1}
    """
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
        Plans, costs, values, errors and a status per problem. A bad problem never affects the others.

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
    _check_parameters(epsilon, method, tolerance, max_iterations)
    epsilon = float(epsilon)
    is_relaxed = relaxation is not None
    cost = as_floats(cost, "cost")
    if cost.ndim < 2 or 0 in cost.shape:
        raise InputError(
            f"cost must be an (…, J, S) array with at least one problem, row and column, got shape {tuple(cost.shape)}."
        )
    a, b = (mass if mass is None else as_floats(mass, name) for mass, name in ((a, "a"), (b, "b")))
    xp = namespace(cost, a, b)
    *batch, rows, columns = cost.shape
    a = _marginal(a, "a", batch, rows, cost)
    b = _marginal(b, "b", batch, columns, cost)

    strengths = [] if relaxation is None else [_strengths(relaxation, epsilon, batch, cost)]
    problems = math.prod(batch)
    flat_cost = xp.reshape(cost, (problems, rows, columns))
    a, b = xp.reshape(a, (problems, rows)), xp.reshape(b, (problems, columns))
    bad, flat_cost, a, b, mass, imbalance = _replace_unsolvable(flat_cost, a, b, epsilon, is_relaxed)

    if method == "auto":
        small_side = columns if is_relaxed else min(rows, columns)
        method = "newton" if small_side <= LARGEST_NEWTON_SIDE else "sinkhorn"
    if tolerance is None:
        tolerance = 1e-5 if is_single(cost) else 1e-9
    if max_iterations is None:
        max_iterations = MAX_ITERATIONS[method]
    settings = (epsilon, tolerance, int(max_iterations))
    large, small = b, a
    is_transposed = is_relaxed or columns <= rows
    if is_transposed:
        flat_cost = xp.matrix_transpose(flat_cost)
        large, small = a, b

    plan = xp.empty(flat_cost.shape, dtype=cost.dtype, device=device(cost))
    values = []
    for block in slices(problems, max(1, BLOCK_ENTRIES // (rows * columns))):
        problem = [x[block, ...] for x in (flat_cost, large, small, *strengths)]
        block_plan, *rest = _solve_block(method, problem, *settings)
        multiply_into(plan[block, ...], block_plan, mass[block, None, None])
        values.append(rest)
    moved, primal, dual, error, iterations, converged = (xp.concat(x, axis=0) for x in zip(*values, strict=True))

    # A plan that violates its marginals is never reported as converged; NaN is not below any bound.
    lost = (bad == int(Status.CONVERGED)) & ~(error <= LARGEST_ERROR)
    bad = xp.where(lost, int(Status.NOT_FINITE), bad)
    usable = bad == int(Status.CONVERGED)
    if not bool(xp.all(usable)):
        plan = xp.where(usable[:, None, None], plan, xp.zeros_like(plan))
    slack = ROUNDING * float(xp.finfo(cost.dtype).eps)
    converged = converged & (error <= 2 * tolerance + slack)
    status = xp.where(usable & (imbalance > max(tolerance, slack)), int(Status.UNBALANCED), bad)
    status = xp.where(usable & ~converged, int(Status.MAX_ITERATIONS), status)
    entropy_of_mass = epsilon * mass * xp.log(xp.where(usable, mass, xp.ones_like(mass)))

    def scaled_by_mass(value: Array, shift: Array | float = 0.0) -> Array:
        return xp.reshape(xp.where(usable, value * mass + shift, xp.full_like(value, float("inf"))), tuple(batch))

    plan = xp.matrix_transpose(plan) if is_transposed else plan
    return Solution(
        plan=xp.reshape(plan, cost.shape),
        cost=scaled_by_mass(moved),
        primal=scaled_by_mass(primal, entropy_of_mass),
        dual=scaled_by_mass(dual, entropy_of_mass),
        marginal_error=xp.reshape(xp.where(usable, error + imbalance, xp.full_like(error, float("inf"))), tuple(batch)),
        iterations=xp.reshape(iterations, tuple(batch)),
        status=xp.reshape(status, tuple(batch)),
    )


def _check_parameters(epsilon: Any, method: Any, tolerance: Any, max_iterations: Any) -> None:
    if not _is_positive(epsilon):
        raise ParameterError(
            f"epsilon must be a positive, finite number, got {epsilon!r}: 0.01 suits costs between 0 and 1."
        )
    if not isinstance(method, str) or method not in ("auto", *SOLVERS):
        raise ParameterError(f"method must be 'auto', 'newton' or 'sinkhorn', got {method!r}.")
    if tolerance is not None and not _is_positive(tolerance):
        raise ParameterError(f"tolerance must be a positive, finite number, got {tolerance!r}.")
    if max_iterations is not None and not (_is_positive(max_iterations) and max_iterations == int(max_iterations)):
        raise ParameterError(f"max_iterations must be a positive integer, got {max_iterations!r}.")


def _strengths(relaxation: Any, epsilon: float, batch: list[int], cost: Array) -> Array:
    """The relaxation of each problem in units of epsilon (problems,)."""
    xp = namespace(cost)
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
    return xp.asarray(given.reshape(-1), dtype=cost.dtype, device=device(cost))


def _is_positive(x: Any) -> bool:
    return isinstance(x, numbers.Real) and not isinstance(x, bool) and 0 < float(x) < math.inf


def _marginal(mass: Array | None, name: str, batch: list[int], size: int, cost: Array) -> Array:
    xp = namespace(cost)
    shape = (*batch, size)
    if mass is None:
        return xp.full(shape, 1.0 / size, dtype=cost.dtype, device=device(cost))
    mass = xp.astype(mass, cost.dtype, copy=False)
    try:
        return xp.broadcast_to(mass, shape) + xp.zeros(shape, dtype=cost.dtype, device=device(cost))
    except (ValueError, RuntimeError):
        raise InputError(f"{name} must have shape {shape} to fit the cost, got {tuple(mass.shape)}.") from None


def _replace_unsolvable(cost: Array, a: Array, b: Array, epsilon: float, is_relaxed: bool) -> tuple[Array, ...]:
    """Statuses of problems that cannot be solved, and the batch with placeholders in their places.

    The marginals are returned with unit total, with the mass they had and the share by which their totals differ. With
    a relaxation their totals may differ, and both are divided by that of ``a``.
    """
    xp = namespace(cost)
    # An epsilon without a reciprocal divides no cost, not even 0.
    largest = float(xp.finfo(cost.dtype).max) / 8 * min(epsilon, 1.0) if math.isfinite(1 / epsilon) else -1.0
    finite = (
        (xp.max(cost, axis=(1, 2)) <= largest)
        & (xp.min(cost, axis=(1, 2)) >= -largest)
        & xp.all(xp.isfinite(a), axis=1)
        & xp.all(xp.isfinite(b), axis=1)
    )
    if not bool(xp.all(finite)):
        cost, a, b = _with_placeholders(cost, a, b, finite)
    total_a, total_b = xp.sum(a, axis=1), xp.sum(b, axis=1)
    balanced = xp.abs(total_a - total_b) <= (1e-4 if is_single(cost) else 1e-6) * total_a
    positive = xp.all(a >= 0, axis=1) & xp.all(b >= 0, axis=1) & (total_a > 0)
    if is_relaxed:
        balanced = total_b > 0
    good = finite & positive & balanced
    fine = xp.zeros(good.shape, dtype=xp.int64, device=device(cost))
    bad = xp.where(finite, xp.where(good, fine, int(Status.BAD_MASS)), int(Status.NOT_FINITE))
    if not bool(xp.all(good)):
        cost, a, b = _with_placeholders(cost, a, b, good)
    a_sum = xp.sum(a, axis=1, keepdims=True)
    a, b = a / a_sum, b / (a_sum if is_relaxed else xp.sum(b, axis=1, keepdims=True))
    nothing, one = xp.zeros_like(total_a), xp.ones_like(total_a)
    imbalance = xp.where(good, xp.abs(total_a - total_b), nothing) / xp.where(good, total_a, one)
    if is_relaxed:
        imbalance = nothing
    return bad, cost, a, b, xp.where(good, total_a, nothing), imbalance


def _with_placeholders(cost: Array, a: Array, b: Array, good: Array) -> tuple[Array, Array, Array]:
    xp = namespace(cost)
    return (
        xp.where(good[:, None, None], cost, xp.zeros_like(cost)),
        xp.where(good[:, None], a, xp.ones_like(a)),
        xp.where(good[:, None], b, xp.ones_like(b)),
    )


def _solve_block(
    method: str, problem: list[Array], epsilon: float, tolerance: float, max_iterations: int
) -> tuple[Array, ...]:
    """Plan ``(P, S, J)``, cost, primal, dual, marginal error, iterations and convergence of P unit problems.

    ``problem`` is the cost ``(P, S, J)``, the marginals of the large and the small side and, with a relaxation, its
    strengths ``(P,)``.
    """
    cost, large, small, *strengths = problem
    xp = namespace(cost)
    dtype = cost.dtype
    lowest = xp.min(cost, axis=(1, 2))
    if is_single(cost):
        wide = to_numpy(xp.max(cost, axis=(1, 2)) - lowest) > SINGLE_PRECISION_SPREAD * epsilon
        if wide.any() and not wide.all():
            # Each problem in the precision that it needs, independent of the others.
            rows = [np.flatnonzero(~wide), np.flatnonzero(wide)]
            parts = []
            for r in rows:
                group = [xp.take(x, indices(r, cost), axis=0) for x in problem]
                parts.append(_solve_block(method, group, epsilon, tolerance, max_iterations))
            back = indices(np.argsort(np.concatenate(rows)), cost)
            return tuple(xp.take(xp.concat(x, axis=0), back, axis=0) for x in zip(*parts, strict=True))
        if wide.any():
            cost, large, small, lowest = (xp.astype(x, xp.float64) for x in (cost, large, small, lowest))
            large = large / xp.sum(large, axis=1, keepdims=True)
            small = small if strengths else small / xp.sum(small, axis=1, keepdims=True)
    # A constant in the cost does not change the plan, but loses precision. The array is made first, so that its
    # layout, and with it every rounding, does not depend on the layout of the input.
    relative = xp.empty(cost.shape, dtype=cost.dtype, device=device(cost))
    multiply_into(relative, cost, 1 / epsilon)
    relative -= lowest[:, None, None] / epsilon
    limits: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations}
    if strengths:
        strength = xp.astype(strengths[0], cost.dtype, copy=False)
        found = relaxed(relative, large, small, strength=strength, second_order=method == "newton", **limits)
        values = _relaxed_values(found, relative, large, small, lowest / epsilon, strength)
    else:
        found = SOLVERS[method](relative, large, small, **limits)
        values = _values(found, relative, large, small, lowest / epsilon)
    *of_problem, error = values
    iterations = xp.full((cost.shape[0],), found.iterations, device=device(cost))
    numbers_found = (found.plan, *(epsilon * value for value in of_problem), error)
    return (*(xp.astype(x, dtype, copy=False) for x in numbers_found), iterations, found.converged)


def _values(found: BlockSolution, cost: Array, large: Array, small: Array, lowest: Array) -> tuple[Array, ...]:
    """Cost, primal and dual in units of epsilon, and marginal error, for costs relative to the lowest."""
    xp = namespace(cost)
    excess_small = xp.sum(found.plan, axis=2) - small
    excess_large = xp.sum(found.plan, axis=1) - large
    error = xp.sum(xp.abs(excess_small), axis=1) + xp.sum(xp.abs(excess_large), axis=1)
    log_small = xp.log(xp.where(small > 0, small, xp.ones_like(small)))
    dual = lowest + found.value - _entropy(large) - _entropy(small)
    # log T = F + G - C, so the entropy of the plan needs no logarithm of the plan.
    primal = dual + xp.sum(excess_small * (found.potential + log_small + lowest[:, None]), axis=1)
    moved = xp.sum(xp.vecdot(cost, found.plan), axis=1) + lowest * xp.sum(small + excess_small, axis=1)
    return moved, primal, dual, error


def _relaxed_values(
    found: BlockSolution, cost: Array, large: Array, small: Array, lowest: Array, strength: Array
) -> tuple[Array, ...]:
    """``_values`` with the penalty of a relaxation."""
    xp = namespace(cost)
    columns = xp.sum(found.plan, axis=2)
    exponent = xp.where(small > 0, -found.potential / strength[:, None], xp.zeros_like(small))
    unmet = xp.sum(xp.abs(columns - small * xp.exp(exponent)), axis=1)
    error = unmet + xp.sum(xp.abs(xp.sum(found.plan, axis=1) - large), axis=1)
    both, one = (columns > 0) & (small > 0), xp.ones_like(small)
    logarithm = xp.log(xp.where(both, columns, one)) - xp.log(xp.where(both, small, one))
    penalty = strength * xp.sum(columns * logarithm - columns + small, axis=1)
    moved = xp.sum(xp.vecdot(cost, found.plan), axis=1) + lowest
    logarithm = xp.log(xp.where(found.plan > 0, found.plan, xp.ones_like(found.plan)))
    entropy = xp.sum(xp.vecdot(found.plan, logarithm), axis=1)
    return moved, moved + entropy + penalty, lowest + found.value - _entropy(large), error


def _entropy(mass: Array) -> Array:
    xp = namespace(mass)
    return -xp.sum(mass * xp.log(xp.where(mass > 0, mass, xp.ones_like(mass))), axis=1)
