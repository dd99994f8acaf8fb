"""Labels as files hold them, in arrays and in text, so that labels of every type come back as they were written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.names import quoted
from hotshot.files.source import check_size

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,19}")
# Marks of a column of labels, as in `label:text`: its labels are taken as they stand, without guessing.
MARKS = ("text", "float", "bool")


def label_array(values: Any, name: str, path: Path) -> np.ndarray:
    """Labels as a one-dimensional array of strings, integers, booleans or floats; anything else is refused."""
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
            f"{path} has labels in {name} of shape {array.shape} where one label per sample is needed: "
            "take the argmax of one-hot rows first."
        )
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{path} has labels in {name} that are not UTF-8: store them as text.") from None
    if array.dtype.kind not in "Uiubf":
        raise InputError(f"{path} has labels of type {array.dtype} in {name}: use strings or integers.")
    return array


def integer_array(values: Sequence[int], path: Path) -> np.ndarray:
    """Integers of any size that 64 bits hold."""
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(values, dtype=dtype)
        except OverflowError:
            continue
    raise InputError(f"{path} has labels beyond 64 bits: store them as strings.")


def name_labels(codes: np.ndarray, names: np.ndarray, name: str, path: Path) -> np.ndarray:
    """The class names of integer labels that count from 0 or, as in MATLAB, from 1."""
    if not np.isfinite(codes).all() or (codes != np.floor(codes)).any():
        raise InputError(f"{path} has labels that are no integers beside class names {name}: use whole numbers.")
    low, high = int(codes.min()), int(codes.max())
    if low >= 1 and high < len(names) and path.suffix.lower() == ".mat":
        raise InputError(
            f"{path} has labels from {low} to {high} and {len(names)} class names in {name}, so that they may "
            "count from 0 or from 1: remove the names of classes without samples."
        )
    first = 1 if low >= 1 and high == len(names) else 0
    if low < first or high - first >= len(names):
        raise InputError(
            f"{path} has labels from {low} to {high} but {len(names)} class names in {name}: "
            "give a name to every class."
        )
    check_size(path, len(codes) * names.itemsize, "labels")
    return names[codes.astype(np.int64) - first]


def labels_from_text(texts: Sequence[str], mark: str | None, path: Path) -> np.ndarray:
    """Labels of their distinct texts: without a mark integers where all look like such, 7 but not 007 or 7.0."""
    if mark is None and _are_integers(texts):
        return integer_array([int(text) for text in texts], path)
    if mark == "bool" and {"True", "False"} >= set(texts):
        return np.array([text == "True" for text in texts])
    try:
        if mark == "float":
            return np.array([float(text) for text in texts])
    except ValueError:
        pass
    if mark in ("float", "bool"):
        raise InputError(f"{path} has labels that are not {mark}, such as {quoted(texts[-1])}: correct the mark.")
    return label_array(list(texts), "its labels", path)


def mark_of(classes: Sequence[Any], label_type: str) -> str | None:
    """The mark that labels need to be read as they are, None where they need none."""
    if label_type != "str":
        return None if label_type == "int" else label_type
    plain = all(text and text == text.strip() for text in classes) and not _are_integers(classes)
    return None if plain else "text"


def _are_integers(texts: Sequence[str]) -> bool:
    """Whether all texts are integers as Python prints them, in 64 bits."""
    if not all(map(_INTEGER.fullmatch, texts)):
        return False
    values = [int(text) for text in texts]
    return min(values) >= (-(2**63) if max(values) < 2**63 else 0) and max(values) < 2**64


def _kind(value: Any) -> type | None:
    for kind, types in (
        (bool, (bool, np.bool_)),
        (int, (int, np.integer)),
        (str, (str,)),
        (float, (float, np.floating)),
    ):
        if isinstance(value, types):
            return kind
    return None
