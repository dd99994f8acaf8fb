"""The native format: safetensors with features, codes of labels, and a JSON header."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.opening import check_size, damaged, json_object
from hotshot.files.roles import columns_of, features_from_arrays, label_array
from hotshot.files.samples import ROWS_AT_ONCE, THUMBNAIL, FeatureSource, Lazy, in_memory
from hotshot.files.tensors import Stream, TensorFile, map_tensors, write_tensors
from hotshot.formatting import quoted, readable_size

if TYPE_CHECKING:
    from hotshot.files.writing import Content

FORMAT = "hotshot features"
VERSION = 2
_KEY = "hotshot"
# Beside what the header says of the features, it says how to read the file.
_STRUCTURE = ("format", "classes", "label_type", "counts")
# Columns beside the features: tensors `kept.id.data`, bytes, and `kept.id.offsets`, and so on.
_KEPT, _DATA, _OFFSETS = "kept.", ".data", ".offsets"
# A text or a thumbnail of more bytes is none.
LONGEST = 2**24
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
    columns = _columns(file, len(X), path)
    if codes is None:
        missing = f"{path} has no labels: write it again with labels, or use it where none are needed."
        return in_memory(path, X, None, about, columns, missing)
    return in_memory(path, X, lambda some: classes[codes[some]], about, columns)


def write_native(path: Path, content: Content) -> None:
    """Write features in the native format."""
    # Readers of the first version need labels, and leave alone all other columns.
    header: dict[str, Any] = {**content.about, "format": f"{FORMAT} {1 if content.classes else VERSION}"}
    columns = {f"{_KEPT}{name}": packed(values, name, path) for name, values in content.columns.items()}
    # Bytes come last: there may be any number of them, and numbers are mapped quickest where they are aligned.
    tensors: dict[str, np.ndarray | Stream] = {f"{name}{_OFFSETS}": offsets for name, (_, offsets) in columns.items()}
    if content.classes:
        counts = np.bincount(content.codes).tolist()
        header |= {"classes": content.classes, "label_type": content.label_type, "counts": counts}
        tensors["y"] = content.codes
    tensors["X"] = Stream(content.shape, content.dtype, content.blocks())
    for name, (blocks, offsets) in columns.items():
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


def _columns(file: TensorFile, n_samples: int, path: Path) -> dict[str, Sequence[Any]]:
    """Ids, texts, thumbnails and other columns of the samples."""
    columns = {}
    for key, offsets in file.tensors.items():
        if key.startswith(_KEPT) and key.endswith(_OFFSETS):
            name = key.removeprefix(_KEPT).removesuffix(_OFFSETS)
            data = file.tensors.get(f"{_KEPT}{name}{_DATA}")
            if data is None:
                raise _damaged(path, f"it lacks the tensor {_KEPT}{name!r:.60}{_DATA}")
            columns[name] = unpacked(data, offsets, n_samples, name, path)
    return columns_of(columns, n_samples)


def _damaged(path: Path, what: str) -> InputError:
    return damaged(f"{path} is not a valid feature file, {what}")


def unpacked(data: np.ndarray, offsets: np.ndarray, n_samples: int, name: str, path: Path) -> Lazy:
    """Texts or thumbnails, concatenated in `data` (bytes,); row i is data[offsets[i] : offsets[i + 1]].

    Raises unless there is one per sample and every text is UTF-8.
    """
    what = f"{path} holds {quoted(name)} of the samples"
    if data.dtype != np.uint8 or data.ndim != 1 or offsets.dtype != np.int64 or offsets.shape != (n_samples + 1,):
        raise InputError(f"{what} in the wrong form or number: write the file again.")
    if offsets[0] != 0 or offsets[-1] != len(data) or (offsets[1:] < offsets[:-1]).any():
        raise InputError(f"{what} with invalid offsets: copy or download it again.")
    _check_length(int((offsets[1:] - offsets[:-1]).max()), name, path)
    view = memoryview(data)  # type: ignore[arg-type]
    if name == THUMBNAIL:
        return Lazy(lambda row: bytes(view[offsets[row] : offsets[row + 1]]), range(n_samples))
    starts = offsets[:-1][offsets[:-1] < len(data)]
    try:
        # No text starts within a character.
        if ((data[starts] & 0xC0) == 0x80).any():
            raise ValueError
        for some in slices(n_samples, ROWS_AT_ONCE):
            str(view[offsets[some.start] : offsets[some.stop]], "utf-8")
    except ValueError:
        raise InputError(f"{what} that is not UTF-8: write it as text.") from None
    return Lazy(lambda row: str(view[offsets[row] : offsets[row + 1]], "utf-8"), range(n_samples))


def packed(values: Sequence[Any], name: str, path: Path) -> tuple[Iterator[np.ndarray], np.ndarray]:
    """Texts or thumbnails as blocks of bytes, and their offsets (samples + 1,)."""
    offsets = np.zeros(len(values) + 1, np.int64)
    for row, value in enumerate(values):
        offsets[row + 1] = len(_encoded(value, name, path))
    _check_length(int(offsets.max()), name, path)

    def blocks() -> Iterator[np.ndarray]:
        for some in slices(len(values), ROWS_AT_ONCE):
            yield np.frombuffer(b"".join(_encoded(value, name, path) for value in values[some]), np.uint8)

    return blocks(), offsets.cumsum()


def _check_length(n_bytes: int, name: str, path: Path) -> None:
    """Refuse a text or thumbnail that is too long."""
    if n_bytes > LONGEST:
        raise InputError(
            f"{path} has {quoted(name)} of {readable_size(n_bytes)} for one sample, and the limit is "
            f"{readable_size(LONGEST)}: shorten it."
        )


def _encoded(value: Any, name: str, path: Path) -> bytes:
    try:
        return value.encode() if isinstance(value, str) else bytes(value)
    except UnicodeEncodeError:
        raise InputError(
            f"{path} cannot hold {quoted(name)} that is not valid text, {value[:60]!r}: repair it."
        ) from None
