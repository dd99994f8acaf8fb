"""What every reader gives: a file that was looked at, whose features are read when asked for, and their limits."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.names import readable_size

# Compressed features shrink by a small factor, a bomb by a thousand and more.
MOST_EXPANSION = 200
ALWAYS_ALLOWED = 2**28
# Rows that a stream takes from a file at once.
ROWS_AT_ONCE = 2**13

Batch = tuple[np.ndarray, np.ndarray]


class SeveralPartsError(InputError):
    """A file holds several sets of samples and none was chosen; `parts` are their names."""

    def __init__(self, message: str, parts: Iterable[str]) -> None:
        super().__init__(message)
        self.parts = tuple(parts)


@dataclass(frozen=True)
class FeatureSource:
    """Features (samples, V) and labels (samples,) in a file, as they are stored.

    Attributes
    ----------
    path : Path
    n_samples : int or None
        None where only the end of the file tells.
    n_features : int
        V.
    dtype : dtype
        Of the features in the file; they are not converted here.
    batches : function of a number of rows
        Iterates over the file: features (rows, V) and labels (rows,) at a time, in the order of the file.
    about : dict
        What the file says of its features: extractor, transform, source and so on; empty where it says nothing.
    streams : bool
        Whether `batches` needs memory for one batch only, not for the whole file.
    """

    path: Path
    n_samples: int | None
    n_features: int
    dtype: np.dtype
    batches: Callable[[int], Iterator[Batch]]
    about: dict[str, Any] = field(default_factory=dict)
    streams: bool = False

    def read(self) -> Batch:
        """All features and labels; views of the file where it can be mapped."""
        parts = list(self.batches(self.n_samples or ROWS_AT_ONCE))
        return _joined(parts)


def in_memory(
    path: Path,
    X: np.ndarray,
    labels: Callable[[slice], np.ndarray],
    about: dict[str, Any],
    streams: bool = False,
) -> FeatureSource:
    """Features (samples, V), in memory or mapped, as a source; `labels` gives those of some rows."""

    def batches(rows: int) -> Iterator[Batch]:
        for some in slices(len(X), rows):
            yield X[some], labels(some)

    return FeatureSource(path, len(X), X.shape[1], X.dtype, batches, about, streams)


def from_disk(array: Any) -> bool:
    """Whether rows of an array come from the disk when they are asked for: it is mapped, or says so itself."""
    array = array[0] if isinstance(array, list) else array
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return bool(getattr(array, "streams", isinstance(array, mmap.mmap)))


def blocks(array: Any, rows: int) -> Iterator[np.ndarray]:
    """An array a number of rows at a time; one that can only be read from its start knows how itself."""
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
            waiting.append((X[start:stop], y[start:stop]))
            held, start = held + stop - start, stop
            if held == rows:
                yield _joined(waiting)
                waiting, held = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Batch]) -> Batch:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])


def most_bytes(path: Path) -> int:
    """Bytes that a compressed file may unpack to: 200 times its size, and 256 MiB in any case."""
    return max(ALWAYS_ALLOWED, MOST_EXPANSION * path.stat().st_size)


def check_size(path: Path, n_bytes: int, what: str) -> None:
    """Refuse `what` in a compressed file, such as "array 'X'", where it would unpack to more than is allowed."""
    if n_bytes > ALWAYS_ALLOWED and n_bytes > most_bytes(path):
        raise InputError(
            f"{path} holds {what} of {readable_size(n_bytes)} where a file of {readable_size(path.stat().st_size)} "
            f"may unpack to {readable_size(most_bytes(path))}: it is damaged or hostile; if you trust it, unpack it "
            "yourself and store it uncompressed."
        )
