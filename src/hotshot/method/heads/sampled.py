"""The sampled head of the paper: generate features from the calibrated Gaussians, fit logistic regression."""

import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.linear_model import LogisticRegression

from hotshot.arrays import Array, indices, like, map_arrays, to_numpy
from hotshot.bank.covariances import Dense
from hotshot.method.calibration import Shift
from hotshot.method.heads.problem import (
    FittedHeads,
    HeadProblem,
    LocalModel,
    Training,
    assemble,
    check_finite,
    minimise,
    softmax,
    symmetric_penalty,
    zeros,
)
from hotshot.method.parameters import Method

MAX_ITERATIONS = 1000
# Share of the largest variance added to all, so that a covariance of few samples has a Cholesky factor.
JITTER = 1e-6
# Tolerance of the start for scikit-learn's fit, whose own tolerance is of this order.
TOLERANCE = 1e-5


def gaussian_factor(covariance: np.ndarray) -> np.ndarray:
    """F with F F' = Sigma, also for singular Sigma.

    The Cholesky factor with a little added to the diagonal; if that fails, the factor from the eigenvectors, with
    negative eigenvalues set to zero.
    """
    covariance = np.asarray(covariance, dtype=np.float64)
    variances = np.diagonal(covariance)
    try:
        return np.linalg.cholesky(covariance + np.diag(np.full(len(variances), JITTER * variances.max())))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def generate_features(
    means: np.ndarray,
    covariances: np.ndarray,
    counts: np.ndarray,
    rng: np.random.Generator,
    shift_factor: np.ndarray | None = None,
) -> np.ndarray:
    """Draw counts[g] features from each N(means[g], covariances[g] + F F'): (sum(counts), V)."""
    dtype = np.result_type(means, np.float32)
    drawn = np.empty((int(counts.sum()), means.shape[1]), dtype=dtype)
    for mean, covariance, end, count in zip(means, covariances, np.cumsum(counts), counts, strict=True):
        rows = drawn[end - count : end]
        factor = gaussian_factor(covariance).astype(dtype)
        np.matmul(rng.standard_normal(rows.shape, dtype=dtype), factor.T, out=rows)
        if shift_factor is not None:
            shift = shift_factor.astype(dtype)
            rows += rng.standard_normal((count, shift.shape[1]), dtype=dtype) @ shift.T
        rows += mean
    return drawn


def fit_sampled(training: Training) -> FittedHeads:
    """Generate features and fit scikit-learn's logistic regression to them, task by task."""
    gaussians, support = training.gaussians, training.support
    mixed = gaussians.mixed_covariances(training.base)
    check_finite(mixed)
    arrays = (gaussians.means, mixed, gaussians.labels, support, training.labels)
    shift = gaussians.shift if gaussians.shift is None else map_arrays(gaussians.shift, to_numpy)
    tasks = zip(*(to_numpy(x) for x in arrays), training.seeds, strict=True)
    fitted = [_fit_task(_Task(training.method, training.n_classes, shift, *task)) for task in tasks]
    thetas, converged, slopes = zip(*fitted, strict=True)
    return FittedHeads(
        like(np.stack(thetas), support), indices(np.array(converged), support), like(np.concatenate(slopes), support)
    )


@dataclass(frozen=True)
class _Task:
    """Training data of one head: Gaussians and support samples with their classes, and the parameters."""

    method: Method
    n_classes: int
    shift: Shift | None
    means: np.ndarray
    covariances: np.ndarray
    labels: np.ndarray
    support: np.ndarray
    support_labels: np.ndarray
    seed: int


def _fit_task(task: _Task) -> tuple[np.ndarray, bool, Array]:
    """Weights and intercepts (N, V + 1) of one task, eq. 12, whether the fit converged, and slopes (1, P, N).

    Each of the K Gaussians of a class yields n_generated / K features. scikit-learn's fit is started close to its
    minimum, which saves most of its time.
    """
    labels, support, method, n_classes = task.labels, task.support, task.method, task.n_classes
    per_class = np.bincount(labels, minlength=n_classes)
    counts = np.maximum(1, np.round(method.n_generated / per_class[labels])).astype(int)
    factor = None if task.shift is None else task.shift.factor
    rng = np.random.default_rng(task.seed)
    generated = generate_features(task.means, task.covariances, counts, rng, factor)
    X = np.concatenate([generated, support])
    y = np.concatenate([np.repeat(labels, counts), task.support_labels])
    weight = np.concatenate([np.ones(counts.sum()), np.full(len(support), method.support_weight)])
    problem = _problem_of_means(task)
    objective = partial(sampled_objective, generated=generated, counts=counts)
    start = minimise(problem, objective, zeros(problem), tolerance=TOLERANCE)
    if n_classes == 1:
        # scikit-learn needs two classes; with one, the minimum is the start.
        return start.theta[0], True, start.slopes
    model = LogisticRegression(C=method.C, solver="newton-cg", max_iter=MAX_ITERATIONS, warm_start=True)
    theta = start.theta[0] if n_classes > 2 else start.theta[0, 1:] - start.theta[0, :1]
    model.coef_, model.intercept_ = theta[:, :-1], theta[:, -1]
    check_finite(X)
    check_finite(weight.sum(dtype=X.dtype, keepdims=True))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=weight)
    theta = np.concatenate([model.coef_, model.intercept_[:, None]], axis=1)
    if n_classes == 2:
        theta = np.concatenate([-theta, theta]) / 2
    # A failed line search is a warning too.
    return theta, not any(issubclass(w.category, (UserWarning, RuntimeWarning)) for w in caught), start.slopes


def sampled_objective(
    problem: HeadProblem, theta: np.ndarray, *, generated: np.ndarray, counts: np.ndarray
) -> LocalModel:
    """Cross-entropy of generated features (sum(counts), V), Gaussian after Gaussian, and of the support.

    One task. The gradient of a generated feature is split into that of its Gaussian's mean and that of its deviation
    from it, so that the metric is that of the other heads.
    """
    weights, intercepts = theta[0, :, :-1], theta[0, :, -1]
    n_gaussians = problem.n_gaussians
    starts = np.cumsum(counts) - counts
    own = np.repeat(problem.members[0, :n_gaussians], counts, axis=0)
    points, members = problem.points[0, n_gaussians:], problem.members[0, n_gaussians:]

    probabilities, losses, gradient = _cross_entropy(generated @ weights.T + intercepts, own)
    support, support_losses, support_gradient = _cross_entropy(points @ theta[0].T, members)
    curvature = np.add.reduceat(probabilities * (1 - probabilities), starts, axis=0)
    through_means = np.add.reduceat(gradient, starts, axis=0)
    through_deviations = gradient.T @ generated - through_means.T @ problem.points[0, :n_gaussians, :-1]
    count = problem.counts[0, n_gaussians:, None]
    return assemble(
        problem,
        theta,
        np.concatenate([np.add.reduceat(losses, starts), count[:, 0] * support_losses])[None],
        np.concatenate([through_means, count * support_gradient])[None],
        through_deviations[None],
        np.sum(curvature, axis=0)[None],
        np.concatenate([curvature, count * support * (1 - support)])[None],
    )


def _cross_entropy(logits: np.ndarray, own: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities, losses and derivatives in the logits, of rows of logits with one-hot classes ``own``."""
    probabilities, level = softmax(logits)
    return probabilities, level - np.sum(logits * own, axis=1), probabilities - own


def _problem_of_means(task: _Task) -> HeadProblem:
    """The problem with means and support as points; the deviations are those of generated features."""
    points = np.concatenate([task.means, task.support])
    points = np.concatenate([points, np.ones_like(points[:, :1])], axis=1)
    spectrum = np.mean(np.diagonal(task.covariances, axis1=1, axis2=2), axis=0).astype(points.dtype)
    spectrum, shift_ray = (spectrum, None) if task.shift is None else task.shift.in_metric(spectrum)
    counts = np.concatenate([np.zeros(len(task.means)), np.full(len(task.support), task.method.support_weight)])
    return HeadProblem(
        points=points[None],
        members=np.eye(task.n_classes, dtype=points.dtype)[np.concatenate([task.labels, task.support_labels])][None],
        counts=counts.astype(points.dtype)[None],
        covariances=Dense(task.covariances[:0]),
        mixing=None,
        n_gaussians=len(task.means),
        spectrum=spectrum,
        C=symmetric_penalty(task.method.C, task.n_classes),
        shift_ray=shift_ray,
    )
