"""The value of a head's training problem, its gradient, and the metric the optimiser steps in.

The Hessian of every head is nearly (class by class) a multiple of the pooled base covariance, which is
diagonal in the axes of the bank, plus the penalty, plus one ray per point:
h x x', with x the point and h how much its probability of the class may still change.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotshot.arrays import Array, namespace, small_identity
from hotshot.method.heads.problem import HeadProblem

# With more rays and axes than this the rays enter the metric by their diagonal alone.
MOST_RAYS = 256
INTERCEPT_CURVATURE = 1e-3


@dataclass(frozen=True)
class Evaluation:
    """Value, gradient and metric at one point theta.

    Attributes
    ----------
    value : array (tasks,)
    gradient : array (tasks, N, V + 1)
    diagonal : array (tasks, N, V + 1)
        Positive diagonal of the metric.
    rays : array (tasks, N, P or P + 1)
        Curvature along each ray of the problem.
    """

    value: Array
    gradient: Array
    diagonal: Array
    rays: Array


def softmax(logits: Array) -> tuple[Array, Array]:
    """Probabilities along the last axis, and log sum exp."""
    xp = namespace(logits)
    peak = xp.max(logits, axis=-1, keepdims=True)
    exponentials = xp.exp(logits - peak)
    total = xp.sum(exponentials, axis=-1, keepdims=True)
    return exponentials / total, (peak + xp.log(total))[..., 0]


def assemble(
    problem: HeadProblem,
    theta: Array,
    losses: Array,
    logit_gradient: Array,
    spread_gradient: Array,
    class_spread: Array,
    rays: Array,
) -> Evaluation:
    """Add up the points, the penalty and the metric.

    Parameters
    ----------
    theta : array (tasks, N, V + 1)
        Weights and, last, intercepts.
    losses, logit_gradient, rays : arrays (tasks, P), (tasks, P, N) and (tasks, P, N)
        Weighted losses of the points, their derivatives in the logits of the means, and curvatures there.
    spread_gradient : array (tasks, N, V)
        Gradient in the weights through the spread of the logits.
    class_spread : array (tasks, N)
        Curvature per unit of variance of each class's logit, summed over Gaussians.
    """
    xp = namespace(theta)
    weights = theta[..., :-1]
    value = xp.sum(losses, axis=1) + xp.sum(weights * weights, axis=(1, 2)) / (2 * problem.C)
    gradient = xp.matrix_transpose(logit_gradient) @ problem.points
    slopes = gradient[..., :-1] + spread_gradient + weights / problem.C
    gradient = xp.concat([slopes, gradient[..., -1:]], axis=2)
    diagonal = class_spread[..., None] * problem.spectrum + 1 / problem.C
    intercept = xp.full_like(diagonal[..., :1], INTERCEPT_CURVATURE)
    diagonal = xp.concat([diagonal, intercept], axis=2)
    along = xp.matrix_transpose(rays)
    if problem.shift_ray is not None:
        along = xp.concat([along, class_spread[..., None]], axis=2)
    return Evaluation(value, gradient, diagonal, along)


def apply_metric(problem: HeadProblem, at: Evaluation, x: Array) -> Array:
    """(diag(d) + sum_p h_p x_p x_p')^-1 x for each class: (tasks, N, V + 1)."""
    xp = namespace(x)
    directions = problem.rays
    n_rays, width = directions.shape[1:]
    if min(n_rays, width) > MOST_RAYS:
        return x / (at.diagonal + at.rays @ (directions * directions))
    rays = xp.sqrt(at.rays)[..., None] * directions[:, None, ...]
    if n_rays >= width:
        identity = small_identity(width, x)
        matrix = xp.matrix_transpose(rays) @ rays + at.diagonal[..., None] * identity
        return xp.linalg.solve(matrix, x[..., None])[..., 0]
    # Woodbury's identity: a system of the rays, which are fewer than the axes.
    inverse = 1 / at.diagonal
    direct = x * inverse
    kernel = (rays * inverse[:, :, None, :]) @ xp.matrix_transpose(rays)
    kernel = kernel + small_identity(n_rays, x)
    along = xp.linalg.solve(kernel, rays @ direct[..., None])
    return direct - inverse * (xp.matrix_transpose(rays) @ along)[..., 0]
