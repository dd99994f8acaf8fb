"""Tensors of torch as inert records: a storage somewhere in the file, and which of its numbers a tensor takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.files.pickle_records import (
    NAMES,
    ArrayRecord,
    Buffer,
    Name,
    Spend,
    Unsound,
    as_text,
    shape_of,
)


@dataclass(frozen=True)
class Kind:
    """A type of numbers; brain floats are the upper halves of single ones, for which NumPy has no type."""

    dtype: np.dtype
    brain: bool = False


@dataclass
class Storage:
    """`count` numbers of a file, whose bytes may become known only after the pickle."""

    kind: Kind
    count: int
    data: Buffer | None = None
    # Where it starts within the bytes, in numbers; old files have storages within storages.
    start: int = 0


@dataclass(frozen=True)
class TensorRecord(ArrayRecord):
    """The numbers `offset + i * stride` of a storage, all of which were proven to be in it."""

    storage: Storage
    kind: Kind
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor."""
        return self.size

    @property
    def n_bytes(self) -> int:
        """That its numbers would take in memory, as doubles where a few stand for many."""
        count = math.prod(self.size)
        expanded = count > self.storage.count
        return count * (8 if expanded else 4 if self.kind.brain else self.kind.dtype.itemsize)

    def numbers(self) -> np.ndarray:
        """A view of the file; brain floats as single ones, in memory."""
        data = self.storage.data
        if data is None:
            raise Unsound("it has a tensor without numbers")
        if not math.prod(self.size):
            return np.empty(self.size, self.kind.dtype)
        width = self.kind.dtype.itemsize
        # NumPy checks once more that no number is outside the bytes.
        numbers: np.ndarray = np.ndarray(
            self.size,
            self.kind.dtype,
            data,
            self.storage.start * self.storage.kind.dtype.itemsize + self.offset * width,
            tuple(width * stride for stride in self.stride),
        )
        return (numbers.astype(np.uint32) << 16).view(np.float32) if self.kind.brain else numbers


_TYPES = {
    "Float": "f4",
    "Double": "f8",
    "Half": "f2",
    "Long": "i8",
    "Int": "i4",
    "Short": "i2",
    "Char": "i1",
    "Byte": "u1",
    "Bool": "b1",
    "BFloat16": "u2",
}
_DTYPES = {
    "float32": "f4",
    "float64": "f8",
    "float16": "f2",
    "bfloat16": "u2",
    "int64": "i8",
    "int32": "i4",
    "int16": "i2",
    "int8": "i1",
    "uint8": "u1",
    "uint16": "u2",
    "uint32": "u4",
    "uint64": "u8",
    "bool": "b1",
}
_UNTYPED = Name("torch.storage.UntypedStorage")


def _kind(name: str, code: str) -> Kind:
    return Kind(np.dtype(f"<{code}"), name.startswith(("BFloat", "bfloat")))


# By the text of their names.
STORAGES = {
    **{f"torch.{name}Storage": _kind(name, code) for name, code in _TYPES.items()},
    _UNTYPED.text: Kind(np.dtype("<u1")),
}
_KINDS = {f"torch.{name}": _kind(name, code) for name, code in _DTYPES.items()}


def _tensor(args: tuple[Any, ...], kind: Kind) -> TensorRecord:
    storage, offset, size, stride = args[:4]
    if type(storage) is not Storage or type(offset) is not int or offset < 0:
        raise Unsound("it has a tensor without a place in the file")
    size, stride = shape_of(size), shape_of(stride)
    if len(size) != len(stride):
        raise Unsound("it has a tensor whose shape is no shape")
    room = storage.count * storage.kind.dtype.itemsize // kind.dtype.itemsize
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if math.prod(size) and last >= room:
        raise Unsound(f"it has a tensor of shape {size} that reaches beyond its {room} numbers")
    if math.prod(max(n, 1) for n in size) > 2**58:
        raise Unsound("it has a tensor larger than any memory")
    return TensorRecord(storage, kind, offset, size, stride)


def _rebuild_tensor(args: tuple[Any, ...], spend: Spend) -> TensorRecord:
    """Of versions 1 and 2: storage, offset, size and stride, then what matters for training only."""
    if not 4 <= len(args) <= 7:
        raise Unsound("it has a tensor that is made in no usual way")
    return _tensor(args, args[0].kind if type(args[0]) is Storage else Kind(np.dtype("<u1")))


def _rebuild_tensor_v3(args: tuple[Any, ...], spend: Spend) -> TensorRecord:
    """With the type of the numbers, which its storage does not tell."""
    if not 7 <= len(args) <= 8 or type(args[6]) is not Name or args[6].text not in _KINDS:
        raise Unsound("it has a tensor that is made in no usual way")
    return _tensor(args, _KINDS[args[6].text])


def _rebuild_parameter(args: tuple[Any, ...], spend: Spend) -> TensorRecord:
    if not 1 <= len(args) <= 3 or type(args[0]) is not TensorRecord:
        raise Unsound("it has a parameter that is no tensor")
    return args[0]


def _size(args: tuple[Any, ...], spend: Spend) -> tuple[int, ...]:
    if len(args) != 1:
        raise Unsound("it has a size that is none")
    return shape_of(args[0])


# The table: what a torch file of vectors may name, arrays of NumPy included.
TORCH_NAMES: Mapping[tuple[str, str], Name] = {
    **NAMES,
    **{("torch", f"{name}Storage"): Name(f"torch.{name}Storage") for name in _TYPES},
    **{("torch", name): Name(f"torch.{name}") for name in _DTYPES},
    ("torch.storage", "UntypedStorage"): _UNTYPED,
    ("torch", "UntypedStorage"): _UNTYPED,
    ("torch", "Size"): Name("torch.Size", _size),
    ("torch._utils", "_rebuild_tensor"): Name("torch._utils._rebuild_tensor", _rebuild_tensor),
    ("torch._utils", "_rebuild_tensor_v2"): Name("torch._utils._rebuild_tensor_v2", _rebuild_tensor),
    ("torch._utils", "_rebuild_tensor_v3"): Name("torch._utils._rebuild_tensor_v3", _rebuild_tensor_v3),
    ("torch._utils", "_rebuild_parameter"): Name("torch._utils._rebuild_parameter", _rebuild_parameter),
}


def storage_id(value: Any, fields: int) -> tuple[Kind, str, int]:
    """Kind, key and count of a persistent id ('storage', type, key, device, count, …) of so many fields."""
    if type(value) is tuple and len(value) == fields:
        kind = STORAGES.get(value[1].text) if type(value[1]) is Name else None
        key, count = as_text(value[2]), value[4]
        if as_text(value[0]) == "storage" and kind and key and type(count) is int and 0 <= count < 2**60:
            return kind, key[:100], count
    raise Unsound("it has a tensor without a place in the file")
