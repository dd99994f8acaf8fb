"""Files of `torch.save`, read without torch: zip archives, and the streams of torch before 1.6.

Both hold a pickle and the numbers of all tensors. The pickle is read like any other (see `unpickling`), and may refer
only to the few names that tensors need: fewer than `torch.load(..., weights_only=True)` allows.
"""

import io
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hotshot.errors import InputError
from hotshot.files.child import GROWTH_OF_COMPRESSED, read_in_child
from hotshot.files.pickles import Flattener, as_python, features_from_value
from hotshot.files.source import FeatureSource, check_size, most_bytes
from hotshot.files.unpickling import (
    NAMES,
    InvalidPickleError,
    Known,
    Record,
    Unpickler,
    as_text,
    refuse_invalid,
    shape_of,
)
from hotshot.formatting import quoted

_MAGIC = 0x1950A86A20F9469CFC6C
# A pickle that begins with it, as torch before 1.6 wrote.
TORCH_MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
_VERSION = 1001
_KINDS = {"Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64"}
_KINDS |= {"Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "Untyped": "uint8"}
_STORAGES = {f"torch.{name}Storage": kind for name, kind in _KINDS.items()}
_STORAGES["torch.storage.UntypedStorage"] = "uint8"
_TYPES = {f"torch.{name}": name for name in (*_STORAGES.values(), "uint16", "uint32", "uint64")}


def open_torch(path: str | Path, part: str | None = None) -> FeatureSource:
    """Features in a `.pt` or `.pth` file: tensors by name or by class, or a pair of features and labels.

    The result may take as much memory as a compressed file may unpack to, 200 times its size but at least 256 MiB: a
    tensor may be one number, expanded. `part` is the key of one of several sets of samples.
    """
    path = Path(path)
    return features_from_value(as_python(read_in_child("torch_files", path, GROWTH_OF_COMPRESSED), path), path, part)


@dataclass
class Storage:
    """`count` numbers of a file; their bytes may be found only after the pickle."""

    kind: str
    count: int
    data: bytes | None = None
    # Where it starts within the bytes, in numbers; old files have storages within storages.
    start: int = 0

    def __setstate__(self, state: Any) -> None:
        # A pickle may set the attributes of whatever does not refuse it.
        raise InvalidPickleError("its pickle modifies a storage")


class Tensor(Record):
    """The numbers `offset + i * stride` of a storage."""

    __slots__ = ("kind", "offset", "size", "storage", "stride")

    def __init__(self, storage: Any, offset: Any, size: Any, stride: Any, kind: str | None = None) -> None:
        super().__init__()
        if type(storage) is not Storage or type(offset) is not int or offset < 0:
            raise InvalidPickleError("a tensor is not in the file")
        self.storage, self.offset = storage, offset
        self.size, self.stride = shape_of(size), shape_of(stride)
        if len(size) != len(stride):
            raise InvalidPickleError("a tensor has an invalid shape")
        self.kind = kind if kind is not None else storage.kind

    def __setstate__(self, state: Any) -> None:
        raise InvalidPickleError("its pickle modifies a tensor")

    def numbers(self) -> np.ndarray:
        """A view of the storage; bfloat16 as float32."""
        if self.storage.data is None:
            raise InvalidPickleError("a tensor has no numbers")
        dtype = _dtype(self.kind)
        first, last = self.storage.start, self.storage.start + self.storage.count
        width = _dtype(self.storage.kind).itemsize
        data = memoryview(self.storage.data)[first * width : last * width]
        strides = tuple(dtype.itemsize * stride for stride in self.stride)
        # NumPy refuses a shape that reaches beyond the bytes.
        numbers: np.ndarray = np.ndarray(self.size, dtype, data, self.offset * dtype.itemsize, strides)
        return (numbers.astype(np.uint32) << 16).view(np.float32) if self.kind == "bfloat16" else numbers


def _dtype(kind: str) -> np.dtype:
    """Type of numbers; bfloat16 is read as integers."""
    return np.dtype("uint16" if kind == "bfloat16" else kind)


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> Tensor:
    """A tensor of versions 1 and 2; the other arguments matter only for training."""
    return Tensor(storage, offset, size, stride)


def _typed_tensor(
    storage: Any, offset: Any, size: Any, stride: Any, grad: Any, hooks: Any, kind: Any, *_: Any
) -> Tensor:
    """A tensor of version 3, with the type of its numbers, which is not in its storage."""
    if type(kind) is not Known or kind.text not in _TYPES:
        raise InvalidPickleError("a tensor has an unknown form")
    return Tensor(storage, offset, size, stride, _TYPES[kind.text])


def _parameter(tensor: Any, *_: Any) -> Tensor:
    if type(tensor) is not Tensor:
        raise InvalidPickleError("a parameter is not a tensor")
    return tensor


# The table: what a torch file of vectors may name, arrays of NumPy included.
TORCH_NAMES: Mapping[str, Known] = {
    **NAMES,
    **{text: Known(text) for text in (*_STORAGES, *_TYPES)},
    **{
        f"torch.{text}": Known(f"torch.{text}", make)
        for text, make in (
            ("Size", shape_of),
            ("_utils._rebuild_tensor", _tensor),
            ("_utils._rebuild_tensor_v2", _tensor),
            ("_utils._rebuild_tensor_v3", _typed_tensor),
            ("_utils._rebuild_parameter", _parameter),
        )
    },
}


def read_raw(path: Path, name: str) -> Any:
    """The value of a torch file; runs in the child."""
    with path.open("rb") as file, refuse_invalid(file, name, "torch file"):
        return Flattener(name, most_bytes(path)).flat(load_value(file, path))


def load_value(file: Any, path: Path, names: Mapping[str, Known] = TORCH_NAMES) -> Any:
    """The value of a torch file, with tensors as `Tensor`; it may refer to nothing else."""
    return (_from_archive if file.peek(2)[:2] == b"PK" else _from_stream)(file, path, names)


def _from_archive(file: BinaryIO, path: Path, names: Mapping[str, Known]) -> Any:
    try:
        archive = zipfile.ZipFile(file)
    except Exception:
        # zipfile raises errors of every kind for tables of contents that are none.
        raise InputError(
            f"{path} has no valid list of contents, as after an unfinished download: copy or download it again."
        ) from None
    members = _members(archive, path)
    check_size(path, sum(member.file_size for member in members.values()), "members")

    @cache
    def bytes_of(name: str) -> bytes:
        if name not in members:
            raise InvalidPickleError(f"it has no member {quoted(name)}")
        if members[name].flag_bits & 1:
            raise InputError(f"{path} is encrypted: save it without a password.")
        data = archive.read(members[name])
        if len(data) != members[name].file_size:
            raise InvalidPickleError("a member has another size than announced")
        return data

    if "constants.pkl" in members or any(name.startswith("code/") for name in members):
        raise InputError(f"{path} is a TorchScript program, not features: save tensors with torch.save.")
    if "byteorder" in members and bytes_of("byteorder") != b"little":
        raise InputError(f"{path} was written by a big-endian machine: save it on another.")

    def storage(value: Any) -> Storage:
        kind, key, count = _storage_id(value, fields=5)
        data, width = bytes_of(f"data/{key}"), _dtype(kind).itemsize
        if len(data) != count * width:
            raise InvalidPickleError(f"it has {len(data)} bytes for {count} numbers of {width} bytes")
        return Storage(kind, count, data)

    stream = io.BytesIO(bytes_of("data.pkl"))
    value = Unpickler(stream, str(path), names, storage).load()
    if stream.read(1):
        raise InvalidPickleError("it has bytes after its pickle")
    return value


def _members(archive: zipfile.ZipFile, path: Path) -> dict[str, zipfile.ZipInfo]:
    """Members of a torch file by name, without their common folder."""
    names = archive.namelist()
    strange = any(name.startswith("/") or "\\" in name or ".." in name.split("/") for name in names)
    if len(set(names)) < len(names) or strange:
        raise InvalidPickleError("members have the same name, or names that lead outside the archive")
    folders = [name.removesuffix("data.pkl") for name in names if name.endswith("/data.pkl")]
    if len(folders) != 1:
        raise InvalidPickleError(f"it has {len(folders)} pickles of tensors")
    inside = [member for member in archive.infolist() if member.filename.startswith(folders[0])]
    return {member.filename.removeprefix(folders[0]): member for member in inside}


def _from_stream(file: BinaryIO, path: Path, names: Mapping[str, Known]) -> Any:
    """Read a stream: pickles of a magic number, a version, the machine, the value and the keys, then all numbers."""
    roots: dict[str, Storage] = {}
    views: list[tuple[Storage, Storage]] = []

    def storage(value: Any) -> Storage:
        kind, key, count = _storage_id(value, fields=6)
        root = roots.setdefault(key, Storage(kind, count))
        if (root.kind, root.count) != (kind, count):
            raise InvalidPickleError("a storage has two types or sizes")
        if value[5] is None:
            return root
        _, first, size = value[5]
        if type(first) is not int or type(size) is not int or min(first, size) < 0 or first + size > count:
            raise InvalidPickleError("a storage extends beyond another")
        views.append((Storage(kind, size, start=first), root))
        return views[-1][0]

    def load(storage: Callable[[Any], Any] | None = None) -> Any:
        return Unpickler(file, str(path), names, storage).load()

    if load() != _MAGIC:
        raise InvalidPickleError("it has another start")
    version, _, value, keys = load(), load(), load(storage), load()
    if version != _VERSION or type(keys) is not list:
        raise InvalidPickleError("it has an unknown version")
    for key in keys:
        root = roots.get(as_text(key) or "")
        if root is None or root.data is not None:
            raise InvalidPickleError("it has numbers that belong to no tensor")
        (count,) = struct.unpack("<q", file.read(8).ljust(8, b"\xff"))
        size = root.count * _dtype(root.kind).itemsize
        root.data = file.read(size)
        if count == -1 or len(root.data) < size:
            raise EOFError
        if count != root.count:
            raise InvalidPickleError(f"it has {count} numbers instead of {root.count}")
    if rest := len(file.read()):
        raise InvalidPickleError(f"it has {rest} bytes that belong to no tensor")
    for view, root in views:
        view.data = root.data
    return value


def _storage_id(value: Any, fields: int) -> tuple[str, str, int]:
    """Type, key and count of a persistent id ('storage', type, key, device, count, …) of so many fields."""
    if type(value) is tuple and len(value) == fields and as_text(value[0]) == "storage":
        kind = _STORAGES.get(value[1].text) if type(value[1]) is Known else None
        key, count = as_text(value[2]), value[4]
        if kind and key and type(count) is int and 0 <= count < 2**60:
            return kind, key[:100], count
    raise InvalidPickleError("a tensor is not in the file")
