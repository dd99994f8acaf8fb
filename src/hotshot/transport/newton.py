r"""Newton's method on the semi-dual, for problems with one small side.

With the cost in units of epsilon, the potential :math:`h` of the small side maximises

.. math::
    \sum_n b_n h_n - \sum_j a_j \log m_j, \qquad m_j = \sum_n b_n \exp(h_n - C_{jn}),

a smooth concave function of S variables. The plan :math:`T_{jn} = a_j b_n e^{h_n - C_{jn}} / m_j` meets ``a``
by construction; the gradient is ``b`` minus its column sums, and the negative Hessian is
:math:`\mathrm{diag}(T^\top 1) - T^\top \mathrm{diag}(a)^{-1} T`.

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
# Rounding noise of the value; smallest exponent of the kernel, which avoids slow denormal numbers;
# largest distance of the potential from the anchor before the kernel is computed again.
SINGLE = (1e-6, -30.0, 10.0)
DOUBLE = (1e-14, -300.0, 30.0)
ROUGH_REACH = 15.0
# A refused Newton step is tried once more at this length before a Sinkhorn step is taken.
SHORT_STEP = 0.15
# With this many columns or more the first step is an over-relaxed Sinkhorn step: it needs no Hessian and brings
# Newton's method as far as a step of its own.
RELAXED_SIDE = 10
RELAXATION = 1.6
# The Hessian of the first iterations is made in single precision, which takes half the time: most problems are
# solved by then, and the others continue with the exact one.
ROUGH_ITERATIONS = 8
# Potential of a column without mass: its kernel is zero.
UNUSED = -1e30
# Bounds in single precision that avoid slow denormal numbers and overflow.
SINGLE_KERNEL_FLOOR = 1e-20
LARGEST_SINGLE_WEIGHT = 1e30
TINY = 1e-30


@dataclass(frozen=True)
class BlockSolution:
    """What a solver returns for a block of P problems of unit mass, in units of epsilon.

    The plan is ``(P, S, J)`` and meets the marginal of the large side; ``potential`` ``(P, S)`` belongs to the small
    side, relative to the logarithm of its marginal; ``value`` ``(P,)`` is that of the semi-dual; ``converged`` ``(P,)``
    tells which problems met the tolerance at the requested epsilon.
    """

    plan: Array
    potential: Array
    value: Array
    iterations: int
    converged: Array


def newton(cost: Array, a: Array, b: Array, *, tolerance: float, max_iterations: int) -> BlockSolution:
    """Solve P problems at once, each with its own damping, epsilon scaling and stopping.

    Parameters
    ----------
    cost : array (P, S, J)
        Finite costs divided by epsilon, the lowest of each problem 0, the small side in the middle.
    a, b : arrays (P, J) and (P, S)
        Marginals of unit total; zeros are allowed.
    tolerance : float
        Accepted sum of absolute violations of ``b``.
    """
    xp = namespace(cost, a, b)
    used = b > 0
    noise, floor, reach = SINGLE if is_single(cost) else DOUBLE
    # Factor of the cost in epsilon scaling: 1 is the problem itself, less is a larger epsilon.
    share = SCALING_START / xp.maximum(xp.max(cost, axis=(1, 2)), SCALING_START)
    zero, one, infinity = xp.zeros_like(share), xp.ones_like(share), xp.full_like(share, float("inf"))
    # To first order in 1/epsilon the potential is the mean cost.
    start = (cost @ a[:, :, None])[:, :, 0] * share[:, None]
    start = xp.where(used, start, xp.full_like(start, UNUSED))
    before = _Point(start, columns=b, value=-infinity, violation=infinity)
    kernel = _Kernel(cost, a, start, share, floor)
    no_step = xp.zeros_like(start)
    step, slope, refused = no_step, zero, zero
    done = lowered = xp.zeros_like(share, dtype=xp.bool)

    for iteration in range(max_iterations + 1):
        is_rough = iteration < ROUGH_ITERATIONS
        potential = before.potential + step
        limit = min(reach, ROUGH_REACH) if is_rough else reach
        kernel.move_anchor(potential, share, lowered | (xp.max(xp.abs(potential - kernel.anchor), axis=1) > limit))
        v, m, ratio, level, here = _evaluate(kernel, a, b, potential)

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
        gradient = b - here.columns
        if iteration == 0 and b.shape[1] >= RELAXED_SIDE:
            next_step = RELAXATION * _sinkhorn_step(b, here.columns)
        else:
            curvature = kernel.curvature(is_rough, ratio / m, v, here.columns)
            next_step = xp.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        next_step = xp.minimum(xp.maximum(next_step, -LONGEST_STEP), LONGEST_STEP)
        step = xp.where(moved[:, None], next_step, SHORT_STEP * step)
        step = xp.where(done[:, None], no_step, step)
        slope = xp.where(moved, xp.sum(gradient * step, axis=1), SHORT_STEP * slope)
        if bool(xp.any(refused >= 2)):
            sinkhorn_step = xp.minimum(_sinkhorn_step(b, before.columns), LONGEST_STEP)
            step = xp.where((refused >= 2)[:, None], sinkhorn_step, step)

        # Even an unfinished plan is for the requested epsilon.
        is_last = iteration + 1 == max_iterations
        lowered = (share < 1) if is_last else reached & (share < 1)
        if kernel.is_scaled and bool(xp.any(lowered)):
            factor = xp.where(lowered, xp.minimum(1 / share, float("inf") if is_last else SCALING_FACTOR), one)
            share = xp.minimum(share * factor, 1.0)
            scaled = xp.where(used, before.potential * factor[:, None], before.potential)
            before = _Point(scaled, before.columns, xp.where(lowered, -infinity, before.value), before.violation)
            step = xp.where(lowered[:, None], no_step, step)

    plan = kernel.values
    plan *= v[:, :, None]
    plan *= ratio
    return BlockSolution(plan, potential, here.value, iteration, done)


@dataclass(frozen=True)
class _Point:
    """A potential (P, S), the column sums of its plan (P, S), its value (P,) and their violation of ``b`` (P,)."""

    potential: Array
    columns: Array
    value: Array
    violation: Array


def _evaluate(kernel: _Kernel, a: Array, b: Array, potential: Array) -> tuple[Array, Array, Array, Array, _Point]:
    """T = v K (a / m) at a potential: v, m, a / m, the level of the value, and the point itself."""
    xp = kernel.xp
    v = b * xp.exp(potential - kernel.anchor)
    m = v[:, None, :] @ kernel.values
    ratio = a[:, None, :] / m
    columns = v * (kernel.values @ xp.matrix_transpose(ratio))[:, :, 0]
    violation = xp.sum(xp.abs(b - columns), axis=1)
    level = xp.sum(b * potential, axis=1) - kernel.level_of_peaks
    value = level - xp.sum(a * xp.log(m)[:, 0, :], axis=1)
    return v, m, ratio, level, _Point(potential, columns, value, violation)


class _Kernel:
    """exp(anchor - cost) of P problems relative to the largest entry of each row, and the mean log of those entries."""

    def __init__(self, cost: Array, a: Array, anchor: Array, share: Array, floor: float) -> None:
        # Kept, because a lookup takes as long as a small array operation.
        self.xp = namespace(cost)
        self.cost, self.a, self.floor = cost, a, floor
        self.anchor = anchor
        self.values, self.level_of_peaks = self._anchored(anchor, share)
        self._rough = _in_single_precision(self.values)
        self._product = self.xp.empty_like(self._rough)

    def move_anchor(self, potential: Array, share: Array, away: Array) -> None:
        """Anchor the problems marked ``away`` at the potential; the others keep their anchor."""
        xp = self.xp
        if not bool(xp.any(away)):
            return
        self.anchor = xp.where(away[:, None], potential, self.anchor)
        values, level = self._anchored(self.anchor, share)
        self.values = xp.where(away[:, None, None], values, self.values)
        self.level_of_peaks = xp.where(away, level, self.level_of_peaks)
        self._rough = _in_single_precision(self.values)

    def _anchored(self, anchor: Array, share: Array) -> tuple[Array, Array]:
        xp = self.xp
        self.is_scaled = bool(xp.any(share < 1))
        kernel = anchor[:, :, None] - (self.cost * share[:, None, None] if self.is_scaled else self.cost)
        peak = xp.max(kernel, axis=1, keepdims=True)
        kernel -= peak
        if bool(xp.min(kernel) < self.floor):
            kernel = xp.maximum(kernel, self.floor)
        return xp.exp(kernel), xp.sum(self.a * peak[:, 0, :], axis=1)

    def curvature(self, is_rough: bool, weights: Array, v: Array, columns: Array) -> Array:
        """diag(columns) - v v' * (kernel diag(weights) kernel'), regularised."""
        kernel = self._rough if is_rough else self.values
        xp = self.xp
        size = v.shape[1]
        if is_single(kernel):
            weights = xp.astype(xp.minimum(weights, LARGEST_SINGLE_WEIGHT), kernel.dtype, copy=False)
        if self._product.dtype != kernel.dtype:
            self._product = xp.empty_like(kernel)
        multiply_into(self._product, kernel, weights)
        curvature = xp.astype(self._product @ xp.matrix_transpose(kernel), v.dtype, copy=False)
        curvature *= v[:, :, None]
        curvature *= -v[:, None, :]
        # Constant shifts do not change the plan: the curvature along them is zero and may be set freely.
        # The ridge is for groups of columns that share no row, which happens when epsilon is tiny.
        ridge = (1e-5 if is_single(kernel) else 1e-12) / size
        curvature += (columns + ridge)[:, :, None] * small_identity(size, v) + 1.0 / size**2
        return curvature


def _sinkhorn_step(b: Array, columns: Array) -> Array:
    """log(b / columns): the change of the potential that meets ``b`` while the other side is fixed."""
    xp = namespace(b)
    return xp.log(xp.where(b > 0, b / xp.maximum(columns, TINY), xp.ones_like(b)))


def _in_single_precision(kernel: Array) -> Array:
    """The kernel in single precision, without slow denormal numbers."""
    xp = namespace(kernel)
    return kernel if is_single(kernel) else xp.maximum(xp.astype(kernel, xp.float32), SINGLE_KERNEL_FLOOR)
