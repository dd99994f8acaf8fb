"""Writing feature files in every format that is not a pickle."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import as_array, check_labels, to_numpy
from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import check_writable
from hotshot.files.named_arrays import integer_array, is_text
from hotshot.files.opening import FORMATS, by_suffix, function_of
from hotshot.files.samples import ROWS_AT_ONCE, FeatureSource, Samples, in_memory
from hotshot.formatting import quoted

_LABEL_TYPES = {"U": "str", "i": "int", "u": "int", "b": "bool", "f": "float"}
_UNLABELLED = "The features have no labels: pass one per sample."
FLOATS = ("float16", "float32", "float64")


def write_features(
    path: str | Path,
    source: FeatureSource | Samples | tuple[Any, Any],
    *,
    dtype: str | np.dtype | None = None,
    about: dict[str, Any] | None = None,
) -> None:
    """Write features to a file in the format of its suffix; the file is replaced only when it is complete.

    Memory is needed for one batch and the labels. The source is read twice: first for its classes,
    which come before the numbers.

    Parameters
    ----------
    path : path
        A ``.safetensors``, ``.npz``, ``.npy`` (labels go to ``name.labels.npy``), ``.csv``, ``.tsv`` or ``.parquet``
        file.
    source : FeatureSource, Samples or pair
        A pair is features (samples, V) and labels (samples,) or None. Ids, texts and other columns of the samples are
        written to all formats except ``.npy``; thumbnails to ``.safetensors`` and ``.parquet``.
    dtype : {"float16", "float32", "float64"}, optional
        Type of the features in the file; by default their own. A number beyond its range is an error.
    about : dict, optional
        What the file states about its features, such as ``{"extractor": "DINO"}``; by default that of the source. CSV
        and ``.npy`` files cannot hold it.

    See Also
    --------
    read_features : Read a file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hotshot import read_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_features(f"{folder}/birds.csv", (np.eye(2), ["wren", "kite"]))
    ...     X, y = read_features(f"{folder}/birds.csv")
    >>> y.tolist()
    ['wren', 'kite']
    """
    path = Path(path)
    form = by_suffix(path)
    if form is None or form.write is None:
        written = ", ".join(suffix for one in FORMATS.values() if one.write is not None for suffix in one.suffixes)
        why = f"got {path.suffix or path.name!r}" if form is None else f"hotshot only reads a {form.name}"
        raise ParameterError(f"Features are written as {written}; {why}: choose one of these suffixes.")
    check_writable(path)
    if not isinstance(source, FeatureSource):
        source = _source(source if isinstance(source, Samples) else Samples(*source))
    function_of(form.write)(path, check_content(source, dtype, about))


def _source(samples: Samples) -> FeatureSource:
    """Samples in memory as a source; they must have the form of features and labels, but may hold NaN."""
    features, y, path = to_numpy(as_array(samples.X, "X")), samples.y, Path("features")
    if features.ndim != 2 or 0 in features.shape or features.dtype.kind not in "fiub":
        raise InputError(f"X must be a real (samples, features) array, got shape {features.shape} {features.dtype}.")
    if y is None:
        return in_memory(path, features, None, samples.about, samples.columns, _UNLABELLED)
    if isinstance(y, (list, tuple)) and all(type(label) is int for label in y):
        # NumPy would make floats of integers of which one needs all of 64 bits.
        y = integer_array(y, Path("y"))
    classes, members = check_labels(y, len(features), "y")
    labels = (np.array(classes.tolist()) if classes.dtype.kind == "O" else classes)[members]
    if labels.dtype.kind not in "Uiubf":
        raise InputError(f"y must hold strings, integers, booleans or floats, got {classes.dtype}.")
    if not is_text(labels):
        raise InputError("y holds labels with invalid characters: rename them.")
    return in_memory(path, features, labels, samples.about, samples.columns)


@dataclass(frozen=True)
class Content:
    """Features to be written to a file: their type in it, and the header.

    `codes` (samples,) are the indices of labels among `classes`, which are distinct, in the order of their first
    samples, and of one type, `label_type`: str, int, bool or float. Without labels both are empty.
    """

    source: FeatureSource
    n_samples: int
    dtype: np.dtype
    codes: np.ndarray
    classes: list[Any]
    label_type: str
    about: dict[str, Any]
    columns: Mapping[str, Sequence[Any]]

    @property
    def shape(self) -> tuple[int, int]:
        """(samples, V)."""
        return self.n_samples, self.source.n_features

    @property
    def y(self) -> np.ndarray | None:
        """The labels, integers in the shorter of two types that holds all; None if there are none."""
        if not self.classes:
            return None
        labels: np.ndarray = np.array(self.classes, np.uint64 if self.is_long else None)[self.codes]
        return labels

    @property
    def is_long(self) -> bool:
        """Whether a label needs all of 64 bits."""
        return self.label_type == "int" and max(self.classes) >= 2**63

    def batches(self) -> Iterator[Samples]:
        """Features in the new type, the codes of their labels and columns, a batch at a time."""
        first = 0
        for X, _ in self.source.batches(ROWS_AT_ONCE):
            some = slice(first, first + len(X))
            columns = {name: values[some] for name, values in self.columns.items()}
            yield Samples(converted(X, self.dtype, first), self.codes[some] if self.classes else None, columns)
            first = some.stop
        if first != self.n_samples:
            raise InputError(f"{self.source.path} changed while it was read: try again.")

    def blocks(self) -> Iterator[np.ndarray]:
        """The features alone."""
        return (batch.X for batch in self.batches())


def check_content(source: FeatureSource, dtype: str | np.dtype | None, about: dict[str, Any] | None) -> Content:
    """Read features once; raises if they cannot be written."""
    try:
        json.dumps(about)
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(f"about must be valid as JSON: {error}.") from None
    target = _target(source.dtype, dtype)
    numbers: dict[Any, int] = {}
    codes, types, first = [np.zeros(0, np.int64)], set(), 0
    for X, y in source.batches(ROWS_AT_ONCE):
        converted(X, target, first)
        first += len(X)
        if y is None:
            continue
        types.add(_LABEL_TYPES[y.dtype.kind])
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            raise InputError(f"{source.path} has labels that are NaN or infinite: give every sample a label.")
        codes.append(np.array([numbers.setdefault(label, len(numbers)) for label in y.tolist()], dtype=np.int64))
    if first == 0 or len(types) > 1:
        raise InputError(f"{source.path} has no samples, or labels of several types: use one type.")
    if any(len(values) != first for values in source.columns.values()):
        raise InputError(
            f"{source.path} has {first} samples and another number of ids, texts or other columns: write it again."
        )
    # Of older files: it was that of the source.
    header = {key: value for key, value in (source.about if about is None else about).items() if key != "hash"}
    return Content(source, first, target, np.concatenate(codes), list(numbers), "".join(types), header, source.columns)


def converted(X: np.ndarray, dtype: np.dtype, first: int) -> np.ndarray:
    """Features in another type; raises if a number is too large for it. `first` is the number of the first row."""
    if X.dtype == dtype:
        return X
    with np.errstate(over="ignore"):
        short = X.astype(dtype)
    lost = np.isinf(short) & np.isfinite(X)
    if lost.any():
        row, column = np.argwhere(lost)[0]
        raise InputError(
            f"The features hold {X[row, column]:.4g} in row {first + row}, column {column}, which {dtype} cannot hold: "
            "use a larger type."
        )
    return short


def _target(stored: np.dtype, dtype: str | np.dtype | None) -> np.dtype:
    if dtype is not None and str(dtype) not in FLOATS:
        raise ParameterError(f"dtype must be one of {', '.join(FLOATS)} or None, got {quoted(str(dtype))}.")
    if dtype is None and stored.kind == "f" and stored.itemsize > 8:
        raise InputError(f"Features of type {stored} cannot be written: pass dtype='float64'.")
    return stored if dtype is None else np.dtype(dtype)
