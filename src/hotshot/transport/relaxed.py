r"""Transport whose second marginal is a wish instead of a constraint, for problems with one small side.

With the cost in units of epsilon and the strength :math:`\rho` too, the penalty :math:`\rho \, KL(T^\top 1 | b)` takes
the place of :math:`T^\top 1 = b`. The potential :math:`h` of the small side maximises

.. math::
    \rho \sum_n b_n (1 - e^{-h_n / \rho}) - \sum_j a_j \log m_j, \qquad m_j = \sum_n \exp(h_n - C_{jn}),

a smooth and strictly concave function of S variables. The plan :math:`T_{jn} = a_j e^{h_n - C_{jn}} / m_j` meets ``a``
by construction; the gradient is :math:`b_n e^{-h_n / \rho}` minus the column sums, which are equal at the solution:
:math:`h_n = -\rho \log(b'_n / b_n)` for the column sums b'.

The best constant part of the potential is known, because it does not change the plan: column sums and wished column
sums then have one total. For the rest, Newton's method starts at zero. A step that does not raise the value is
shortened once and then replaced by a Sinkhorn step, which always raises it and shrinks the error by the factor
:math:`\rho / (1 + \rho)` or more.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotshot.arrays import Array, choose, is_single, namespace, small_identity
from hotshot.transport.newton import LONGEST_STEP, SHORT_STEP, TINY, UNUSED, BlockSolution

# Rounding noise of the value, relative to it.
NOISE = {True: 1e-6, False: 1e-14}


@dataclass(frozen=True)
class _Point:
    """A potential (P, S), its plan (P, S, J), the column sums that it has and wishes for (P, S), and its value (P,)."""

    potential: Array
    plan: Array
    columns: Array
    wished: Array
    value: Array

    @property
    def violation(self) -> Array:
        """How far the column sums are from those of a solution (P,)."""
        xp = namespace(self.plan)
        return xp.sum(xp.abs(self.wished - self.columns), axis=1)


def relaxed(
    cost: Array, a: Array, b: Array, *, strength: Array, tolerance: float, max_iterations: int, second_order: bool
) -> BlockSolution:
    """Solve P problems at once.

    Parameters
    ----------
    cost : array (P, S, J)
        Finite costs divided by epsilon, the lowest of each problem 0, the small side in the middle.
    a, b : arrays (P, J) and (P, S)
        Marginal of unit total, and the wished marginal, of any total; zeros are allowed.
    strength : array (P,)
        The strength of the wish, divided by epsilon.
    tolerance : float
        Accepted sum of absolute differences between the column sums and those of a solution.
    second_order : bool
        Whether to take Newton's steps; Sinkhorn's need no S x S matrix.
    """
    xp = namespace(cost, a, b)
    zero = xp.zeros_like(b[:, 0])
    start = xp.where(b > 0, xp.zeros_like(b), xp.full_like(b, UNUSED))
    best = here = _evaluate(cost, a, b, start, strength)
    step, refused = xp.zeros_like(b), zero
    for iteration in range(1, max_iterations + 1):
        done = best.violation <= tolerance
        if bool(xp.all(done)):
            return BlockSolution(best.plan, best.potential, best.value, iteration - 1, done)
        fallback = _sinkhorn_step(b, best, strength)
        if second_order:
            newton = _newton_step(a, best, strength)
            step = xp.where((refused == 0)[:, None], newton, SHORT_STEP * step)
            step = xp.where((refused >= 2)[:, None], fallback, step)
        else:
            step = fallback
        step = xp.where((done[:, None]) | (b <= 0), xp.zeros_like(b), step)
        here = _evaluate(cost, a, b, best.potential + step, strength)
        noise = NOISE[is_single(cost)] * (1 + xp.abs(best.value))
        better = (here.value > best.value) | ((here.value >= best.value - noise) & (here.violation < best.violation))
        accepted = (better | (refused >= 2)) & ~done if second_order else ~done
        best = choose(xp, accepted, here, best)
        refused = xp.where(accepted | done, zero, refused + 1)
    return BlockSolution(best.plan, best.potential, best.value, max_iterations, best.violation <= tolerance)


def _evaluate(cost: Array, a: Array, b: Array, potential: Array, strength: Array) -> _Point:
    xp = namespace(cost)
    log_b = xp.log(xp.where(b > 0, b, xp.ones_like(b)))
    exponent = xp.where(b > 0, log_b - potential / strength[:, None], xp.full_like(b, UNUSED))
    highest = xp.max(exponent, axis=1, keepdims=True)
    wished = xp.exp(exponent - highest)
    total = xp.sum(wished, axis=1, keepdims=True)
    # The best constant to add to the potential, which leaves the plan as it is: the wished total is then that of a.
    wished = wished / total
    potential = xp.where(b > 0, potential + strength[:, None] * (highest + xp.log(total)), potential)
    plan = potential[:, :, None] - cost
    peak = xp.max(plan, axis=1, keepdims=True)
    plan = xp.exp(plan - peak)
    m = xp.sum(plan, axis=1, keepdims=True)
    plan *= a[:, None, :] / m
    level = xp.sum(a * (peak + xp.log(m))[:, 0, :], axis=1)
    value = strength * (xp.sum(b, axis=1) - 1) - level
    return _Point(potential, plan, xp.sum(plan, axis=2), wished, value)


def _newton_step(a: Array, point: _Point, strength: Array) -> Array:
    """The gradient divided by diag(b' + wished / rho) - T diag(a)^-1 T'."""
    xp = namespace(a)
    weighted = point.plan / xp.where(a > 0, a, xp.ones_like(a))[:, None, :]
    ridge = 1e-6 if is_single(a) else 1e-13
    diagonal = point.columns + point.wished / strength[:, None] + ridge
    curvature = diagonal[:, :, None] * small_identity(point.columns.shape[1], point.columns)
    curvature = curvature - weighted @ xp.matrix_transpose(point.plan)
    step = xp.linalg.solve(curvature, (point.wished - point.columns)[:, :, None])[:, :, 0]
    return xp.minimum(xp.maximum(step, -LONGEST_STEP), LONGEST_STEP)


def _sinkhorn_step(b: Array, point: _Point, strength: Array) -> Array:
    """The change of the potential to its best value while the other side is fixed."""
    xp = namespace(b)
    kept = xp.where(b > 0, point.potential, xp.zeros_like(b))
    wanted = kept + xp.log(xp.where(b > 0, b / xp.maximum(point.columns, TINY), xp.ones_like(b)))
    return wanted * (strength / (1 + strength))[:, None] - kept
