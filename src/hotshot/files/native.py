"""The native form: safetensors with features, codes of labels, and a JSON header that tells what they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.named import Numbers, features_from_arrays
from hotshot.files.source import FeatureSource, check_size, damaged, in_memory, json_object, label_array
from hotshot.files.tensors import Stream, TensorFile, map_tensors, write_tensors

if TYPE_CHECKING:
    from hotshot.files.writing import Content

FORMAT = "hotshot features"
VERSION = 1
_KEY = "hotshot"
# Beside what the header says of the features, it says how to read the file.
_STRUCTURE = ("format", "classes", "label_type", "counts")
_TYPES = {"str": str, "int": int, "bool": bool, "float": float}


def open_safetensors(path: Path, part: str | None) -> FeatureSource:
    """Features and labels of a safetensors file, hotshot's own or any other's, without reading its numbers."""
    file = map_tensors(path)
    if _KEY not in file.metadata:
        arrays: dict[str, Numbers] = {
            name: BrainFloats(tensor) if name in file.brain_floats else tensor for name, tensor in file.tensors.items()
        }
        return features_from_arrays(arrays, path, part=part)
    header = _header(file.metadata[_KEY], path)
    if part is not None:
        raise InputError(f"{path} has no part '{part}': it holds one set of samples.")
    X, codes, classes = _checked(file, header, path)
    about = {name: value for name, value in header.items() if name not in _STRUCTURE}
    return in_memory(path, X, lambda some: classes[codes[some]], about, streams=True)


def write_native(path: Path, content: Content) -> None:
    """Write features in the native form."""
    header = {
        **content.about,
        "format": f"{FORMAT} {VERSION}",
        "classes": content.classes,
        "label_type": content.label_type,
        "counts": np.bincount(content.codes).tolist(),
    }
    features = Stream(content.shape, content.dtype, content.blocks())
    tensors: dict[str, np.ndarray | Stream] = {"y": content.codes, "X": features}
    write_tensors(path, tensors, {_KEY: json.dumps(header)})


@dataclass(frozen=True)
class BrainFloats:
    """bfloat16 numbers, mapped as their bits, that become float32 as they are read."""

    bits: np.ndarray
    streams = True
    dtype = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""
        return self.bits.shape

    def reshape(self, *shape: int) -> BrainFloats:
        """The same numbers in another shape."""
        return replace(self, bits=self.bits.reshape(*shape))

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        """A number of rows at a time."""
        for some in slices(len(self.bits), rows):
            # The upper half of a float32 is a bfloat16.
            yield (self.bits[some].astype(np.uint32) << 16).view(np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        whole = (self.bits.astype(np.uint32) << 16).view(np.float32)
        return whole if dtype is None else whole.astype(dtype)


def _header(text: str, path: Path) -> dict[str, Any]:
    header = json_object(text)
    if header is None:
        raise _damaged(path, "its header is not JSON")
    name, _, version = str(header.get("format")).rpartition(" ")
    if name != FORMAT or not version.isdecimal():
        raise InputError(
            f"{path} is a file of hotshot but holds no features, its format is {str(header.get('format'))[:60]!r}: "
            "pass a feature file."
        )
    if int(version[:9]) > VERSION:
        raise InputError(
            f"{path} is in format {version[:9]} of hotshot's features and this hotshot reads up to {VERSION}: "
            "install a newer hotshot."
        )
    return header


def _checked(file: TensorFile, header: dict[str, Any], path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, codes = file.tensors.get("X"), file.tensors.get("y")
    if X is None or codes is None or file.brain_floats:
        raise _damaged(path, "it lacks its features X or the codes y of its labels")
    if X.ndim != 2 or 0 in X.shape or codes.shape != X.shape[:1] or codes.dtype.kind not in "iu":
        raise _damaged(path, f"its features {X.shape} and its labels {codes.shape} {codes.dtype} do not fit")
    classes, kind = header.get("classes"), header.get("label_type")
    wanted = _TYPES.get(kind) if isinstance(kind, str) else None
    if not isinstance(classes, list) or not classes or any(type(label) is not wanted for label in classes):
        raise _damaged(path, f"its classes are no list of {kind}")
    if int(codes.min()) < 0 or int(codes.max()) >= len(classes):
        raise _damaged(path, f"it has {len(classes)} classes and labels from {codes.min()} to {codes.max()}")
    labels = label_array(classes, "its header", path)
    check_size(path, len(codes) * labels.itemsize, "labels")
    return X, codes, labels


def _damaged(path: Path, what: str) -> InputError:
    return damaged(f"{path} is not a sound file of features, {what}")
