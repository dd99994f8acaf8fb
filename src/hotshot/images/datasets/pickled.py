"""Values of pickled datasets: dictionaries, arrays, lists of integers and text; code in them is never run."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.files.opening import damaged
from hotshot.files.pickles import load_pickle
from hotshot.files.unpickling import as_text
from hotshot.images.datasets.entries import Entry, FileEntry


def read_dictionary(entry: Entry) -> dict[str, Any]:
    """The values of a pickled dictionary by the text of their keys."""
    return as_dictionary(read_value(entry), entry.name)


def read_value(entry: Entry) -> Any:
    """The value of a pickle, read by a child process, which needs a file on the disk."""
    if isinstance(entry, FileEntry):
        return load_pickle(entry.path, entry.name)
    buffer, start, end = entry.mapped()
    with tempfile.TemporaryDirectory(prefix="hotshot-") as folder:
        path = Path(folder) / "pickle"
        path.write_bytes(memoryview(buffer)[start:end])
        return load_pickle(path, entry.name)


def as_dictionary(value: Any, where: str) -> dict[str, Any]:
    """A dictionary whose keys are text."""
    if not isinstance(value, dict) or not all(type(key) is str for key in value):
        raise damaged(f"{where} is not a dictionary with text as keys")
    return value


def item(items: dict[str, Any], key: str, where: str) -> tuple[Any, str]:
    """One value of a dictionary, and its position for messages."""
    if key not in items:
        shown = ", ".join(f"'{name[:40]}'" for name in list(items)[:8])
        raise damaged(f"{where} has no '{key}', only {shown or 'nothing'}")
    return items[key], f"{where}, '{key}'"


def pixels(value: Any, where: str) -> np.ndarray:
    """An array uint8 (images, height, width, 3), a view of the file."""
    found = array(value, where)
    if found.dtype != np.uint8 or found.ndim != 4 or found.shape[3] != 3 or 0 in found.shape:
        raise damaged(f"{where} is {found.dtype} {found.shape} instead of uint8 (images, height, width, 3)")
    return found


def integers(value: Any, where: str) -> np.ndarray:
    """A list or array of integers."""
    found = np.zeros(0, np.int64) if isinstance(value, list) and not value else value
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "iu":
        raise damaged(f"{where} is not a list of integers")
    return found.reshape(-1).astype(np.int64)


def texts(value: Any, where: str) -> list[str]:
    """A list or array of text, which Python 2 stored as bytes."""
    found = value.reshape(-1).tolist() if isinstance(value, np.ndarray) else value
    names = [as_text(x) for x in found] if isinstance(found, list) else [None]
    if None in names:
        raise damaged(f"{where} is not a list of text")
    return names  # type: ignore[return-value]


def array(value: Any, where: str) -> np.ndarray:
    """An array of numbers, a view of the file."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        return value
    raise damaged(f"{where} is not an array of numbers")
