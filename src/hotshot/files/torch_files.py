"""Files of `torch.save`, read without torch: the zip archives of today and the streams of torch before 1.6.

Both hold a pickle and, beside it, the numbers of all tensors. The pickle is read by the machine for pickles, with
the few names that tensors need: less than `torch.load(..., weights_only=True)` allows.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

from hotshot.errors import InputError
from hotshot.files.limits import most_bytes
from hotshot.files.mapped import map_bytes
from hotshot.files.pickle_contents import Reader
from hotshot.files.pickle_machine import run_pickle
from hotshot.files.pickle_records import Unsound, as_text
from hotshot.files.pickle_state import State
from hotshot.files.source import FeatureSource
from hotshot.files.torch_archive import Archive
from hotshot.files.torch_tensors import TORCH_NAMES, Storage, storage_id

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_COUNT = struct.Struct("<q")


def open_torch(path: str | Path, part: str | None = None) -> FeatureSource:
    """Features in a `.pt` or `.pth` file: tensors by name or by class, or a pair of features and labels.

    Numbers stay in the file until they are asked for. What is made of the file takes at most what a compressed file
    may, 200 times its size and 256 MiB in any case: a tensor may be one number, expanded.

    Parameters
    ----------
    path : str or Path
    part : str or None
        The key of one set of samples where the file holds a dictionary of several.
    """
    path = Path(path)
    data = map_bytes(path)
    try:
        value = _from_archive(data, path) if data[:2] == b"PK" else _from_stream(data, path)
        return Reader(path, most_bytes(path)).features(value, part)
    except Unsound as problem:
        raise InputError(f"{path} is not a sound torch file, {problem}: copy or download it again.") from None


def _from_archive(file: mmap.mmap, path: Path) -> Any:
    archive = Archive(file, path)

    def storage(value: Any) -> Storage:
        kind, key, count = storage_id(value, fields=5)
        data = archive.bytes_of(f"data/{key}")
        if len(data) != count * kind.dtype.itemsize:
            raise Unsound(f"it has {len(data)} bytes for {count} numbers of {kind.dtype.itemsize} bytes")
        return Storage(kind, count, data)

    pickle, start, end = archive.place_of("data.pkl")
    state = State(pickle, path, names=TORCH_NAMES, start=start, end=end, persistent=storage)
    value = run_pickle(state)
    if state.position != end:
        raise Unsound("it has bytes after its pickle")
    return value


def _from_stream(data: mmap.mmap, path: Path) -> Any:
    """Pickles of a number that marks the file, a version, the machine, the value and the keys, then all numbers."""
    roots: dict[str, Storage] = {}
    views: list[tuple[Storage, Storage]] = []

    def storage(value: Any) -> Storage:
        kind, key, count = storage_id(value, fields=6)
        root = roots.setdefault(key, Storage(kind, count))
        if (root.kind, root.count) != (kind, count):
            raise Unsound("it has one storage of two types or sizes")
        if value[5] is None:
            return root
        _, first, size = value[5] if type(value[5]) is tuple and len(value[5]) == 3 else (None, -1, -1)
        if type(first) is not int or type(size) is not int or min(first, size) < 0 or first + size > count:
            raise Unsound("it has a storage beyond another")
        views.append((Storage(kind, size, start=first), root))
        return views[-1][0]

    values = []
    position = 0
    for step in range(5):
        persistent = storage if step == 3 else None
        state = State(data, path, names=TORCH_NAMES, start=position, persistent=persistent)
        values.append(run_pickle(state))
        position = state.position
        if step == 0 and values != [_MAGIC]:
            raise Unsound("it does not start as one")
    if values[1] != _PROTOCOL or type(values[4]) is not list:
        raise Unsound("it is of another version")
    for key in values[4]:
        root = roots.get(as_text(key) or "")
        if root is None or root.data is not None:
            raise Unsound("it has numbers that belong to no tensor")
        if position + _COUNT.size > len(data):
            raise _truncated(path, len(data))
        (count,) = _COUNT.unpack_from(data, position)
        start = position + _COUNT.size
        position = start + root.count * root.kind.dtype.itemsize
        if count != root.count:
            raise Unsound(f"it has {count} numbers where {root.count} should be")
        if position > len(data):
            raise _truncated(path, len(data))
        root.data = memoryview(data)[start:position]
    if position != len(data):
        raise Unsound(f"it has {len(data) - position} bytes that belong to no tensor")
    for view, root in views:
        view.data = root.data
    return values[3]


def _truncated(path: Path, size: int) -> InputError:
    return InputError(
        f"{path} is truncated: it ends at byte {size}, in the middle of its numbers: copy or download it again."
    )
