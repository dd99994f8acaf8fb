"""Shared by all readers: safe opening of files, features that are read on demand, and labels."""

import json
import mmap
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.kept import Kept
from hotshot.formatting import printable, readable_size

# Without waiting for the other end of a pipe, and as bytes on every system.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# Compressed features shrink by a small factor, a bomb by a thousand and more.
MOST_EXPANSION = 200
ALWAYS_ALLOWED = 2**28
# Rows that a stream takes from a file at once.
ROWS_AT_ONCE = 2**13

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,19}")

# Features (rows, V) and labels (rows,), which are None where a file has none.
Batch = tuple[np.ndarray, Any]


class SeveralPartsError(InputError):
    """A file holds several sets of samples and none was selected; `parts` are their names."""

    def __init__(self, message: str, parts: Iterable[str]) -> None:
        super().__init__(message)
        self.parts = tuple(parts)


@contextmanager
def opened(path: str | Path, most: int | None = None) -> Iterator[BinaryIO]:
    """A file open for reading, of at most so many bytes; folders, pipes and devices are refused without waiting."""
    if "\0" in str(path):
        raise InputError(f"{printable(path)} cannot be read, its name has a NUL character: rename it.")
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, _FLAGS)) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise InputError(f"{printable(path)} is not a regular file: copy its content to one.")
            if most is not None and facts.st_size > most:
                held, allowed = readable_size(facts.st_size), readable_size(most)
                raise InputError(
                    f"{path} has {held}, and at most {allowed} are allowed: it is damaged, or another kind of file."
                )
            yield file
    except FileNotFoundError:
        raise InputError(f"There is no file {printable(path)}.") from None
    except IsADirectoryError:
        raise InputError(f"{printable(path)} is a folder: pass one file.") from None
    except OSError as error:
        raise InputError(f"{printable(path)} cannot be read: {error.strerror or error}.") from None


def json_object(text: str | bytes, **options: Any) -> dict[str, Any] | None:
    """The JSON object in a text; None if it is anything else."""
    try:
        found = json.loads(text, **options)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def damaged(what: str) -> InputError:
    """The error for a damaged file, with what to do about it."""
    return InputError(f"{what}: copy or download it again.")


def map_bytes(path: str | Path) -> mmap.mmap:
    """All bytes of a file, mapped read-only."""
    with opened(path) as file:
        if not os.fstat(file.fileno()).st_size:
            raise damaged(f"{printable(path)} is empty")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@dataclass(frozen=True)
class FeatureSource:
    """Features and labels in a file, as they are stored; ``open_features`` returns it.

    Attributes
    ----------
    path : Path
        The file.
    n_samples : int or None
        Number of samples; None if it is known only at the end of the file.
    n_features : int
        Width of the features, V.
    dtype : dtype
        Type of the features in the file; they are not converted.
    batches : callable
        Called with a number of rows, iterates over pairs of features (rows, V) and labels (rows,), or None, in the
        order of the file.
    about : dict
        What the file states about its features: extractor, transform, source and so on.
    streams : bool
        Whether ``batches`` needs memory for one batch only, not for the whole file.
    kept : Kept
        Ids, texts, thumbnails and other columns of the rows; ``kept[rows]`` are those of a batch.
    unlabelled : str
        The error for missing labels; empty if the file has labels.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from hotshot.features import open_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/birds.npz", X=np.eye(3), y=["wren", "wren", "kite"])
    ...     X, y = open_features(f"{folder}/birds.npz").read()
    >>> X.shape
    (3, 3)
    """

    path: Path
    n_samples: int | None
    n_features: int
    dtype: np.dtype
    batches: Callable[[int], Iterator[Batch]]
    about: dict[str, Any] = field(default_factory=dict)
    streams: bool = False
    kept: Kept = None  # type: ignore[assignment]
    unlabelled: str = ""

    def __post_init__(self) -> None:
        if self.kept is None:
            object.__setattr__(self, "kept", Kept.numbered(self.n_samples or 0))

    def read(self) -> Batch:
        """Read all features and labels; they are views of the file if it can be mapped.

        Returns
        -------
        X : array (samples, V)
            Features, unchecked.
        y : array (samples,) or None
            Labels; None if there are none.
        """
        return _joined(list(self.batches(self.n_samples or ROWS_AT_ONCE)))


def in_memory(
    path: Path,
    X: Any,
    labels: Callable[[slice], np.ndarray | None],
    about: dict[str, Any],
    kept: Kept | None = None,
    unlabelled: str = "",
) -> FeatureSource:
    """Features (samples, V), in memory or read on demand, as a source; `labels` returns the labels of some rows."""
    n_samples, n_features = X.shape
    dtype = X.dtype.newbyteorder("=")

    def batches(rows: int) -> Iterator[Batch]:
        for some, block in zip(slices(n_samples, rows), blocks(X, rows), strict=True):
            yield block.astype(dtype, copy=False), labels(some)

    kept = Kept.numbered(n_samples) if kept is None else kept
    return FeatureSource(path, n_samples, n_features, dtype, batches, about, from_disk(X), kept, unlabelled)


def from_disk(array: Any) -> bool:
    """Whether rows of an array are read from the disk on demand: it is mapped, or its type is such."""
    array = array[0] if isinstance(array, list) else array
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return bool(getattr(array, "streams", isinstance(array, mmap.mmap)))


def blocks(array: Any, rows: int) -> Iterator[np.ndarray]:
    """An array, so many rows at a time; arrays that must be read in order have their own method."""
    if hasattr(array, "blocks"):
        yield from array.blocks(rows)
        return
    for some in slices(len(array), rows):
        yield np.stack(array[some]) if isinstance(array, list) else np.asarray(array[some])


def rebatch(pieces: Iterable[Batch], rows: int) -> Iterator[Batch]:
    """Pieces of any sizes as batches of exactly `rows`, the last one shorter."""
    waiting: list[Batch] = []
    held = 0
    for X, y in pieces:
        start = 0
        while start < len(X):
            stop = min(len(X), start + rows - held)
            waiting.append((X[start:stop], None if y is None else y[start:stop]))
            held, start = held + stop - start, stop
            if held == rows:
                yield _joined(waiting)
                waiting, held = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Batch]) -> Batch:
    if len(parts) == 1:
        return parts[0]
    labels = [y for _, y in parts if y is not None]
    return np.concatenate([X for X, _ in parts]), np.concatenate(labels) if labels else None


def most_bytes(path: Path) -> int:
    """Bytes that a compressed file may unpack to: 200 times its size, but at least 256 MiB."""
    return max(ALWAYS_ALLOWED, MOST_EXPANSION * path.stat().st_size)


def check_size(path: Path, n_bytes: int, what: str) -> None:
    """Refuse `what` in a compressed file, such as "array 'X'", if it would unpack to more than is allowed."""
    if n_bytes > ALWAYS_ALLOWED and n_bytes > most_bytes(path):
        raise InputError(
            f"{path} holds {what} of {readable_size(n_bytes)}, but a file of {readable_size(path.stat().st_size)} "
            f"may unpack to at most {readable_size(most_bytes(path))}: it is damaged or hostile; if you trust it, "
            "unpack it yourself and store it uncompressed."
        )


def label_array(values: Any, name: str, path: Path) -> np.ndarray:
    """Labels as a one-dimensional array of strings, integers, booleans or floats; raises for anything else."""
    if isinstance(values, Sequence):
        kinds = {_kind(value) for value in values}
        if len(kinds) > 1 or None in kinds:
            raise InputError(
                f"{path} has labels of different or unknown types in {name}: use all strings or all integers."
            )
        if kinds == {str}:
            # NumPy gives every string the room of the longest, and drops NUL characters at the end.
            check_size(path, 4 * len(values) * max(map(len, values)), "labels")
            if any(value.endswith("\0") for value in values):
                raise InputError(f"{path} has labels that end in a NUL character in {name}: rename them.")
        if kinds == {int}:
            return integer_array(values, path)
    array = np.asarray(values)
    if array.ndim == 2 and 1 in array.shape:
        # MATLAB has no vectors, only rows and columns.
        array = array.reshape(-1)
    if array.ndim != 1:
        raise InputError(
            f"{path} has labels in {name} of shape {array.shape}, and one label per sample is needed: "
            "take the argmax of one-hot rows first."
        )
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{path} has labels in {name} that are not UTF-8: store them as text.") from None
    if array.dtype.kind not in "Uiubf":
        raise InputError(f"{path} has labels of type {array.dtype} in {name}: use strings or integers.")
    if not is_text(array):
        raise damaged(f"{path} has labels in {name} with invalid characters")
    return array


def is_text(array: np.ndarray) -> bool:
    """Whether an array holds no text, or only valid characters: NumPy does not check them."""
    if array.dtype.kind != "U" or not array.size:
        return True
    codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    # Surrogates of UTF-16 are not characters.
    return bool(codes.max() <= sys.maxunicode and not ((codes >= 0xD800) & (codes < 0xE000)).any())


def integer_array(values: Sequence[int], path: Path) -> np.ndarray:
    """Integers as int64 or uint64."""
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(values, dtype=dtype)
        except OverflowError:
            continue
    raise InputError(f"{path} has integer labels of more than 64 bits: store them as strings.")


def name_labels(codes: np.ndarray, names: np.ndarray, name: str, path: Path) -> np.ndarray:
    """The class names of integer labels that count from 0 or, as in MATLAB, from 1."""
    if not np.isfinite(codes).all() or (codes != np.floor(codes)).any():
        raise InputError(f"{path} has class names {name} but labels that are not integers: use whole numbers.")
    low, high = int(codes.min()), int(codes.max())
    if low >= 1 and high < len(names) and path.suffix.lower() == ".mat":
        raise InputError(
            f"{path} has labels from {low} to {high} and {len(names)} class names in {name}, which may be "
            "counted from 0 or from 1: remove the names of classes without samples."
        )
    first = 1 if low >= 1 and high == len(names) else 0
    if low < first or high - first >= len(names):
        raise InputError(
            f"{path} has labels from {low} to {high} but {len(names)} class names in {name}: "
            "give a name to every class."
        )
    check_size(path, len(codes) * names.itemsize, "labels")
    return names[codes.astype(np.int64) - first]


def labels_from_text(texts: Sequence[str], path: Path) -> np.ndarray:
    """Labels from their distinct texts: integers if all look like integers (7, not 007 or 7.0)."""
    if _are_integers(texts):
        return integer_array([int(text) for text in texts], path)
    return label_array(list(texts), "its labels", path)


def _are_integers(texts: Sequence[str]) -> bool:
    """Whether all texts are integers as Python prints them, in 64 bits."""
    if not all(map(_INTEGER.fullmatch, texts)):
        return False
    values = [int(text) for text in texts]
    return min(values) >= (-(2**63) if max(values) < 2**63 else 0) and max(values) < 2**64


def _kind(value: Any) -> type | None:
    kinds: dict[type, Any] = {bool: (bool, np.bool_), int: (int, np.integer), str: str, float: (float, np.floating)}
    return next((kind for kind, types in kinds.items() if isinstance(value, types)), None)
