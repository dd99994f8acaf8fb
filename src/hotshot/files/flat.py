"""Nested lists, dictionaries and arrays, such as a pickle holds, as few arrays, and back: what a child answers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.source import check_size
from hotshot.files.unpickling import as_text
from hotshot.formatting import quoted, readable_size

_MOST_DEPTH = 6
_BYTES_PER_VALUE = 16


@dataclass(frozen=True)
class Vectors:
    """A list of vectors: the `numbers` of all of them, concatenated, and where each ends."""

    numbers: np.ndarray
    ends: np.ndarray


class Bytes(Vectors):
    """A list of byte strings, stored like `Vectors`."""


@dataclass(frozen=True)
class Texts:
    """A list or array of text: the distinct texts, and the index of each entry among them."""

    names: tuple[str, ...]
    codes: np.ndarray


@dataclass(frozen=True)
class Items:
    """A dictionary."""

    keys: tuple[Any, ...]
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Other:
    """A value that feature files cannot contain, described in words."""

    what: str


TYPES = {kind.__name__: kind for kind in (Vectors, Bytes, Texts, Items, Other)}


class Flattener:
    """Collects the vectors of a value in few arrays, within a limit of memory.

    A file may refer to the same vector any number of times: without a limit a kilobyte could ask for terabytes.
    `as_array` makes arrays of tensors, and leaves other values alone.
    """

    def __init__(self, name: str, allowance: int, as_array: Callable[[Any], Any] = lambda value: value) -> None:
        self.name, self.as_array = name, as_array
        self.allowance = self.left = allowance

    def flat(self, value: Any, depth: int = 0) -> Any:
        """The value in the form of a child's answer."""
        self._spend(_BYTES_PER_VALUE)
        value = self.as_array(value)
        if isinstance(value, (bytes, bytearray, np.generic)):
            value = value.item() if isinstance(value, np.generic) else as_text(value)
        if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 2**63):
            return value
        if type(value) is str and _is_clean(value):
            self._spend(len(value))
            return value
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, dict) and depth < _MOST_DEPTH:
            keys = tuple(self.flat(key, _MOST_DEPTH) for key in value)
            return Items(keys, tuple(self.flat(item, depth + 1) for item in value.values()))
        if type(value) in (list, tuple) and depth < _MOST_DEPTH:
            return self._list(value, depth)
        return Other(type(value).__name__)

    def _list(self, items: Any, depth: int) -> Any:
        items = [self.as_array(item) for item in items]
        kinds = set(map(type, items))
        if kinds and all(issubclass(kind, (bytes, bytearray, str)) for kind in kinds):
            if str in kinds:
                return self._texts(items)
            return self._joined(Bytes, [np.frombuffer(x, np.uint8) for x in items])
        if (numbers := self._numbers(items, kinds)) is not None:
            return numbers
        # Two arrays alone are features and labels.
        if kinds and all(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds) and (depth or len(items) != 2):
            rows: list[np.ndarray] = []
            for item in items:
                row = self._row(item)
                if row is None:
                    break
                rows.append(row)
            else:
                return self._joined(Vectors, rows)
        return tuple(self.flat(item, depth + 1) for item in items)

    def _row(self, item: Any) -> np.ndarray | None:
        """A vector: a list of numbers, or an array with one axis longer than 1, as after pooling."""
        if not isinstance(item, np.ndarray):
            return self._numbers(item, set(map(type, item)))
        array = item
        if array.dtype.kind not in "fiub" or not array.size or array.size != max(array.shape, default=0):
            return None
        self._spend(array.nbytes)
        return array.reshape(-1)

    def _numbers(self, items: Any, kinds: set[type]) -> np.ndarray | None:
        if not kinds or not all(issubclass(kind, (int, float, np.number, np.bool_)) for kind in kinds):
            return None
        self._spend(8 * len(items))
        array = np.array(items)
        # NumPy makes floats of integers that 64 bits do not hold.
        return array if array.dtype.kind in ("iub" if kinds == {int} else "fiub") else None

    def _joined(self, kind: Any, rows: list[np.ndarray]) -> Any:
        self._spend(sum(row.nbytes for row in rows) + 8 * len(rows))
        dtype = np.result_type(*{row.dtype for row in rows}).newbyteorder("=")
        return kind(np.concatenate(rows, dtype=dtype, casting="unsafe"), np.cumsum([len(row) for row in rows]))

    def _array(self, array: np.ndarray) -> Any:
        self._spend(array.nbytes)
        if array.dtype.kind == "c":
            raise InputError(f"{self.name} holds complex numbers: take their real part or their modulus.")
        if array.dtype.kind == "S":
            try:
                array = np.char.decode(array, "utf-8")
            except UnicodeDecodeError:
                raise InputError(f"{self.name} has labels that are not valid text: store them as UTF-8.") from None
        if array.dtype.kind == "U":
            return text_codes(array.reshape(-1).tolist(), array.shape)
        return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))

    def _texts(self, items: Any) -> Texts:
        found = text_codes(map(as_text, items), (len(items),))
        if not all(map(_is_clean, found.names)):
            raise InputError(f"{self.name} has labels that are not valid text: store them as UTF-8.")
        self._spend(sum(map(len, found.names)) + 8 * len(items))
        return found

    def _spend(self, n_bytes: int) -> None:
        self.left -= n_bytes
        if self.left < 0:
            raise InputError(
                f"{self.name} would take more than {readable_size(self.allowance)} of memory because it repeats the "
                "same vectors: it is damaged or hostile; store each vector once."
            )


def text_codes(texts: Iterable[Any], shape: tuple[int, ...]) -> Texts:
    """Distinct texts, and the index of each entry among them: repeated texts are stored once."""
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)
    return Texts(tuple(known), codes.reshape(shape))


def _is_clean(text: str) -> bool:
    """Whether text can be stored: surrogates cannot be written, and NumPy drops NUL at the end."""
    return not text.endswith("\0") and not any("\ud800" <= c <= "\udfff" for c in text)


def as_python(value: Any, path: Path) -> Any:
    """The answer of a child as plain values."""
    if isinstance(value, Items):
        keys = [as_python(key, path) for key in value.keys]
        twice = [key for i, key in enumerate(keys) if key in set(keys[:i])] if len(set(keys)) < len(keys) else []
        if twice:
            raise InputError(f"{path} has two entries for {quoted(twice[0])}: give every class one entry.")
        return dict(zip(keys, (as_python(item, path) for item in value.values), strict=True))
    if isinstance(value, tuple):
        return [as_python(item, path) for item in value]
    if isinstance(value, Vectors):
        numbers: Any = memoryview(value.numbers) if isinstance(value, Bytes) else value.numbers  # type: ignore[arg-type]
        return [numbers[start:end] for start, end in pairwise([0, *value.ends.tolist()])]
    if isinstance(value, Texts):
        names = np.array(value.names)
        check_size(path, value.codes.size * names.itemsize, "labels")
        return names[value.codes]
    return value
