"""The bound head: a batch of tasks, each with the covariances of its calibrated Gaussians; see ``heads.problem``.

Each Gaussian of a class with K of them represents n_generated / K features, as in the sampled head.

The problem is minimised around a metric. The Hessian is approximately, class by class, a multiple of the pooled base
covariance, which is diagonal in the axes of the bank, plus the penalty, plus one rank-one term ("ray") per point:
h x x', with x the point and h = n p (1 - p) for weight n and probability p. On normalised features of 640 dimensions a
task takes about ten evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hotshot.arrays import one_hot
from hotshot.bank import PreparedBase
from hotshot.bank.covariances import Covariances, Dense, Factored, diagonal
from hotshot.errors import ParameterError
from hotshot.method import Method
from hotshot.method.calibration import CalibratedGaussians
from hotshot.method.heads.problem import HeadProblem, Minimum, Mixtures, Point, minimise

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


def fit_bound(training: Training) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimise the bound for every task: theta, which tasks converged, and slopes."""
    tasks, n_gaussians = training.gaussians.labels.shape
    n_classes, dtype = training.n_classes, training.support.dtype
    needed = ARRAYS * tasks * n_gaussians * n_classes**2 * dtype.itemsize
    if needed > MOST_BYTES:
        raise ParameterError(
            f"A classifier of {n_classes:,} new classes alone needs about {needed / 1e9:.0f} GB of memory: pass "
            "include_base=True, whose memory is proportional to the number of classes, or fit fewer classes."
        )
    problem = head_problem(training)
    minimum = minimise_bound(problem, training)
    slopes = problem.mean_slopes(minimum.point.of_means), problem.sample_slopes(minimum.point.of_samples)
    return minimum.theta.astype(dtype), minimum.converged, np.concatenate(slopes, axis=1).astype(dtype)


def head_problem(training: Training) -> HeadProblem:
    """The problem of these tasks."""
    gaussians, support, method, base = training.gaussians, training.support, training.method, training.base
    members = one_hot(gaussians.labels, training.n_classes, support.dtype).swapaxes(1, 2)
    covariances: Covariances = base.covariances
    mixing: np.ndarray | None = gaussians.weights
    # One covariance for each Gaussian, unless these would take more memory than the base covariances.
    if isinstance(covariances, Factored) and covariances.is_diagonal:
        covariances, mixing = diagonal(gaussians.weights @ covariances.variances), None
    elif gaussians.labels.shape[1] * support.shape[2] ** 2 <= covariances.size:
        covariances, mixing = Dense(gaussians.mixed_covariances(base)), None
    return HeadProblem(
        means=with_ones(gaussians.means),
        mean_labels=gaussians.labels,
        mean_counts=method.n_generated / np.sum(members * members.sum(axis=1, keepdims=True), axis=2),
        spread=Mixtures(members, covariances, mixing, gaussians.ray, gaussians.variances),
        samples=with_ones(support),
        labels=training.labels,
        counts=np.full_like(support[..., 0], method.support_weight),
        C=symmetric_penalty(method.C, training.n_classes),
    )


def minimise_bound(problem: HeadProblem, training: Training, tolerance: float | None = None) -> Minimum:
    """The minimum from zeros; continued in double precision if single precision did not resolve it."""
    dtype, spectrum = problem.means.dtype, training.gaussians.spectrum(training.base)
    tasks, _, width = problem.means.shape
    theta = np.zeros((tasks, training.n_classes, width), dtype=dtype)
    minimum = minimise(problem.objective, RayMetric(problem, spectrum).apply, theta, tolerance)
    counts = problem.mean_counts.sum(axis=1) + problem.counts.sum(axis=1)
    curvature = problem.C * spectrum.max() * counts.max()
    if dtype == np.float32 and not (minimum.converged.all() and curvature < LARGEST_SINGLE_CURVATURE):
        means, samples = (x.astype(np.float64) for x in (problem.means, problem.samples))
        problem, theta = replace(problem, means=means, samples=samples), minimum.theta.astype(np.float64)
        minimum = minimise(problem.objective, RayMetric(problem, spectrum).apply, theta, tolerance)
    return minimum


class RayMetric:
    """(diag(d) + sum_p h_p x_p x_p')^-1 x for each class, x and d (tasks, N, V + 1) and points x_p (tasks, V + 1).

    ``spectrum`` (V,) are the variances of a typical covariance.
    """

    def __init__(self, problem: HeadProblem, spectrum: np.ndarray) -> None:
        assert isinstance(problem.spread, Mixtures)
        self.problem, self.spectrum, self.members = problem, spectrum, problem.spread.members
        self.ray, directions = problem.spread.ray, [problem.means, problem.samples]
        if self.ray is not None:
            ray = np.append(self.ray, 0).astype(problem.means.dtype)
            directions.append(np.broadcast_to(ray, (len(problem.means), 1, len(ray))))
        self.directions = np.concatenate(directions, axis=1)

    def curvatures(self, at: Point) -> tuple[np.ndarray, np.ndarray]:
        """The positive diagonal d (tasks, N, V + 1), and the curvature h along each ray (tasks, N, rays)."""
        problem, p, counts = self.problem, at.of_means, self.problem.mean_counts[..., None]
        along_axes = np.sum(counts * (p + self.members - 2 * p * self.members), axis=1)
        diagonal = np.full_like(at.gradient, INTERCEPT_CURVATURE)
        diagonal[..., :-1] = along_axes[..., None] * self.spectrum + 1 / problem.C
        rays = [counts * p * (1 - p), problem.counts[..., None] * at.of_samples * (1 - at.of_samples)]
        if self.ray is not None:
            rays.append(along_axes[:, None])
        return diagonal, np.concatenate(rays, axis=1).swapaxes(1, 2)

    def apply(self, at: Point, x: np.ndarray) -> np.ndarray:
        """The inverse times x (tasks, N, V + 1)."""
        diagonal, curvatures = self.curvatures(at)
        n_rays, width = self.directions.shape[1:]
        if min(n_rays, width) > MOST_RAYS:
            return np.asarray(x / (diagonal + curvatures @ (self.directions * self.directions)))
        rays = np.sqrt(curvatures)[..., None] * self.directions[:, None]
        if n_rays >= width:
            matrix = rays.swapaxes(2, 3) @ rays
            np.einsum("tnvv->tnv", matrix)[...] += diagonal
            return np.asarray(np.linalg.solve(matrix, x[..., None])[..., 0])
        # Woodbury's identity: a system of the rays, which are fewer than the axes.
        inverse = 1 / diagonal
        direct: np.ndarray = x * inverse
        kernel = (rays * inverse[:, :, None]) @ rays.swapaxes(2, 3)
        np.einsum("tnrr->tnr", kernel)[...] += 1
        along = np.linalg.solve(kernel, rays @ direct[..., None])
        return np.asarray(direct - inverse * (rays.swapaxes(2, 3) @ along)[..., 0])


def symmetric_penalty(C: float, n_classes: int) -> float:
    """C for one vector per class; with two, scikit-learn fits one vector, and two opposite halves cost half as much."""
    return C / 2 if n_classes == 2 else C


def with_ones(x: np.ndarray) -> np.ndarray:
    """Points (…, V) with a last entry of 1 for the intercept."""
    return np.concatenate([x, np.ones_like(x[..., :1])], axis=-1)
