"""Values of pickled datasets: dictionaries, arrays, lists of integers and text, read as data and never run."""

from __future__ import annotations

from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.pickle_machine import run_pickle
from hotshot.files.pickle_records import ArrayRecord, Pairs, Unsound, as_text
from hotshot.files.pickle_state import State
from hotshot.images.datasets.entries import Entry


def read_dictionary(entry: Entry) -> dict[str, Any]:
    """The values of a pickled dictionary by the text of their keys."""
    return as_dictionary(read_value(entry), entry.name)


def read_value(entry: Entry) -> Any:
    """What a pickle holds."""
    buffer, start, end = entry.mapped()
    # The path is only for sentences.
    return run_pickle(State(buffer, entry.name, start=start, end=end))  # type: ignore[arg-type]


def as_dictionary(value: Any, where: str) -> dict[str, Any]:
    """A dictionary whose keys are text."""
    keys = [as_text(key) for key in value[::2]] if type(value) is Pairs else [None]
    if None in keys or len(set(keys)) < len(keys):
        raise InputError(f"{where} is not a dictionary with text as keys: copy or download it again.")
    return dict(zip(keys, value[1::2], strict=True))  # type: ignore[arg-type]


def item(items: dict[str, Any], key: str, where: str) -> Any:
    """One value of a dictionary."""
    if key not in items:
        shown = ", ".join(f"'{name[:40]}'" for name in list(items)[:8])
        raise InputError(f"{where} has no '{key}', only {shown or 'nothing'}: copy or download it again.")
    return items[key]


def pixels(value: Any, where: str) -> np.ndarray:
    """An array uint8 (images, height, width, 3), a view of the file."""
    found = array(value, where)
    if found.dtype != np.uint8 or found.ndim != 4 or found.shape[3] != 3 or 0 in found.shape:
        raise InputError(
            f"{where} is {found.dtype} {found.shape} where uint8 (images, height, width, 3) was published: copy or "
            "download it again."
        )
    return found


def integers(value: Any, where: str) -> np.ndarray:
    """A list or array of integers."""
    if isinstance(value, ArrayRecord):
        found = array(value, where).reshape(-1)
    elif type(value) in (list, tuple) and all(isinstance(x, (int, np.integer, np.ndarray)) for x in value):
        found = np.concatenate([np.zeros(0, np.int64), *(np.atleast_1d(x) for x in value)])
    else:
        found = np.zeros(0)
    if found.dtype.kind not in "iu":
        raise InputError(f"{where} is not a list of integers: copy or download it again.")
    return found.astype(np.int64)


def texts(value: Any, where: str) -> list[str]:
    """A list or array of text."""
    if isinstance(value, ArrayRecord):
        value = array(value, where).reshape(-1).tolist()
    found = [as_text(x) for x in value] if type(value) in (list, tuple) else [None]
    if None in found:
        raise InputError(f"{where} is not a list of text: copy or download it again.")
    return found  # type: ignore[return-value]


def array(value: Any, where: str) -> np.ndarray:
    """An array of numbers, a view of the file."""
    try:
        if isinstance(value, ArrayRecord):
            return value.numbers()
    except Unsound:
        pass
    raise InputError(f"{where} is not an array of numbers: copy or download it again.")
