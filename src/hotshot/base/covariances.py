r"""Covariances of many classes, in the form that is cheapest to keep and to multiply with.

========  ==========================================  ====================================================
form      what is kept                                where
========  ==========================================  ====================================================
Dense     the matrices (K, V, V)                      few classes, or classes of many samples
Factored  the samples themselves: with F_b the        many classes of few samples; nothing beside the
          centred samples, Sigma_b = F_b' F_b /       samples is kept, and no V x V matrix is formed
          (J_b - 1)                                   for a class
Diagonal  variances along the axes (K, V)             as an approximation: of each class, or pooled
Joined    several of these, one after the other       classes of different sizes
========  ==========================================  ====================================================

All forms answer the same questions. `mixtures` makes dense mixtures of the covariances; for weights W of a linear
classifier `lend` gives what `spread`, the covariances :math:`A_k = W \Sigma_k W^\top` of its logits, and `pull`, the
gradient :math:`2 \sum_k X_k W \Sigma_k` of a function of them with symmetric derivatives X_k, have in common.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import device

from hotshot.arrays import Array, indices, namespace, slices, small_identity, to_numpy

# Entries of the samples that are centred and weighed together.
ENTRIES_AT_ONCE = 2**24


@dataclass(frozen=True)
class Dense:
    """Matrices (K, V, V), or (tasks, K, V, V) where each task has its own."""

    matrices: Array

    @property
    def count(self) -> int:
        """Number of covariances, K."""
        return int(self.matrices.shape[-3])

    @property
    def size(self) -> int:
        """Entries that are kept."""
        return int(math.prod(self.matrices.shape))

    @property
    def variances(self) -> Array:
        """Diagonals of the covariances (K, V)."""
        xp = namespace(self.matrices)
        return xp.sum(self.matrices * small_identity(self.matrices.shape[-1], self.matrices), axis=-1)

    def mixtures(self, weights: Array) -> Array:
        """sum_k w_k Sigma_k for weights (rows, K): (rows, V, V)."""
        xp = namespace(weights)
        width = self.matrices.shape[-1]
        flat = xp.reshape(self.matrices, (self.count, width * width))
        return xp.reshape(weights @ flat, (weights.shape[0], width, width))

    def lend(self, W: Array) -> Array:
        """W Sigma_k for W (tasks, N, V): (tasks, K, N, V)."""
        return W[:, None, ...] @ self.matrices

    def spread(self, lent: Array, W: Array) -> Array:
        """W Sigma_k W' (tasks, K, N, N)."""
        return _spread(lent, W)

    def pull(self, gradient: Array, lent: Array) -> Array:
        """2 sum_k X_k W Sigma_k for X (tasks, K, N, N): (tasks, N, V)."""
        return _pull(gradient, lent)


@dataclass(frozen=True)
class Diagonal:
    """Variances along the axes (K, V), or (tasks, K, V) where each task has its own."""

    variances: Array

    @property
    def count(self) -> int:
        """Number of covariances, K."""
        return int(self.variances.shape[-2])

    @property
    def size(self) -> int:
        """Entries that are kept."""
        return int(math.prod(self.variances.shape))

    def mixtures(self, weights: Array) -> Array:
        """sum_k w_k Sigma_k for weights (rows, K), dense: (rows, V, V)."""
        mixed = weights @ self.variances
        return mixed[..., None] * small_identity(mixed.shape[-1], mixed)

    def lend(self, W: Array) -> Array:
        """W Sigma_k for W (tasks, N, V): (tasks, K, N, V)."""
        return W[:, None, ...] * self.variances[..., None, :]

    def spread(self, lent: Array, W: Array) -> Array:
        """W Sigma_k W' (tasks, K, N, N)."""
        return _spread(lent, W)

    def pull(self, gradient: Array, lent: Array) -> Array:
        """2 sum_k X_k W Sigma_k for X (tasks, K, N, N): (tasks, N, V)."""
        return _pull(gradient, lent)


@dataclass(frozen=True)
class Factored:
    """Covariances by the samples of K classes of similar size.

    Attributes
    ----------
    rows : array (K, J, V)
        Samples, padded to one number; padding is not used.
    lengths : array (K, J) or None
        What each row must be multiplied with to be a sample; None where it is one already.
    means : array (K, V)
        Their means.
    scales : array (K, J)
        1 / sqrt(J_b - 1) for samples, 0 for padding.
    """

    rows: Array
    lengths: Array | None
    means: Array
    scales: Array

    @property
    def count(self) -> int:
        """Number of covariances, K."""
        return int(self.rows.shape[0])

    @property
    def row_scales(self) -> Array:
        """What rows are multiplied with when deviations from the mean are scaled (K, J)."""
        return self.scales if self.lengths is None else self.scales * self.lengths

    @property
    def variances(self) -> Array:
        """Diagonals of the covariances (K, V)."""
        xp = namespace(self.means)
        _, size, width = self.rows.shape
        sums = []
        for some in slices(self.count, max(1, ENTRIES_AT_ONCE // (size * width))):
            factors = self.factors(indices(np.arange(self.count)[some], self.means))
            sums.append(xp.sum(factors * factors, axis=1, dtype=xp.float64))
        return xp.astype(xp.concat(sums, axis=0), self.means.dtype)

    def factors(self, classes: Array) -> Array:
        """F_b / sqrt(J_b - 1) of some of the classes, (classes, J, V)."""
        take = namespace(classes, self.means).take
        rows = take(self.rows, classes, axis=0) * take(self.row_scales, classes, axis=0)[..., None]
        means = take(self.means, classes, axis=0)[:, None, :]
        return rows - take(self.scales, classes, axis=0)[..., None] * means

    @property
    def size(self) -> int:
        """Entries that are kept."""
        return int(math.prod(self.rows.shape))

    def mixtures(self, weights: Array) -> Array:
        """sum_k w_k Sigma_k for weights (rows, K), from the samples of the classes that lend: (rows, V, V)."""
        xp = namespace(weights, self.means)
        _, size, width = self.rows.shape
        lending = to_numpy(weights) > 0
        at_once = max(1, ENTRIES_AT_ONCE // (size * width))
        mixed = []
        for row in range(weights.shape[0]):
            total = xp.zeros((width, width), dtype=self.means.dtype, device=device(self.means))
            members = np.flatnonzero(lending[row])
            for some in slices(len(members), at_once):
                classes = indices(members[some], self.means)
                share = xp.sqrt(xp.take(weights[row, :], classes))
                factor = xp.reshape(self.factors(classes) * share[:, None, None], (-1, width))
                total = total + xp.matrix_transpose(factor) @ factor
            mixed.append(total)
        return xp.stack(mixed)

    def lend(self, W: Array) -> Array:
        """F_k W' / sqrt(J_k - 1) (tasks, K, J, N)."""
        xp = namespace(W)
        across = xp.matrix_transpose(W)[:, None, ...]
        of_means = xp.matrix_transpose(W @ xp.matrix_transpose(self.means))[:, :, None, :]
        lent = self.rows @ across
        return self.row_scales[..., None] * lent - self.scales[..., None] * of_means

    def spread(self, lent: Array, W: Array) -> Array:
        """W Sigma_k W' (tasks, K, N, N)."""
        return namespace(W).matrix_transpose(lent) @ lent

    def pull(self, gradient: Array, lent: Array) -> Array:
        """2 sum_k X_k W Sigma_k for X (tasks, K, N, N): (tasks, N, V)."""
        xp = namespace(lent)
        tasks, kept, size, n_classes = lent.shape
        turned = gradient @ xp.matrix_transpose(lent)
        of_rows = xp.permute_dims(turned * self.row_scales[:, None, :], (0, 2, 1, 3))
        through_rows = xp.reshape(of_rows, (tasks, n_classes, kept * size)) @ xp.reshape(
            self.rows, (kept * size, self.rows.shape[2])
        )
        of_means = xp.sum(turned * self.scales[:, None, :], axis=3)
        return 2 * (through_rows - xp.matrix_transpose(of_means) @ self.means)


@dataclass(frozen=True)
class Joined:
    """Covariances of several forms; those of part p stand for the classes `classes[p]`."""

    parts: tuple[Covariances, ...]
    classes: tuple[np.ndarray, ...]

    @property
    def count(self) -> int:
        """Number of covariances, K."""
        return sum(part.count for part in self.parts)

    @property
    def size(self) -> int:
        """Entries that are kept."""
        return sum(part.size for part in self.parts)

    @property
    def variances(self) -> Array:
        """Diagonals of the covariances (K, V), in the order of the classes."""
        own = [part.variances for part in self.parts]
        xp = namespace(own[0])
        back = np.argsort(np.concatenate(self.classes))
        return xp.take(xp.concat(own, axis=0), indices(back, own[0]), axis=0)

    def mixtures(self, weights: Array) -> Array:
        """sum_k w_k Sigma_k for weights (rows, K) in the order of the classes: (rows, V, V)."""
        take = namespace(weights).take
        mixed = [
            part.mixtures(take(weights, indices(classes, weights), axis=1))
            for part, classes in zip(self.parts, self.classes, strict=True)
        ]
        return sum(mixed[1:], start=mixed[0])

    def lend(self, W: Array) -> tuple[Array, ...]:
        """What each part lends."""
        return tuple(part.lend(W) for part in self.parts)

    def spread(self, lent: tuple[Array, ...], W: Array) -> Array:
        """W Sigma_k W' (tasks, K, N, N), in the order of the classes."""
        xp = namespace(W)
        spreads = [part.spread(own, W) for part, own in zip(self.parts, lent, strict=True)]
        back = np.argsort(np.concatenate(self.classes))
        return xp.take(xp.concat(spreads, axis=1), indices(back, W), axis=1)

    def pull(self, gradient: Array, lent: tuple[Array, ...]) -> Array:
        """2 sum_k X_k W Sigma_k for X (tasks, K, N, N) in the order of the classes: (tasks, N, V)."""
        take = namespace(gradient).take
        pulled = [
            part.pull(take(gradient, indices(classes, gradient), axis=1), own)
            for part, classes, own in zip(self.parts, self.classes, lent, strict=True)
        ]
        return sum(pulled[1:], start=pulled[0])


def _spread(lent: Array, W: Array) -> Array:
    return lent @ namespace(W).matrix_transpose(W)[:, None, ...]


def _pull(gradient: Array, lent: Array) -> Array:
    xp = namespace(lent)
    tasks, kept, n_classes, _ = gradient.shape
    left = xp.reshape(xp.permute_dims(gradient, (0, 2, 1, 3)), (tasks, n_classes, kept * n_classes))
    return 2 * (left @ xp.reshape(lent, (tasks, kept * n_classes, lent.shape[-1])))


Covariances = Dense | Diagonal | Factored | Joined
# What a form lends: an array, or one for each part.
Lent = Any
