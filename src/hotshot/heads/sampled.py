"""The sampled head of the paper: generate features from the calibrated Gaussians, fit logistic regression."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

# Share of the largest variance added to all, so that a covariance of few samples has a Cholesky factor.
JITTER = 1e-6
MAX_ITERATIONS = 1000


def gaussian_factor(covariance: np.ndarray) -> np.ndarray:
    """F with F F' = Sigma, safe where Sigma is singular.

    Cholesky's factor with a little added to the diagonal; where rounding has left worse than that, the one
    from the eigenvectors, with negative eigenvalues counted as zero.
    """
    covariance = np.asarray(covariance, dtype=np.float64)
    variances = np.diagonal(covariance)
    try:
        return np.linalg.cholesky(covariance + np.diag(np.full(len(variances), JITTER * variances.max())))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
        return vectors * np.sqrt(np.maximum(values, 0))


def generate_features(
    means: np.ndarray,
    covariances: np.ndarray,
    counts: np.ndarray,
    rng: np.random.Generator,
    shift_factor: np.ndarray | None = None,
) -> np.ndarray:
    """Draw counts[g] features from each N(means[g], covariances[g] + F F'): (sum(counts), V)."""
    drawn = []
    for mean, covariance, count in zip(means, covariances, counts, strict=True):
        features = mean + rng.standard_normal((count, len(mean))) @ gaussian_factor(covariance).T
        if shift_factor is not None:
            features += rng.standard_normal((count, shift_factor.shape[1])) @ shift_factor.T
        drawn.append(features)
    return np.concatenate(drawn)


def fit_sampled(
    means: np.ndarray,
    covariances: np.ndarray,
    shift_factor: np.ndarray | None,
    labels: np.ndarray,
    support: np.ndarray,
    support_labels: np.ndarray,
    *,
    n_classes: int,
    n_generated: int,
    support_weight: float,
    C: float,
    rng: np.random.Generator,
) -> tuple[np.ndarray, bool]:
    """Weights and intercepts (N, V + 1) of one task, eq. 12, and whether the fit converged.

    Each of the K Gaussians of a class gives n_generated / K features.
    """
    per_class = np.bincount(labels, minlength=n_classes)
    counts = np.maximum(1, np.round(n_generated / per_class[labels])).astype(int)
    X = np.concatenate([generate_features(means, covariances, counts, rng, shift_factor), support])
    y = np.concatenate([np.repeat(labels, counts), support_labels])
    weight = np.concatenate([np.ones(counts.sum()), np.full(len(support), support_weight)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The minimum of scikit-learn's default solver, which takes ten times as long where alpha is large.
        model = LogisticRegression(C=C, solver="newton-cg", max_iter=MAX_ITERATIONS).fit(
            X, y, sample_weight=weight
        )
    theta = np.concatenate([model.coef_, model.intercept_[:, None]], axis=1)
    if n_classes == 2:
        theta = np.concatenate([-theta, theta]) / 2
    return theta, bool(model.n_iter_.max() < MAX_ITERATIONS)
