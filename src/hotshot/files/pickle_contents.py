"""What the value in a pickle or a torch file means: which vectors are of which class.

- a dictionary from label to vectors, as the files of S2M2 and Free-Lunch: lists of vectors, or arrays (samples, V);
- a dictionary of named arrays, such as `features` and `labels`;
- a pair of features and labels;
- a dictionary of any of these, of which `part` chooses one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.limits import most_bytes
from hotshot.files.named import FEATURE_NAMES, features_from_arrays, features_from_classes
from hotshot.files.names import listing, quoted, readable_size
from hotshot.files.pickle_records import ArrayRecord, Name, Pairs, as_text, checked_text
from hotshot.files.pickle_rows import Rows, Vectors
from hotshot.files.source import FeatureSource, SeveralPartsError

_LONGEST_LABEL = 1000
_NUMBERS = (int, float, bool, np.generic)
_TEXTS = (str, bytes, memoryview)
# What NumPy and Python take for an array beside its numbers.
_ARRAY_BYTES = 128
_LIST_BYTES = 24


class Reader:
    """Turns the records of one file into arrays, within an allowance.

    A file may refer to the same vector any number of times: without an account a kilobyte could ask for terabytes.
    """

    def __init__(self, path: Path, allowance: int) -> None:
        self.path = path
        self.allowance = self.left = allowance
        self.text_left = most_bytes(path)

    def features(self, value: Any, part: str | None) -> FeatureSource:
        """The features and labels that a value holds."""
        if type(value) is Pairs:
            return self._from_dictionary(self._labelled(value), part, may_have_parts=True)
        if (
            type(value) in (list, tuple)
            and len(value) == 2
            and self._axes(value[0]) in (2, 3)
            and self._axes(value[1]) == 1
        ):
            return features_from_arrays(
                {"X": self._array(value[0], "0"), "y": self._array(value[1], "1")}, self.path, part=part
            )
        what = {2: "vectors without labels", 1: "one list of values"}.get(
            self._axes(value), "no vectors by class"
        )
        raise InputError(
            f"{self.path} holds {what}: store a dictionary of label to vectors, or of 'X' (samples, features) and "
            "'y' (samples)."
        )

    # --- dictionaries

    def _from_dictionary(
        self, items: dict[Any, Any], part: str | None, may_have_parts: bool
    ) -> FeatureSource:
        if not items:
            raise InputError(f"{self.path} holds an empty dictionary: store vectors by class.")
        arrays = {key: value for key, value in items.items() if self._axes(value)}
        parts = {key: value for key, value in items.items() if type(value) is Pairs}
        if parts and not arrays and may_have_parts:
            key = self._choose(parts, part)
            return self._from_dictionary(self._labelled(parts[key]), None, may_have_parts=False)
        if arrays and all(type(key) is str for key in items) and self._are_named(arrays):
            about = {key: value for key, value in items.items() if _is_remark(value)}
            named = {key: self._array(value, key) for key, value in arrays.items()}
            return features_from_arrays(named, self.path, part=part, about=about)
        if part is not None:
            raise InputError(f"{self.path} has no part {quoted(part)}: it holds vectors by class.")
        return features_from_classes(
            {label: self._class(value, label) for label, value in items.items()}, self.path
        )

    def _labelled(self, pairs: Pairs) -> dict[Any, Any]:
        """Keys as labels, text or integers; any other key has no place in a feature file."""
        items: dict[Any, Any] = {}
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            label = self._label(key)
            if label in items:
                raise InputError(f"{self.path} has two entries for {quoted(label)}: give every class one.")
            items[label] = value
        return items

    def _label(self, key: Any) -> str | int:
        text = as_text(key)
        if text is not None and len(text) <= _LONGEST_LABEL and _is_clean(text):
            return text
        if isinstance(key, (int, np.integer)) and type(key) is not bool and -(2**63) <= key < 2**63:
            return int(key)
        what = f"text of {len(text)} characters" if text is not None else f"of type {_kind(key)}"
        raise InputError(f"{self.path} has a label that is {what}: use short text or integers.")

    def _choose(self, parts: dict[Any, Any], part: str | None) -> Any:
        names = {str(key): key for key in parts}
        listed = listing(map(quoted, names))
        if part is None:
            if len(parts) == 1:
                return next(iter(parts))
            raise SeveralPartsError(
                f"{self.path} holds several sets of samples, {listed}: choose one, by part= or as in "
                f"{self.path.name}:part.",
                names,
            )
        if part not in names:
            raise InputError(f"{self.path} has no part {quoted(part)}: it has {listed}.")
        return names[part]

    def _are_named(self, items: dict[str, Any]) -> bool:
        """Whether keys are names of arrays, not classes: lists of vectors under names unlike X are classes."""
        return (
            any(key.lower() in FEATURE_NAMES for key in items)
            or all(isinstance(value, ArrayRecord) for value in items.values())
            or any(self._axes(value) in (1, 3) for value in items.values())
        )

    # --- vectors

    def _axes(self, value: Any) -> int:
        """How many axes an array, a list, or a list of these has; 0 for anything else."""
        axes = 0
        while type(value) in (list, tuple) and value and axes < 3:
            value = value[0]
            axes += 1
            if type(value) is np.ndarray:
                return axes
        if isinstance(value, ArrayRecord):
            shape = value.shape
            return axes + (1 if axes and _is_vector(shape) else len(shape))
        return axes if axes and isinstance(value, (*_NUMBERS, *_TEXTS)) else 0

    def _class(self, value: Any, label: Any) -> Any:
        """The vectors of one class."""
        if isinstance(value, ArrayRecord):
            return self._rows(value)
        if type(value) in (list, tuple) and self._axes(value) != 1:
            return self._vectors(value, label)
        raise InputError(
            f"{self.path} has no vectors in class {quoted(label)} but {_kind(value)}: store (samples, features)."
        )

    def _array(self, value: Any, name: str) -> Any:
        """A named array: of numbers or of text."""
        if isinstance(value, ArrayRecord):
            return self._rows(value)
        return self._flat(value) if self._axes(value) == 1 else self._vectors(value, name)[:]

    def _rows(self, record: ArrayRecord) -> Any:
        self._spend(record.n_bytes + _ARRAY_BYTES)
        array = checked_text(record.numbers())
        return Rows(array) if array.dtype.kind in "fiub" else array.astype(array.dtype.newbyteorder("="))

    def _vectors(self, value: Any, label: Any) -> Any:
        if not value:
            raise InputError(f"{self.path} has no samples in class {quoted(label)}: remove the class.")
        vectors = [self._vector(item, label) for item in value]
        widths = {len(vector) for vector in vectors}
        if len(widths) > 1:
            raise InputError(
                f"{self.path} has vectors of {min(widths)} and of {max(widths)} features in {quoted(label)}: "
                "extract all features with the same model."
            )
        dtype = np.result_type(*{vector.dtype for vector in vectors}).newbyteorder("=")
        return Vectors(vectors, dtype)

    def _vector(self, value: Any, label: Any) -> np.ndarray:
        if isinstance(value, ArrayRecord):
            self._spend(max(value.n_bytes, _ARRAY_BYTES))
            vector = value.numbers()
            if _is_vector(vector.shape) and vector.size and vector.dtype.kind in "fiub":
                return vector.reshape(-1)
            what = f"an array {vector.shape} of {vector.dtype}"
        elif type(value) in (list, tuple) and value:
            vector = self._flat(value)
            if vector.dtype.kind in "fiub":
                return vector
            what = "a list of text"
        else:
            what = "an empty list" if type(value) in (list, tuple) else _kind(value)
        raise InputError(
            f"{self.path} has {what} in {quoted(label)} where a vector of numbers should be: store vectors."
        )

    def _flat(self, items: Any) -> np.ndarray:
        """A list of numbers, or of text, as an array."""
        self._spend(_LIST_BYTES + 8 * sum(len(item) if type(item) is np.ndarray else 1 for item in items))
        if all(type(item) is np.ndarray for item in items):
            return items[0] if len(items) == 1 else np.concatenate(items)
        if all(isinstance(item, _TEXTS) for item in items):
            return self._texts(items)
        values = list(_singles(items))
        if not all(isinstance(value, _NUMBERS) and _is_short(value) for value in values):
            raise InputError(
                f"{self.path} has a list that is neither of numbers nor of text: store vectors of numbers, and labels "
                "that are all text or all integers."
            )
        return np.array(values)

    def _texts(self, items: Any) -> np.ndarray:
        """Text as an array, in which each takes the room of the longest."""
        self.text_left -= sum(map(len, items)) + 4 * len(items) * max(map(len, items))
        if self.text_left < 0:
            raise InputError(
                f"{self.path} would take more than {readable_size(most_bytes(self.path))} of memory for labels, each "
                "as long as the longest: shorten the labels."
            )
        texts = [as_text(item) for item in items]
        if not all(text is not None and _is_clean(text) for text in texts):
            raise InputError(f"{self.path} has labels that are no text: store them as UTF-8.")
        return np.array(texts)

    def _spend(self, n_bytes: int) -> None:
        self.left -= n_bytes
        if self.left < 0:
            raise InputError(
                f"{self.path} would take more than {readable_size(self.allowance)} of memory because it repeats the "
                "same vectors: it is damaged or hostile; store each vector once."
            )


def _singles(items: Any) -> Iterator[Any]:
    for item in items:
        if type(item) is np.ndarray:
            yield from item.tolist()
        else:
            yield item


def _is_short(value: Any) -> bool:
    return type(value) is not int or -(2**63) <= value < 2**63


def _is_vector(shape: tuple[int, ...]) -> bool:
    """Whether all axes but one are of length 1, as after pooling: (V,), (1, V) or (V, 1, 1)."""
    return len(shape) >= 1 and sum(n != 1 for n in shape) <= 1


def _is_remark(value: Any) -> bool:
    """Whether a value beside the arrays says something of them: the name of the extractor, the epoch."""
    return type(value) in (int, float, bool) or (
        type(value) is str and len(value) <= _LONGEST_LABEL and _is_clean(value)
    )


def _is_clean(text: str) -> bool:
    """Whether text can be kept: halves of characters cannot be written, and NumPy drops NUL at the end."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return not text.endswith("\0")


def _kind(value: Any) -> str:
    if type(value) is Name:
        return value.text
    if isinstance(value, ArrayRecord):
        return f"an array {value.shape}"
    names = {Pairs: "a dictionary", list: "one list", tuple: "one list", type(None): "nothing", str: "text"}
    return names.get(type(value), type(value).__name__)
