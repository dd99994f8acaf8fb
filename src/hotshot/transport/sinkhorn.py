r"""Sinkhorn's iterations in the log domain, for problems with two large sides.

With the cost in units of epsilon, the two potentials are updated in turn to meet one marginal each,

.. math::
    f_j = \log a_j - \log \sum_n \exp(h_n - C_{jn}), \qquad h_n = \log b_n - \log \sum_j \exp(f_j - C_{jn}),

which raises the dual at every step and needs no linear algebra. With a relaxation :math:`\rho`, in units of epsilon
too, the second update is multiplied by :math:`\rho / (1 + \rho)`.
"""

from hotshot.arrays import Array, namespace
from hotshot.transport.semidual import BlockSolution, wanted_columns

# Epsilon scaling: costs whose range is more epsilons than this are solved at a larger epsilon first.
SCALING_START = 60.0
SCALING_FACTOR = 2.0
SCALING_TOLERANCE = 0.05
CHECK_EVERY = 10
# Logarithm of no mass: its exponential is zero.
NOTHING = -1e30


def sinkhorn(
    cost: Array, a: Array, b: Array, strength: Array | None, tolerance: float, max_iterations: int
) -> BlockSolution:
    """Solve P problems at once; the parameters are those of ``newton``."""
    xp = namespace(cost, a, b)
    log_a, log_b = _log(a), _log(b)
    share = SCALING_START / xp.maximum(xp.max(cost, axis=(1, 2)), SCALING_START)
    one = xp.ones_like(share)
    done = xp.zeros_like(share, dtype=xp.bool)
    # Relative to the logarithm of the marginal.
    potential = (cost @ a[:, :, None])[:, :, 0] * share[:, None]
    scaled = cost * share[:, None, None]

    for iteration in range(1, max_iterations + 1):
        is_last = iteration == max_iterations
        if is_last and bool(xp.any(share < 1)):
            # Even an unfinished plan is for the requested epsilon.
            potential, share, scaled = potential / share[:, None], one, cost
        large = log_a - _log_sum_exp((potential + log_b)[:, :, None] - scaled, axis=1)
        columns = _log_sum_exp(large[:, None, :] - scaled, axis=2)
        scaled_strength = None if strength is None else strength * share
        lowered = xp.zeros_like(done)
        if iteration % CHECK_EVERY == 0 or is_last:
            wanted, _ = wanted_columns(b, potential + log_b, scaled_strength)
            violation = xp.sum(xp.abs(wanted - xp.exp(potential + log_b + columns)), axis=1)
            done = done | ((share >= 1) & (violation <= tolerance))
            if is_last or bool(xp.all(done)):
                break
            lowered = (share < 1) & (violation <= SCALING_TOLERANCE)
        update = -columns
        if scaled_strength is not None:
            shrinkage = (scaled_strength / (1 + scaled_strength))[:, None]
            update = xp.where(b > 0, shrinkage * (log_b - columns) - log_b, update)
        potential = xp.where(done[:, None], potential, update)
        if bool(xp.any(lowered)):
            factor = xp.where(lowered, xp.minimum(1 / share, SCALING_FACTOR), one)
            share = xp.minimum(share * factor, 1.0)
            scaled = cost * share[:, None, None]
            potential = potential * factor[:, None]

    plan = xp.exp((potential + log_b)[:, :, None] + large[:, None, :] - scaled)
    return BlockSolution(plan, wanted, iteration, done)


def _log(mass: Array) -> Array:
    xp = namespace(mass)
    logarithm = xp.log(xp.where(mass > 0, mass, xp.ones_like(mass)))
    return xp.where(mass > 0, logarithm, xp.full_like(mass, NOTHING))


def _log_sum_exp(x: Array, axis: int) -> Array:
    xp = namespace(x)
    peak = xp.max(x, axis=axis, keepdims=True)
    return xp.squeeze(peak, axis=axis) + xp.log(xp.sum(xp.exp(x - peak), axis=axis))
