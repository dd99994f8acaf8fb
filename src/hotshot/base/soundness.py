"""Whether the parts of a stored bank fit each other: its files may be torn, or edited by anyone.

Large arrays are not read for it: samples, their unit vectors and dense covariances are checked by their shapes alone.
"""

from __future__ import annotations

import math
import re
from dataclasses import fields
from typing import Any

import numpy as np

from hotshot.base.covariances import Dense, Diagonal, Factored, Joined
from hotshot.base.prepared import COVARIANCE_FORMS, Bucket, PreparedBase, Space
from hotshot.base.space import FeatureTransform

# How far the mass of a class may be from 1, in single precision.
MASS_TOLERANCE = 1e-3


def need(condition: bool, what: str) -> None:
    """Raise unless the condition holds; `sound` makes a sentence of it."""
    if not condition:
        raise ValueError(what)


def is_number(value: Any) -> bool:
    """Whether a value from JSON is a finite number."""
    return type(value) in (int, float) and math.isfinite(value)


def check_description(found: dict[str, Any]) -> None:
    """Raise unless names, counts and the rest of a bank's description are of their kinds."""
    names, counts, centres = found["names"], found["counts"], found["centres"]
    need(isinstance(names, list) and isinstance(counts, list), "names and counts are no lists")
    need(0 < len(names) == len(counts), "names and counts do not fit each other")
    texts = [isinstance(name, str) for name in names]
    need(all(texts) or all(type(name) is bool or is_number(name) for name in names), "names of several kinds")
    need(len(set(names)) == len(names), "a name is there twice")
    need(all(type(count) is int and count > 0 for count in counts), "counts are no counts")
    width = found["n_features"]
    need(type(width) is int and width > 0, "n_features is no count")
    need(found["dtype"] in ("float32", "float64"), "dtype is neither float32 nor float64")
    need(is_number(found["smallest"]), "smallest is no number")
    need(isinstance(found["about"], dict), "about is no object")
    need(bool(re.fullmatch("[0-9a-f]{64}", found["fingerprint"])), "fingerprint is no SHA-256")
    need(isinstance(found["spaces"], list), "spaces are no list")
    need(isinstance(centres, dict) and all(map(math.isfinite, map(float, centres))), "centres have no powers")
    need(
        all(isinstance(c, list) and len(c) == width and all(map(is_number, c)) for c in centres.values()),
        "a centre is no vector of the features",
    )


def sound_space(found: dict[str, Any]) -> Space:
    """A space from JSON, all of whose parameters are there and of their kinds."""
    need(set(found) == {field.name for field in fields(Space)}, "a space has other parameters")
    space = Space(**found)
    number = space.n_components is None or is_number(space.n_components)
    need(
        all(map(is_number, (space.power, space.power_offset, space.temperature)))
        and type(space.power_on_base) is bool
        and space.normalize in (None, "centre-l2")
        and number
        and space.sample_weights in ("uniform", "classifier")
        and space.covariance in COVARIANCE_FORMS,
        "a parameter of a space has a value it cannot have",
    )
    return space


def check_prepared(prepared: Any, space: Space, counts: np.ndarray, width: int, dtype: np.dtype) -> None:
    """Raise unless the parts of a prepared space fit each other, the space and the bank."""
    need(isinstance(prepared, PreparedBase), "a prepared space is something else")
    n_classes, axes = len(counts), len(prepared.spectrum)
    need(0 < axes <= width, "there are more axes than features")
    if isinstance(space.n_components, int):
        need(axes == space.n_components, "there are not as many axes as the space has")
    for values in (prepared.means, prepared.weighted_means, prepared.mean_units):
        _check_array(values, (n_classes, axes), dtype, finite=True)
    for values in (prepared.spectrum, prepared.ones):
        _check_array(values, (axes,), dtype, finite=True)
    need(bool((prepared.spectrum >= 0).all()), "a variance is negative")
    _check_transform(prepared.transform, space, (width, axes), dtype)
    _check_covariances(prepared.covariances, n_classes, axes, dtype)
    _check_buckets(prepared.buckets, counts, axes, dtype)


def _check_array(x: Any, shape: tuple[int, ...], dtype: np.dtype, finite: bool = False) -> None:
    need(isinstance(x, np.ndarray) and x.shape == shape and x.dtype == dtype, f"no array of {shape} {dtype}")
    need(not finite or bool(np.isfinite(x).all()), "an array holds NaN or infinity")


def _check_transform(transform: Any, space: Space, shape: tuple[int, int], dtype: np.dtype) -> None:
    need(isinstance(transform, FeatureTransform), "a transform is something else")
    need(
        (transform.power, transform.offset) == (space.power, space.power_offset)
        and _is_scale(transform.scale, dtype)
        and (transform.unit or transform.scale == 1)
        and transform.unit is (space.normalize is not None)
        and (transform.centre is None) is not transform.unit,
        "a transform is not that of its space",
    )
    _check_array(transform.axes, shape, dtype, finite=True)
    if transform.centre is not None:
        _check_array(transform.centre, shape[:1], dtype, finite=True)


def _is_scale(scale: Any, dtype: np.dtype) -> bool:
    """Whether this is a power of two that numbers of this type can be multiplied with."""
    if not is_number(scale):
        return False
    fraction, exponent = math.frexp(scale)
    return fraction == 0.5 and abs(exponent) < np.finfo(dtype).maxexp


def _check_covariances(found: Any, count: int, axes: int, dtype: np.dtype) -> None:
    if isinstance(found, Joined):
        need(len(found.parts) == len(found.classes), "covariances without classes")
        for part, classes in zip(found.parts, found.classes, strict=True):
            need(not isinstance(part, Joined), "covariances are joined twice")
            _check_covariances(part, len(classes), axes, dtype)
        _check_classes(found.classes, count)
    elif isinstance(found, Dense):
        _check_array(found.matrices, (count, axes, axes), dtype)
    elif isinstance(found, Diagonal):
        _check_array(found.variances, (count, axes), dtype, finite=True)
        need(bool((found.variances >= 0).all()), "a variance is negative")
    else:
        need(isinstance(found, Factored), "covariances are something else")
        size = found.rows.shape[1]
        _check_array(found.rows, (count, size, axes), dtype)
        _check_array(found.means, (count, axes), dtype, finite=True)
        _check_array(found.scales, (count, size), dtype, finite=True)
        if found.lengths is not None:
            _check_array(found.lengths, (count, size), dtype, finite=True)


def _check_buckets(buckets: Any, counts: np.ndarray, axes: int, dtype: np.dtype) -> None:
    need(
        isinstance(buckets, tuple) and all(isinstance(b, Bucket) for b in buckets),
        "buckets are something else",
    )
    if not buckets:
        return
    _check_classes([bucket.classes for bucket in buckets], len(counts))
    for bucket in buckets:
        size = int(counts[bucket.classes].max())
        _check_array(bucket.units, (len(bucket.classes), size, axes), dtype)
        _check_array(bucket.mass, (len(bucket.classes), size), dtype)
        whole = np.abs(bucket.mass.sum(axis=1) - 1) < MASS_TOLERANCE
        need(bool(whole.all() and (bucket.mass >= 0).all()), "the sample weights of a class do not sum to 1")


def _check_classes(parts: Any, count: int) -> None:
    """Raise unless each of the classes is in one of the parts."""
    need(all(isinstance(x, np.ndarray) and x.dtype == np.int64 and x.ndim == 1 for x in parts), "no classes")
    together = np.sort(np.concatenate(parts))
    need(np.array_equal(together, np.arange(count)), "the classes of parts are not those of the bank")
