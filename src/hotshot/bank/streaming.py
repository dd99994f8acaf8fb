"""Statistics of classes, eq. 2, from one pass over batches: only the result needs to fit in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hotshot.arrays import check_features, unit_vectors
from hotshot.bank.space import FeatureTransform
from hotshot.errors import InputError, ParameterError
from hotshot.labels import check_labels

FORMS = ("dense", "diagonal", "pooled")


class ClassStatistics:
    r"""Counts, means and covariances of classes, gathered batch by batch in float64.

    Features are read once and not kept. Partial results, of parts of a stream or of workers of a cluster, merge
    exactly: with n and m samples of means :math:`\mu` and :math:`\nu` the sums of squared deviations add up to

    .. math::
        S = S_n + S_m + \frac{n m}{n + m} (\mu - \nu)(\mu - \nu)^\top .

    Parameters
    ----------
    form : {"dense", "diagonal", "pooled"}
        Which covariances are kept: a matrix (V, V) for each class, the variances of each class, or only the pooled
        covariance, which all forms keep.
    transform : FeatureTransform, optional
        Applied to every batch first.

    Attributes
    ----------
    names, counts, means, unit_means, covariances, variances
        Statistics of each class, in the sorted order of the names.
    pooled_covariance, mean
        Covariance within classes, and mean of all samples.
    smallest, largest, dtype
        Smallest and largest entry, and dtype, of the untransformed features.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.random.rand(30, 4), np.repeat(["cat", "dog", "owl"], 10)
    >>> first = ClassStatistics().partial_fit(X[:15], y[:15])
    >>> both = first.merge(ClassStatistics().partial_fit(X[15:], y[15:]))
    >>> both.counts
    array([10, 10, 10])
    >>> bool(np.allclose(both.covariances[1], np.cov(X[10:20].T)))
    True
    """

    def __init__(self, form: str = "dense", transform: FeatureTransform | None = None) -> None:
        if form not in FORMS:
            raise ParameterError(f"form must be one of {', '.join(FORMS)}, got {form!r}.")
        self.form = form
        self.transform = transform
        self.smallest, self.largest = np.inf, -np.inf
        self._index: dict[Any, int] = {}
        self._counts = np.zeros(0, dtype=np.int64)
        self._means = self._unit_means = self._within = np.zeros((0, 0))
        self._own = np.zeros((0, 0, 0))
        self._width: int | None = None
        self.dtype: np.dtype = np.dtype(np.float32)

    def partial_fit(self, X: Any, y: Any) -> ClassStatistics:
        """Add a batch of features (samples, V) and labels (samples,); returns itself."""
        X = check_features(X, "X", width=self._width)
        names, labels = check_labels(y, len(X), "y")
        z = np.asarray(X if self.transform is None else self.transform(X), dtype=np.float64)
        order = np.argsort(labels, kind="stable")
        z, labels = z[order], labels[order]
        counts = np.bincount(labels)
        starts = np.cumsum(counts) - counts
        batch = ClassStatistics(self.form, self.transform)
        batch.smallest, batch.largest, batch.dtype, batch._width = float(X.min()), float(X.max()), X.dtype, X.shape[1]
        batch._index, batch._counts = {name: i for i, name in enumerate(names.tolist())}, counts
        batch._means = np.add.reduceat(z, starts, axis=0) / counts[:, None]
        batch._unit_means = np.add.reduceat(unit_vectors(z), starts, axis=0) / counts[:, None]
        z = z - batch._means[labels]
        batch._within, batch._own = z.T @ z, self._own_spread(z, starts)
        self._add(batch)
        return self

    def merge(self, *others: ClassStatistics) -> ClassStatistics:
        """Statistics of all samples together, as a new object."""
        merged, own = ClassStatistics(self.form, self.transform), self.transform
        for one in (self, *others):
            alike = one.transform is own or (own is not None and own.same_as(one.transform))
            if one.form != self.form or not alike:
                raise ParameterError(
                    f"Statistics merge only with one form and one transform, got forms '{self.form}' and '{one.form}': "
                    "use the same form and transform for all parts."
                )
            if not one._index:
                continue
            if merged._width not in (None, one._width):
                raise InputError(
                    f"Statistics of {merged._width} and of {one._width} features do not merge: "
                    "extract all features with the same model."
                )
            merged._add(one)
        return merged

    def _own_spread(self, centred: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Sums of squared deviations of each class, in the form that is kept."""
        if self.form == "pooled":
            return np.zeros((len(starts), 0))
        if self.form == "diagonal":
            return np.add.reduceat(centred**2, starts, axis=0)
        return np.stack([group.T @ group for group in np.split(centred, starts[1:])])

    def _add(self, other: ClassStatistics) -> None:
        """Add the sums of other samples, class by class."""
        names, counts = list(other._index), other._counts
        if not self._index:
            self._means = self._unit_means = np.zeros_like(other._means[:0])
            self._within, self._own = np.zeros_like(other._within), np.zeros_like(other._own[:0])
        if self._index and label_kind(next(iter(self._index))) is not label_kind(names[0]):
            raise InputError("y mixes labels that cannot be sorted, such as strings and numbers: use one type.")
        for name in names:
            self._index.setdefault(name, len(self._index))
        new = len(self._index) - len(self._counts)
        for key in ("_counts", "_means", "_unit_means", "_own") if new else ():
            old = getattr(self, key)
            setattr(self, key, np.concatenate([old, np.zeros((new, *old.shape[1:]), dtype=old.dtype)]))
        at = np.array([self._index[name] for name in names])
        had, total = self._counts[at], self._counts[at] + counts
        share = (counts / total)[:, None]
        difference = other._means - self._means[at]
        weight = (had * counts / total)[:, None]
        self._counts[at] = total
        self._means[at] += share * difference
        self._unit_means[at] += share * (other._unit_means - self._unit_means[at])
        self._within = self._within + other._within + (weight * difference).T @ difference
        if self.form == "diagonal":
            self._own[at] += other._own + weight * difference**2
        elif self.form == "dense":
            self._own[at] += other._own + (weight * difference)[:, :, None] * difference[:, None, :]
        self.smallest, self.largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        self._width, self.dtype = other._width, np.promote_types(self.dtype, other.dtype)

    @property
    def _order(self) -> np.ndarray:
        if not self._index:
            raise InputError("There are no samples yet: call partial_fit first.")
        return np.argsort(np.array(list(self._index)), kind="stable")

    @property
    def names(self) -> np.ndarray:
        """Labels seen (B,), sorted."""
        return np.take(np.array(list(self._index)), self._order)

    @property
    def counts(self) -> np.ndarray:
        """Samples of each class (B,)."""
        return np.take(self._counts, self._order)

    @property
    def means(self) -> np.ndarray:
        """Mean of each class (B, V)."""
        return np.take(self._means, self._order, axis=0)

    @property
    def unit_means(self) -> np.ndarray:
        """Mean of each class's samples as unit vectors (B, V)."""
        return np.take(self._unit_means, self._order, axis=0)

    @property
    def pooled_covariance(self) -> np.ndarray:
        """Covariance within classes (V, V); if no class has two samples, that of all samples together."""
        counts = self.counts
        freedom = int((counts - 1).sum())
        if freedom:
            return np.asarray(self._within / freedom)
        return np.asarray(self.moment(self.mean) / max(counts.sum() - 1, 1))

    @property
    def covariances(self) -> np.ndarray:
        """Covariance of each class (B, V, V), eq. 2; a one-sample class has the pooled one."""
        if self.form != "dense":
            raise ParameterError(f"Statistics of form '{self.form}' keep no covariances: use form 'dense'.")
        return self._per_class(self._own, self.pooled_covariance)

    @property
    def variances(self) -> np.ndarray:
        """Variances of each class (B, V), with those of the pooled covariance for classes of one sample."""
        if self.form == "pooled":
            raise ParameterError("Statistics of form 'pooled' keep no variances: use form 'diagonal'.")
        own = self._own if self.form == "diagonal" else np.diagonal(self._own, axis1=1, axis2=2)
        return self._per_class(own, np.diagonal(self.pooled_covariance))

    def _per_class(self, own: np.ndarray, pooled: np.ndarray) -> np.ndarray:
        counts = self.counts
        freedom = np.maximum(counts - 1, 1).reshape(-1, *[1] * (own.ndim - 1))
        spread = np.asarray(own[self._order] / freedom)
        spread[counts == 1] = pooled
        return spread

    @property
    def mean(self) -> np.ndarray:
        """Mean of all samples (V,)."""
        return np.asarray(self.counts @ self.means / self.counts.sum())

    def moment(self, centre: np.ndarray | float = 0.0) -> np.ndarray:
        """Sum over all samples of (x - c)(x - c)' (V, V)."""
        difference = self.means - centre
        return self._within + (self.counts[:, None] * difference).T @ difference


def label_kind(label: Any) -> type:
    """Type of a label for sorting; all numbers are of one type."""
    return float if isinstance(label, (int, float)) else type(label)


def merge_all(parts: Iterable[ClassStatistics]) -> ClassStatistics:
    """Statistics of all parts together."""
    first, *rest = parts
    return first.merge(*rest)
