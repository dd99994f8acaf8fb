"""The sampled head of the paper: generate features from the calibrated Gaussians, fit logistic regression."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression


def gaussian_factor(covariance: np.ndarray) -> np.ndarray:
    """F with F F' = Sigma: Cholesky's where Sigma is positive definite, else from its eigenvectors.

    Negative eigenvalues, which only rounding or a wrong alpha can bring, count as zero.
    """
    try:
        return np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(np.asarray(covariance, dtype=np.float64))
        return (vectors * np.sqrt(np.maximum(values, 0))).astype(covariance.dtype)


def generate_features(
    means: np.ndarray, covariances: np.ndarray, counts: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw counts[g] features from each N(means[g], covariances[g]): (sum(counts), V)."""
    drawn = []
    for mean, covariance, count in zip(means, covariances, counts, strict=True):
        normal = rng.standard_normal((count, len(mean)), dtype=np.float64).astype(means.dtype)
        drawn.append(mean + normal @ gaussian_factor(covariance).T)
    return np.concatenate(drawn)


def fit_sampled(
    means: np.ndarray,
    covariances: np.ndarray,
    labels: np.ndarray,
    support: np.ndarray,
    support_labels: np.ndarray,
    *,
    n_classes: int,
    n_generated: int,
    support_weight: float,
    C: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Weights and intercepts (N, V + 1) of one task, eq. 12: n_generated / K features per Gaussian."""
    per_class = np.bincount(labels, minlength=n_classes)
    counts = np.maximum(1, np.round(n_generated / per_class[labels])).astype(int)
    X = np.concatenate([generate_features(means, covariances, counts, rng), support])
    y = np.concatenate([np.repeat(labels, counts), support_labels])
    weight = np.concatenate([np.ones(counts.sum()), np.full(len(support), support_weight)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=C, max_iter=1000).fit(X, y, sample_weight=weight)
    theta = np.concatenate([model.coef_, model.intercept_[:, None]], axis=1)
    return np.concatenate([-theta, theta]) / 2 if n_classes == 2 else theta
