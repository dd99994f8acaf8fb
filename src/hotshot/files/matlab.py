"""MATLAB files up to version 7, read by SciPy in a child process: matrices, labels as numbers, text or cells."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.child import GROWTH_OF_COMPRESSED, read_in_child
from hotshot.files.flat import Items, Texts, text_codes
from hotshot.files.named import FEATURE_NAMES, LABEL_NAMES, features_from_arrays
from hotshot.files.source import FeatureSource, check_size
from hotshot.formatting import listing, on_one_line, quoted

_HDF5 = b"\x89HDF\r\n\x1a\n"


def open_matlab(path: str | Path, part: str | None = None) -> FeatureSource:
    """Features in a `.mat` file: a matrix X (samples, V) and labels y, or one matrix per class.

    Labels may be a row or a column of numbers, a matrix of characters or a cell array of text. MATLAB's numbers are
    floats by default: labels without a fractional part are read as integers. Variables that are neither numbers
    nor text are ignored. `part` chooses one of several sets, such as `X_base` with `y_base`.
    """
    path = Path(path)
    return features_from_arrays(read_in_child(read_raw, path, GROWTH_OF_COMPRESSED), path, part=part)


def read_raw(path: Path, name: str) -> Items:
    """The variables that are numbers or text, by name; runs in the child."""
    with path.open("rb") as file:
        start = file.read(520)
    if start[:10] == b"MATLAB 7.3" or _HDF5 in (start[:8], start[512:]):
        raise InputError(f"{name} is a MATLAB 7.3 file (HDF5): save it with save(…, '-v7') in MATLAB.")
    try:
        values = _loaded(path)
        found = {key: _array(value, key, path) for key, value in values.items()}
    except (InputError, MemoryError):
        raise
    except Exception as error:
        # Any error of SciPy is due to the file.
        reason = on_one_line(str(error) or type(error).__name__).rstrip(".")
        raise InputError(f"{name} is not a valid MATLAB file ({reason}): copy or save it again.") from None
    arrays = {key: value for key, value in found.items() if value is not None}
    if not arrays:
        raise InputError(
            f"{name} holds no real numbers and no text, only {listing(map(quoted, values)) or 'nothing'}: save X and y "
            "as plain variables."
        )
    return Items(tuple(arrays), tuple(arrays.values()))


def _loaded(path: Path) -> dict[str, Any]:
    """All variables, with numbers in the type they have in MATLAB; complex ones that are not features are left out."""
    from scipy.io import loadmat

    with warnings.catch_warnings():
        # SciPy goes on after a warning, with a text in place of the numbers or without their imaginary part.
        warnings.simplefilter("error")
        try:
            values = loadmat(path, appendmat=False, mat_dtype=True)
        except np.exceptions.ComplexWarning:
            as_stored = loadmat(path, appendmat=False)
            real = [key for key, value in as_stored.items() if getattr(value, "dtype", np.dtype(bool)).kind != "c"]
            for key in as_stored.keys() - set(real):
                if _words(key) & FEATURE_NAMES:
                    raise InputError(
                        f"{path} holds complex numbers in {quoted(key)}: take their real part or their modulus."
                    ) from None
            values = loadmat(path, appendmat=False, mat_dtype=True, variable_names=real)
    return {key: value for key, value in values.items() if not key.startswith("__")}


def _array(value: Any, key: str, path: Path) -> np.ndarray | Texts | None:
    """A variable as an array of numbers or text; None if it is neither."""
    if hasattr(value, "toarray"):
        check_size(path, 8 * math.prod(value.shape), f"the sparse matrix {quoted(key)}")
        if hasattr(value, "check_format"):
            # SciPy writes to wherever the indices point.
            value.check_format(full_check=True)
        value = value.toarray()
    if value.dtype.kind == "O":
        cells = [str(cell.item()) if cell.size else "" for cell in value.flat if _is_text(cell)]
        return text_codes(cells, value.shape) if len(cells) == value.size else None
    if value.dtype.kind == "U":
        # MATLAB fills the rows of a matrix of characters with blanks.
        return text_codes((np.char.rstrip(value) if value.size > 1 else value).flat, value.shape)
    if value.dtype.kind not in "fiub":
        return None
    value = value.astype(value.dtype.newbyteorder("="), copy=False)
    is_label = bool(_words(key) & LABEL_NAMES) and not _words(key) & FEATURE_NAMES
    return value.astype(np.int64) if is_label and _is_integral(value) else value


def _is_text(cell: Any) -> bool:
    return isinstance(cell, np.ndarray) and (cell.dtype.kind == "U" or not cell.size) and cell.size <= 1


def _is_integral(value: np.ndarray) -> bool:
    """Whether floats are integers that floats represent exactly."""
    return value.dtype.kind == "f" and bool(((value == np.floor(value)) & (np.abs(value) < 2**53)).all())


def _words(name: str) -> set[str]:
    return set(re.split(r"[_./\- ]+", name.lower()))
