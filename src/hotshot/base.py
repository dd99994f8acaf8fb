r"""Base classes: the bank of many-sample classes that novel classes borrow from.

A bank keeps the samples of its classes. What depends on the bank and on the transform of its features alone,
such as the axes, the means and covariances of eq. 2 and the sample weights, is prepared once and kept with it.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from hotshot.arrays import Array, array_hash, like, slices, unit_vectors
from hotshot.errors import ParameterError
from hotshot.features import FeatureTransform, check_features, check_labels, choose_power, power_transform

# Classes share a padded batch where the smallest has at least this share of the samples of the largest.
SMALLEST_SHARE_OF_BUCKET = 0.5
# Rows of the bank that are transformed together.
ROWS_AT_ONCE = 2**14
# Spaces that a bank keeps prepared; of more, the one unused for longest is let go.
MOST_SPACES = 8


@dataclass(frozen=True)
class Space:
    """The space a bank is prepared in; see `HOTClassifier` for what each parameter means."""

    power: float = 1.0
    power_offset: float = 0.0
    power_on_base: bool = True
    normalize: str | None = "centre-l2"
    n_components: float | int | None = None
    sample_weights: str = "uniform"
    temperature: float = 1.0


@dataclass(frozen=True)
class Bucket:
    """Base classes of similar size, padded with samples of no mass to one size J.

    `classes` (b,) are their indices in the bank, `units` (b, J, V) their samples as unit vectors, `mass`
    (b, J) the sample weights, which sum to 1 for each class.
    """

    classes: np.ndarray
    units: Array
    mass: Array


@dataclass(frozen=True)
class PreparedBase:
    """A bank in the space of the method: B classes, V axes.

    Attributes
    ----------
    names : array (B,)
    transform : FeatureTransform
        Takes raw novel features to this space.
    buckets : tuple of Bucket
        The samples, for the low-level transport.
    means, weighted_means, mean_units : arrays (B, V)
        Plain means (eq. 2), means by sample weight, and means of the samples as unit vectors by sample weight.
    covariances : array (B, V, V)
    spectrum : array (V,)
        Variances of the pooled covariance, which is diagonal in these axes.
    ones : array (V,)
        The direction of equal entries in the original features.
    """

    names: np.ndarray
    transform: FeatureTransform
    buckets: tuple[Bucket, ...]
    means: Array
    weighted_means: Array
    mean_units: Array
    covariances: Array
    spectrum: Array
    ones: Array

    def to(self, reference: Array) -> PreparedBase:
        """The same bank in the array library, dtype and device of `reference`."""
        return _convert(self, reference)


def _convert(value: Any, reference: Array) -> Any:
    if isinstance(value, tuple):
        return tuple(_convert(item, reference) for item in value)
    if isinstance(value, (PreparedBase, Bucket, FeatureTransform)):
        converted = {f.name: _convert(getattr(value, f.name), reference) for f in fields(value)}
        return type(value)(**converted)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return like(value, reference)
    return value


class BaseClasses:
    """Classes with many labelled samples, to borrow means and covariances from.

    Use `BaseClasses.from_samples`. A bank does not change once made, so that estimators share it freely.

    Attributes
    ----------
    names : array (B,)
        Class labels, sorted.
    counts : array (B,)
        Samples per class.
    samples : array (sum(counts), V)
        Features, class by class in the order of `names`.
    """

    def __init__(self, samples: np.ndarray, counts: np.ndarray, names: np.ndarray) -> None:
        self.samples = samples
        self.counts = counts
        self.names = names
        self._prepared: dict[tuple[Space, type], PreparedBase] = {}
        self._centres: dict[float, np.ndarray] = {}

    @classmethod
    def from_samples(cls, X: Any, y: Any, *, max_samples: int | None = None, seed: int = 0) -> BaseClasses:
        """A bank from features (samples, V) and their labels.

        Parameters
        ----------
        X : array (samples, V)
            Finite features of any real dtype; float64 stays, float16 is computed with in float32.
        y : array (samples,)
            Labels of any sortable type, in any order.
        max_samples : int, optional
            Cap of samples per class; larger classes are thinned at random.
        seed : int
            Of that choice.

        Examples
        --------
        >>> import numpy as np
        >>> base = BaseClasses.from_samples(np.random.rand(20, 4), ["cat", "dog"] * 10)
        >>> base
        BaseClasses(2 classes, 20 samples, 4 features)
        """
        X = check_features(X, "X_base")
        names, labels = check_labels(y, len(X), "y_base")
        if max_samples is not None and (not isinstance(max_samples, int) or max_samples < 1):
            raise ParameterError(f"max_samples must be a positive integer or None, got {max_samples!r}.")
        order = np.argsort(labels, kind="stable")
        if max_samples is not None:
            rng = np.random.default_rng(seed)
            groups = np.split(order, np.cumsum(np.bincount(labels))[:-1])
            order = np.concatenate([np.sort(rng.permutation(group)[:max_samples]) for group in groups])
        counts = np.bincount(labels[order], minlength=len(names))
        if not X.flags.writeable and len(order) == len(X) and (np.diff(order) == 1).all():
            # Sorted samples that nobody can change, such as a memory-mapped file, need no copy.
            return cls(X, counts, names)
        return cls(X[order], counts, names)

    def __repr__(self) -> str:
        n, width = self.samples.shape
        return f"BaseClasses({len(self.names)} classes, {n} samples, {width} features)"

    def __sklearn_clone__(self) -> BaseClasses:
        return self

    def __getstate__(self) -> dict[str, Any]:
        # What is large and quickly made again stays behind.
        kept = ("samples", "counts", "names", "_centres", "_smallest")
        return {"_prepared": {}, **{name: x for name, x in self.__dict__.items() if name in kept}}

    @property
    def n_features(self) -> int:
        """Width of the features, V."""
        return int(self.samples.shape[1])

    @cached_property
    def labels(self) -> np.ndarray:
        """Index of the class of each sample (samples,)."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of samples, counts and names: two banks with the same one give the same results."""
        names = json.dumps([str(name) for name in self.names])
        parts = (array_hash(self.samples), array_hash(self.counts), names)
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    @cached_property
    def _smallest(self) -> float:
        return float(self.samples.min())

    @cached_property
    def means(self) -> np.ndarray:
        """Mean of each class (B, V), eq. 2."""
        return class_means(self.samples, self.counts)

    @cached_property
    def covariances(self) -> np.ndarray:
        """Covariance of each class (B, V, V), eq. 2; a one-sample class has the pooled one."""
        return class_covariances(self.samples, self.counts)

    def sample_weights(self, temperature: float = 1.0) -> np.ndarray:
        """Sample weights from a base classifier on the raw features, 1 in total for each class (samples,)."""
        return classifier_weights(self.samples, self.labels, temperature)

    def weighted_means(self, temperature: float = 1.0) -> np.ndarray:
        """Mean of each class by sample weight (B, V)."""
        return class_means(self.samples, self.counts, self.sample_weights(temperature))

    def power(self, power: float | str, support: np.ndarray) -> float:
        """The power that "auto" stands for with this bank and these support features."""
        return choose_power(power, self._smallest, support.min())

    def centre(self, power: float) -> np.ndarray:
        """Mean of all power-transformed samples (V,); computed on the first call and kept."""
        if power not in self._centres:
            powers = power_transform(self.samples, power, name="X_base")
            self._centres[power] = powers.mean(axis=0, dtype=np.float64)
        return self._centres[power]

    def prepare(self, space: Space) -> PreparedBase:
        """The bank in `space`; computed on the first call and kept."""
        # One axis and all of the variance, 1 and 1.0, are equal as keys.
        key = (space, type(space.n_components))
        prepared = self._prepared.pop(key, None) or _prepare(self, space)
        self._prepared[key] = prepared
        if len(self._prepared) > MOST_SPACES:
            del self._prepared[next(iter(self._prepared))]
        return prepared


def class_means(x: np.ndarray, counts: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """mu_b = sum_j p_j x_j with p = 1/J_b unless given (eq. 2), summed in float64: (B, V)."""
    means = np.empty((len(counts), x.shape[1]), dtype=x.dtype)
    for b, rows in enumerate(_class_rows(counts)):
        group = x[rows].astype(np.float64)
        means[b] = group.mean(axis=0) if weights is None else weights[rows].astype(np.float64) @ group
    return means


def class_covariances(x: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Sigma_b of eq. 2, (B, V, V), summed in float64; a class of one sample borrows the pooled one."""
    width = x.shape[1]
    covariances = np.empty((len(counts), width, width), dtype=x.dtype)
    for b, rows in enumerate(_class_rows(counts)):
        covariances[b] = _scatter(x[rows]) / max(counts[b] - 1, 1)
    if (counts == 1).any():
        covariances[counts == 1] = pooled_covariance(x, counts)
    return covariances


def pooled_covariance(x: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Covariance within classes (V, V); where no class has two samples, that of all samples together."""
    freedom = int((counts - 1).sum())
    if freedom == 0:
        return _scatter(x) / max(len(x) - 1, 1)
    total = np.zeros((x.shape[1], x.shape[1]))
    for rows in _class_rows(counts):
        total += _scatter(x[rows])
    return total / freedom


def _class_rows(counts: np.ndarray) -> list[slice]:
    ends = np.cumsum(counts)
    return [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]


def _scatter(group: np.ndarray) -> np.ndarray:
    """Sum of products of deviations from the mean (V, V), in float64."""
    centred = group - group.mean(axis=0, dtype=np.float64)
    return centred.T @ centred


def classifier_weights(x: np.ndarray, labels: np.ndarray, temperature: float) -> np.ndarray:
    """p_j = softmax over the class of s_j / temperature, s_j the base classifier's probability of the class.

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
    surest = np.zeros(labels[-1] + 1)
    np.maximum.at(surest, labels, probability)
    weights = np.exp((probability - surest[labels]) / temperature)
    return weights / np.bincount(labels, weights)[labels]


def _prepare(base: BaseClasses, space: Space) -> PreparedBase:
    counts = base.counts
    normalise = space.normalize is not None
    scale = _power_of_two_scale(base.samples) if normalise else 1.0
    z, centre, leading = _reduced(base.samples, space, scale)

    # All that follows is the same in any rotation; in this one the pooled covariance is diagonal.
    spectrum, rotation = np.linalg.eigh(pooled_covariance(z, counts))
    rotation = rotation[:, ::-1].astype(z.dtype)
    for rows in slices(len(z), ROWS_AT_ONCE):
        z[rows] = z[rows] @ rotation
    axes = rotation if leading is None else leading @ rotation

    if space.sample_weights == "classifier":
        weights = classifier_weights(z, base.labels, space.temperature)
    else:
        weights = np.repeat(1.0 / counts, counts)
    units = z if normalise else unit_vectors(z)
    return PreparedBase(
        names=base.names,
        transform=FeatureTransform(space.power, space.power_offset, scale, centre, axes, unit=normalise),
        means=class_means(z, counts),
        weighted_means=class_means(z, counts, weights),
        mean_units=class_means(units, counts, weights),
        covariances=class_covariances(z, counts),
        spectrum=np.maximum(spectrum[::-1], 0).astype(z.dtype),
        ones=axes.sum(axis=0),
        buckets=_buckets(units, weights.astype(z.dtype), counts),
    )


def _reduced(
    samples: np.ndarray, space: Space, scale: float
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Samples transformed and reduced (samples, axes), their centre (V,), and the leading axes (V, axes).

    A few rows at a time, so that no second array of the size of the bank is needed in full precision.
    """
    blocks = slices(len(samples), ROWS_AT_ONCE)

    def powers(rows: slice) -> np.ndarray:
        x = samples[rows] * scale if scale != 1 else samples[rows]
        return power_transform(x, space.power, space.power_offset, "X_base") if space.power_on_base else x

    centre = None
    if space.normalize is not None:
        totals = [powers(rows).sum(axis=0, dtype=np.float64) for rows in blocks]
        centre = (np.sum(totals, axis=0) / len(samples)).astype(samples.dtype)
    leading = None
    if space.n_components is not None:
        moment = np.zeros((samples.shape[1], samples.shape[1]))
        for rows in blocks:
            x = powers(rows)
            x = np.asarray(x if centre is None else x - centre, dtype=np.float64)
            moment += x.T @ x
        leading = _leading_axes(moment, space.n_components).astype(samples.dtype)
    width = samples.shape[1] if leading is None else leading.shape[1]
    z = np.empty((len(samples), width), dtype=samples.dtype)
    for rows in blocks:
        x = powers(rows)
        x = x if centre is None else x - centre
        x = x if leading is None else x @ leading
        z[rows] = x if space.normalize is None else unit_vectors(x)
    return z, centre, leading


def _power_of_two_scale(x: np.ndarray) -> float:
    """A power of two that brings the largest entry near 1, so that nothing over- or underflows."""
    largest = max(float(x.max()), -float(x.min()))
    limit = np.finfo(x.dtype).maxexp - 8
    return 2.0 ** -int(np.clip(np.round(np.log2(largest)), -limit, limit)) if largest > 0 else 1.0


def _leading_axes(moment: np.ndarray, n_components: float | int) -> np.ndarray:
    """Leading principal axes (V, axes) of second moments (V, V): as many, or as hold that share of variance.

    Without a centre the second moment takes the place of the covariance, and its first axis holds the mean.
    """
    variances, axes = np.linalg.eigh(moment)
    variances, axes = np.maximum(variances[::-1], 0), axes[:, ::-1]
    if isinstance(n_components, (int, np.integer)):
        if n_components > len(variances):
            raise ParameterError(
                f"n_components must be at most the number of features, {len(variances)}, got {n_components}."
            )
        count = int(n_components)
    else:
        shares = np.cumsum(variances) / max(variances.sum(), np.finfo(float).tiny)
        count = int(np.searchsorted(shares, n_components - 1e-12)) + 1
    return axes[:, : max(1, min(count, len(variances)))]


def _buckets(units: np.ndarray, weights: np.ndarray, counts: np.ndarray) -> tuple[Bucket, ...]:
    """Classes grouped by size and padded with zero mass, the largest first."""
    starts = np.cumsum(counts) - counts
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
            rows = slice(starts[b], starts[b] + counts[b])
            padded[i, : counts[b]] = units[rows]
            mass[i, : counts[b]] = weights[rows]
        buckets.append(Bucket(members, padded, mass))
    return tuple(buckets)
