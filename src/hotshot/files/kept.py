"""What is stored beside features, row by row: an id, the text, a thumbnail, and other columns of the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.formatting import quoted, readable_size

# A text or a thumbnail of more bytes is none.
LONGEST = 2**24
_ROWS_AT_ONCE = 2**13

# Columns of these names say where a row comes from. Numbers called as a place or time may be features, unless features
# have no names but numbers. Names are compared without case, signs and units: `Start (s)` is start.
ID_NAMES = ("id", "ids")
TEXT_NAMES = ("text", "texts", "sentence", "question", "query", "utterance")
PLACE_NAMES = ("file", "filename", "filepath", "path", "recording", "key", "sourceid")
TIME_NAMES = ("start", "starttime", "begintime", "end", "endtime", "time", "offset", "timestamp")
THUMBNAIL = "thumbnail"
_ROLES = {"ids": ID_NAMES, "texts": TEXT_NAMES}
_NAMES_OF_NUMBERS = frozenset((*ID_NAMES, *TEXT_NAMES))
_NAMES = _NAMES_OF_NUMBERS.union(PLACE_NAMES, TIME_NAMES)


def bare(name: str) -> str:
    """The name of a column, normalised for comparison with the names above."""
    return re.sub(r"\([^)]*\)|[^a-z0-9]", "", name.lower())


def is_kept(name: str, of_numbers: bool = False) -> bool:
    """Whether a column of this name, of texts or of numbers, is stored beside the features."""
    return bare(name) in (_NAMES_OF_NUMBERS if of_numbers else _NAMES)


def are_numbered(names: Sequence[str]) -> bool:
    """Whether columns of numbers are features by number, such as f0, f1 and so on, beside files and times or alone."""
    others = [name for name in names if not is_kept(name)]
    return bool(others) and all(name[-1:].isdigit() for name in others)


class Rows(Sequence[Any]):
    """One value per row, created when it is used: a million of them take no memory before."""

    def __init__(self, make: Callable[[int], Any], rows: Sequence[int]) -> None:
        self.make, self.rows = make, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            return Rows(self.make, self.rows[row])
        return self.make(self.rows[row])

    def __iter__(self) -> Iterator[Any]:
        return map(self.make, self.rows)

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy in another process cannot refer to the file.
        return list, (list(self),)


@dataclass(frozen=True)
class Kept:
    """Ids, texts, thumbnails and other columns of the rows of a feature file.

    ``kept[rows]`` are those of some rows: a slice, or a list or array of row numbers.

    Attributes
    ----------
    ids : sequence of str
        Path, id or number of each row, from 0.
    texts : sequence of str or None
        Text of each row.
    thumbnails : sequence of bytes or None
        Small image of each row, WebP or JPEG.
    columns : dict of str to sequence of str
        Other columns of the table of features by name, such as "file", "start" and "end".

    Examples
    --------
    >>> kept = Kept(ids=["a.jpg", "b.jpg"], texts=["a wren", "a kite"])
    >>> kept[[1]].texts
    ['a kite']
    """

    ids: Sequence[str]
    texts: Sequence[str] | None = None
    thumbnails: Sequence[bytes] | None = None
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def numbered(cls, n_samples: int) -> Kept:
        """Rows with numbers only.

        Parameters
        ----------
        n_samples : int
            Number of rows.

        Returns
        -------
        Kept
            Row numbers as ids.
        """
        return cls(Rows(str, range(n_samples)))

    @property
    def is_numbered(self) -> bool:
        """Whether ids are row numbers, which need not be written."""
        return isinstance(self.ids, Rows) and self.ids.make is str and self.ids.rows == range(len(self.ids))

    def stored(self) -> dict[str, Sequence[Any]]:
        """Columns that a file must hold to restore this object.

        Returns
        -------
        dict of str to sequence
            Values by column name.
        """
        ids = None if self.is_numbered else self.ids
        given = {"id": ids, "text": self.texts, THUMBNAIL: self.thumbnails, **self.columns}
        return {name: values for name, values in given.items() if values is not None}

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: Any) -> Kept:
        def some(values: Any) -> Any:
            if values is None or isinstance(rows, slice):
                return values if values is None else values[rows]
            return [values[int(row)] for row in rows]

        columns = {name: some(values) for name, values in self.columns.items()}
        return Kept(some(self.ids), some(self.texts), some(self.thumbnails), columns)


def kept_of(columns: Mapping[str, Sequence[Any]], n_samples: int) -> Kept:
    """`Kept` from columns by name; without a column `id`, file and time columns together are the id."""
    called = {bare(name): name for name in reversed(list(columns))}
    own = {role: next((called[n] for n in names if n in called), None) for role, names in _ROLES.items()}
    others = {name: values for name, values in columns.items() if name not in (THUMBNAIL, *own.values())}
    places, times = ([others[n] for n in others if bare(n) in names] for names in (PLACE_NAMES, TIME_NAMES))
    ids = Kept.numbered(n_samples).ids
    if places or times:
        ids = Rows(lambda row: _joined(places, times, row), range(n_samples))
    found = {"ids": ids, **{role: columns[name] for role, name in own.items() if name}}
    return Kept(**found, thumbnails=columns.get(THUMBNAIL), columns=others)


def _joined(places: list[Sequence[str]], times: list[Sequence[str]], row: int) -> str:
    """`XC123.wav 3.0-6.0`."""
    parts = [*(values[row] for values in places), "-".join(values[row] for values in times)]
    return " ".join(part for part in parts if part)


def unpacked(data: np.ndarray, offsets: np.ndarray, n_samples: int, name: str, path: Path) -> Rows:
    """Texts or thumbnails, concatenated in `data` (bytes,); row i is data[offsets[i] : offsets[i + 1]].

    Raises unless there is one per sample and every text is UTF-8.
    """
    what = f"{path} holds {quoted(name)} of the samples"
    if data.dtype != np.uint8 or data.ndim != 1 or offsets.dtype != np.int64 or offsets.shape != (n_samples + 1,):
        raise InputError(f"{what} in the wrong form or number: write the file again.")
    if offsets[0] != 0 or offsets[-1] != len(data) or (offsets[1:] < offsets[:-1]).any():
        raise InputError(f"{what} with invalid offsets: copy or download it again.")
    check_length(int((offsets[1:] - offsets[:-1]).max()), name, path)
    view = memoryview(data)  # type: ignore[arg-type]
    if name == THUMBNAIL:
        return Rows(lambda row: bytes(view[offsets[row] : offsets[row + 1]]), range(n_samples))
    starts = offsets[:-1][offsets[:-1] < len(data)]
    try:
        if ((data[starts] & 0xC0) == 0x80).any():
            raise ValueError
        for some in slices(n_samples, _ROWS_AT_ONCE):
            str(view[offsets[some.start] : offsets[some.stop]], "utf-8")
    except ValueError:
        raise InputError(f"{what} that is not UTF-8: write it as text.") from None
    return Rows(lambda row: str(view[offsets[row] : offsets[row + 1]], "utf-8"), range(n_samples))


def packed(values: Sequence[Any], name: str, path: Path) -> tuple[Iterator[np.ndarray], np.ndarray]:
    """Texts or thumbnails as blocks of bytes, and their offsets (samples + 1,)."""
    offsets = np.zeros(len(values) + 1, np.int64)
    for row, value in enumerate(values):
        offsets[row + 1] = len(_encoded(value, name, path))
    check_length(int(offsets.max()), name, path)

    def blocks() -> Iterator[np.ndarray]:
        for some in slices(len(values), _ROWS_AT_ONCE):
            yield np.frombuffer(b"".join(_encoded(value, name, path) for value in values[some]), np.uint8)

    return blocks(), offsets.cumsum()


def check_length(n_bytes: int, name: str, path: Path) -> None:
    """Refuse a text or thumbnail that is too long."""
    if n_bytes > LONGEST:
        raise InputError(
            f"{path} has {quoted(name)} of {readable_size(n_bytes)} for one sample, and the limit is "
            f"{readable_size(LONGEST)}: shorten it."
        )


def _encoded(value: Any, name: str, path: Path) -> bytes:
    try:
        return value.encode() if isinstance(value, str) else bytes(value)
    except UnicodeEncodeError:
        raise InputError(
            f"{path} cannot hold {quoted(name)} that is not valid text, {value[:60]!r}: repair it."
        ) from None
