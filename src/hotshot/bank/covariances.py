r"""Covariances of many classes, in the form that is cheapest to keep and to multiply with.

========  ==========================================  ====================================================
form      what is kept                                where
========  ==========================================  ====================================================
Dense     the matrices (K, V, V)                      few classes, or classes of many samples
Factored  the samples themselves: with F_b the        many classes of few samples; nothing beside the
          centred samples, Sigma_b = F_b' F_b /       samples is kept, and no V x V matrix is formed
          (J_b - 1)                                   for a class
Diagonal  variances along the axes (K, V)             as an approximation: of each class, or pooled
LowRank   leading axes of each class                  as an approximation, see ``hotshot.bank.low_rank``
Joined    several of these, one after the other       classes of different sizes
========  ==========================================  ====================================================

All forms have the same methods. ``mixtures`` returns dense mixtures of the covariances. For weights W of a linear
classifier, ``apply`` returns the product that the other two share: ``quadratic`` computes from it the covariances
:math:`A_k = W \Sigma_k W^\top` of the logits, and ``gradient`` the gradient :math:`2 \sum_k X_k W \Sigma_k` in W of a
function of these with symmetric derivatives X_k.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from array_api_compat import device

from hotshot.arrays import Array, indices, namespace, slices, small_identity, to_numpy
from hotshot.bank.statistics import Bucket, class_covariances, class_rows

if TYPE_CHECKING:
    from hotshot.bank.low_rank import LowRank

# Entries of the samples that are centred and weighted together.
ENTRIES_AT_ONCE = 2**24
# Up to so many entries all covariances are dense, which is fastest, whatever the size of the classes.
DENSE_ENTRIES = 2**27
# Beyond that, classes with less than this share of V samples are factored.
FACTORED_SHARE = 0.5


class Explicit:
    """Base of forms whose ``apply`` returns W Sigma_k itself (tasks, K, N, V)."""

    def quadratic(self, product: Array, W: Array) -> Array:
        """W Sigma_k W' (tasks, K, N, N)."""
        return product @ namespace(W).matrix_transpose(W)[:, None, ...]

    def gradient(self, slopes: Array, product: Array) -> Array:
        """2 sum_k X_k W Sigma_k for X (tasks, K, N, N): (tasks, N, V)."""
        xp = namespace(product)
        tasks, kept, n_classes, _ = slopes.shape
        left = xp.reshape(xp.permute_dims(slopes, (0, 2, 1, 3)), (tasks, n_classes, kept * n_classes))
        return 2 * (left @ xp.reshape(product, (tasks, kept * n_classes, product.shape[-1])))


@dataclass(frozen=True)
class Dense(Explicit):
    """Matrices (K, V, V), or (tasks, K, V, V) if each task has its own."""

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

    def apply(self, W: Array) -> Array:
        """W Sigma_k for W (tasks, N, V): (tasks, K, N, V)."""
        return W[:, None, ...] @ self.matrices


@dataclass(frozen=True)
class Diagonal(Explicit):
    """Variances along the axes (K, V), or (tasks, K, V) if each task has its own."""

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

    def apply(self, W: Array) -> Array:
        """W Sigma_k for W (tasks, N, V): (tasks, K, N, V)."""
        return W[:, None, ...] * self.variances[..., None, :]


@dataclass(frozen=True)
class Factored:
    """Covariances by the samples of K classes of similar size.

    Attributes
    ----------
    rows : array (K, J, V)
        Samples, padded to one number; padding is not used.
    lengths : array (K, J) or None
        Factor that makes each row a sample; None if rows are samples already.
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
        """Factor of the rows in scaled deviations from the mean (K, J)."""
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
        return rows - take(self.scales, classes, axis=0)[..., None] * take(self.means, classes, axis=0)[:, None, :]

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

    def apply(self, W: Array) -> Array:
        """F_k W' / sqrt(J_k - 1) (tasks, K, J, N)."""
        xp = namespace(W)
        across = xp.matrix_transpose(W)[:, None, ...]
        of_means = xp.matrix_transpose(W @ xp.matrix_transpose(self.means))[:, :, None, :]
        return self.row_scales[..., None] * (self.rows @ across) - self.scales[..., None] * of_means

    def quadratic(self, product: Array, W: Array) -> Array:
        """W Sigma_k W' (tasks, K, N, N)."""
        return namespace(W).matrix_transpose(product) @ product

    def gradient(self, slopes: Array, product: Array) -> Array:
        """2 sum_k X_k W Sigma_k for X (tasks, K, N, N): (tasks, N, V)."""
        xp = namespace(product)
        tasks, kept, size, n_classes = product.shape
        turned = slopes @ xp.matrix_transpose(product)
        of_rows = xp.permute_dims(turned * self.row_scales[:, None, :], (0, 2, 1, 3))
        through_rows = xp.reshape(of_rows, (tasks, n_classes, kept * size)) @ xp.reshape(
            self.rows, (kept * size, self.rows.shape[2])
        )
        of_means = xp.sum(turned * self.scales[:, None, :], axis=3)
        return 2 * (through_rows - xp.matrix_transpose(of_means) @ self.means)


@dataclass(frozen=True)
class Joined:
    """Covariances of several forms; those of part p belong to the classes ``classes[p]``."""

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

    def apply(self, W: Array) -> tuple[Array, ...]:
        """The products of all parts."""
        return tuple(part.apply(W) for part in self.parts)

    def quadratic(self, product: tuple[Array, ...], W: Array) -> Array:
        """W Sigma_k W' (tasks, K, N, N), in the order of the classes."""
        xp = namespace(W)
        forms = [part.quadratic(own, W) for part, own in zip(self.parts, product, strict=True)]
        back = np.argsort(np.concatenate(self.classes))
        return xp.take(xp.concat(forms, axis=1), indices(back, W), axis=1)

    def gradient(self, slopes: Array, product: tuple[Array, ...]) -> Array:
        """2 sum_k X_k W Sigma_k for X (tasks, K, N, N) in the order of the classes: (tasks, N, V)."""
        take = namespace(slopes).take
        gradients = [
            part.gradient(take(slopes, indices(classes, slopes), axis=1), own)
            for part, classes, own in zip(self.parts, self.classes, product, strict=True)
        ]
        return sum(gradients[1:], start=gradients[0])


Covariances: TypeAlias = "Dense | Diagonal | Factored | Joined | LowRank"
# Result of `apply`: an array, or one for each part.
Product = Any


@dataclass(frozen=True)
class ClassSamples:
    """Samples z (samples, V), class by class, and their statistics, to compute covariances from.

    They are in axes in which the pooled covariance is diagonal, with the variances ``spectrum`` (V,). ``counts`` and
    ``means`` are of each class; ``buckets`` are the samples as unit vectors; ``are_units`` tells whether z are units
    too.
    """

    z: np.ndarray
    counts: np.ndarray
    means: np.ndarray
    spectrum: np.ndarray
    buckets: tuple[Bucket, ...]
    are_units: bool


def dense_form(samples: ClassSamples) -> Dense:
    """A matrix for every class."""
    return Dense(class_covariances(samples.z, samples.counts))


def factored_form(samples: ClassSamples) -> Joined:
    """The samples of every class, whatever its size."""
    return _by_bucket(samples, dense_from=math.inf)


def automatic_form(samples: ClassSamples) -> Dense | Joined:
    """Dense matrices if they are fastest; in larger banks classes of few samples are factored."""
    n_classes, width = samples.means.shape
    if n_classes * width**2 <= DENSE_ENTRIES:
        return dense_form(samples)
    return _by_bucket(samples, dense_from=FACTORED_SHARE * width)


def _by_bucket(samples: ClassSamples, dense_from: float) -> Joined:
    """Factored classes, except buckets of at least ``dense_from`` samples a class and classes of one sample."""
    z, counts, spectrum = samples.z, samples.counts, samples.spectrum
    parts: list[Dense | Diagonal | Factored] = []
    classes = []
    rows = class_rows(counts)
    for bucket in samples.buckets:
        many, one = bucket.classes[counts[bucket.classes] > 1], bucket.classes[counts[bucket.classes] == 1]
        if len(one):
            parts.append(Diagonal(np.tile(spectrum, (len(one), 1))))
            classes.append(one)
        if not len(many):
            continue
        classes.append(many)
        if bucket.mass.shape[1] >= dense_from:
            own = np.concatenate([z[rows[b]] for b in many])
            parts.append(Dense(class_covariances(own, counts[many])))
            continue
        units = bucket.units if not len(one) else bucket.units[np.isin(bucket.classes, many)]
        lengths = None
        if not samples.are_units:
            lengths = np.zeros(units.shape[:2], dtype=z.dtype)
            for i, b in enumerate(many):
                lengths[i, : counts[b]] = np.linalg.norm(z[rows[b]], axis=1)
        sizes = counts[many][:, None]
        scales = (np.arange(units.shape[1]) < sizes) / np.sqrt(sizes - 1)
        parts.append(Factored(units, lengths, samples.means[many], scales.astype(z.dtype)))
    return Joined(tuple(parts), tuple(classes))


def repeat_pooled(spectrum: np.ndarray, n_classes: int) -> Diagonal:
    """The pooled covariance, diagonal in these axes, for each of so many classes."""
    return Diagonal(np.tile(spectrum, (n_classes, 1)))


@dataclass(frozen=True)
class CovarianceForm:
    """How covariances are computed from samples and, for an approximation, from exact ones and the spectrum."""

    build: Callable[[ClassSamples], Covariances]
    approximate: Callable[[Covariances, np.ndarray], Covariances] | None = None


COVARIANCE_FORMS = {
    "auto": CovarianceForm(automatic_form),
    "dense": CovarianceForm(dense_form),
    "factored": CovarianceForm(factored_form),
    "diagonal": CovarianceForm(
        lambda samples: Diagonal(factored_form(samples).variances), lambda exact, spectrum: Diagonal(exact.variances)
    ),
    "pooled": CovarianceForm(
        lambda samples: repeat_pooled(samples.spectrum, len(samples.means)),
        lambda exact, spectrum: repeat_pooled(spectrum, exact.count),
    ),
}
