r"""Means and covariances of classes (eq. 2), and the forms in which the covariances of many classes are cheap.

``Dense`` keeps a matrix for each class; ``Factored`` keeps :math:`\Sigma_k = F_k^\top F_k + \mathrm{diag}(d_k)`, where
the rows of F_k are the centred samples of the class (which the bank has anyway), or its leading axes, or none.
``Joined`` has parts of both, for classes of different sizes.

All have the same methods. ``mixtures`` returns dense mixtures of the covariances. For weights W of a linear classifier,
``quadratic`` returns the covariances :math:`A_k = W \Sigma_k W^\top` of the logits, and a function that computes the
gradient :math:`2 \sum_k X_k W \Sigma_k` in W of a function of these with symmetric derivatives X_k. Shapes: weights
(rows, K), W (tasks, N, V), A and X (tasks, K, N, N).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hotshot.arrays import slices

# Samples whose products are summed together, and entries of the samples that are centred and weighted together.
ROWS_IN_PRODUCT, ENTRIES_AT_ONCE = 2**13, 2**24
# Classes share a padded batch if the smallest has at least this share of the samples of the largest.
SMALLEST_SHARE_OF_BUCKET = 0.5
# Up to so many entries all covariances are dense, which is fastest, whatever the size of the classes.
DENSE_ENTRIES = 2**27
# Beyond that, classes with less than this share of V samples are factored.
FACTORED_SHARE = 0.5
LOW_RANK = "low-rank"
Gradient: TypeAlias = Callable[[np.ndarray], np.ndarray]
# Leading axes of each class in the low-rank form. On banking77 8 lose as little as 24, and 10,000 classes of 768
# features take less than 200 MB.
RANK = 8


# --- eq. 2, summed in float64


def class_means(x: np.ndarray, counts: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    r""":math:`\mu_b = \sum_j p_j x_j` with :math:`p_j = 1/J_b` unless given (eq. 2), summed in float64: (B, V)."""
    means = np.empty((len(counts), x.shape[1]), dtype=x.dtype)
    for b, rows in enumerate(class_rows(counts)):
        group = x[rows].astype(np.float64)
        means[b] = group.mean(axis=0) if weights is None else weights[rows].astype(np.float64) @ group
    return means


def class_covariances(x: np.ndarray, counts: np.ndarray) -> np.ndarray:
    r""":math:`\Sigma_b = \sum_j (x_j - \mu_b)(x_j - \mu_b)^\top / (J_b - 1)` (eq. 2), summed in float64: (B, V, V).

    A class of one sample gets the pooled covariance.
    """
    width = x.shape[1]
    covariances = np.empty((len(counts), width, width), dtype=x.dtype)
    for b, rows in enumerate(class_rows(counts)):
        covariances[b] = _scatter(x[rows]) / max(counts[b] - 1, 1)
    if (counts == 1).any():
        covariances[counts == 1] = pooled_covariance(x, counts)
    return covariances


def pooled_covariance(x: np.ndarray, counts: np.ndarray) -> np.ndarray:
    r""":math:`\sum_b (J_b - 1) \Sigma_b / \sum_b (J_b - 1)`: covariance within classes (V, V).

    If no class has two samples, it is the covariance of all samples together.
    """
    freedom = int((counts - 1).sum())
    if freedom == 0:
        return _scatter(x) / max(len(x) - 1, 1)
    total = np.zeros((x.shape[1], x.shape[1]))
    # Many classes in one product: class by class it takes several times as long.
    ends = np.cumsum(counts)
    cuts = np.searchsorted(ends, np.arange(0, len(x), ROWS_IN_PRODUCT))
    for some in np.split(np.arange(len(counts)), np.unique(cuts[1:])):
        if not len(some):
            continue
        first = ends[some[0]] - counts[some[0]]
        group = x[first : ends[some[-1]]].astype(np.float64)
        means = np.add.reduceat(group, np.cumsum(counts[some]) - counts[some], axis=0) / counts[some][:, None]
        group -= np.repeat(means, counts[some], axis=0)
        total += group.T @ group
    return total / freedom


def class_rows(counts: np.ndarray) -> list[slice]:
    """Slice of the samples of each class."""
    return [slice(end - count, end) for end, count in zip(np.cumsum(counts), counts, strict=True)]


def _scatter(group: np.ndarray) -> np.ndarray:
    """Sum of products of deviations from the mean (V, V), in float64."""
    centred = group - group.mean(axis=0, dtype=np.float64)
    return np.asarray(centred.T @ centred)


@dataclass(frozen=True)
class Bucket:
    """Base classes of similar size, padded with samples of no mass to one size J.

    ``classes`` (b,) are their indices in the bank, ``units`` (b, J, V) their samples as unit vectors, ``mass``
    (b, J) the sample weights, which sum to 1 for each class.
    """

    classes: np.ndarray
    units: np.ndarray
    mass: np.ndarray


def make_buckets(units: np.ndarray, weights: np.ndarray, counts: np.ndarray) -> tuple[Bucket, ...]:
    """Classes grouped by size and padded with zero mass, the largest first."""
    size = counts.max()
    if (counts == size).all():
        shape = (len(counts), size)
        return (Bucket(np.arange(len(counts)), units.reshape(*shape, -1), weights.reshape(shape)),)
    rows, order, buckets = class_rows(counts), np.argsort(-counts, kind="stable"), []
    while len(order):
        size = counts[order[0]]
        is_large = counts[order] >= SMALLEST_SHARE_OF_BUCKET * size
        members, order = np.sort(order[is_large]), order[~is_large]
        padded = np.zeros((len(members), size, units.shape[1]), dtype=units.dtype)
        mass = np.zeros((len(members), size), dtype=units.dtype)
        for i, b in enumerate(members):
            padded[i, : counts[b]] = units[rows[b]]
            mass[i, : counts[b]] = weights[rows[b]]
        buckets.append(Bucket(members, padded, mass))
    return tuple(buckets)


# --- forms


@dataclass(frozen=True)
class Dense:
    """Matrices (K, V, V), or (tasks, K, V, V) if each task has its own."""

    matrices: np.ndarray

    @property
    def size(self) -> int:
        """Entries in memory."""
        return self.matrices.size

    @property
    def variances(self) -> np.ndarray:
        """Diagonals of the covariances (K, V)."""
        return np.diagonal(self.matrices, axis1=-2, axis2=-1).copy()

    def mixtures(self, weights: np.ndarray) -> np.ndarray:
        """sum_k w_k Sigma_k (rows, V, V)."""
        *_, count, width, _ = self.matrices.shape
        mixed = weights @ self.matrices.reshape(count, width * width)
        return np.asarray(mixed.reshape(-1, width, width))

    def quadratic(self, W: np.ndarray) -> tuple[np.ndarray, Gradient]:
        """W Sigma_k W' (tasks, K, N, N), and 2 sum_k X_k W Sigma_k (tasks, N, V) as a function of X."""
        product = W[:, None] @ self.matrices
        return product @ W.swapaxes(1, 2)[:, None], lambda slopes: 2 * _sum_of_products(slopes, product)


@dataclass(frozen=True)
class Factored:
    """Covariances F_k' F_k + diag(d_k) of K classes, where row j of F_k is scales_kj (lengths_kj rows_kj - means_k).

    ``rows`` (K, J, V) are samples of classes of similar size, padded to one number, or unit vectors, in half precision
    at least; ``lengths`` (K, J) make each row a sample, None is 1; ``means`` (K, V) are of the samples, None is 0;
    ``scales`` (K, J) are 1 / sqrt(J_b - 1) for samples and 0 for padding; ``diagonal`` (K, V) are d_k, None is 0, and
    (tasks, K, V) is possible where there are no rows.
    """

    rows: np.ndarray
    lengths: np.ndarray | None
    means: np.ndarray | None
    scales: np.ndarray
    diagonal: np.ndarray | None = None

    @property
    def is_diagonal(self) -> bool:
        """Whether there are no factors F_k."""
        return not self.rows.shape[1]

    @property
    def size(self) -> int:
        """Entries in memory."""
        return self.rows.size + (0 if self.diagonal is None else self.diagonal.size)

    @property
    def variances(self) -> np.ndarray:
        """Diagonals of the covariances (K, V)."""
        if self.is_diagonal and self.diagonal is not None:
            return np.asarray(self.diagonal)
        sums = [np.sum(self.factors(some) ** 2, axis=1, dtype=np.float64) for some in self._blocks(len(self.rows))]
        variances = np.concatenate(sums).astype(self.scales.dtype)
        return np.asarray(variances if self.diagonal is None else variances + self.diagonal)

    @property
    def _row_scales(self) -> np.ndarray:
        """Factor of the rows in F (K, J)."""
        return self.scales if self.lengths is None else self.scales * self.lengths

    def _blocks(self, count: int) -> list[slice]:
        """Slices of so many classes, of which the factors are in memory together."""
        return slices(count, max(1, ENTRIES_AT_ONCE // max(1, self.rows[0].size)))

    def factors(self, classes: np.ndarray | slice) -> np.ndarray:
        """F_k of some of the classes (classes, J, V)."""
        factors = self.rows[classes] * self._row_scales[classes][..., None]
        if self.means is not None:
            factors = factors - self.scales[classes][..., None] * self.means[classes, None]
        return np.asarray(factors)

    def mixtures(self, weights: np.ndarray) -> np.ndarray:
        """sum_k w_k Sigma_k (rows, V, V), from the classes of positive weight."""
        width = self.rows.shape[2]
        mixed = np.zeros((len(weights), width, width), dtype=np.result_type(weights, self.scales))
        for row, total in zip(weights, mixed, strict=True):
            if self.diagonal is not None:
                np.fill_diagonal(total, row @ self.diagonal)
            members = np.flatnonzero(row > 0)
            for some in () if self.is_diagonal else self._blocks(len(members)):
                classes = members[some]
                factor = (self.factors(classes) * np.sqrt(row[classes])[:, None, None]).reshape(-1, width)
                total += factor.T @ factor
        return mixed

    def quadratic(self, W: np.ndarray) -> tuple[np.ndarray, Gradient]:
        """W Sigma_k W' (tasks, K, N, N), and 2 sum_k X_k W Sigma_k (tasks, N, V) as a function of X."""
        rows = self.rows.astype(W.dtype, copy=False)
        # F_k W' (tasks, K, J, N), and W diag(d_k) (tasks, K, N, V).
        of_rows = self._row_scales[..., None] * (rows @ W.swapaxes(1, 2)[:, None])
        if self.means is not None:
            of_rows -= self.scales[..., None] * (W @ self.means.T).swapaxes(1, 2)[:, :, None]
        of_diagonal = None if self.diagonal is None else W[:, None] * self.diagonal[..., None, :]
        forms = of_rows.swapaxes(2, 3) @ of_rows
        if of_diagonal is not None:
            forms = forms + of_diagonal @ W.swapaxes(1, 2)[:, None]

        def gradient(slopes: np.ndarray) -> np.ndarray:
            turned = slopes @ of_rows.swapaxes(2, 3)
            along = (turned * self._row_scales[:, None]).swapaxes(1, 2).reshape(*slopes.shape[::3], -1)
            total = along @ rows.reshape(-1, rows.shape[2])
            if self.means is not None:
                total -= np.sum(turned * self.scales[:, None], axis=3).swapaxes(1, 2) @ self.means
            if of_diagonal is not None:
                total += _sum_of_products(slopes, of_diagonal)
            return np.asarray(2 * total)

        return forms, gradient


@dataclass(frozen=True)
class Joined:
    """Covariances of several forms; those of part p belong to the classes ``classes[p]``."""

    parts: tuple[Dense | Factored | Joined, ...]
    classes: tuple[np.ndarray, ...]

    @property
    def size(self) -> int:
        """Entries in memory."""
        return sum(part.size for part in self.parts)

    @property
    def variances(self) -> np.ndarray:
        """Diagonals of the covariances (K, V)."""
        return self._in_order([part.variances for part in self.parts], axis=0)

    def _in_order(self, of_parts: list[np.ndarray], axis: int) -> np.ndarray:
        return np.take(np.concatenate(of_parts, axis=axis), np.argsort(np.concatenate(self.classes)), axis=axis)

    def mixtures(self, weights: np.ndarray) -> np.ndarray:
        """sum_k w_k Sigma_k (rows, V, V)."""
        parts = zip(self.parts, self.classes, strict=True)
        return np.asarray(sum(part.mixtures(weights[:, classes]) for part, classes in parts))

    def quadratic(self, W: np.ndarray) -> tuple[np.ndarray, Gradient]:
        """W Sigma_k W' (tasks, K, N, N), and 2 sum_k X_k W Sigma_k (tasks, N, V) as a function of X."""
        forms, gradients = zip(*(part.quadratic(W) for part in self.parts), strict=True)

        def gradient(slopes: np.ndarray) -> np.ndarray:
            parts = zip(gradients, self.classes, strict=True)
            return np.asarray(sum(of_part(slopes[:, classes]) for of_part, classes in parts))

        return self._in_order(list(forms), axis=1), gradient


Covariances: TypeAlias = Dense | Factored | Joined


def _sum_of_products(slopes: np.ndarray, product: np.ndarray) -> np.ndarray:
    """sum_k X_k P_k (tasks, N, V) for P (tasks, K, N, V)."""
    tasks, count, n_classes, width = product.shape
    left = slopes.swapaxes(1, 2).reshape(tasks, n_classes, count * n_classes)
    return np.asarray(left @ product.reshape(tasks, count * n_classes, width))


def diagonal(variances: np.ndarray) -> Factored:
    """Diagonal covariances of variances (K, V), or (tasks, K, V) if each task has its own."""
    *_, count, width = variances.shape
    no_rows = np.zeros((count, 0, width), dtype=variances.dtype)
    return Factored(no_rows, None, None, no_rows[..., 0], variances)


def low_rank(rows: np.ndarray, leading: np.ndarray, rest: np.ndarray) -> Factored:
    """R_k' diag(leading) R_k + diag(rest), for unit vectors R (K, r, V), their variances (K, r) and rest (K, V)."""
    with np.errstate(invalid="ignore"):
        return Factored(rows, None, None, np.sqrt(leading), rest)


# --- from samples


@dataclass(frozen=True)
class ClassSamples:
    """Samples z (samples, V), class by class, in axes in which the pooled covariance is diagonal.

    ``counts`` and ``means`` are of each class, ``spectrum`` (V,) is the pooled covariance; ``buckets`` are the samples
    as unit vectors, and ``are_units`` tells whether z are units too.
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


def automatic_form(samples: ClassSamples) -> Dense | Joined:
    """Dense matrices if they are fastest; in larger banks classes of few samples are factored."""
    n_classes, width = samples.means.shape
    is_small = n_classes * width**2 <= DENSE_ENTRIES
    return dense_form(samples) if is_small else factored_form(samples, dense_from=FACTORED_SHARE * width)


def pooled_form(samples: ClassSamples, n_classes: int | None = None) -> Factored:
    """The variances of the pooled covariance for every class, or for so many."""
    return diagonal(np.tile(samples.spectrum, (n_classes or len(samples.means), 1)))


def factored_form(samples: ClassSamples, dense_from: float = np.inf) -> Joined:
    """The samples of every class, but pooled variances for classes of one, and matrices from ``dense_from`` samples."""
    z, counts, rows = samples.z, samples.counts, class_rows(samples.counts)
    parts: list[Dense | Factored] = []
    classes: list[np.ndarray] = []
    if (counts == 1).any():
        classes.append(np.flatnonzero(counts == 1))
        parts.append(pooled_form(samples, len(classes[0])))
    for bucket in samples.buckets:
        is_many = counts[bucket.classes] > 1
        many = bucket.classes[is_many]
        if not len(many):
            continue
        classes.append(many)
        if bucket.mass.shape[1] >= dense_from:
            parts.append(Dense(class_covariances(np.concatenate([z[rows[b]] for b in many]), counts[many])))
            continue
        units = bucket.units if is_many.all() else bucket.units[is_many]
        lengths = None
        if not samples.are_units:
            lengths = np.zeros(units.shape[:2], dtype=z.dtype)
            for of_class, b in zip(lengths, many, strict=True):
                of_class[: counts[b]] = np.linalg.norm(z[rows[b]], axis=1)
        sizes = counts[many][:, None]
        scales = (np.arange(units.shape[1]) < sizes) / np.sqrt(sizes - 1)
        parts.append(Factored(units, lengths, samples.means[many], scales.astype(z.dtype)))
    return Joined(tuple(parts), tuple(classes))


def low_rank_form(samples: ClassSamples) -> Factored:
    """The leading axes of each class, and the variances of the rest along the axes of the space."""
    exact = factored_form(samples)
    variances = exact.variances
    count, width = variances.shape
    rank = min(RANK, width)
    # Half precision is more than directions need.
    rows, leading = np.zeros((count, rank, width), dtype=np.float16), np.zeros((count, rank), dtype=variances.dtype)
    for part, classes in zip(exact.parts, exact.classes, strict=True):
        assert isinstance(part, Factored)
        # A class of one sample has no leading axes.
        for k, b in () if part.is_diagonal else enumerate(classes):
            factor = part.factors(np.array([k]))[0].astype(np.float64)
            # As many rows as features have the same covariance.
            factor = np.asarray(np.linalg.qr(factor, mode="r")) if len(factor) > width else factor
            spread, mixing = np.linalg.eigh(factor @ factor.T)
            largest = np.flatnonzero(spread > spread[-1] * np.finfo(np.float32).eps)[-rank:]
            rows[b, : len(largest)] = mixing[:, largest].T @ factor / np.sqrt(spread[largest])[:, None]
            leading[b, : len(largest)] = spread[largest]
    along = low_rank(rows.astype(variances.dtype), leading, np.zeros_like(variances)).variances
    return low_rank(rows, leading, np.maximum(variances - along, 0))


COVARIANCE_FORMS: dict[str, Callable[[ClassSamples], Covariances]] = {
    "auto": automatic_form,
    "dense": dense_form,
    "factored": factored_form,
    "diagonal": lambda samples: diagonal(factored_form(samples).variances),
    "pooled": pooled_form,
    LOW_RANK: low_rank_form,
}
