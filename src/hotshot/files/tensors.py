"""Safetensors files, mapped on reading and streamed on writing, so that they may be larger than memory; and features.

A file is eight bytes with the length of a JSON header, the header, and the numbers of all tensors one after the
other. The `safetensors` library can read these files, and this module those of the library, which copies each tensor.
The native form of features is such a file: `X`, codes `y` of labels, columns as text, and a JSON header as metadata.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.atomic import replace_file
from hotshot.files.named_arrays import features_from_arrays, label_array
from hotshot.files.opening import check_size, json_object, map_bytes, need, one_sentence
from hotshot.files.samples import ROWS_AT_ONCE, THUMBNAIL, FeatureSource, Lazy, columns_of, in_memory
from hotshot.formatting import quoted, readable_size

if TYPE_CHECKING:
    from hotshot.files.writing import Content

DTYPES = {"BOOL": "|b1", "U8": "|u1", "I8": "|i1"}
DTYPES |= {f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind in "UIF" for size in (2, 4, 8)}
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
# The library's own limit.
LONGEST_HEADER = 100_000_000
ALIGNMENT = 8

FORMAT, VERSION = "hotshot features", 2
_KEY = "hotshot"
# Beside what the header says of the features, it says how to read the file.
_STRUCTURE = ("format", "classes", "label_type", "counts")
# Columns beside the features: tensors `kept.id.data`, bytes, and `kept.id.offsets`, and so on.
_COLUMN, _DATA, _OFFSETS = "kept.", ".data", ".offsets"
# A text or a thumbnail of more bytes is none.
LONGEST = 2**24
_TYPES = {"str": str, "int": int, "bool": bool, "float": float}


@dataclass(frozen=True)
class Stream:
    """A tensor (rows, …) that is written block by block."""

    shape: tuple[int, ...]
    dtype: np.dtype
    blocks: Iterable[np.ndarray]


@dataclass(frozen=True)
class TensorFile:
    """Tensors by name, read-only views of the file, and its metadata."""

    tensors: dict[str, np.ndarray]
    metadata: dict[str, str]


def map_tensors(path: str | Path) -> TensorFile:
    """All tensors of a file without reading their numbers; raises unless the file matches its header."""
    content = map_bytes(path)
    with one_sentence(path, "safetensors file"):
        start = 8 + int.from_bytes(content[:8], "little")
        need(start <= min(len(content), LONGEST_HEADER + 8), "its header is longer than the file")
        header = json_object(content[8:start], object_pairs_hook=_without_repeats)
        if header is None:
            raise ValueError("its header is not a JSON object, or repeats a name")
        metadata = header.pop("__metadata__", {})
        need(all(isinstance(text, str) for text in metadata.values()), "its metadata is not text")
        numbers = np.frombuffer(content, np.uint8, offset=start)
        tensors, end = {}, 0
        for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            first, last = entry["data_offsets"]
            need(first == end <= last, f"tensor {name!r:.80} has invalid offsets: it overlaps another or leaves a gap")
            need(
                last <= len(numbers), f"it is truncated: tensor {name!r:.80} ends {last - len(numbers)} bytes after it"
            )
            kind, tensor = str(entry["dtype"]), numbers[first:last]
            if kind == "BF16":
                # NumPy has no such type: it is the first half of the bits of float32.
                tensor = (tensor.view("<u2").astype(np.uint32) << 16).view(np.float32)
            elif kind in DTYPES:
                tensor = tensor.view(DTYPES[kind])
            else:
                raise InputError(f"{path} holds tensor {name!r:.80} of type {kind!r:.80}: store it as float32.")
            tensors[name] = tensor.reshape(entry["shape"])
            need(tensors[name].shape == tuple(entry["shape"]), f"tensor {name!r:.80} has an invalid shape")
            end = last
        need(end == len(numbers), f"{len(numbers) - end} bytes belong to no tensor")
    return TensorFile({name: tensors[name] for name in header}, metadata)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    need(len({name for name, _ in pairs}) == len(pairs), "a name is repeated")
    return dict(pairs)


def write_tensors(path: str | Path, tensors: Mapping[str, np.ndarray | Stream], metadata: Mapping[str, str]) -> None:
    """Write tensors in this order; `path` appears or changes only when all of it is on the disk."""
    with replace_file(path) as file:
        write_tensors_to(file, tensors, metadata)


def write_tensors_to(file: BinaryIO, tensors: Mapping[str, np.ndarray | Stream], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file to an open file."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, tensor in tensors.items():
        dtype = NAMES.get(tensor.dtype.newbyteorder("<"))
        if dtype is None:
            raise InputError(f"Tensor '{name}' is of type {tensor.dtype}, which safetensors does not have: convert it.")
        size = math.prod(tensor.shape) * tensor.dtype.itemsize
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [end, end + size]}
        end += size
    try:
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise InputError("A name or the metadata is not valid text: use plain names.") from None
    text += b" " * (-len(text) % ALIGNMENT)
    file.write(len(text).to_bytes(8, "little") + text)
    for name, tensor in tensors.items():
        announced, written = math.prod(tensor.shape), 0
        for block in tensor.blocks if isinstance(tensor, Stream) else (tensor,):
            file.write(np.ascontiguousarray(block, dtype=tensor.dtype.newbyteorder("<")).data)
            written += block.size
        if written != announced:
            raise InputError(
                f"Tensor '{name}' should have {announced} numbers but has {written}: pass blocks that match its shape."
            )


# --- features


def open_features(path: Path, part: str | None) -> FeatureSource:
    """Features and labels of a safetensors file, from hotshot or another program, without reading its numbers."""
    file = map_tensors(path)
    if _KEY not in file.metadata:
        return features_from_arrays(file.tensors, path, part=part)
    if part is not None:
        raise InputError(f"{path} has no part {quoted(part)}: it holds one set of samples.")
    return native_features(file, path)


def native_features(file: TensorFile, path: Path) -> FeatureSource:
    """Features and labels in the native form."""
    header = json_object(file.metadata[_KEY]) or {}
    name, _, version = str(header.get("format")).rpartition(" ")
    if name != FORMAT or version not in map(str, range(1, VERSION + 1)):
        given = quoted(str(header.get("format")))
        raise InputError(
            f"{path} is no feature file of version 1 to {VERSION}, its format is {given}: pass a feature file, or "
            "install a newer hotshot."
        )
    with one_sentence(path, "feature file"):
        X, codes = file.tensors.get("X"), file.tensors.get("y")
        if X is None or (codes is None and "classes" in header):
            raise ValueError("features X or label codes y are missing")
        need(X.ndim == 2 and 0 not in X.shape, f"its features have shape {X.shape}, not (samples, features)")
        about = {name: value for name, value in header.items() if name not in _STRUCTURE}
        columns = columns_of(dict(_columns(file, len(X), path)), len(X))
        labels = None if codes is None else _labels(codes, header, len(X), path)
    missing = "" if labels else f"{path} has no labels: write it again with labels, or use it where none are needed."
    return in_memory(path, X, labels, about, columns, missing)


def _labels(codes: np.ndarray, header: dict[str, Any], n_samples: int, path: Path) -> Any:
    """Labels of some rows."""
    fits = codes.shape == (n_samples,) and codes.dtype.kind in "iu"
    need(fits, f"its {n_samples} samples do not match its label codes {codes.shape} {codes.dtype}")
    classes, kind = header["classes"], _TYPES[header["label_type"]]
    need(
        isinstance(classes, list) and set(map(type, classes)) == {kind},
        f"its classes are not a list of {kind.__name__}",
    )
    low, high = int(codes.min()), int(codes.max())
    need(low >= 0 and high < len(classes), f"it has {len(classes)} classes and label codes from {low} to {high}")
    labels = label_array(classes, "its header", path)
    check_size(path, n_samples * labels.itemsize, "labels")
    return lambda some: labels[codes[some]]


def _columns(file: TensorFile, n_samples: int, path: Path) -> Iterator[tuple[str, Lazy]]:
    """Ids, texts, thumbnails and other columns, one after the other: row i is data[offsets[i] : offsets[i + 1]]."""
    for key, offsets in file.tensors.items():
        name = key.removeprefix(_COLUMN).removesuffix(_OFFSETS)
        if key == f"{_COLUMN}{name}{_OFFSETS}":
            data = file.tensors.get(f"{_COLUMN}{name}{_DATA}")
            if data is None:
                raise ValueError(f"it lacks the tensor {_COLUMN}{name!r:.60}{_DATA}")
            yield name, _unpacked(data, offsets, n_samples, name, path)


def _unpacked(data: np.ndarray, offsets: np.ndarray, n_samples: int, name: str, path: Path) -> Lazy:
    what = f"it holds {quoted(name)} of the samples"
    form = data.dtype, data.ndim, offsets.dtype, offsets.shape
    need(form == (np.uint8, 1, np.int64, (n_samples + 1,)), f"{what} in the wrong form or number")
    in_order = offsets[0] == 0 and offsets[-1] == len(data) and (offsets[1:] >= offsets[:-1]).all()
    need(in_order, f"{what} with invalid offsets")
    _check_length(int((offsets[1:] - offsets[:-1]).max()), name, path)
    view = memoryview(data)  # type: ignore[arg-type]
    if name == THUMBNAIL:
        return Lazy(lambda row: bytes(view[offsets[row] : offsets[row + 1]]), range(n_samples))
    starts = offsets[:-1][offsets[:-1] < len(data)]
    # No text starts within a character.
    is_valid = not ((data[starts] & 0xC0) == 0x80).any()
    try:
        for some in slices(n_samples, ROWS_AT_ONCE):
            str(view[offsets[some.start] : offsets[some.stop]], "utf-8")
    except UnicodeDecodeError:
        is_valid = False
    need(is_valid, f"{what} that is not UTF-8")
    return Lazy(lambda row: str(view[offsets[row] : offsets[row + 1]], "utf-8"), range(n_samples))


def write_features(path: Path, content: Content) -> None:
    """Write features in the native form."""
    write_tensors(path, *native_form(path, content))


def native_form(path: Path, content: Content) -> tuple[dict[str, np.ndarray | Stream], dict[str, str]]:
    """The tensors and the metadata of features; error messages call the file `path`."""
    # Readers of the first version need labels, and leave alone all other columns.
    header: dict[str, Any] = {**content.about, "format": f"{FORMAT} {1 if content.classes else VERSION}"}
    offsets = {name: _offsets(values, name, path) for name, values in content.columns.items()}
    # Bytes come last: there may be any number of them, and numbers are mapped quickest where they are aligned.
    tensors: dict[str, np.ndarray | Stream] = {f"{_COLUMN}{name}{_OFFSETS}": ends for name, ends in offsets.items()}
    if content.classes:
        counts = np.bincount(content.codes).tolist()
        header |= {"classes": content.classes, "label_type": content.label_type, "counts": counts}
        tensors["y"] = content.codes
    tensors["X"] = Stream(content.shape, content.dtype, content.blocks())
    for name, values in content.columns.items():
        stream = Stream((int(offsets[name][-1]),), np.dtype(np.uint8), _bytes(values, name, path))
        tensors[f"{_COLUMN}{name}{_DATA}"] = stream
    return tensors, {_KEY: json.dumps(header)}


def _offsets(values: Sequence[Any], name: str, path: Path) -> np.ndarray:
    """Where the bytes of each text or thumbnail start, and the last ends (samples + 1,)."""
    lengths = [len(_encoded(value, name, path)) for value in values]
    _check_length(max(lengths, default=0), name, path)
    return np.cumsum([0, *lengths], dtype=np.int64)


def _bytes(values: Sequence[Any], name: str, path: Path) -> Iterator[np.ndarray]:
    for some in slices(len(values), ROWS_AT_ONCE):
        yield np.frombuffer(b"".join(_encoded(value, name, path) for value in values[some]), np.uint8)


def _check_length(n_bytes: int, name: str, path: Path) -> None:
    if n_bytes > LONGEST:
        raise InputError(
            f"{path} has {quoted(name)} of {readable_size(n_bytes)} for one sample, and the limit is "
            f"{readable_size(LONGEST)}: shorten it."
        )


def _encoded(value: Any, name: str, path: Path) -> bytes:
    try:
        return value.encode() if isinstance(value, str) else bytes(value)
    except UnicodeEncodeError:
        shown = repr(value[:60])
        raise InputError(f"{path} cannot hold {quoted(name)} that is not valid text, {shown}: repair it.") from None
