"""Pickles of features, such as the `.plk` files of S2M2 and Free-Lunch, read without running anything in them.

A pickle or a torch file may hold:

- a dictionary from label to vectors, as the files of S2M2 and Free-Lunch: lists of vectors, or arrays (samples, V);
- a dictionary of named arrays, such as `features` and `labels`;
- a pair of features and labels;
- a dictionary of any of these, of which `part` chooses one.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.child import Bytes, Items, Other, Texts, Vectors, read_in_child
from hotshot.files.named import FEATURE_NAMES, choose_part, class_vectors, features_from_arrays, features_from_classes
from hotshot.files.source import FeatureSource, check_size
from hotshot.files.unpickling import Record, Unpickler, as_text, refuse_invalid
from hotshot.formatting import quoted, readable_size

# A list of one small integer takes four bytes in a pickle and, with what NumPy needs, 32 in memory; vectors that
# are arrays do not grow.
MOST_GROWTH = 8
GROWTH_ALWAYS = 2**20
# Protocol 2 and later start with the first, and older ones with a container or a name.
_STARTS = b"\x80(]})c"
_LONGEST_LABEL = 1000
_MOST_DEPTH = 6
_BYTES_PER_VALUE = 16


def open_pickle(path: str | Path, part: str | None = None) -> FeatureSource:
    """Features in a pickle of any protocol, written by Python 2 or 3 with NumPy 1 or 2.

    The result may take at most eight times the size of the file and a megabyte. A file with more than one pickle is
    refused: the rest would be lost silently. `part` is the key of one of several sets of samples.
    """
    return features_from_value(load_pickle(Path(path)), Path(path), part)


def load_pickle(path: Path, name: str | None = None) -> Any:
    """The value in a pickle, as dictionaries and lists; error messages call the file `name`.

    Arrays are mapped. Lists of numbers or of text are arrays, vectors in a list are flat arrays, and byte strings in
    a list are views of one.
    """
    return as_python(read_in_child("pickles", path, name=name), path)


def as_python(value: Any, path: Path) -> Any:
    """The answer of a child about a pickle or a torch file, as plain values."""
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


def read_raw(path: Path, name: str) -> Any:
    """The value of a pickle, as few arrays; runs in the child."""
    with path.open("rb") as file:
        start = file.read(12)
        if start[:1] not in _STARTS:
            raise InputError(f"{name} is not a pickle, it starts with {start!r}: copy or download it again.")
        file.seek(0)
        with refuse_invalid(file, name, "pickle of features"):
            value = Unpickler(file, name).load()
            rest = len(file.read())
            if rest:
                raise InputError(
                    f"{name} holds {rest} bytes after its first pickle: store all vectors in one dictionary of label "
                    "to vectors, in one pickle."
                )
            return Flattener(name, MOST_GROWTH * path.stat().st_size + GROWTH_ALWAYS).flat(value)


class Flattener:
    """Collects the vectors of a value in few arrays, within a limit of memory.

    A file may refer to the same vector any number of times: without a limit a kilobyte could ask for terabytes.
    """

    def __init__(self, name: str, allowance: int) -> None:
        self.name = name
        self.allowance = self.left = allowance

    def flat(self, value: Any, depth: int = 0) -> Any:
        """The value in the form of a child's answer."""
        self._spend(_BYTES_PER_VALUE)
        if isinstance(value, (bytes, bytearray, np.generic)):
            value = value.item() if isinstance(value, np.generic) else as_text(value)
        if value is None or type(value) in (bool, float) or (type(value) is int and abs(value) < 2**63):
            return value
        if type(value) is str and _is_clean(value):
            self._spend(len(value))
            return value
        if isinstance(value, Record):
            return self._array(value.numbers())
        if isinstance(value, dict) and depth < _MOST_DEPTH:
            keys = tuple(self.flat(key, _MOST_DEPTH) for key in value)
            return Items(keys, tuple(self.flat(item, depth + 1) for item in value.values()))
        if type(value) in (list, tuple) and depth < _MOST_DEPTH:
            return self._list(value, depth)
        return Other(type(value).__name__)

    def _list(self, items: Any, depth: int) -> Any:
        kinds = set(map(type, items))
        if kinds and all(issubclass(kind, (bytes, bytearray, str)) for kind in kinds):
            if str in kinds:
                return self._texts(items)
            return self._joined(Bytes, [np.frombuffer(x, np.uint8) for x in items])
        if (numbers := self._numbers(items, kinds)) is not None:
            return numbers
        # Two arrays alone are features and labels.
        if kinds and all(issubclass(kind, (list, tuple, Record)) for kind in kinds) and (depth or len(items) != 2):
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
        if not isinstance(item, Record):
            return self._numbers(item, set(map(type, item)))
        array = item.numbers()
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


def features_from_value(value: Any, path: Path, part: str | None) -> FeatureSource:
    """The features and labels in a value from `as_python`."""
    if isinstance(value, dict):
        return _from_dictionary(value, path, part)
    if isinstance(value, list) and len(value) == 2 and _axes(value[0]) in (2, 3) and _axes(value[1]) == 1:
        arrays = {name: _array(item, name, path) for name, item in zip("Xy", value, strict=True)}
        return features_from_arrays(arrays, path, part=part)
    what = {2: "vectors without labels", 1: "one list of values"}.get(_axes(value), "no vectors by class")
    wrong = (
        f"{path} holds {what}: store a dictionary of label to vectors, or of 'X' (samples, features) and 'y' (samples)."
    )
    if _axes(value) == 2:
        return replace(features_from_arrays({"X": _array(value, "X", path)}, path, part=part), unlabelled=wrong)
    raise InputError(wrong)


def _from_dictionary(items: dict[Any, Any], path: Path, part: str | None, may_have_parts: bool = True) -> FeatureSource:
    if not items:
        raise InputError(f"{path} holds an empty dictionary: store vectors by class.")
    for key in items:
        if not (type(key) is int or (type(key) is str and len(key) <= _LONGEST_LABEL)):
            what = f"text of {len(key)} characters" if type(key) is str else f"of type {_kind(key)}"
            raise InputError(f"{path} has a label that is {what}: use short text or integers.")
    arrays = {key: value for key, value in items.items() if _axes(value)}
    parts = {key: value for key, value in items.items() if isinstance(value, dict)}
    if parts and not arrays and may_have_parts:
        chosen = choose_part({str(key): value for key, value in parts.items()}, part, path)
        return _from_dictionary(chosen, path, None, may_have_parts=False)
    if arrays and all(type(key) is str for key in items) and _are_named(arrays):
        about = {key: value for key, value in items.items() if type(value) in (int, float, bool, str)}
        named = {key: _array(value, key, path) for key, value in arrays.items()}
        return features_from_arrays(named, path, part=part, about=about)
    if part is not None:
        raise InputError(f"{path} has no part {quoted(part)}: it holds vectors by class.")
    return features_from_classes(items, path)


def _are_named(items: dict[str, Any]) -> bool:
    """Whether keys are names of arrays, not of classes: lists of vectors under names unlike X are classes."""
    return (
        any(key.lower() in FEATURE_NAMES for key in items)
        or all(isinstance(value, np.ndarray) for value in items.values())
        or any(_axes(value) in (1, 3) for value in items.values())
    )


def _axes(value: Any) -> int:
    """The number of axes of an array or a list of arrays; 0 for anything else."""
    if isinstance(value, np.ndarray):
        return value.ndim
    if not isinstance(value, list) or not value:
        return 0
    nested = isinstance(value[0], (np.ndarray, list))
    return 1 + max(1, _axes(value[0])) if nested else int(not isinstance(value[0], dict))


def _array(value: Any, name: str, path: Path) -> np.ndarray:
    """A named array: of numbers or of text."""
    if isinstance(value, np.ndarray):
        return value
    if all(isinstance(item, memoryview) for item in value):
        texts = [as_text(item) or "" for item in value]
        check_size(path, 4 * len(texts) * max(map(len, texts)), "labels")
        return np.array(texts)
    return np.stack(class_vectors(value, name, path)[0])


def _kind(value: Any) -> str:
    return value.what if isinstance(value, Other) else type(value).__name__
