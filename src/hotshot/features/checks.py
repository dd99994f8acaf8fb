"""Checks of features and labels where they enter, each with one sentence that names the remedy."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotshot.arrays import as_floats, to_numpy
from hotshot.errors import InputError


def check_features(X: Any, name: str = "X", *, width: int | None = None) -> np.ndarray:
    """`X` as a finite (samples, V) NumPy array of float32 or float64."""
    array = to_numpy(as_floats(getattr(X, "values", X), name))
    if array.ndim != 2:
        raise InputError(
            f"{name} must be a 2-dimensional (samples, features) array, got shape {array.shape}: "
            "reshape one sample to (1, features)."
        )
    if 0 in array.shape:
        raise InputError(f"{name} must hold at least one sample and one feature, got shape {array.shape}.")
    if width is not None and array.shape[1] != width:
        raise InputError(
            f"{name} has {array.shape[1]} features where {width} were expected: "
            "extract all features with the same model."
        )
    check_finite(array, name)
    return array


def check_finite(array: np.ndarray, name: str) -> None:
    """Raise where an entry is NaN or infinite, naming the first."""
    if np.isfinite(array).all():
        return
    bad = np.argwhere(~np.isfinite(array))
    row, column = bad[0]
    raise InputError(
        f"{name} holds NaN or infinity in {len(bad)} entries, the first in row {row}, column {column}: "
        "remove or repair these samples."
    )


def check_labels(y: Any, n_samples: int, name: str = "y") -> tuple[np.ndarray, np.ndarray]:
    """Distinct labels in sorted order, and the index of each sample's label among them."""
    array = to_numpy(y) if hasattr(y, "detach") else np.asarray(y)
    if array.ndim != 1 or len(array) != n_samples:
        raise InputError(f"{name} must hold one label per sample ({n_samples}), got shape {array.shape}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"{name} holds NaN or infinity: give every sample a label.")
    try:
        classes, indices = np.unique(array, return_inverse=True)
    except TypeError:
        raise InputError(
            f"{name} mixes labels that cannot be sorted, such as strings and numbers: use one type."
        ) from None
    return classes, indices
