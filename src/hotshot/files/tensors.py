"""Safetensors files, memory-mapped on reading and streamed on writing, so that they may be larger than memory.

A file is eight bytes with the length of a JSON header, the header, and the numbers of all tensors one after the
other. The `safetensors` library can read these files, and this module those of the library, which copies each tensor.
"""

import json
import math
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hotshot.errors import InputError
from hotshot.files.atomic import replace_file
from hotshot.files.opening import damaged, map_bytes

DTYPES = {"BOOL": "|b1", "U8": "|u1", "I8": "|i1"}
DTYPES |= {f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind in "UIF" for size in (2, 4, 8)}
# Brain floats have no NumPy type: they are mapped as the integers that hold their bits.
BRAIN_FLOAT = "BF16"
NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}
# The library's own limit.
LONGEST_HEADER = 100_000_000
ALIGNMENT = 8
# NumPy's own limit.
MOST_DIMENSIONS = 64


@dataclass(frozen=True)
class Stream:
    """A tensor (rows, …) that is written block by block."""

    shape: tuple[int, ...]
    dtype: np.dtype
    blocks: Iterable[np.ndarray]


@dataclass(frozen=True)
class TensorFile:
    """Tensors by name, read-only views of the file, and its metadata; `brain_floats` names the BF16 ones."""

    tensors: dict[str, np.ndarray]
    metadata: dict[str, str]
    brain_floats: frozenset[str] = frozenset()


def map_tensors(path: str | Path) -> TensorFile:
    """All tensors of a file without reading their numbers; raises unless the file matches its header."""
    path = Path(path)
    if os.path.isfile(path) and path.stat().st_size < 8:
        raise _damaged(path, "its header is longer than the file")
    held = map_bytes(path)
    size = len(held)
    header, start = _read_header(held, path)
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(text, str) for text in metadata.values()):
        raise _damaged(path, "its metadata is not text")
    numbers: np.ndarray = np.ndarray(size, np.uint8, held)
    tensors, end = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: _offsets(item[1], item[0], path)):
        dtype, shape, (first, last) = _entry(entry, name, path)
        if first != end:
            raise _damaged(path, f"tensor {name!r:.80} overlaps another or leaves a gap")
        end = last
        if start + last > size:
            raise damaged(f"{path} is truncated, it has {size} bytes and tensor {name!r:.80} ends at {start + last}")
        tensors[name] = numbers[start + first : start + last].view(dtype).reshape(shape)
    if start + end != size:
        raise _damaged(path, f"{size - start - end} bytes belong to no tensor")
    brain_floats = frozenset(name for name, entry in header.items() if entry["dtype"] == BRAIN_FLOAT)
    return TensorFile({name: tensors[name] for name in header}, metadata, brain_floats)


def _read_header(held: mmap.mmap, path: Path) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(held[:8], "little")
    if length > min(len(held) - 8, LONGEST_HEADER):
        raise _damaged(path, "its header is longer than the file")
    try:
        header = json.loads(held[8 : 8 + length].decode(), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        raise _damaged(path, "its header is not JSON or repeats a name") from None
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not a JSON object")
    return header, 8 + length


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; raises if it repeats a name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _offsets(entry: Any, name: str, path: Path) -> tuple[int, int]:
    offsets: Any = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not _are_counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _damaged(path, f"tensor {name!r:.80} has invalid offsets")
    return offsets[0], offsets[1]


def _entry(entry: dict[str, Any], name: str, path: Path) -> tuple[np.dtype, tuple[int, ...], tuple[int, int]]:
    offsets = _offsets(entry, name, path)
    shape: Any = entry.get("shape")
    kind: Any = entry.get("dtype")
    code = "<u2" if kind == BRAIN_FLOAT else DTYPES.get(kind) if isinstance(kind, str) else None
    if code is None:
        raise InputError(f"{path} holds tensor {name!r:.80} of type {kind!r}: store it as float16 or float32.")
    dtype = np.dtype(code)
    # NumPy refuses shapes that would be too large if they were not empty.
    valid = _are_counts(shape) and len(shape) <= MOST_DIMENSIONS and math.prod(n or 1 for n in shape) < 2**59
    if not valid or math.prod(shape) * dtype.itemsize != offsets[1] - offsets[0]:
        raise _damaged(path, f"tensor {name!r:.80} does not have the size of its shape")
    return dtype, tuple(shape), offsets


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**63 for v in values)


def _damaged(path: Path, what: str) -> InputError:
    return damaged(f"{path} is not a valid safetensors file, {what}")


def write_tensors(path: str | Path, tensors: Mapping[str, np.ndarray | Stream], metadata: Mapping[str, str]) -> None:
    """Write tensors in this order; `path` appears or changes only when all of it is on the disk."""
    with replace_file(path) as file:
        write_tensors_to(file, tensors, metadata)


def write_tensors_to(file: BinaryIO, tensors: Mapping[str, np.ndarray | Stream], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file to an open file."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, tensor in tensors.items():
        size = math.prod(tensor.shape) * tensor.dtype.itemsize
        dtype = NAMES.get(tensor.dtype.newbyteorder("<"))
        if dtype is None:
            raise InputError(
                f"Tensor '{name}' is of type {tensor.dtype}, which safetensors does not have: convert it first."
            )
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
