"""A plain implementation of H-OT from its paper: the reference for hotshot's speed.

Tasks, base classes and support samples are processed one after another, with NumPy and scikit-learn; equation numbers
are those of the paper. Statistics of the base classes are computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

POWER, POWER_OFFSET = 0.5, 1e-6
EPSILON, MAX_ITERATIONS, TOLERANCE = 0.01, 200, 1e-6
ALPHA, BASE_SHARE = 0.21, 0.7
GENERATED = 750

Solver = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class BaseStatistics:
    """Samples (J, V) of each base class with their norms (J,), means (B, V) and covariances (B, V, V), eq. 2."""

    samples: list[np.ndarray]
    norms: list[np.ndarray]
    means: np.ndarray
    covariances: np.ndarray


def base_statistics(X: np.ndarray, counts: np.ndarray) -> BaseStatistics:
    """Statistics of base samples (sum(counts), V), sorted by class."""
    samples = np.split(X, np.cumsum(counts)[:-1])
    return BaseStatistics(
        samples=samples,
        norms=[np.linalg.norm(x, axis=1) for x in samples],
        means=np.stack([x.mean(axis=0, dtype=np.float64) for x in samples]),
        covariances=np.stack([np.cov(x, rowvar=False) for x in samples]),
    )


def sinkhorn(cost: np.ndarray) -> np.ndarray:
    """Plan of the entropic transport with uniform marginals under a (rows, columns) cost, in the log domain."""
    rows, columns = cost.shape
    scaled = -cost / EPSILON
    u, v = np.zeros(rows), np.zeros(columns)
    for _ in range(MAX_ITERATIONS):
        log_rows = logsumexp(scaled + v, axis=1)
        # Column sums are exact after every iteration, so the error is that of the rows.
        if np.abs(np.exp(u + log_rows) - 1 / rows).sum() < TOLERANCE:
            break
        u = -np.log(rows) - log_rows
        v = -np.log(columns) - logsumexp(scaled + u[:, None], axis=0)
    return np.exp(scaled + u[:, None] + v)


def arranged_sinkhorn(cost: np.ndarray) -> np.ndarray:
    """The same plan, faster in NumPy: the long axis last, and a minimal log-sum-exp."""
    scaled = np.ascontiguousarray(-cost.T / EPSILON)
    columns, rows = scaled.shape
    u, v = np.zeros(rows), np.zeros(columns)
    for _ in range(MAX_ITERATIONS):
        log_rows = _log_sum_exp(scaled + v[:, None], axis=0)
        if np.abs(np.exp(u + log_rows) - 1 / rows).sum() < TOLERANCE:
            break
        u = -np.log(rows) - log_rows
        v = -np.log(columns) - _log_sum_exp(scaled + u, axis=1)
    return np.exp(scaled + u + v[:, None]).T


def _log_sum_exp(x: np.ndarray, axis: int) -> np.ndarray:
    peak = x.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - peak).sum(axis=axis)) + np.squeeze(peak, axis)


def transfer_weights(base: BaseStatistics, support: np.ndarray, solver: Solver) -> np.ndarray:
    """Weights (S, B), rows summing to 1: low-level transports (eq. 8), learned cost (eq. 9), high level (eq. 6)."""
    lengths = np.linalg.norm(support, axis=1)
    learned_cost = np.empty((len(base.samples), len(support)))
    for b, (samples, norms) in enumerate(zip(base.samples, base.norms, strict=True)):
        distance = 1 - (samples @ support.T) / (norms[:, None] * lengths)
        # In double precision: in single, potentials of the size of 1 / epsilon are not accurate to 1e-6.
        distance = distance.astype(np.float64)
        learned_cost[b] = (distance * solver(distance)).sum(axis=0)
    return len(support) * solver(learned_cost).T


def hierarchical_transport(
    base: BaseStatistics, X: np.ndarray, y: np.ndarray, queries: np.ndarray, rng: np.random.Generator, solver: Solver
) -> np.ndarray:
    """Predicted labels of the queries by H-OT, eqs. 6 to 12, with means mixed as in the authors' program."""
    support = (X + POWER_OFFSET) ** POWER
    generated = []
    n_generated = GENERATED // (len(y) // len(np.unique(y)))
    for w, x in zip(transfer_weights(base, support, solver), support, strict=True):
        mean = BASE_SHARE * (w @ base.means) + (1 - BASE_SHARE) * x
        covariance = np.tensordot(w, base.covariances, axes=1) + ALPHA
        generated.append(rng.multivariate_normal(mean, covariance, size=n_generated))
    features = np.concatenate([*generated, support])
    labels = np.concatenate([np.repeat(y, n_generated), y])
    model = LogisticRegression(max_iter=1000).fit(features, labels)
    return model.predict((queries + POWER_OFFSET) ** POWER)
