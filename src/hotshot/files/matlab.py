"""MATLAB files up to version 7: matrices, labels as numbers, text or cells of text."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.limits import check_size
from hotshot.files.mapped import map_bytes
from hotshot.files.matlab_layout import Variable, variables
from hotshot.files.named import FEATURE_NAMES, LABEL_NAMES, features_from_arrays
from hotshot.files.names import listing, quoted
from hotshot.files.source import FeatureSource
from hotshot.files.unpickling import Unsound

_HDF5 = b"\x89HDF\r\n\x1a\n"
_READABLE = ("numbers", "sparse", "text", "cells")


def open_matlab(path: str | Path, part: str | None = None) -> FeatureSource:
    """Features in a `.mat` file: a matrix X (samples, V) and labels y, or one matrix per class.

    Labels may be a row or a column of numbers, a matrix of characters or a cell array of text. MATLAB's numbers are
    floats unless told otherwise: labels without a fractional part are read as integers. Variables that are neither
    numbers nor text are left alone.

    Parameters
    ----------
    path : str or Path
    part : str or None
        Which of several sets of samples, such as `X_base`, `y_base` and `X_novel`, `y_novel`.
    """
    path = Path(path)
    data = map_bytes(path)
    if data[:10] == b"MATLAB 7.3" or _HDF5 in (data[:8], data[512:520]):
        raise InputError(f"{path} is a MATLAB 7.3 file (HDF5): save it with save(…, '-v7') in MATLAB.")
    try:
        found = [variable for variable in variables(memoryview(data), path) if variable.name]
        for variable in found:
            if variable.kind == "complex" and _words(variable.name) & FEATURE_NAMES:
                raise InputError(
                    f"{path} holds complex numbers in {quoted(variable.name)}: take their real part or their modulus."
                )
        readable = [variable for variable in found if variable.kind in _READABLE]
        if not readable:
            listed = listing(f"{quoted(v.name)} ({v.kind})" for v in found) or "nothing"
            raise InputError(
                f"{path} holds no real numbers and no text, only {listed}: save X and y as plain variables."
            )
        arrays = _read(readable, path)
    except Unsound as problem:
        raise InputError(
            f"{path} is not a sound MATLAB file, {problem}: copy or download it again."
        ) from None
    return features_from_arrays(arrays, path, part=part)


def _read(readable: list[Variable], path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    names = [variable.name for variable in readable]
    try:
        with warnings.catch_warnings(), path.open("rb") as file:
            # SciPy goes on after a warning, with a text in place of the numbers.
            warnings.simplefilter("error")
            values = loadmat(file, variable_names=names, mat_dtype=True)
            return {v.name: _array(values.pop(v.name), v, path) for v in readable if v.name in values}
    except (InputError, Unsound):
        raise
    except Exception as error:
        # Whatever SciPy stumbles over, the file is to blame.
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"{path} cannot be read as a MATLAB file ({reason[:200]}): save it again.") from None


def _array(value: Any, variable: Variable, path: Path) -> np.ndarray:
    """A variable as an array of numbers or text."""
    if variable.kind == "cells":
        return np.array([str(cell.item()) if cell.size else "" for cell in value.flat]).reshape(value.shape)
    if variable.kind == "text":
        # MATLAB fills the rows of a matrix of characters with blanks.
        return np.char.rstrip(value) if value.size > 1 else value
    if variable.kind == "sparse":
        check_size(path, 8 * math.prod(value.shape), f"the sparse matrix {quoted(variable.name)}")
        return _dense(value)
    value = value.astype(value.dtype.newbyteorder("="), copy=False)
    return value.astype(np.int64) if _is_label(variable.name) and _is_integral(value) else value


def _dense(matrix: Any) -> np.ndarray:
    """A sparse matrix with all its zeros; SciPy's own way would write to wherever the indices in the file point."""
    if matrix.format == "csc":
        counts = np.diff(matrix.indptr.astype(np.int64))
        if counts.min(initial=0) < 0 or counts.sum() != len(matrix.indices):
            raise Unsound("it has a sparse matrix whose columns overlap")
        rows, columns = matrix.indices, np.repeat(np.arange(len(counts)), counts)
    else:
        rows, columns = matrix.tocoo(copy=False).coords
    if rows.min(initial=0) < 0 or columns.min(initial=0) < 0:
        raise Unsound("it has a sparse matrix with negative indices")
    dense = np.zeros(matrix.shape, matrix.dtype)
    dense[rows, columns] = matrix.data
    return dense


def _is_integral(value: np.ndarray) -> bool:
    """Whether floats are integers, and so small that they were before they became floats."""
    return value.dtype.kind == "f" and bool(((value == np.floor(value)) & (np.abs(value) < 2**53)).all())


def _is_label(name: str) -> bool:
    return bool(_words(name) & LABEL_NAMES) and not _words(name) & FEATURE_NAMES


def _words(name: str) -> set[str]:
    return set(re.split(r"[_./\- ]+", name.lower()))
