r"""Newton's method on the semi-dual, for problems with one small side.

With the cost in units of epsilon, the plan :math:`T_{jn} = a_j r_n e^{h_n - C_{jn}} / m_j`,
:math:`m_j = \sum_n r_n e^{h_n - C_{jn}}`, meets ``a`` for every potential h of the small side and any reference r. The
potential of the solution maximises

.. math::
    \ell(h) - \sum_j a_j \log m_j, \qquad \ell(h) = \sum_n b_n h_n,

a smooth concave function of S variables. Its gradient is the wanted column sums, here ``b``, minus those of the plan,
and its negative Hessian is :math:`\mathrm{diag}(T^\top 1) - T^\top \mathrm{diag}(a)^{-1} T`. With a relaxation
:math:`\rho`, in units of epsilon too,

.. math::
    \ell(h) = -\rho \log \sum_n b_n e^{-h_n / \rho},

for which the wanted column sums :math:`w_n \propto b_n e^{-h_n / \rho}` depend on the potential, and the Hessian has
:math:`(\mathrm{diag}(w) - w w^\top) / \rho` more. The larger :math:`\rho`, the closer this is to the first problem. The
reference is ``b`` there, and 1 here. A constant added to the potential changes nothing.

Three safeguards make it converge from any start. A step that does not raise the value is shortened once and then
replaced by a Sinkhorn step, which always raises it. Costs whose range is many epsilons are solved at a larger epsilon
first (epsilon scaling). The kernel is kept relative to an anchor near the potential, so that nothing overflows.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotshot.arrays import Array, choose, is_single, multiply_into, namespace, small_identity

# Epsilon scaling: costs whose range is more epsilons than this are solved at a larger epsilon first, then at one
# `SCALING_FACTOR` smaller, and so on, each only to `SCALING_TOLERANCE`.
SCALING_START = 200.0
SCALING_FACTOR = 4.0
SCALING_TOLERANCE = 0.05
# The longest step, in epsilons.
LONGEST_STEP = 8.0
# Rounding noise of the value; smallest exponent of the kernel, which avoids slow denormal numbers; largest distance of
# the potential from the anchor before the kernel is computed again; ridge and largest weight in the curvature.
SINGLE = (1e-6, -30.0, 10.0, 1e-5, 1e30)
DOUBLE = (1e-14, -300.0, 30.0, 1e-12, 1e300)
# A refused Newton step is tried once more at this length before a Sinkhorn step is taken.
SHORT_STEP = 0.15
# With this many columns or more the first step is an over-relaxed Sinkhorn step: it needs no Hessian and brings
# Newton's method as far as a step of its own.
MANY_COLUMNS = 10
OVER_RELAXATION = 1.6
# Potential of a column without mass: its kernel is zero.
UNUSED = -1e30
# Avoids division by zero.
TINY = 1e-30


@dataclass(frozen=True)
class BlockSolution:
    """Plans (P, S, J), the column sums that they should have (P, S), and which have them to the tolerance (P,)."""

    plan: Array
    wanted: Array
    iterations: int
    converged: Array


def wanted_columns(b: Array, potential: Array, strength: Array | None) -> tuple[Array, Array]:
    """The column sums (P, S) that a solution with this potential has, of unit total, and their part of the value."""
    xp = namespace(b)
    if strength is None:
        return b, xp.sum(b * potential, axis=1)
    used = b > 0
    exponent = xp.where(used, xp.log(xp.where(used, b, xp.ones_like(b))) - potential / strength[:, None], UNUSED)
    peak = xp.max(exponent, axis=1, keepdims=True)
    wanted = xp.exp(exponent - peak)
    total = xp.sum(wanted, axis=1, keepdims=True)
    return wanted / total, -strength * (peak + xp.log(total))[:, 0]


def newton(
    cost: Array, a: Array, b: Array, strength: Array | None, tolerance: float, max_iterations: int
) -> BlockSolution:
    """Solve P problems at once, each with its own damping, epsilon scaling and stopping.

    ``cost`` (P, S, J) are finite costs divided by epsilon, the lowest of each problem 0. The marginal ``a`` (P, J) has
    unit total, and so has ``b`` (P, S), unless ``strength`` (P,) is the relaxation of ``b`` divided by epsilon; zeros
    are allowed. ``tolerance`` is the accepted sum of absolute differences between the column sums and the wanted ones.
    """
    xp = namespace(cost, a, b)
    used = b > 0
    noise, floor, reach, ridge, largest_weight = SINGLE if is_single(cost) else DOUBLE
    # Factor of the cost in epsilon scaling: 1 is the problem itself, less is a larger epsilon.
    share = SCALING_START / xp.maximum(xp.max(cost, axis=(1, 2)), SCALING_START)
    zero, one, infinity = xp.zeros_like(share), xp.ones_like(share), xp.full_like(share, float("inf"))
    no_step = xp.zeros_like(b)
    # To first order in 1/epsilon the potential is the mean cost, or near 0 where column sums are free.
    start = (cost @ a[:, :, None])[:, :, 0] * share[:, None] if strength is None else no_step
    start = xp.where(used, start, xp.full_like(start, UNUSED))
    before = _Point(start, wanted=b, columns=b, value=-infinity, violation=infinity)
    kernel = _Kernel(cost, a, start, share, floor)
    reference = b if strength is None else xp.astype(used, b.dtype)
    step, slope, refused = no_step, zero, zero
    done = lowered = xp.zeros_like(share, dtype=xp.bool)

    for iteration in range(max_iterations + 1):
        potential = before.potential + step
        kernel.move_anchor(potential, share, lowered | (xp.max(xp.abs(potential - kernel.anchor), axis=1) > reach))
        # The plan is v K (a / m).
        v = reference * xp.exp(potential - kernel.anchor)
        m = v[:, None, :] @ kernel.values
        ratio = a[:, None, :] / m
        columns = v * (kernel.values @ xp.matrix_transpose(ratio))[:, :, 0]
        scaled_strength = None if strength is None else strength * share
        wanted, level = wanted_columns(b, potential, scaled_strength)
        level = level - kernel.level_of_peaks
        value = level - xp.sum(a * xp.log(m)[:, 0, :], axis=1)
        here = _Point(potential, wanted, columns, value, xp.sum(xp.abs(wanted - columns), axis=1))

        gain = here.value - before.value
        is_level = xp.abs(gain) <= noise * (1 + xp.abs(level))
        accepted = (gain >= 1e-4 * slope) | (is_level & (here.violation < before.violation)) | (refused >= 2) | done
        moved = accepted & ~done
        reached = moved & (here.violation <= xp.where(share < 1, SCALING_TOLERANCE * one, tolerance))
        done = done | (reached & (share >= 1))
        if iteration == max_iterations or bool(xp.all(done)):
            break

        before = choose(xp, moved, here, before)
        refused = xp.where(accepted, zero, refused + 1)
        gradient = wanted - columns
        if iteration == 0 and b.shape[1] >= MANY_COLUMNS:
            next_step = OVER_RELAXATION * _sinkhorn_step(b, here, scaled_strength)
        else:
            curvature = kernel.curvature(xp.minimum(ratio / m, largest_weight), v, columns, ridge)
            if scaled_strength is not None:
                outer = wanted[:, :, None] * (small_identity(b.shape[1], b) - wanted[:, None, :])
                curvature += outer / scaled_strength[:, None, None]
            next_step = xp.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        next_step = xp.minimum(xp.maximum(next_step, -LONGEST_STEP), LONGEST_STEP)
        step = xp.where(moved[:, None], next_step, SHORT_STEP * step)
        step = xp.where(done[:, None], no_step, step)
        slope = xp.where(moved, xp.sum(gradient * step, axis=1), SHORT_STEP * slope)
        if bool(xp.any(refused >= 2)):
            sinkhorn_step = xp.minimum(_sinkhorn_step(b, before, scaled_strength), LONGEST_STEP)
            step = xp.where((refused >= 2)[:, None], sinkhorn_step, step)

        # Even an unfinished plan is for the requested epsilon.
        is_last = iteration + 1 == max_iterations
        lowered = (share < 1) if is_last else reached & (share < 1)
        if bool(xp.any(lowered)):
            factor = xp.where(lowered, xp.minimum(1 / share, float("inf") if is_last else SCALING_FACTOR), one)
            share = xp.minimum(share * factor, 1.0)
            scaled = xp.where(used, before.potential * factor[:, None], before.potential)
            value = xp.where(lowered, -infinity, before.value)
            before = _Point(scaled, before.wanted, before.columns, value, before.violation)
            step = xp.where(lowered[:, None], no_step, step)

    plan = kernel.values
    plan *= v[:, :, None]
    plan *= ratio
    return BlockSolution(plan, wanted, iteration, done)


@dataclass(frozen=True)
class _Point:
    """A potential, the wanted and the actual column sums (P, S), the value and the violation (P,)."""

    potential: Array
    wanted: Array
    columns: Array
    value: Array
    violation: Array


def _sinkhorn_step(b: Array, point: _Point, strength: Array | None) -> Array:
    """The change of the potential to its best value while the other side is fixed."""
    xp = namespace(b)
    used = b > 0
    step = xp.log(xp.where(used, b / xp.maximum(point.columns, TINY), xp.ones_like(b)))
    if strength is None:
        return step
    potential = xp.where(used, point.potential, xp.zeros_like(b))
    return (step * strength[:, None] - potential) / (1 + strength[:, None])


class _Kernel:
    """exp(anchor - cost) of P problems relative to the largest entry of each row, and the mean log of those entries."""

    def __init__(self, cost: Array, a: Array, anchor: Array, share: Array, floor: float) -> None:
        # Kept, because a lookup takes as long as a small array operation.
        self.xp = namespace(cost)
        self.cost, self.a, self.floor = cost, a, floor
        self.anchor = anchor
        self.values, self.level_of_peaks = self._anchored(anchor, share)
        self._product = self.xp.empty_like(self.values)

    def move_anchor(self, potential: Array, share: Array, away: Array) -> None:
        """Anchor the problems marked ``away`` at the potential; the others keep their anchor."""
        xp = self.xp
        if not bool(xp.any(away)):
            return
        self.anchor = xp.where(away[:, None], potential, self.anchor)
        values, level = self._anchored(self.anchor, share)
        self.values = xp.where(away[:, None, None], values, self.values)
        self.level_of_peaks = xp.where(away, level, self.level_of_peaks)

    def _anchored(self, anchor: Array, share: Array) -> tuple[Array, Array]:
        xp = self.xp
        is_scaled = bool(xp.any(share < 1))
        kernel = anchor[:, :, None] - (self.cost * share[:, None, None] if is_scaled else self.cost)
        peak = xp.max(kernel, axis=1, keepdims=True)
        kernel -= peak
        if bool(xp.min(kernel) < self.floor):
            kernel = xp.maximum(kernel, self.floor)
        return xp.exp(kernel), xp.sum(self.a * peak[:, 0, :], axis=1)

    def curvature(self, weights: Array, v: Array, columns: Array, ridge: float) -> Array:
        """diag(columns) - v v' * (kernel diag(weights) kernel'), regularised."""
        xp, size = self.xp, v.shape[1]
        multiply_into(self._product, self.values, weights)
        curvature = self._product @ xp.matrix_transpose(self.values)
        curvature *= v[:, :, None]
        curvature *= -v[:, None, :]
        # Constant shifts do not change the plan: the curvature along them is zero and may be set freely.
        # The ridge is for groups of columns that share no row, which happens when epsilon is tiny.
        curvature += (columns + ridge / size)[:, :, None] * small_identity(size, v) + 1.0 / size**2
        return curvature
