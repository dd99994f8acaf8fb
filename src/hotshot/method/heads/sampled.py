"""The sampled head of the paper: generate features from the calibrated Gaussians, fit logistic regression."""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from hotshot.method.heads.bound import Training, head_problem, minimise_bound

MAX_ITERATIONS = 1000
# Share of the largest variance added to all, so that a covariance of few samples has a Cholesky factor.
JITTER = 1e-6
# Tolerance of the start.
ROUGH = 1e-3


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


def fit_sampled(training: Training) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Generate features and fit scikit-learn's logistic regression to them, task by task, from the bound's minimum."""
    gaussians = training.gaussians
    covariances = gaussians.mixed_covariances(training.base)
    if not np.isfinite(covariances).all():
        raise FloatingPointError
    # scikit-learn's fit starts near its minimum, which saves half of its time.
    start = minimise_bound(head_problem(training), ROUGH)
    thetas, converged, slopes = start.theta.copy(), np.ones(len(start.theta), dtype=bool), []
    for task, seed in enumerate(training.seeds):
        generated = _generated(training, task, covariances[task], np.random.default_rng(seed))
        # It needs two classes; for one, the start is the minimum.
        if training.n_classes > 1:
            thetas[task], converged[task] = _logistic_regression(generated, training.method.C, start.theta[task])
        slopes.append(_slopes(generated, thetas[task]))
    return thetas, converged, np.stack(slopes)


@dataclass(frozen=True)
class Generated:
    """Generated features and support samples (n, V) with classes and weights (n,), and the first row of each point."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    starts: np.ndarray


def _generated(training: Training, task: int, covariances: np.ndarray, rng: np.random.Generator) -> Generated:
    """Training data of one task: each of the K Gaussians of a class yields n_generated / K features."""
    gaussians, method = training.gaussians, training.method
    labels = gaussians.labels[task]
    counts = np.maximum(1, np.round(method.n_generated / np.bincount(labels)[labels])).astype(int)
    drawn = generate_features(gaussians.means[task], covariances, counts, rng, gaussians.alpha_factor)
    X = np.concatenate([drawn, training.support[task]])
    weights = np.ones(len(X), dtype=X.dtype)
    weights[len(drawn) :] = method.support_weight
    if not (np.isfinite(X).all() and np.isfinite(weights.sum())):
        raise FloatingPointError
    y = np.concatenate([np.repeat(labels, counts), training.labels[task]])
    return Generated(X, y, weights, np.concatenate([np.cumsum(counts) - counts, np.arange(len(drawn), len(X))]))


def _slopes(generated: Generated, theta: np.ndarray) -> np.ndarray:
    """Derivatives of the loss in the logits (G + S, N): a Gaussian has the sum over its features."""
    errors = softmax(generated.X @ theta[:, :-1].T + theta[:, -1], axis=1)
    errors[np.arange(len(errors)), generated.y] -= 1
    return np.asarray(np.add.reduceat(generated.weights[:, None] * errors, generated.starts, axis=0))


def _logistic_regression(generated: Generated, C: float, start: np.ndarray) -> tuple[np.ndarray, bool]:
    """Weights and intercepts (N, V + 1) of classes 0 to N - 1, and whether the fit converged."""
    model = LogisticRegression(C=C, solver="newton-cg", max_iter=MAX_ITERATIONS, warm_start=True)
    start = start if len(start) > 2 else start[1:] - start[:1]
    model.coef_, model.intercept_ = start[:, :-1], start[:, -1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(generated.X, generated.y, sample_weight=generated.weights)
    theta = np.concatenate([model.coef_, model.intercept_[:, None]], axis=1)
    if len(theta) == 1:
        theta = np.concatenate([-theta, theta]) / 2
    # A failed line search is a warning too.
    return theta, not any(issubclass(w.category, (UserWarning, RuntimeWarning)) for w in caught)
