r"""The bound head: eq. 12 with Jensen's closed form of the expected cross-entropy in place of generated features.

.. math::
    \min_{W, c} \sum_g n_g \log \sum_j \exp(m_j - m_y + v_j / 2) + \sum_n u\, \ell(W x_n + c, y_n)
    + \frac{1}{2C} \lVert W \rVert^2,

because :math:`E[-\log p_y] = E \log \sum_j e^{z_j - z_y}` is at most the first term, with m the logits of the mean of
Gaussian g and v_j the variance of z_j - z_y, :math:`A_{jj} + A_{yy} - 2 A_{jy}` for the covariance
:math:`A = W \Sigma_g W^\top` of the logits. It is convex in the weights and needs no samples. Each Gaussian of a class
with K of them represents n_generated / K features, as in the sampled head.

It is minimised for many tasks at once by a limited-memory quasi-Newton method (L-BFGS) around a metric. The Hessian is
approximately, class by class, a multiple of the pooled base covariance, which is diagonal in the axes of the bank, plus
the penalty, plus one rank-one term ("ray") per point: h x x', with x the point and h = n p (1 - p) for weight n and
probability p. The optimiser starts from that metric. On normalised features of 640 dimensions a task takes about ten
evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from hotshot.arrays import one_hot
from hotshot.bank import PreparedBase
from hotshot.bank.covariances import Covariances, Dense, Factored, diagonal
from hotshot.errors import ParameterError
from hotshot.method import Method
from hotshot.method.calibration import CalibratedGaussians
from hotshot.method.heads.optimiser import Minimum, Point, minimise

# Arrays (Gaussians, N, N) that one evaluation holds, and the most bytes of them.
ARRAYS, MOST_BYTES = 6, 2**33
# With more rays and axes than this only the diagonal of the rays enters the metric.
MOST_RAYS = 256
INTERCEPT_CURVATURE = 1e-3
# In units of the penalty: beyond it the penalty is below the tolerance of single precision.
LARGEST_SINGLE_CURVATURE = 1e6


@dataclass(frozen=True)
class Training:
    """What heads are trained on, for a batch of tasks.

    ``support`` (tasks, S, V) are samples in the space of the bank, ``labels`` (tasks, S) their classes from 0;
    ``seeds``, one per task, are for the sampled head.
    """

    base: PreparedBase
    gaussians: CalibratedGaussians
    support: np.ndarray
    labels: np.ndarray
    n_classes: int
    method: Method
    seeds: Sequence[int]


@dataclass(frozen=True)
class HeadProblem:
    """The bound's training problem for a batch of tasks, N classes and V axes.

    ``points`` (tasks, P, V + 1) are the means of the G Gaussians, then the support samples, each with a last entry of 1
    for the intercept; ``members`` (tasks, P, N) are their one-hot classes, ``counts`` (tasks, P) their weights n_g and
    u. There are K ``covariances``, for all tasks or for each. Gaussians mix them by ``mixing`` (tasks, G, K), which is
    None if each has its own; ``ray`` and ``variances`` (V,) are what alpha adds, as in ``CalibratedGaussians``.
    ``spectrum`` (V,) are the variances of a typical covariance, from which the optimiser takes its metric. ``C`` is the
    inverse strength of the penalty, for one vector per class.
    """

    points: np.ndarray
    members: np.ndarray
    counts: np.ndarray
    covariances: Covariances
    mixing: np.ndarray | None
    n_gaussians: int
    spectrum: np.ndarray
    C: float
    ray: np.ndarray | None = None
    variances: np.ndarray | None = None

    @cached_property
    def directions(self) -> np.ndarray:
        """Directions of curvature other than the axes (tasks, rays, V + 1): the points and the ray of alpha."""
        if self.ray is None:
            return self.points
        ray = np.append(self.ray, 0).astype(self.points.dtype)
        return np.concatenate([self.points, np.broadcast_to(ray, (len(self.points), 1, len(ray)))], axis=1)


@dataclass(frozen=True)
class BoundPoint(Point):
    """The metric is a positive diagonal (tasks, N, V + 1) and the curvature along each ray (tasks, N, rays).

    ``slopes`` (tasks, P, N) is the gradient in the logits of the points.
    """

    diagonal: np.ndarray
    rays: np.ndarray
    slopes: np.ndarray


def fit_bound(training: Training) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimise the bound for every task: theta, which tasks converged, and slopes."""
    tasks, n_gaussians = training.gaussians.labels.shape
    n_classes, itemsize = training.n_classes, training.support.dtype.itemsize
    needed = ARRAYS * tasks * n_gaussians * n_classes**2 * itemsize
    if needed > MOST_BYTES:
        raise ParameterError(
            f"A classifier of {n_classes:,} new classes alone needs about {needed / 1e9:.0f} GB of memory: pass "
            "include_base=True, whose memory is proportional to the number of classes, or fit fewer classes."
        )
    minimum, dtype = minimise_bound(head_problem(training)), training.support.dtype
    return minimum.theta.astype(dtype), minimum.converged, minimum.point.slopes.astype(dtype)


def head_problem(training: Training) -> HeadProblem:
    """The problem of these tasks."""
    gaussians, support, method, base = training.gaussians, training.support, training.method, training.base
    members, support_members = (
        one_hot(labels, training.n_classes, support.dtype).swapaxes(1, 2)
        for labels in (gaussians.labels, training.labels)
    )
    counts = method.n_generated / np.sum(members * members.sum(axis=1, keepdims=True), axis=2)
    points = np.concatenate([gaussians.means, support], axis=1)
    covariances: Covariances = base.covariances
    mixing: np.ndarray | None = gaussians.weights
    # One covariance for each Gaussian, unless these would take more memory than the base covariances.
    if isinstance(covariances, Factored) and covariances.is_diagonal:
        covariances, mixing = diagonal(gaussians.weights @ covariances.variances), None
    elif gaussians.labels.shape[1] * support.shape[2] ** 2 <= covariances.size:
        covariances, mixing = Dense(gaussians.mixed_covariances(base)), None
    return HeadProblem(
        points=np.concatenate([points, np.ones_like(points[..., :1])], axis=2),
        members=np.concatenate([members, support_members], axis=1),
        counts=np.concatenate([counts, np.full_like(support[..., 0], method.support_weight)], axis=1),
        covariances=covariances,
        mixing=mixing,
        n_gaussians=gaussians.means.shape[1],
        spectrum=gaussians.spectrum(base),
        C=symmetric_penalty(method.C, training.n_classes),
        ray=gaussians.ray,
        variances=gaussians.variances,
    )


def minimise_bound(problem: HeadProblem, tolerance: float | None = None) -> Minimum:
    """The minimum from zeros; continued in double precision if single precision did not resolve it."""
    dtype = problem.points.dtype

    def minimum_from(start: np.ndarray, problem: HeadProblem) -> Minimum:
        return minimise(partial(bound_objective, problem), partial(apply_metric, problem), start, tolerance)

    tasks, _, width = problem.points.shape
    minimum = minimum_from(np.zeros((tasks, problem.members.shape[2], width), dtype=dtype), problem)
    curvature = problem.C * problem.spectrum.max() * problem.counts.sum(axis=1).max()
    if dtype == np.float32 and not (minimum.converged.all() and curvature < LARGEST_SINGLE_CURVATURE):
        wide = replace(problem, points=problem.points.astype(np.float64))
        minimum = minimum_from(minimum.theta.astype(np.float64), wide)
    return minimum


def bound_objective(problem: HeadProblem, theta: np.ndarray) -> BoundPoint:
    """Value, gradient and metric of the bound at theta (tasks, N, V + 1)."""
    weights, C, some = theta[..., :-1], problem.C, slice(problem.n_gaussians)
    members, counts = problem.members, problem.counts[..., None]
    own, own_counts = members[:, some], counts[:, some]

    # A_g, and the variances v_j of z_j - z_y.
    with_alpha, (of_base, gradient_of) = _through_alpha(problem, weights), problem.covariances.quadratic(weights)
    covariances = _combine(problem.mixing, of_base)
    covariances = covariances + (with_alpha @ weights.swapaxes(1, 2))[:, None]
    with_own = np.sum(covariances * own[..., None, :], axis=3)
    of_own = np.sum(with_own * own, axis=2, keepdims=True)
    variances = np.diagonal(covariances, axis1=2, axis2=3) + of_own - 2 * with_own

    logits = problem.points @ theta.swapaxes(1, 2)
    margins = logits - np.sum(logits * members, axis=2, keepdims=True)
    margins[:, some] += variances / 2
    losses, probabilities = losses_and_probabilities(margins)
    value = (counts * losses).sum(axis=(1, 2)) + np.sum(weights * weights, axis=(1, 2)) / (2 * C)

    # d v_j / d A = (e_j - e_y)(e_j - e_y)', weighed by half the probability of j.
    p = probabilities[:, some]
    cross = p[..., :, None] * own[..., None, :]
    slopes = -(cross + cross.swapaxes(2, 3))
    np.einsum("tgnn->tgn", slopes)[...] += p + own
    slopes *= own_counts[..., None] / 2
    of_points = counts * (probabilities - members)
    gradient = of_points.swapaxes(1, 2) @ problem.points
    mixing = None if problem.mixing is None else problem.mixing.swapaxes(1, 2)
    gradient[..., :-1] += gradient_of(_combine(mixing, slopes))
    gradient[..., :-1] += 2 * slopes.sum(axis=1) @ with_alpha + weights / C

    curvature = np.sum(own_counts * (p + own - 2 * p * own), axis=1)
    diagonal = np.full_like(theta, INTERCEPT_CURVATURE)
    diagonal[..., :-1] = curvature[..., None] * problem.spectrum + 1 / C
    rays = (counts * probabilities * (1 - probabilities)).swapaxes(1, 2)
    if problem.ray is not None:
        rays = np.concatenate([rays, curvature[..., None]], axis=2)
    return BoundPoint(value, gradient, diagonal, rays, of_points)


def apply_metric(problem: HeadProblem, at: BoundPoint, x: np.ndarray) -> np.ndarray:
    """(diag(d) + sum_p h_p x_p x_p')^-1 x for each class: (tasks, N, V + 1)."""
    directions = problem.directions
    n_rays, width = directions.shape[1:]
    if min(n_rays, width) > MOST_RAYS:
        return np.asarray(x / (at.diagonal + at.rays @ (directions * directions)))
    rays = np.sqrt(at.rays)[..., None] * directions[:, None]
    if n_rays >= width:
        matrix = rays.swapaxes(2, 3) @ rays
        np.einsum("tnvv->tnv", matrix)[...] += at.diagonal
        return np.asarray(np.linalg.solve(matrix, x[..., None])[..., 0])
    # Woodbury's identity: a system of the rays, which are fewer than the axes.
    inverse = 1 / at.diagonal
    direct: np.ndarray = x * inverse
    kernel = (rays * inverse[:, :, None]) @ rays.swapaxes(2, 3)
    np.einsum("tnrr->tnr", kernel)[...] += 1
    along = np.linalg.solve(kernel, rays @ direct[..., None])
    return np.asarray(direct - inverse * (rays.swapaxes(2, 3) @ along)[..., 0])


def losses_and_probabilities(margins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The log of summed exponentials (…, 1) and the softmax of margins (…, N), in their memory: they may be large."""
    peak = margins.max(axis=-1, keepdims=True)
    margins -= peak
    np.exp(margins, out=margins)
    totals = margins.sum(axis=-1, keepdims=True)
    margins /= totals
    return peak + np.log(totals), margins


def symmetric_penalty(C: float, n_classes: int) -> float:
    """C for one vector per class; with two, scikit-learn fits one vector, and two opposite halves cost half as much."""
    return C / 2 if n_classes == 2 else C


def _through_alpha(problem: HeadProblem, weights: np.ndarray) -> np.ndarray:
    """W times the matrix that alpha adds to every covariance (tasks, N, V)."""
    if problem.ray is not None:
        return np.asarray((weights @ problem.ray)[..., None] * problem.ray)
    return np.asarray(weights * (0 if problem.variances is None else problem.variances))


def _combine(coefficients: np.ndarray | None, matrices: np.ndarray) -> np.ndarray:
    """sum_k m_gk X_k of matrices (tasks, K, N, N), for coefficients (tasks, G, K)."""
    if coefficients is None:
        return matrices
    tasks, count, rows, columns = matrices.shape
    flat: np.ndarray = coefficients @ matrices.reshape(tasks, count, rows * columns)
    return flat.reshape(tasks, -1, rows, columns)
