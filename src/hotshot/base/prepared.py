r"""A bank in the space of the method: transformed samples, axes, statistics, sample weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hotshot.arrays import Array, like, map_arrays, slices, unit_vectors
from hotshot.base.covariances import Covariances, Dense, Diagonal, Factored, Joined
from hotshot.base.space import FeatureTransform, choose_power, power_transform
from hotshot.base.statistics import (
    class_covariances,
    class_means,
    class_rows,
    classifier_weights,
    pooled_covariance,
)
from hotshot.errors import ParameterError

# Classes share a padded batch where the smallest has at least this share of the samples of the largest.
SMALLEST_SHARE_OF_BUCKET = 0.5
# Rows of the bank that are transformed together.
ROWS_AT_ONCE = 2**14
# Up to so many entries all covariances are dense, whatever the size of the classes: that is the quickest.
DENSE_ENTRIES = 2**27
# Beyond that, classes with less than this share of V samples are factored.
FACTORED_SHARE = 0.5
EXACT_FORMS, APPROXIMATE_FORMS = ("auto", "dense", "factored"), ("diagonal", "pooled")
COVARIANCE_FORMS = (*EXACT_FORMS, *APPROXIMATE_FORMS)


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
    covariance: str = "auto"


def default_space(smallest: float) -> Space:
    """The space of `HOTClassifier` as it comes, for features down to `smallest`."""
    return Space(power=choose_power("auto", smallest), n_components=0.98)


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
    covariances : Dense, Factored, Diagonal or Joined
        Of every class, in the form that its size asks for.
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
    covariances: Covariances
    spectrum: Array
    ones: Array

    def to(self, reference: Array) -> PreparedBase:
        """The same bank in the array library, dtype and device of `reference`."""
        return map_arrays(self, lambda x: like(x, reference))


def prepare(samples: np.ndarray, counts: np.ndarray, names: np.ndarray, space: Space) -> PreparedBase:
    """Samples (sum(counts), V), class by class, in `space`."""
    normalise = space.normalize is not None
    scale = 1.0
    if normalise:
        scale = power_of_two_scale(max(float(samples.max()), -float(samples.min())), samples.dtype)
    z, centre, leading = _reduced(samples, space, scale)

    # All that follows is the same in any rotation; in this one the pooled covariance is diagonal.
    spectrum, rotation = pooled_axes(pooled_covariance(z, counts), z.dtype)
    for rows in slices(len(z), ROWS_AT_ONCE):
        z[rows] = z[rows] @ rotation
    axes = rotation if leading is None else leading @ rotation

    if space.sample_weights == "classifier":
        weights = classifier_weights(z, np.repeat(np.arange(len(counts)), counts), space.temperature)
    else:
        weights = np.repeat(1.0 / counts, counts)
    units = z if normalise else unit_vectors(z)
    # With uniform weights all means of unit vectors are one.
    means = class_means(z, counts)
    weighted_means = means if space.sample_weights == "uniform" else class_means(z, counts, weights)
    buckets = _buckets(units, weights.astype(z.dtype), counts)
    return PreparedBase(
        names=names,
        transform=FeatureTransform(space.power, space.power_offset, scale, centre, axes, unit=normalise),
        means=means,
        weighted_means=weighted_means,
        mean_units=weighted_means if normalise else class_means(units, counts, weights),
        covariances=_covariances(space.covariance, z, counts, means, spectrum, buckets, normalise),
        spectrum=spectrum,
        ones=axes.sum(axis=0),
        buckets=buckets,
    )


def approximate(prepared: PreparedBase, form: str) -> PreparedBase:
    """The same bank with its exact covariances replaced by their diagonals, or by the pooled one."""
    if form == "pooled":
        return replace(prepared, covariances=Diagonal(np.tile(prepared.spectrum, (len(prepared.means), 1))))
    return replace(prepared, covariances=Diagonal(prepared.covariances.variances))


def pooled_axes(pooled: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Variances (V,) of the pooled covariance (V, V), the largest first, and its axes (V, V)."""
    spectrum, rotation = np.linalg.eigh(pooled)
    return np.maximum(spectrum[::-1], 0).astype(dtype), rotation[:, ::-1].astype(dtype)


def _covariances(
    form: str,
    z: np.ndarray,
    counts: np.ndarray,
    means: np.ndarray,
    spectrum: np.ndarray,
    buckets: tuple[Bucket, ...],
    normalised: bool,
) -> Covariances:
    """Covariances in the form asked for; "auto" is exact, and dense or factored by the size of the classes."""
    n_classes, width = means.shape
    if form == "pooled":
        return Diagonal(np.tile(spectrum, (n_classes, 1)))
    if form == "diagonal":
        exact = _covariances("factored", z, counts, means, spectrum, buckets, normalised)
        return Diagonal(exact.variances)
    if form == "dense" or (form == "auto" and n_classes * width**2 <= DENSE_ENTRIES):
        return Dense(class_covariances(z, counts))
    parts: list[Dense | Diagonal | Factored] = []
    classes = []
    rows = class_rows(counts)
    for bucket in buckets:
        many, one = bucket.classes[counts[bucket.classes] > 1], bucket.classes[counts[bucket.classes] == 1]
        if len(one):
            parts.append(Diagonal(np.tile(spectrum, (len(one), 1))))
            classes.append(one)
        if not len(many):
            continue
        classes.append(many)
        if form == "auto" and bucket.mass.shape[1] >= FACTORED_SHARE * width:
            own = np.concatenate([z[rows[b]] for b in many])
            parts.append(Dense(class_covariances(own, counts[many])))
            continue
        units = bucket.units if not len(one) else bucket.units[np.isin(bucket.classes, many)]
        lengths = None
        if not normalised:
            lengths = np.zeros(units.shape[:2], dtype=z.dtype)
            for i, b in enumerate(many):
                lengths[i, : counts[b]] = np.linalg.norm(z[rows[b]], axis=1)
        sizes = counts[many][:, None]
        scales = (np.arange(units.shape[1]) < sizes) / np.sqrt(sizes - 1)
        parts.append(Factored(units, lengths, means[many], scales.astype(z.dtype)))
    return Joined(tuple(parts), tuple(classes))


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
        leading = leading_axes(moment, space.n_components).astype(samples.dtype)
    width = samples.shape[1] if leading is None else leading.shape[1]
    z = np.empty((len(samples), width), dtype=samples.dtype)
    for rows in blocks:
        x = powers(rows)
        x = x if centre is None else x - centre
        x = x if leading is None else x @ leading
        z[rows] = x if space.normalize is None else unit_vectors(x)
    return z, centre, leading


def power_of_two_scale(largest: float, dtype: np.dtype) -> float:
    """A power of two that brings the largest entry near 1, so that nothing over- or underflows."""
    limit = np.finfo(dtype).maxexp - 8
    return 2.0 ** -int(np.clip(np.round(np.log2(largest)), -limit, limit)) if largest > 0 else 1.0


def leading_axes(moment: np.ndarray, n_components: float | int) -> np.ndarray:
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
