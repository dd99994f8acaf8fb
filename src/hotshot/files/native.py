"""The native format: safetensors with features, codes of labels, and a JSON header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.kept import Kept, kept_of, packed, unpacked
from hotshot.files.named import features_from_arrays
from hotshot.files.source import FeatureSource, check_size, damaged, in_memory, json_object, label_array
from hotshot.files.tensors import Stream, TensorFile, map_tensors, write_tensors
from hotshot.formatting import quoted

if TYPE_CHECKING:
    from hotshot.files.writing import Content

FORMAT = "hotshot features"
VERSION = 2
_KEY = "hotshot"
# Beside what the header says of the features, it says how to read the file.
_STRUCTURE = ("format", "classes", "label_type", "counts")
# What is kept of each sample: tensors `kept.id.data`, bytes, and `kept.id.offsets`, and so on.
_KEPT, _DATA, _OFFSETS = "kept.", ".data", ".offsets"
_TYPES = {"str": str, "int": int, "bool": bool, "float": float}


def open_safetensors(path: Path, part: str | None) -> FeatureSource:
    """Features and labels of a safetensors file, from hotshot or another program, without reading its numbers."""
    file = map_tensors(path)
    if file.brain_floats:
        raise InputError(f"{path} holds {quoted(min(file.brain_floats))} in bfloat16: store it as float16 or float32.")
    if _KEY not in file.metadata:
        return features_from_arrays(file.tensors, path, part=part)
    header = _header(file.metadata[_KEY], path)
    if part is not None:
        raise InputError(f"{path} has no part '{part}': it holds one set of samples.")
    X, codes, classes = _checked(file, header, path)
    about = {name: value for name, value in header.items() if name not in _STRUCTURE}
    kept = _kept(file, len(X), path)
    if codes is None:
        missing = f"{path} has no labels: write it again with labels, or use it where none are needed."
        return in_memory(path, X, lambda some: None, about, kept, missing)
    return in_memory(path, X, lambda some: classes[codes[some]], about, kept)


def write_native(path: Path, content: Content) -> None:
    """Write features in the native format."""
    # Readers of the first version need labels, and leave alone what is kept.
    header: dict[str, Any] = {**content.about, "format": f"{FORMAT} {1 if content.classes else VERSION}"}
    kept = {f"{_KEPT}{name}": packed(values, name, path) for name, values in content.kept.stored().items()}
    # What is kept comes last: it has any number of bytes, and numbers are mapped quickest where they are aligned.
    tensors: dict[str, np.ndarray | Stream] = {f"{name}{_OFFSETS}": offsets for name, (_, offsets) in kept.items()}
    if content.classes:
        counts = np.bincount(content.codes).tolist()
        header |= {"classes": content.classes, "label_type": content.label_type, "counts": counts}
        tensors["y"] = content.codes
    tensors["X"] = Stream(content.shape, content.dtype, content.blocks())
    for name, (blocks, offsets) in kept.items():
        tensors[f"{name}{_DATA}"] = Stream((int(offsets[-1]),), np.dtype(np.uint8), blocks)
    write_tensors(path, tensors, {_KEY: json.dumps(header)})


def _header(text: str, path: Path) -> dict[str, Any]:
    header = json_object(text)
    if header is None:
        raise _damaged(path, "its header is not JSON")
    name, _, version = str(header.get("format")).rpartition(" ")
    if name != FORMAT or not version.isdecimal():
        raise InputError(
            f"{path} is a file of hotshot without features, its format is {str(header.get('format'))[:60]!r}: "
            "pass a feature file."
        )
    if int(version[:9]) > VERSION:
        raise InputError(
            f"{path} has version {version[:9]} of hotshot's feature format, and this hotshot reads up to {VERSION}: "
            "install a newer hotshot."
        )
    return header


def _checked(file: TensorFile, header: dict[str, Any], path: Path) -> tuple[np.ndarray, Any, Any]:
    """Features, codes of labels and labels by code; the last two are None without labels."""
    X, codes = file.tensors.get("X"), file.tensors.get("y")
    unlabelled = codes is None and "classes" not in header
    if X is None or (codes is None and not unlabelled):
        raise _damaged(path, "features X or label codes y are missing")
    if X.ndim != 2 or 0 in X.shape:
        raise _damaged(path, f"its features have shape {X.shape}, not (samples, features)")
    if codes is None:
        return X, None, None
    if codes.shape != X.shape[:1] or codes.dtype.kind not in "iu":
        raise _damaged(path, f"its features {X.shape} do not match its label codes {codes.shape} {codes.dtype}")
    classes, kind = header.get("classes"), header.get("label_type")
    wanted = _TYPES.get(kind) if isinstance(kind, str) else None
    if not isinstance(classes, list) or not classes or any(type(label) is not wanted for label in classes):
        raise _damaged(path, f"its classes are not a list of {kind}")
    if int(codes.min()) < 0 or int(codes.max()) >= len(classes):
        raise _damaged(path, f"it has {len(classes)} classes and label codes from {codes.min()} to {codes.max()}")
    labels = label_array(classes, "its header", path)
    check_size(path, len(codes) * labels.itemsize, "labels")
    return X, codes, labels


def _kept(file: TensorFile, n_samples: int, path: Path) -> Kept:
    """Ids, texts, thumbnails and columns of the samples; row numbers if there are none."""
    columns = {}
    for key, offsets in file.tensors.items():
        if key.startswith(_KEPT) and key.endswith(_OFFSETS):
            name = key.removeprefix(_KEPT).removesuffix(_OFFSETS)
            data = file.tensors.get(f"{_KEPT}{name}{_DATA}")
            if data is None:
                raise _damaged(path, f"it lacks the tensor {_KEPT}{name!r:.60}{_DATA}")
            columns[name] = unpacked(data, offsets, n_samples, name, path)
    return kept_of(columns, n_samples)


def _damaged(path: Path, what: str) -> InputError:
    return damaged(f"{path} is not a valid feature file, {what}")
