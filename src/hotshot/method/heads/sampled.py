"""The sampled head of the paper: generate features from the calibrated Gaussians, fit logistic regression."""

import warnings
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from hotshot.method.heads.bound import Training, head_problem, minimise_bound

# Of scikit-learn's fit. At its default tolerance of 1e-4 the result depends on the start: accuracies of 20 ways were up
# to 0.2 points lower than at the minimum.
MAX_ITERATIONS, TOLERANCE = 1000, 1e-6
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
    """Generate features and fit logistic regression to them, task by task, from the bound's minimum.

    Each of the K Gaussians of a class yields n_generated / K features.
    """
    gaussians, method = training.gaussians, training.method
    covariances = gaussians.mixed_covariances(training.base)
    if not np.isfinite(covariances).all():
        raise FloatingPointError
    # scikit-learn's fit starts near its minimum, which saves half of its time.
    start = minimise_bound(head_problem(training), training, ROUGH).theta
    thetas, converged, slopes = start.copy(), np.ones(len(start), dtype=bool), []
    for task, seed in enumerate(training.seeds):
        labels = gaussians.labels[task]
        counts = np.maximum(1, np.round(method.n_generated / np.bincount(labels)[labels])).astype(int)
        rng = np.random.default_rng(seed)
        drawn = generate_features(gaussians.means[task], covariances[task], counts, rng, gaussians.alpha_factor)
        X = np.concatenate([drawn, training.support[task]])
        y = np.concatenate([np.repeat(labels, counts), training.labels[task]])
        weights = np.ones(len(X), dtype=X.dtype)
        weights[len(drawn) :] = method.support_weight
        if not (np.isfinite(X).all() and np.isfinite(weights.sum())):
            raise FloatingPointError
        # It needs two classes; for one, the start is the minimum.
        if training.n_classes > 1:
            settings = {"C": method.C, "solver": "newton-cg", "tol": TOLERANCE}
            thetas[task], converged[task] = fit_logistic(X, y, weights, start[task], **settings)
        # The derivatives of the loss in the logits; a Gaussian has the sum over its features.
        errors = softmax(X @ thetas[task, :, :-1].T + thetas[task, :, -1], axis=1)
        errors[np.arange(len(X)), y] -= 1
        first_rows = np.concatenate([np.cumsum(counts) - counts, np.arange(len(drawn), len(X))])
        slopes.append(np.add.reduceat(weights[:, None] * errors, first_rows, axis=0))
    return thetas, converged, np.stack(slopes)


def fit_logistic(
    X: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None = None,
    start: np.ndarray | None = None,
    **settings: Any,
) -> tuple[np.ndarray, bool]:
    """Weights and, last, intercepts (N, V + 1) of scikit-learn's logistic regression, and whether it converged."""
    model = LogisticRegression(max_iter=MAX_ITERATIONS, warm_start=start is not None, **settings)
    if start is not None:
        # Of two classes scikit-learn has one vector.
        start = start if len(start) > 2 else start[1:] - start[:1]
        model.coef_, model.intercept_ = start[:, :-1], start[:, -1]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, labels, sample_weight=weights)
    theta = np.concatenate([model.coef_, model.intercept_[:, None]], axis=1)
    theta = np.concatenate([-theta, theta]) / 2 if len(theta) == 1 else theta
    # A failed line search is a warning too.
    return theta, not any(issubclass(w.category, (UserWarning, RuntimeWarning)) for w in caught)
