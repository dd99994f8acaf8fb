"""Statistics of base classes, eq. 2, summed in float64: from samples in memory, or from one pass over batches."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from hotshot.arrays import check_features, unit_vectors
from hotshot.errors import InputError, ParameterError
from hotshot.labels import check_labels

if TYPE_CHECKING:
    from hotshot.bank.space import FeatureTransform

# Covariances that statistics of batches can keep: a matrix (V, V) or the variances (V,) of each class, or the pooled
# covariance alone, which all forms keep.
FORMS = ("dense", "diagonal", "pooled")
# Samples whose products are summed together.
ROWS_IN_PRODUCT = 2**13
# Classes share a padded batch if the smallest has at least this share of the samples of the largest.
SMALLEST_SHARE_OF_BUCKET = 0.5


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


def classifier_weights(x: np.ndarray, labels: np.ndarray, temperature: float) -> np.ndarray:
    r""":math:`p_j = \mathrm{softmax}_j(s_j / t)` over each class, s_j the base classifier's probability of the class.

    The classifier is a multinomial logistic regression on all base samples (below eq. 7).
    """
    if not temperature > 0:
        raise ParameterError(f"temperature must be positive, got {temperature!r}.")
    if labels[0] == labels[-1]:
        return np.full(len(x), 1.0 / len(x))
    with warnings.catch_warnings():
        # Nearly converged probabilities are good enough for weights.
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier = LogisticRegression(max_iter=300).fit(x, labels)
    probability = classifier.predict_proba(x)[np.arange(len(x)), labels]
    largest = np.zeros(labels[-1] + 1)
    np.maximum.at(largest, labels, probability)
    weights = np.exp((probability - largest[labels]) / temperature)
    return np.asarray(weights / np.bincount(labels, weights)[labels])


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
    rows = class_rows(counts)
    order = np.argsort(-counts, kind="stable")
    buckets = []
    while len(order):
        size = counts[order[0]]
        members = order[counts[order] >= SMALLEST_SHARE_OF_BUCKET * size]
        order = order[len(members) :]
        members = np.sort(members)
        if len(members) == len(counts) and (counts == size).all():
            shape = (len(members), size)
            buckets.append(Bucket(members, units.reshape(*shape, -1), weights.reshape(shape)))
            continue
        padded = np.zeros((len(members), size, units.shape[1]), dtype=units.dtype)
        mass = np.zeros((len(members), size), dtype=units.dtype)
        for i, b in enumerate(members):
            padded[i, : counts[b]] = units[rows[b]]
            mass[i, : counts[b]] = weights[rows[b]]
        buckets.append(Bucket(members, padded, mass))
    return tuple(buckets)


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
        self.form, self.transform = form, transform
        self.smallest, self.largest, self.dtype = np.inf, -np.inf, np.dtype(np.float32)
        self._width: int | None = None
        self._index: dict[Any, int] = {}
        # Of each class, in the order in which they came; the sums of squared deviations S are in the form that is kept.
        self._of_classes: dict[str, np.ndarray] = {}
        self._within: np.ndarray | float = 0.0

    def partial_fit(self, X: Any, y: Any) -> ClassStatistics:
        """Add a batch of features (samples, V) and labels (samples,); returns itself."""
        X = check_features(X, "X", width=self._width)
        names, labels = check_labels(y, len(X), "y")
        z = np.asarray(X if self.transform is None else self.transform(X), dtype=np.float64)
        order = np.argsort(labels, kind="stable")
        z, labels = z[order], labels[order]
        counts = np.bincount(labels)
        starts = np.cumsum(counts) - counts
        means, unit_means = (np.add.reduceat(x, starts, axis=0) / counts[:, None] for x in (z, unit_vectors(z)))
        z = z - means[labels]
        scatters = np.zeros((len(counts), 0))
        if self.form == "diagonal":
            scatters = np.add.reduceat(z**2, starts, axis=0)
        elif self.form == "dense":
            scatters = np.stack([group.T @ group for group in np.split(z, starts[1:])])
        batch = ClassStatistics(self.form, self.transform)
        batch.smallest, batch.largest, batch.dtype, batch._width = float(X.min()), float(X.max()), X.dtype, X.shape[1]
        batch._index = {name: i for i, name in enumerate(names.tolist())}
        batch._of_classes = {"counts": counts, "means": means, "unit_means": unit_means, "scatters": scatters}
        batch._within = z.T @ z
        self._add(batch)
        return self

    def merge(self, *others: ClassStatistics) -> ClassStatistics:
        """Statistics of all samples together, as a new object."""
        merged = ClassStatistics(self.form, self.transform)
        for one in (self, *others):
            alike = one.transform is self.transform or (self.transform and self.transform.same_as(one.transform))
            if one.form != self.form or not alike:
                raise ParameterError(
                    f"Statistics merge only with one form and one transform, got forms '{self.form}' and '{one.form}': "
                    "use the same form and transform for all parts."
                )
            if one._index and merged._width not in (None, one._width):
                raise InputError(
                    f"Statistics of {merged._width} and of {one._width} features do not merge: "
                    "extract all features with the same model."
                )
            if one._index:
                merged._add(one)
        return merged

    def _add(self, other: ClassStatistics) -> None:
        """Add the sums of other samples, class by class."""
        if self._index and isinstance(next(iter(self._index)), str) != isinstance(next(iter(other._index)), str):
            raise InputError("y mixes labels that cannot be sorted, such as strings and numbers: use one type.")
        before = len(self._index)
        for name in other._index:
            self._index.setdefault(name, len(self._index))
        new = len(self._index) - before
        if new:
            for key, x in other._of_classes.items():
                more = np.zeros((new, *x.shape[1:]), dtype=x.dtype)
                self._of_classes[key] = np.concatenate([self._of_classes[key], more]) if before else more
        mine, theirs = self._of_classes, other._of_classes
        at = np.array([self._index[name] for name in other._index])
        total = mine["counts"][at] + theirs["counts"]
        share = (theirs["counts"] / total)[:, None]
        difference = theirs["means"] - mine["means"][at]
        weighted = mine["counts"][at][:, None] * share * difference
        mine["counts"][at] = total
        mine["means"][at] += share * difference
        mine["unit_means"][at] += share * (theirs["unit_means"] - mine["unit_means"][at])
        self._within = self._within + other._within + weighted.T @ difference
        if self.form == "diagonal":
            mine["scatters"][at] += theirs["scatters"] + weighted * difference
        elif self.form == "dense":
            mine["scatters"][at] += theirs["scatters"] + weighted[:, :, None] * difference[:, None, :]
        self.smallest, self.largest = min(self.smallest, other.smallest), max(self.largest, other.largest)
        self._width, self.dtype = other._width, np.promote_types(self.dtype, other.dtype)

    def _sorted(self, key: str) -> np.ndarray:
        """Values of the classes, in the order of their names."""
        if not self._index:
            raise InputError("There are no samples yet: call partial_fit first.")
        names = np.array(list(self._index))
        order = np.argsort(names, kind="stable")
        return np.take(names if key == "names" else self._of_classes[key], order, axis=0)

    @property
    def names(self) -> np.ndarray:
        """Labels seen (B,), sorted."""
        return self._sorted("names")

    @property
    def counts(self) -> np.ndarray:
        """Samples of each class (B,)."""
        return self._sorted("counts")

    @property
    def means(self) -> np.ndarray:
        """Mean of each class (B, V)."""
        return self._sorted("means")

    @property
    def unit_means(self) -> np.ndarray:
        """Mean of each class's samples as unit vectors (B, V)."""
        return self._sorted("unit_means")

    @property
    def mean(self) -> np.ndarray:
        """Mean of all samples (V,)."""
        return np.asarray(self.counts @ self.means / self.counts.sum())

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
        return self._per_freedom(self._sorted("scatters"), self.pooled_covariance)

    @property
    def variances(self) -> np.ndarray:
        """Variances of each class (B, V), with those of the pooled covariance for classes of one sample."""
        if self.form == "pooled":
            raise ParameterError("Statistics of form 'pooled' keep no variances: use form 'diagonal'.")
        scatters = self._sorted("scatters")
        scatters = scatters if self.form == "diagonal" else np.diagonal(scatters, axis1=1, axis2=2)
        return self._per_freedom(scatters, np.diagonal(self.pooled_covariance))

    def _per_freedom(self, scatters: np.ndarray, pooled: np.ndarray) -> np.ndarray:
        counts = self.counts
        spread = scatters / np.maximum(counts - 1, 1).reshape(-1, *[1] * pooled.ndim)
        spread[counts == 1] = pooled
        return np.asarray(spread)

    def moment(self, centre: np.ndarray | float = 0.0) -> np.ndarray:
        """Sum over all samples of (x - c)(x - c)' (V, V)."""
        difference = self.means - centre
        return np.asarray(self._within + (self.counts[:, None] * difference).T @ difference)
