r"""The space of the method: the transform of raw features to it, and a bank prepared in it.

.. math::
    x \mapsto \frac{R^\top (x^\lambda - c)}{\lVert R^\top (x^\lambda - c) \rVert}

The power is Tukey's ladder (below eq. 3 of the paper); centring on the base samples, rotation to their axes
and unit norm go beyond the paper and make its constants independent of the scale of the features.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import randomized_svd

from hotshot.arrays import NO_OVERFLOW_WARNINGS, evenly_spaced, slices, unit_vectors
from hotshot.bank.covariances import (
    COVARIANCE_FORMS,
    Bucket,
    ClassSamples,
    Covariances,
    class_means,
    make_buckets,
    pooled_covariance,
)
from hotshot.errors import FeatureSpaceWarning, InputError, ParameterError, warn_user

# Rows of a file or a bank that are computed with together.
ROWS_AT_ONCE = 2**14
# Name of the samples of the bank in messages.
BASE_SAMPLES = "X_base"
# Least number of axes for any share of the variance: on one axis, unit vectors are 1 and -1.
LEAST_AXES = 8
# Settings are chosen on banks with at least so many classes of at least so many samples.
LEAST_TO_CHOOSE, LEAST_HELD_OUT = 20, 10


@dataclass(frozen=True, eq=False)
class Space:
    """The space that a bank is prepared in; ``HOTClassifier`` documents the parameters and has the same defaults."""

    power: float
    power_offset: float = 0.0
    power_on_base: bool = True
    normalize: str | None = "centre-l2"
    n_components: float | int | None = 0.98
    sample_weights: str = "uniform"
    temperature: float = 1.0
    covariance: str = "auto"

    def _identity(self) -> tuple[Any, ...]:
        # n_components=1 (one axis) and 1.0 (all of the variance) are equal numbers but different spaces.
        return *vars(self).values(), isinstance(self.n_components, Integral)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())


def choose_power(power: float | str, smallest: float) -> float:
    """The power itself; for "auto" 0.5 if no feature, the smallest of which is ``smallest``, is negative, else 1."""
    if power != "auto":
        return float(power)
    return 0.5 if smallest >= 0 else 1.0


def power_transform(x: np.ndarray, power: float, offset: float = 0.0, name: str = "X") -> np.ndarray:
    r"""Tukey's ladder of powers: :math:`(x + o)^\lambda`, and :math:`\log(x + o)` for the power 0.

    Negative entries have no real power, unless it is a whole number: they raise an error that uses ``name``.
    """
    x = x + offset if offset else x
    if power == 1:
        return x
    smallest = float(x.min())
    if smallest < 0 and (power != round(power) or power == 0):
        raise InputError(
            f"{name} has negative entries (down to {smallest:.3g}), which have no real power {power:g}: "
            "pass power=1, or features taken after a ReLU."
        )
    if power <= 0 and not x.all():
        raise InputError(
            f"{name} has entries equal to 0, for which the power {power:g} is infinite: "
            "pass a positive power, or power_offset=1e-6."
        )
    return np.log(x) if power == 0 else x**power


@dataclass(frozen=True)
class FeatureTransform:
    r"""Transform of raw features to the space of a prepared bank: :math:`z = R^\top ((s x + o)^\lambda - c)`.

    The scale s is a power of two that brings features of any magnitude near 1; ``offset`` o is that of the features
    times s; ``centre`` c (V,) and the orthonormal ``axes`` R (V, axes) may be None; with ``unit``, z has unit norm.
    """

    power: float
    offset: float
    scale: float
    centre: np.ndarray | None
    axes: np.ndarray | None
    unit: bool

    def same_as(self, other: FeatureTransform | None) -> bool:
        """Whether both transforms are equal."""
        names = [f.name for f in fields(self)]
        return other is not None and all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    @NO_OVERFLOW_WARNINGS
    def __call__(self, x: np.ndarray, name: str = "X") -> np.ndarray:
        """Transform features (…, V) to (…, axes); raise if a sample leaves the range of their dtype."""
        raw = x
        if self.scale != 1:
            x = x * self.scale
        x = power_transform(x, self.power, self.offset, name)
        if self.centre is not None:
            x = x - self.centre
        if self.axes is not None:
            x = x @ self.axes
        x = unit_vectors(x) if self.unit else x
        if not np.isfinite(x).all():
            raise self._out_of_range(raw, x, name)
        return x

    def _out_of_range(self, raw: np.ndarray, transformed: np.ndarray, name: str) -> InputError:
        bad = np.isfinite(transformed).all(axis=-1).argmin()
        row = np.abs(raw.reshape(-1, raw.shape[-1])[bad])
        column = row.argmin() if self.power < 0 else row.argmax()
        # Rows of a bank are in another order than they came in.
        place = f"column {column}" if name == BASE_SAMPLES else f"row {bad}, column {column}"
        return InputError(
            f"{name} leaves the range of {transformed.dtype} in {place}: an entry of size {row[column]:.3g} is "
            f"multiplied by {self.scale:.3g}, added to {self.offset:.3g} and raised to the power {self.power:g}; "
            "remove or rescale such samples, or pass other parameters."
        )


@dataclass(frozen=True)
class PreparedBase:
    """A bank in the space of the method: B classes, V axes, in which the pooled covariance is diagonal.

    ``transform`` takes raw novel features to this space, ``buckets`` hold the samples for the low-level transport.
    ``means``, ``weighted_means`` and ``mean_units`` (B, V) are plain means (eq. 2), means by sample weight, and means
    of the samples as unit vectors by sample weight. ``covariances`` have a form that suits their size; ``spectrum``
    (V,) is the diagonal of the pooled covariance, the largest variance first.
    """

    names: np.ndarray
    counts: np.ndarray
    transform: FeatureTransform
    buckets: tuple[Bucket, ...]
    means: np.ndarray
    weighted_means: np.ndarray
    mean_units: np.ndarray
    covariances: Covariances
    spectrum: np.ndarray

    @cached_property
    def ones(self) -> np.ndarray:
        """The all-ones direction of the original features, in these axes (V,)."""
        assert self.transform.axes is not None
        return np.asarray(self.transform.axes.sum(axis=0))

    @cached_property
    def variances(self) -> np.ndarray:
        """Variances of each class along the axes (B, V)."""
        return self.covariances.variances


@NO_OVERFLOW_WARNINGS
def prepare(samples: np.ndarray, counts: np.ndarray, names: np.ndarray, space: Space) -> PreparedBase:
    """Samples (sum(counts), V), class by class, in ``space``."""
    is_normalised, dtype, width = space.normalize is not None, samples.dtype, samples.shape[1]
    of_base = base_transform(space, max(float(samples.max()), -float(samples.min())), dtype)
    # A few rows at a time, so that no second array of the size of the bank is needed in full precision.
    blocks = slices(len(samples), ROWS_AT_ONCE)
    leading = None
    if is_normalised:
        totals = [of_base(samples[rows], BASE_SAMPLES).sum(axis=0, dtype=np.float64) for rows in blocks]
        centre = centre_of(np.sum(totals, axis=0) / len(samples), len(counts))
        of_base = replace(of_base, centre=centre.astype(dtype))
    if space.n_components is not None:
        moment = np.zeros((width, width))
        for rows in blocks:
            x = of_base(samples[rows], BASE_SAMPLES).astype(np.float64)
            moment += x.T @ x
        leading = leading_axes(moment, space.n_components, counts).astype(dtype)
        width = leading.shape[1]
    of_base = replace(of_base, axes=leading, unit=is_normalised)
    z = np.empty((len(samples), width), dtype=dtype)
    for rows in blocks:
        z[rows] = of_base(samples[rows], BASE_SAMPLES)

    # All that follows is the same in any rotation; in this one the pooled covariance is diagonal.
    spectrum, rotation = principal_axes(pooled_covariance(z, counts), dtype)
    for rows in blocks:
        z[rows] = z[rows] @ rotation
    of_base = replace(of_base, axes=rotation if leading is None else leading @ rotation)

    means = weighted_means = class_means(z, counts)
    weights = np.repeat(1.0 / counts, counts)
    if space.sample_weights == "classifier":
        weights = classifier_weights(z, np.repeat(np.arange(len(counts)), counts), space.temperature)
        weighted_means = class_means(z, counts, weights)
    units = z if is_normalised else unit_vectors(z)
    buckets = make_buckets(units, weights.astype(dtype), counts)
    return PreparedBase(
        names=names,
        counts=counts,
        transform=novel_transform(space, of_base),
        buckets=buckets,
        means=means,
        weighted_means=weighted_means,
        mean_units=weighted_means if is_normalised else class_means(units, counts, weights),
        covariances=COVARIANCE_FORMS[space.covariance](
            ClassSamples(z, counts, means, spectrum, buckets, are_units=is_normalised)
        ),
        spectrum=spectrum,
    )


def base_transform(space: Space, largest: float, dtype: np.dtype) -> FeatureTransform:
    """Scale and power of base features with entries up to ``largest``, before they are centred and rotated."""
    power, offset = (space.power, space.power_offset) if space.power_on_base else (1.0, 0.0)
    scale = 1.0
    if space.normalize is not None and largest > 0:
        # A power of two that brings the largest entry near 1, so that nothing over- or underflows.
        limit = np.finfo(dtype).maxexp - 8
        scale = 2.0 ** -int(np.clip(np.round(np.log2(largest)), -limit, limit))
    return FeatureTransform(power, offset * scale, scale, None, None, unit=False)


def novel_transform(space: Space, of_base: FeatureTransform) -> FeatureTransform:
    """The transform of novel features, which have a power even if those of the base have none."""
    return replace(of_base, power=space.power, offset=space.power_offset * of_base.scale)


def centre_of(mean: np.ndarray, n_classes: int) -> np.ndarray:
    """The centre for base samples of this mean: half of it for a single class, as what all classes share is unknown."""
    return mean / 2 if n_classes == 1 else mean


def leading_axes(moment: np.ndarray, n_components: float | int, counts: np.ndarray) -> np.ndarray:
    """Leading principal axes (V, axes) of second moments (V, V), by number or by share of the variance."""
    variances, axes = principal_axes(moment, np.dtype(np.float64))
    if isinstance(n_components, Integral):
        if n_components > len(variances):
            raise ParameterError(
                f"n_components must be at most the number of features, {len(variances)}, got {n_components}."
            )
        count = int(n_components)
    # Fewer samples than features, of few classes, do not vary along all axes that new classes vary along. A bank on
    # which settings are chosen has enough classes, also with a quarter of them held out.
    elif counts.sum() < len(variances) and np.sum(counts >= LEAST_HELD_OUT) < LEAST_TO_CHOOSE * 3 // 4:
        count = len(variances)
    else:
        shares = np.cumsum(variances) / max(variances.sum(), np.finfo(float).tiny)
        count = max(int(np.searchsorted(shares, n_components - 1e-12)) + 1, LEAST_AXES)
    return axes[:, : max(1, min(count, len(variances)))]


def principal_axes(moment: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Variances (V,) of second moments (V, V), the largest first, and their axes (V, V), all in this dtype."""
    # Not NaN either.
    if not np.abs(moment).max() <= np.finfo(dtype).max:
        raise InputError(
            f"{BASE_SAMPLES} has variances beyond the range of {dtype}: rescale the "
            "features, or use the default normalize='centre-l2'."
        )
    variances, axes = np.linalg.eigh(moment)
    return np.maximum(variances[::-1], 0).astype(dtype), axes[:, ::-1].astype(dtype)


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


# --- features of another kind

# Base samples that are used, of each half of the classes, and axes; novel samples that are checked in one call.
MOST_SAMPLES, MOST_AXES, MOST_ROWS = 1024, 256, 24
# Share of the base samples outside of the usual range, on each side.
UNUSUAL = 0.002
# How far the median of n novel samples may be outside of the usual range of one base sample: in the logarithm of the
# norm by this plus 1 / n, in the share of the leading axes by 1 / n and at least a fifth of its range. Measured on
# features of texts, images and characters, with random novel classes and with those farthest from the base classes: no
# warning in 5,400 tasks and 24,000 single samples; a random rotation is detected in 95% or more of 5-way-1-shot tasks.
NORM_MARGIN, SHARE_MARGIN = 0.4, 0.2
# A random direction has the share axes / V. Unless base samples exceed it by this, directions are not checked.
ABOVE_CHANCE = 0.1


@dataclass(frozen=True)
class FeatureSpace:
    """Usual norms and directions of samples: axes are from half of the base classes, ranges from the other half.

    ``axes`` (V, axes) are the leading half of the principal axes around ``mean`` (V,), which hold most of the variance
    of features from the same extractor. ``norms`` and ``shares`` are the ranges, for nearly all samples, of the
    logarithm of the norm and of the share of the squared distance from the mean that lies along the axes.
    """

    mean: np.ndarray
    axes: np.ndarray
    norms: tuple[float, float]
    shares: tuple[float, float]

    def warn_of(self, X: np.ndarray) -> None:
        """Warn if samples (samples, V) look unlike the base samples."""
        difference = self.difference(X)
        if difference is not None:
            warn_user(
                f"The samples in X look unlike those of the base classes, {difference}: transform the bank as well, "
                "with base.transform(f), or extract both with the same model.",
                FeatureSpaceWarning,
            )

    def difference(self, X: np.ndarray) -> str | None:
        """How samples (samples, V) differ from base samples, in words; None if they do not."""
        X = X[evenly_spaced(len(X), MOST_ROWS)]
        norm, share = (float(np.median(values)) for values in _norms_and_shares(X, self.mean, self.axes))
        margin = NORM_MARGIN + 1 / len(X)
        low, high = self.norms
        if norm < low - margin or norm > high + margin:
            return f"their median norm is {np.exp(norm):.3g} (usually {np.exp(low):.3g} to {np.exp(high):.3g})"
        low, high = self.shares
        if share < low - max(1 / len(X), SHARE_MARGIN) * (high - low):
            return f"{share:.0%} of their variance is in the leading axes (usually {low:.0%} to {high:.0%})"
        return None


@NO_OVERFLOW_WARNINGS
def feature_space(samples: np.ndarray, labels: np.ndarray) -> FeatureSpace | None:
    """The ``FeatureSpace`` of samples (samples, V) of classes 0, 1, …; None if their squares overflow."""
    halves = (np.flatnonzero(labels % 2 == part) for part in (0, 1))
    of_axes, of_ranges = (samples[rows[evenly_spaced(len(rows), MOST_SAMPLES)]].astype(np.float64) for rows in halves)
    mean = of_axes.mean(axis=0)
    if not np.isfinite(np.sum((of_axes - mean) ** 2)):
        return None
    n_axes = min(max(1, samples.shape[1] // 2), MOST_AXES, len(of_axes))
    axes = randomized_svd(of_axes - mean, n_axes, random_state=0)[2].T.astype(np.float32)
    norms, shares = (np.quantile(x, [UNUSUAL, 1 - UNUSUAL]).tolist() for x in _norms_and_shares(of_ranges, mean, axes))
    is_informative = shares[0] > n_axes / samples.shape[1] + ABOVE_CHANCE
    return FeatureSpace(mean, axes, tuple(norms), tuple(shares) if is_informative else (0.0, 1.0))


@NO_OVERFLOW_WARNINGS
def _norms_and_shares(X: np.ndarray, mean: np.ndarray, axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithm of the norm, and share of the squared distance from the mean along the axes, of each sample."""
    tiny = np.finfo(np.float64).tiny
    X = np.asarray(X, dtype=np.float64)
    centred = X - mean
    units = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), tiny)
    along = units.astype(axes.dtype) @ axes
    return np.log(np.maximum(np.linalg.norm(X, axis=1), tiny)), np.sum(along**2, axis=1)


def check_feature_space(space: FeatureSpace, width: int) -> None:
    """Raise ValueError unless an object from a file is a feature space of this width."""
    arrays, pairs = (space.mean, space.axes), (space.norms, space.shares)
    if not (
        [x.dtype.kind for x in arrays] == ["f", "f"]
        and (space.mean.shape, space.axes.shape[:1], space.axes.ndim) == ((width,), (width,), 2)
        and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)
        and all(np.isfinite(x).all() for x in (*arrays, *pairs))
    ):
        raise ValueError("feature_space_ is invalid")
