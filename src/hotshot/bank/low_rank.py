"""Covariances by their leading axes: an approximation for banks that are small without their samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hotshot.arrays import Array, indices, namespace, small_identity, to_numpy
from hotshot.bank.covariances import (
    COVARIANCE_FORMS,
    CovarianceForm,
    Covariances,
    Dense,
    Diagonal,
    Explicit,
    Factored,
    Joined,
    factored_form,
)

LOW_RANK = "low-rank"
# Leading axes of each class. On banking77 8 lose as little as 24, and 10,000 classes of 768 features take less than
# 200 MB.
RANK = 8


@dataclass(frozen=True)
class LowRank(Explicit):
    """Covariances R_k' diag(leading) R_k + diag(rest) of K classes.

    Attributes
    ----------
    rows : array (K, r, V)
        Unit vectors R_k, in half precision: more than directions need.
    leading : array (K, r)
        Variances along them.
    rest : array (K, V)
        Remaining variances along the axes of the space.
    """

    rows: Array
    leading: Array
    rest: Array

    @property
    def count(self) -> int:
        """Number of covariances, K."""
        return int(self.rows.shape[0])

    @property
    def size(self) -> int:
        """Entries that are kept."""
        return int(math.prod(self.rows.shape) + math.prod(self.rest.shape))

    @property
    def variances(self) -> Array:
        """Diagonals of the covariances (K, V)."""
        xp = namespace(self.rest)
        rows = xp.astype(self.rows, self.rest.dtype)
        return self.rest + xp.sum(self.leading[..., None] * rows * rows, axis=1)

    def mixtures(self, weights: Array) -> Array:
        """sum_k w_k Sigma_k for weights (rows, K), from the classes that lend: (rows, V, V)."""
        xp = namespace(weights, self.rest)
        width = self.rest.shape[1]
        mixed = []
        for row, lends in enumerate(to_numpy(weights) > 0):
            classes = indices(np.flatnonzero(lends), self.rest)
            rows = xp.astype(xp.take(self.rows, classes, axis=0), self.rest.dtype)
            scales = xp.take(self.leading, classes, axis=0) * xp.take(weights[row, :], classes)[:, None]
            factor = xp.reshape(rows * xp.sqrt(scales)[..., None], (-1, width))
            mixed.append(xp.matrix_transpose(factor) @ factor)
        return xp.stack(mixed) + (weights @ self.rest)[..., None] * small_identity(width, self.rest)

    def apply(self, W: Array) -> Array:
        """W Sigma_k for W (tasks, N, V): (tasks, K, N, V)."""
        xp = namespace(W)
        rows, across = xp.astype(self.rows, W.dtype), W[:, None, ...]
        along = (across @ xp.matrix_transpose(rows)) * self.leading[:, None, :]
        return along @ rows + across * self.rest[:, None, :]


def low_rank(exact: Covariances) -> LowRank:
    """The leading axes of exact covariances, and the remaining variances."""
    variances = exact.variances
    count, width = variances.shape
    rank = min(RANK, width)
    rows = np.zeros((count, rank, width), dtype=np.float16)
    leading = np.zeros((count, rank), dtype=variances.dtype)
    joined = exact if isinstance(exact, Joined) else Joined((exact,), (np.arange(count),))
    for part, classes in zip(joined.parts, joined.classes, strict=True):
        # A diagonal covariance, such as that of a class of one sample, has no leading axes here.
        for k, b in () if isinstance(part, Diagonal) else enumerate(classes):
            axes, spread = _leading_axes(part, k, rank)
            rows[b, : len(axes)], leading[b, : len(axes)] = axes, spread
    rest = variances - LowRank(rows, leading, np.zeros_like(variances)).variances
    return LowRank(rows, leading, np.maximum(rest, 0))


def _leading_axes(part: Covariances, k: int, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors (r, V) along which covariance k varies most, and its variances along them (r,)."""
    if isinstance(part, Factored):
        # From the products of the samples, which are fewer than the features.
        factor = part.factors(np.array([k]))[0].astype(np.float64)
        variances, mixing = np.linalg.eigh(factor @ factor.T)
        kept = np.flatnonzero(variances > variances[-1] * np.finfo(np.float32).eps)[-rank:]
        return mixing[:, kept].T @ factor / np.sqrt(variances[kept])[:, None], variances[kept]
    assert isinstance(part, Dense)
    variances, axes = np.linalg.eigh(part.matrices[k].astype(np.float64))
    return axes[:, -rank:].T, np.maximum(variances[-rank:], 0)


COVARIANCE_FORMS[LOW_RANK] = CovarianceForm(
    lambda samples: low_rank(factored_form(samples)), lambda exact, spectrum: low_rank(exact)
)
