"""Warnings about novel classes: names that base classes have, and features unlike those of the bank."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.extmath import randomized_svd

from hotshot.arrays import NO_OVERFLOW_WARNINGS, evenly_spaced
from hotshot.errors import FeatureSpaceWarning, SharedClassWarning
from hotshot.formatting import count, shortened

if TYPE_CHECKING:
    from hotshot.bank.bank import BaseClasses

# Base samples that are used, of each half of the classes; with fewer classes there is no check of features.
MOST_SAMPLES, LEAST_CLASSES = 1024, 20
MOST_AXES = 256
# Novel samples that are checked in one call.
MOST_ROWS = 24
# Share of the base samples outside of the usual range, on each side.
UNUSUAL = 0.002
# How far the median of n novel samples may be outside of the usual range of one base sample: in the logarithm of the
# norm by this plus 1 / n, in the share of the leading axes by 1 / n and at least a fifth of its range. Measured on
# features of texts, images and characters, with random novel classes and with those farthest from the base classes: no
# warning in 5,400 tasks and 24,000 single samples; a random rotation is detected in 95% or more of 5-way-1-shot tasks.
NORM_MARGIN, SHARE_MARGIN = 0.4, 0.2
# A random direction has the share axes / V. Unless base samples exceed it by this, directions are not checked.
ABOVE_CHANCE = 0.1
# Most names in a warning.
MOST_NAMES = 3


def warn_of_shared_classes(base: BaseClasses, names: np.ndarray) -> None:
    """Warn if novel classes have the names of base classes; equal numbers are ignored."""
    shared = sorted({name for name in names.tolist() if isinstance(name, str)}.intersection(base.names.tolist()))
    if shared:
        some = ", ".join(f"'{shortened(name)}'" for name in shared[:MOST_NAMES])
        more = f" and {len(shared) - MOST_NAMES} more" if len(shared) > MOST_NAMES else ""
        have = count(
            len(shared), "novel class has the name of a base class", "novel classes have the names of base classes"
        )
        _warn(
            f"{have}, {some}{more}: leave them out of the bank, or rename them if they only share the name.",
            SharedClassWarning,
        )


def warn_of_features(space: FeatureSpace, X: np.ndarray) -> None:
    """Warn if samples (samples, V) look unlike the base samples."""
    difference = space.difference(X)
    if difference is not None:
        _warn(
            f"The samples in X look unlike those of the base classes, {difference}: transform the bank as well, with "
            "base.transform(f), or extract both with the same model.",
            FeatureSpaceWarning,
        )


def _warn(message: str, kind: type[Warning]) -> None:
    """A warning at the line that called hotshot."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("hotshot."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)


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


def check_feature_space(space: Any, width: int) -> None:
    """Raise ValueError unless an object from a file is a feature space of this width."""
    pairs = (space.norms, space.shares)
    if not (
        all(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in (space.mean, space.axes))
        and (space.mean.shape, space.axes.shape[:1], space.axes.ndim) == ((width,), (width,), 2)
        and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)
        and all(np.isfinite(x).all() for x in (space.mean, space.axes, *pairs))
    ):
        raise ValueError("feature_space_ is invalid")
