"""Labels as text: which of them are numbers, and how labels of every type are written so that they come back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.labels import integer_array, label_array
from hotshot.files.names import quoted

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,19}")
# Marks of a column of labels, as in `label:text`: its labels are taken as they stand, without guessing.
MARKS = ("text", "float", "bool")


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
        raise InputError(
            f"{path} has labels that are not {mark}, such as {quoted(texts[-1])}: correct the mark."
        )
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
