"""Pickles of features, such as the `.plk` files of S2M2 and Free-Lunch, read without running anything in them.

A pickle or a torch file may hold:

- a dictionary from label to vectors, as the files of S2M2 and Free-Lunch: lists of vectors, or arrays (samples, V);
- a dictionary of named arrays, such as `features` and `labels`;
- a pair of features and labels;
- a dictionary of any of these, of which `part` chooses one.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.child import read_in_child
from hotshot.files.opening import check_size
from hotshot.files.packing import Other, Packer, as_text
from hotshot.files.roles import FEATURE_NAMES, choose_part, class_vectors, features_from_arrays, features_from_classes
from hotshot.files.samples import FeatureSource
from hotshot.files.unpickling import Unpickler, refuse_invalid
from hotshot.formatting import quoted

# A list of one small integer takes four bytes in a pickle and, with what NumPy needs, 32 in memory; vectors that
# are arrays do not grow.
MOST_GROWTH = 8
GROWTH_ALWAYS = 2**20
# Protocol 2 and later start with the first, and older ones with a container or a name.
_STARTS = b"\x80(]})c"
_LONGEST_LABEL = 1000


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
    return read_in_child(read_raw, path, name=name)


def read_raw(path: Path, name: str) -> Any:
    """The value of a pickle, packed; runs in the child."""
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
            packer = Packer(name, MOST_GROWTH * path.stat().st_size + GROWTH_ALWAYS)
            return packer.pack(value), packer.arrays


def features_from_value(value: Any, path: Path, part: str | None) -> FeatureSource:
    """The features and labels in a value from a child."""
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
