"""Checks of features and labels where they enter, each with one sentence that names the remedy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hotshot.arrays import as_floats, to_numpy
from hotshot.errors import InputError


def check_features(X: Any, name: str = "X", *, width: int | None = None) -> np.ndarray:
    """`X` as a finite (samples, V) NumPy array of float32 or float64."""
    array = to_numpy(as_floats(X.to_numpy() if hasattr(X, "to_numpy") else X, name))
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
    array = _label_array(y, name)
    if array.ndim != 1 or len(array) != n_samples:
        raise InputError(f"{name} must hold one label per sample ({n_samples}), got shape {array.shape}.")
    if any(_is_missing(label) for label in array) if array.dtype.kind == "O" else _not_finite(array):
        raise InputError(f"{name} holds NaN or infinity: give every sample a label.")
    try:
        classes, members = np.unique(array, return_inverse=True)
    except TypeError:
        raise _unsortable(name) from None
    return classes, members


def _label_array(y: Any, name: str) -> np.ndarray:
    if hasattr(y, "to_numpy"):
        return y.to_numpy()
    if hasattr(y, "dtype"):
        return to_numpy(y)
    if isinstance(y, (str, bytes)) or not isinstance(y, Iterable):
        raise InputError(f"{name} must hold one label per sample, got {type(y).__name__}.")
    y = list(y)
    # NumPy would turn 1 and "1" into the same string.
    if len({isinstance(label, str) for label in y}) > 1:
        raise _unsortable(name)
    try:
        return np.asarray(y)
    except ValueError:
        raise InputError(f"{name} must hold one label per sample, got lists of different lengths.") from None


def _is_missing(label: Any) -> bool:
    """Only NaN differs from itself, and pandas' NA will not even say."""
    try:
        return bool(label != label)
    except TypeError:
        return True


def _not_finite(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" and not bool(np.isfinite(array).all())


def _unsortable(name: str) -> InputError:
    return InputError(f"{name} mixes labels that cannot be sorted, such as strings and numbers: use one type.")
