"""Samples: features or raw inputs with labels and other columns, in memory or read from a file in batches."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.formatting import listing, on_one_line, quoted

# Rows that a stream takes from a file at once.
ROWS_AT_ONCE = 2**13
# Columns with a meaning; all others keep the names that they have in the file.
ID, TEXT, THUMBNAIL = "id", "text", "thumbnail"
# Columns of these names say where a row comes from. Names are compared without case, signs and units: `Start (s)` is
# start.
ID_COLUMNS = ("id", "ids")
TEXT_COLUMNS = ("text", "texts", "sentence", "question", "query", "utterance")
PLACES = ("file", "filename", "filepath", "path", "recording", "key", "sourceid")
TIMES = ("start", "starttime", "begintime", "end", "endtime", "time", "offset", "timestamp")

# Features (rows, V) and labels (rows,), which are None where a file has none.
Batch = tuple[np.ndarray, Any]
Columns = Mapping[str, Sequence[Any]]


class SeveralPartsError(InputError):
    """A file holds several sets of samples and none was selected; `parts` are their names."""

    def __init__(self, message: str, parts: Iterable[str]) -> None:
        super().__init__(message)
        self.parts = tuple(parts)


def choose_part(parts: Mapping[str, Any], part: str | None, path: Path) -> Any:
    """The requested set of samples, or the only one."""
    if part is None and len(parts) > 1:
        raise SeveralPartsError(
            f"{path} holds several sets of samples, {listing(map(quoted, parts))}: "
            f"choose one, for example {path.name}:{on_one_line(next(iter(parts)), 60)}.",
            parts,
        )
    if part is not None and part not in parts:
        raise InputError(f"{path} has no part {quoted(part)}: it has {listing(map(quoted, parts))}.")
    return next(iter(parts.values())) if part is None else parts[part]


class Lazy(Sequence[Any]):
    """One value per row, made when it is used: a million of them take no memory before."""

    def __init__(self, make: Callable[[int], Any], rows: Sequence[int]) -> None:
        self.make, self.rows = make, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return Lazy(self.make, self.rows[row])
        return self.make(self.rows[row])

    def __iter__(self) -> Iterator[Any]:
        return map(self.make, self.rows)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process cannot refer to the file.
        return list, (list(self),)


@dataclass(frozen=True)
class Samples:
    """Features, or texts or images, with labels and other columns; ``X, y = samples`` works.

    ``samples[rows]`` are some of them: a slice, row numbers or a boolean mask.

    Attributes
    ----------
    X : array (samples, V) or sequence
        Features, or the raw inputs.
    y : array (samples,) or None
        Labels; None if there are none.
    columns : dict of str to sequence
        Other columns by name: ``"id"`` and ``"text"``, ``"thumbnail"`` (bytes of a small WebP or JPEG image), and those
        that a table of features has beside them, such as "file", "start" and "end".
    about : dict
        What a file states about its features, such as their extractor.
    errors : dict of int to str
        Why a row cannot be read, by its number.

    Examples
    --------
    >>> import numpy as np
    >>> samples = Samples(np.eye(2), np.array(["wren", "kite"]), {"text": ["a wren", "a kite"]})
    >>> X, y = samples[[1]]
    >>> y.tolist(), samples[[1]].texts, samples.ids[1]
    (['kite'], ['a kite'], '1')
    """

    X: Any
    y: Any = None
    columns: Columns = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.X, self.y))

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Any) -> Samples:
        numbers = np.arange(len(self))[rows]
        errors = {place: self.errors[row] for place, row in enumerate(numbers.tolist()) if row in self.errors}
        y = None if self.y is None else some_of(self.y, rows, numbers)
        # Rows keep their numbers.
        columns = {ID: self.ids, **self.columns}
        columns = {name: some_of(values, rows, numbers) for name, values in columns.items()}
        return Samples(some_of(self.X, rows, numbers), y, columns, self.about, errors)

    @property
    def ids(self) -> Sequence[str]:
        """Path, id or number of each sample, from 0."""
        return self.columns.get(ID, Lazy(str, range(len(self))))

    @property
    def texts(self) -> Sequence[str] | None:
        """Text of each sample, if the features are of texts."""
        return self.columns.get(TEXT)

    @property
    def thumbnails(self) -> Sequence[bytes] | None:
        """Small image of each sample, if there is one."""
        return self.columns.get(THUMBNAIL)


def some_of(values: Any, rows: Any, numbers: np.ndarray) -> Any:
    """Some values: `rows` of an array or, if it is a slice, of a sequence; else those with these numbers."""
    if isinstance(rows, slice) or isinstance(values, np.ndarray):
        return values[rows]
    return [values[row] for row in numbers.tolist()]


def bare(name: str) -> str:
    """The name of a column, normalised for comparison with the names above."""
    return re.sub(r"\([^)]*\)|[^a-z0-9]", "", name.lower())


def columns_of(columns: Columns, n_samples: int) -> dict[str, Sequence[Any]]:
    """Columns with `id` and `text` under these names; without an id, places and times together are it."""
    columns = dict(columns)
    usual: dict[str, Sequence[Any]] = {}
    for role, names in ((ID, ID_COLUMNS), (TEXT, TEXT_COLUMNS)):
        called = {bare(name): name for name in reversed(columns) if name != THUMBNAIL}
        name = next((called[n] for n in names if n in called), None)
        if name is not None:
            usual[role] = columns.pop(name)
    places, times = ([columns[n] for n in columns if bare(n) in names] for names in (PLACES, TIMES))

    def made(row: int) -> str:
        """`XC123.wav 3.0-6.0`."""
        parts = [*(values[row] for values in places), "-".join(values[row] for values in times)]
        return " ".join(part for part in parts if part)

    if ID not in usual and (places or times):
        usual = {ID: Lazy(made, range(n_samples)), **usual}
    return {**usual, **columns}


@dataclass(frozen=True)
class FeatureSource:
    """Features and labels in a file, as they are stored; ``open_features`` returns it.

    Attributes
    ----------
    path : Path
        The file.
    n_samples, n_features : int
        Number of samples, and width of the features, V.
    dtype : dtype
        Type of the features in the file; they are not converted.
    pieces : callable
        Called with a number of rows, iterates over pairs of features (rows, V) and labels (rows,), or None, in the
        order of the file, about so many rows at a time.
    about : dict
        What the file states about its features: extractor, transform, source and so on.
    columns : dict of str to sequence
        Ids, texts, thumbnails and other columns, as in ``Samples``.
    unlabelled : str
        The error for missing labels; empty if the file has labels.
    """

    path: Path
    n_samples: int
    n_features: int
    dtype: np.dtype
    pieces: Callable[[int], Iterator[Batch]]
    about: dict[str, Any] = field(default_factory=dict)
    columns: Columns = field(default_factory=dict)
    unlabelled: str = ""

    def batches(self, rows: int) -> Iterator[Samples]:
        """Samples in the order of the file, so many in each batch but the last, which may have fewer."""
        first, columns = 0, {ID: Lazy(str, range(self.n_samples)), **self.columns}
        for X, y in _batches_of(self.pieces(rows), rows):
            some = slice(first, first + len(X))
            yield Samples(X, y, {name: values[some] for name, values in columns.items()}, self.about)
            first = some.stop

    def read(self) -> Batch:
        """All features (samples, V), unchecked, and labels, or None; views of the file if it can be mapped."""
        return _joined(list(self.pieces(self.n_samples)))


def _batches_of(pieces: Iterable[Batch], rows: int) -> Iterator[Batch]:
    """Pieces of any sizes as batches of exactly `rows`, the last one shorter."""
    waiting: list[Batch] = []
    n_waiting = 0
    for X, y in pieces:
        start = 0
        while start < len(X):
            stop = min(len(X), start + rows - n_waiting)
            waiting.append((X[start:stop], None if y is None else y[start:stop]))
            n_waiting, start = n_waiting + stop - start, stop
            if n_waiting == rows:
                yield _joined(waiting)
                waiting, n_waiting = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    labels = [y for _, y in batches if y is not None]
    return np.concatenate([X for X, _ in batches]), np.concatenate(labels) if labels else None


def in_memory(
    path: Path,
    X: Any,
    y: np.ndarray | Callable[[slice], np.ndarray] | None,
    about: dict[str, Any],
    columns: Columns | None = None,
    unlabelled: str = "",
) -> FeatureSource:
    """Features (samples, V), in memory or read on demand, as a source; `y` may be a function from rows to labels."""
    n_samples, n_features = X.shape
    dtype = X.dtype.newbyteorder("=")

    def pieces(rows: int) -> Iterator[Batch]:
        for some, block in zip(slices(n_samples, rows), blocks(X, rows), strict=True):
            yield block.astype(dtype, copy=False), y(some) if callable(y) else None if y is None else y[some]

    return FeatureSource(path, n_samples, n_features, dtype, pieces, about, columns or {}, unlabelled)


def blocks(array: Any, rows: int) -> Iterator[np.ndarray]:
    """An array, so many rows at a time; arrays that must be read in order have their own method."""
    if hasattr(array, "blocks"):
        yield from array.blocks(rows)
        return
    for some in slices(len(array), rows):
        yield np.stack(array[some]) if isinstance(array, list) else np.asarray(array[some])
