r"""Newton's method on the semi-dual, for problems with one small side.

With the cost in units of epsilon, the potential :math:`h` of the small side maximises

.. math::
    \sum_n b_n h_n - \sum_j a_j \log m_j, \qquad m_j = \sum_n b_n \exp(h_n - C_{jn}),

a smooth concave function of S variables. The plan :math:`T_{jn} = a_j b_n e^{h_n - C_{jn}} / m_j` meets `a`
by construction; the gradient is what its columns lack of `b`, and the negative Hessian is
:math:`\mathrm{diag}(T^\top 1) - T^\top \mathrm{diag}(a)^{-1} T`.

Three guards make it global. A step that does not raise the value is shortened once and then replaced by a
Sinkhorn step, which always raises it. Costs that spread over many epsilons are solved at a larger epsilon
first. And the kernel is kept relative to an anchor near the potential, so that nothing overflows.
"""

from __future__ import annotations

from hotshot.arrays import Array, is_single, multiply_into, namespace, small_identity
from hotshot.transport.solution import BlockSolution

# Costs that spread over more epsilons than this are solved at a larger epsilon first, then at one
# `LADDER_FACTOR` smaller, and so on down, each only to `LADDER_TOLERANCE`.
LADDER_START = 200.0
LADDER_FACTOR = 4.0
LADDER_TOLERANCE = 0.05
# The longest step, in epsilons.
LONGEST_STEP = 8.0
# Rounding noise of the value; smallest exponent of the kernel, which keeps clear of slow denormal numbers;
# how far the potential may go from the anchor before the kernel is made anew.
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
# solved by then, and the others go on with the exact one.
ROUGH_ITERATIONS = 8
# Potential of a column without mass: its kernel is zero.
UNUSED = -1e30
# Bounds in single precision, clear of slow denormal numbers and of overflow.
SINGLE_KERNEL_FLOOR = 1e-20
LARGEST_SINGLE_WEIGHT = 1e30
TINY = 1e-30


def newton(
    cost: Array,
    a: Array,
    b: Array,
    *,
    tolerance: float,
    max_iterations: int,
) -> BlockSolution:
    """Solve P problems at once; each is damped, tempered and stopped by itself.

    Parameters
    ----------
    cost : array (P, S, J)
        Finite costs divided by epsilon, the lowest of each problem 0, the small side in the middle.
    a, b : arrays (P, J) and (P, S)
        Marginals of unit total; zeros are allowed.
    tolerance : float
        Accepted sum of absolute violations of `b`.
    """
    xp = namespace(cost, a, b)
    used = b > 0
    noise, floor, reach = SINGLE if is_single(cost) else DOUBLE
    spread = xp.max(cost, axis=(1, 2))
    # The share of the cost that counts so far: 1 is the problem itself, less is a larger epsilon.
    share = LADDER_START / xp.maximum(spread, LADDER_START)
    tempered = bool(xp.any(share < 1))
    # To first order in 1/epsilon the potential is the mean cost.
    point = (cost @ a[:, :, None])[:, :, 0] * share[:, None]
    point = xp.where(used, point, xp.full_like(point, UNUSED))
    step = xp.zeros_like(point)
    columns_before = b
    slope = refused = zero = xp.zeros_like(share)
    lack_before = infinity = xp.full_like(share, float("inf"))
    value_before = -infinity
    still = xp.zeros_like(step)
    one = xp.ones_like(share)
    done = xp.zeros_like(share, dtype=xp.bool)
    anchor = point
    kernel, level_of_peaks = _anchored(cost, a, anchor, share, tempered, floor)
    rough = _in_single_precision(kernel)
    product = xp.empty_like(rough)
    away = done

    for iteration in range(max_iterations + 1):
        potential = point + step
        is_rough = iteration < ROUGH_ITERATIONS
        limit = min(reach, ROUGH_REACH) if is_rough else reach
        away = away | (xp.max(xp.abs(potential - anchor), axis=1) > limit)
        if bool(xp.any(away)):
            # Each problem by its own need, so that no problem's numbers depend on the others in its block.
            anchor = xp.where(away[:, None], potential, anchor)
            fresh_kernel, fresh_level = _anchored(cost, a, anchor, share, tempered, floor)
            kernel = xp.where(away[:, None, None], fresh_kernel, kernel)
            level_of_peaks = xp.where(away, fresh_level, level_of_peaks)
            rough = _in_single_precision(kernel)
            away = xp.zeros_like(away)
        v = b * xp.exp(potential - anchor)
        m = v[:, None, :] @ kernel
        ratio = a[:, None, :] / m
        columns = v * (kernel @ xp.matrix_transpose(ratio))[:, :, 0]
        gradient = b - columns
        lack = xp.sum(xp.abs(gradient), axis=1)
        level = xp.sum(b * potential, axis=1) - level_of_peaks
        value = level - xp.sum(a * xp.log(m)[:, 0, :], axis=1)

        gain = value - value_before
        is_level = xp.abs(gain) <= noise * (1 + xp.abs(level))
        accepted = (gain >= 1e-4 * slope) | (is_level & (lack < lack_before)) | (refused >= 2) | done
        moved = accepted & ~done
        reached = moved & (lack <= xp.where(share < 1, LADDER_TOLERANCE * one, tolerance))
        done = done | (reached & (share >= 1))
        if iteration == max_iterations or bool(xp.all(done)):
            break

        point = xp.where(moved[:, None], potential, point)
        columns_before = xp.where(moved[:, None], columns, columns_before)
        value_before = xp.where(moved, value, value_before)
        lack_before = xp.where(moved, lack, lack_before)
        refused = xp.where(accepted, zero, refused + 1)
        if iteration == ROUGH_ITERATIONS:
            product = xp.empty_like(kernel)
        if iteration == 0 and b.shape[1] >= RELAXED_SIDE:
            next_step = RELAXATION * _sinkhorn_step(b, columns)
        else:
            curvature = _curvature(rough if is_rough else kernel, product, ratio / m, v, columns)
            next_step = xp.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        next_step = xp.minimum(xp.maximum(next_step, -LONGEST_STEP), LONGEST_STEP)
        step = xp.where(moved[:, None], next_step, SHORT_STEP * step)
        step = xp.where(done[:, None], still, step)
        slope = xp.where(moved, xp.sum(gradient * step, axis=1), SHORT_STEP * slope)
        if bool(xp.any(refused >= 2)):
            sinkhorn_step = xp.minimum(_sinkhorn_step(b, columns_before), LONGEST_STEP)
            step = xp.where((refused >= 2)[:, None], sinkhorn_step, step)

        # Even an unfinished plan is one of the epsilon asked for.
        climbs = (share < 1) if iteration + 1 == max_iterations else reached & (share < 1)
        if tempered and bool(xp.any(climbs)):
            steepest = LADDER_FACTOR if iteration + 1 < max_iterations else float("inf")
            factor = xp.where(climbs, xp.minimum(1 / share, steepest), one)
            share = xp.minimum(share * factor, 1.0)
            point = xp.where(used, point * factor[:, None], point)
            step = xp.where(climbs[:, None], still, step)
            value_before = xp.where(climbs, -infinity, value_before)
            tempered = bool(xp.any(share < 1))
            away = climbs

    kernel *= v[:, :, None]
    kernel *= ratio
    return BlockSolution(kernel, potential, value, iteration, done)


def _anchored(
    cost: Array, a: Array, anchor: Array, share: Array, tempered: bool, floor: float
) -> tuple[Array, Array]:
    """exp(anchor - cost) relative to the largest entry of each row, and the mean log of those entries."""
    xp = namespace(cost)
    kernel = anchor[:, :, None] - (cost * share[:, None, None] if tempered else cost)
    peak = xp.max(kernel, axis=1, keepdims=True)
    kernel -= peak
    if bool(xp.min(kernel) < floor):
        kernel = xp.maximum(kernel, floor)
    return xp.exp(kernel), xp.sum(a * peak[:, 0, :], axis=1)


def _sinkhorn_step(b: Array, columns: Array) -> Array:
    """The change of the potential that meets `b` while the other side stays: log(b / columns)."""
    xp = namespace(b)
    return xp.log(xp.where(b > 0, b / xp.maximum(columns, TINY), xp.ones_like(b)))


def _in_single_precision(kernel: Array) -> Array:
    """A copy of a double precision kernel, clear of slow denormal numbers."""
    xp = namespace(kernel)
    return kernel if is_single(kernel) else xp.maximum(xp.astype(kernel, xp.float32), SINGLE_KERNEL_FLOOR)


def _curvature(kernel: Array, product: Array, weights: Array, v: Array, columns: Array) -> Array:
    """diag(columns) - v v' * (kernel diag(weights) kernel'), made regular where it is singular."""
    xp = namespace(kernel)
    size = v.shape[1]
    if is_single(kernel):
        weights = xp.astype(xp.minimum(weights, LARGEST_SINGLE_WEIGHT), kernel.dtype, copy=False)
    multiply_into(product, kernel, weights)
    curvature = xp.astype(product @ xp.matrix_transpose(kernel), v.dtype, copy=False)
    curvature *= v[:, :, None]
    curvature *= -v[:, None, :]
    # Constant shifts leave the plan alone: the curvature there is zero and may as well be that of a column.
    # The ridge is for groups of columns that share no row, as happens when epsilon is tiny.
    ridge = (1e-5 if is_single(kernel) else 1e-12) / size
    curvature += (columns + ridge)[:, :, None] * small_identity(size, v) + 1.0 / size**2
    return curvature
