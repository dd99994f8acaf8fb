"""Nested lists, dictionaries and arrays, such as a pickle holds, as JSON and few arrays, and back: a child's answer."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.opening import check_size
from hotshot.formatting import quoted, readable_size

_MOST_DEPTH = 6
_BYTES_PER_VALUE = 16


class Other:
    """A value that feature files cannot contain: an object of the type `what`."""

    def __init__(self, what: str) -> None:
        self.what = what


class Packer:
    """Collects the arrays of a value in `arrays`, within a limit of memory.

    A file may refer to the same vector any number of times: without a limit a kilobyte could ask for terabytes.
    `as_array` makes arrays of tensors, and leaves other values alone.
    """

    def __init__(self, name: str, allowance: int, as_array: Callable[[Any], Any] = lambda value: value) -> None:
        self.name, self.as_array = name, as_array
        self.allowance = self.left = allowance
        self.arrays: dict[str, np.ndarray] = {}

    def pack(self, value: Any, depth: int = 0) -> Any:
        """The value as JSON: a plain value, or a list of its kind and its parts; arrays by their keys in `arrays`."""
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
            return ["dictionary", list(map(self._name, value)), [self.pack(x, depth + 1) for x in value.values()]]
        if type(value) in (list, tuple) and depth < _MOST_DEPTH:
            return self._list([self.as_array(item) for item in value], depth)
        return ["other", type(value).__name__]

    def _name(self, key: Any) -> Any:
        """A key of a dictionary; what holds arrays, such as a tensor, is none."""
        packed = self.pack(key, _MOST_DEPTH)
        return ["other", type(key).__name__] if isinstance(packed, list) else packed

    def _list(self, items: list[Any], depth: int) -> Any:
        kinds = set(map(type, items))
        if kinds and all(issubclass(kind, (bytes, bytearray, str)) for kind in kinds):
            if str in kinds:
                return self._texts(map(as_text, items), (len(items),))
            return ["bytes", *self._joined([np.frombuffer(x, np.uint8) for x in items])]
        numbers = self._numbers(items, kinds)
        if numbers is not None:
            return self._array(numbers)
        # Two arrays alone are features and labels.
        if kinds and all(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds) and (depth or len(items) != 2):
            rows = []
            for item in items:
                row = self._row(item)
                if row is None:
                    break
                rows.append(row)
            else:
                return ["vectors", *self._joined(rows)]
        return ["list", [self.pack(item, depth + 1) for item in items]]

    def _row(self, item: Any) -> np.ndarray | None:
        """A vector: a list of numbers, or an array with one axis longer than 1, as after pooling."""
        if not isinstance(item, np.ndarray):
            return self._numbers(item, set(map(type, item)))
        if item.dtype.kind not in "fiub" or not item.size or item.size != max(item.shape, default=0):
            return None
        self._spend(item.nbytes)
        return item.reshape(-1)

    def _numbers(self, items: Any, kinds: set[type]) -> np.ndarray | None:
        if not kinds or not all(issubclass(kind, (int, float, np.number, np.bool_)) for kind in kinds):
            return None
        self._spend(8 * len(items))
        array = np.array(items)
        # NumPy makes floats of integers that 64 bits do not hold.
        return array if array.dtype.kind in ("iub" if kinds == {int} else "fiub") else None

    def _joined(self, rows: list[np.ndarray]) -> list[str]:
        self._spend(sum(row.nbytes for row in rows) + 8 * len(rows))
        dtype = np.result_type(*{row.dtype for row in rows}).newbyteorder("=")
        joined = np.concatenate(rows, dtype=dtype, casting="unsafe")
        return [self._key(joined), self._key(np.cumsum([len(row) for row in rows]))]

    def _array(self, array: np.ndarray) -> Any:
        self._spend(array.nbytes)
        if array.dtype.kind == "c":
            raise InputError(f"{self.name} holds complex numbers: take their real part or their modulus.")
        if array.dtype.kind == "S":
            try:
                array = np.char.decode(array, "utf-8")
            except UnicodeDecodeError:
                raise InputError(f"{self.name} has labels that are not valid text: store them as UTF-8.") from None
        if array.dtype.kind in "OU":
            return self._texts(array.reshape(-1).tolist(), array.shape)
        return ["array", self._key(np.asarray(array, array.dtype.newbyteorder("="), order="C"))]

    def _texts(self, texts: Iterable[Any], shape: tuple[int, ...]) -> Any:
        """The distinct texts, and the index of each entry among them: repeated texts are stored once."""
        names: dict[str, int] = {}
        codes = np.array([names.setdefault(text, len(names)) for text in texts], dtype=np.int64)
        if not all(map(_is_clean, names)):
            raise InputError(f"{self.name} has labels that are not valid text: store them as UTF-8.")
        self._spend(sum(map(len, names)) + codes.nbytes)
        return ["texts", list(names), self._key(codes.reshape(shape))]

    def _key(self, array: np.ndarray) -> str:
        key = str(len(self.arrays))
        self.arrays[key] = array
        return key

    def _spend(self, n_bytes: int) -> None:
        self.left -= n_bytes
        if self.left < 0:
            raise InputError(
                f"{self.name} would take more than {readable_size(self.allowance)} of memory because it repeats the "
                "same vectors: it is damaged or hostile; store each vector once."
            )


def unpacked(value: Any, arrays: dict[str, np.ndarray], path: Path) -> Any:
    """The value that was packed: lists of vectors as flat arrays, byte strings as views of one."""
    if not isinstance(value, list):
        return value
    kind, *parts = value
    if kind == "array":
        return arrays[parts[0]]
    if kind == "texts":
        names, codes = np.array(parts[0]), arrays[parts[1]]
        check_size(path, codes.size * names.itemsize, "labels")
        return names[codes]
    if kind == "other":
        return Other(parts[0])
    if kind in ("vectors", "bytes"):
        numbers: Any = memoryview(arrays[parts[0]]) if kind == "bytes" else arrays[parts[0]]  # type: ignore[arg-type]
        return [numbers[start:end] for start, end in pairwise([0, *arrays[parts[1]].tolist()])]
    *keys, items = ([unpacked(item, arrays, path) for item in part] for part in parts)
    if kind == "list":
        return items
    seen: set[Any] = set()
    for key in keys[0]:
        if key in seen:
            raise InputError(f"{path} has two entries for {quoted(key)}: give every class one entry.")
        seen.add(key)
    return dict(zip(keys[0], items, strict=True))


def as_text(value: Any) -> str | None:
    """Text; bytes from Python 2 are decoded as UTF-8, or else as Latin-1, in which every byte is valid."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        return value if type(value) is str else None
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return bytes(value).decode("latin-1")


def _is_clean(text: str) -> bool:
    """Whether text can be stored: surrogates cannot be written, and NumPy drops NUL at the end."""
    return not text.endswith("\0") and not any("\ud800" <= c <= "\udfff" for c in text)
