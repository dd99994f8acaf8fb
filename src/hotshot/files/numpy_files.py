"""`.npy` and `.npz`: features mapped or read a few rows at a time, without trusting headers or archives."""

from __future__ import annotations

import io
import json
import math
import os
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.atomic import replace_file, replace_files
from hotshot.files.named import features_from_arrays
from hotshot.files.source import (
    ALWAYS_ALLOWED,
    ROWS_AT_ONCE,
    FeatureSource,
    blocks,
    check_size,
    damaged,
    is_text,
    label_array,
    opened,
)
from hotshot.files.text import read_label_lines
from hotshot.formatting import on_one_line, quoted, readable_size

if TYPE_CHECKING:
    from hotshot.files.writing import Content

_MOST_DIMENSIONS = 32
# A header of plain numbers is far shorter.
_LONGEST = 2**14
# What the labels of `name.npy` may be called.
_BESIDE = ("{}.labels.npy", "{}_labels.npy", "{}.labels.txt", "{}.labels.csv")
_PAIRS = {"X": "y", "x": "y", "features": "labels"}
# Other methods unpack without a limit inside Python, and numpy writes only these.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
# What zipfile says of damage, of encrypted members, of methods it lacks and of sizes that no file has.
_FAULTS = (zipfile.BadZipFile, zlib.error, OSError, EOFError, RuntimeError, ValueError, OverflowError)
_LOCAL_HEADER = 30


@dataclass(frozen=True)
class NpyHeader:
    """Contents of a header; the numbers start `start` bytes after its beginning."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    start: int

    @property
    def n_bytes(self) -> int:
        """Size of the numbers in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy_header(file: IO[bytes], what: str, path: Path) -> NpyHeader:
    """The header at the current position of a file; error messages call the array `what`."""
    form = np.lib.format
    # No header may ask for more.
    text = io.BytesIO(file.read(_LONGEST))
    try:
        with warnings.catch_warnings():
            # NumPy warns of headers of Python 2.
            warnings.simplefilter("ignore")
            version = form.read_magic(text)
            # The text of version 3 is UTF-8, but only the names of fields need that.
            read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
            shape, fortran, dtype = read(text)
    except Exception as error:
        # Errors of Python's parser, of every kind, say nothing of the file.
        reason = on_one_line(str(error), 100) if isinstance(error, ValueError) else "its header is invalid"
        raise damaged(f"{path} does not hold {what} in the .npy format, {reason.rstrip('.')}") from None
    # NumPy refuses shapes that would be too large if they were not empty.
    if len(shape) > _MOST_DIMENSIONS or min(shape, default=0) < 0 or math.prod(n or 1 for n in shape) >= 2**59:
        raise damaged(f"{path} does not hold {what} in the .npy format, its shape is invalid")
    if dtype.hasobject:
        raise InputError(
            f"{path} holds {what} of Python objects, a pickle, which hotshot never runs: save labels with "
            "y.astype(str) and features as an array of numbers."
        )
    # Text of no width would say nothing of any sample.
    if dtype.kind not in "fiubcSU" or dtype.itemsize == 0 or dtype.subdtype is not None:
        raise InputError(f"{path} holds {what} of type {str(dtype)[:60]!r}: save plain numbers or strings.")
    return NpyHeader(shape, dtype, fortran, text.tell())


def open_npy(path: Path, part: str | None = None, labels: Path | None = None) -> FeatureSource:
    """Features of an `.npy` file with labels from the given file or from a file beside it."""
    X = map_npy(path)
    labels = find_labels(path) if labels is None else labels
    if labels is None:
        missing = (
            f"{path} has no file of labels beside it, none of {', '.join(_beside(path))}: "
            "write one with numpy.save, or pass labels= (in the shell --labels)."
        )
        return replace(features_from_arrays({"X": X}, path), unlabelled=missing)
    if labels.suffix.lower() != ".npy":
        return features_from_arrays({"X": X, "y": read_label_lines(labels)}, path)
    # Here, since `reading` imports this file.
    from hotshot.files.reading import FORMATS, sniff

    if sniff(labels) is not FORMATS["npy"]:
        raise InputError(f"{labels} is not an .npy file of labels: write it with numpy.save.")
    return features_from_arrays({"X": X, "y": label_array(np.array(map_npy(labels)), "it", labels)}, path)


def map_npy(path: Path) -> np.ndarray:
    """The array of an `.npy` file, without reading its numbers."""
    with opened(path) as file:
        header = read_npy_header(file, "an array", path)
        held = file.seek(0, os.SEEK_END) - header.start
        if header.n_bytes != held:
            raise damaged(
                f"{path} should hold {readable_size(header.n_bytes)} of numbers, shape {header.shape}, but holds "
                f"{readable_size(held)}"
            )
        if header.n_bytes == 0:
            return np.empty(header.shape, dtype=header.dtype)
        order = "F" if header.fortran else "C"
        mapped = np.memmap(file, header.dtype, "r", header.start, header.shape, order)  # type: ignore[call-overload]
    # A plain array: results computed from it are not maps.
    return np.asarray(mapped)


def _beside(path: Path) -> list[str]:
    """Possible names for the labels of an `.npy` file."""
    pair = [f"{_PAIRS[path.stem]}.npy"] if path.stem in _PAIRS else []
    return [pattern.format(path.stem) for pattern in _BESIDE] + pair


def find_labels(path: Path) -> Path | None:
    """The file of labels beside an `.npy` file, if there is one."""
    return next((path.parent / name for name in _beside(path) if (path.parent / name).exists()), None)


def open_npz(path: Path, part: str | None) -> FeatureSource:
    """Features and labels of an `.npz` file; only the needed arrays are unpacked."""
    arrays: dict[str, Member] = {}
    with _opened(path) as archive:
        _check_members(archive, path)
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                with archive.open(info) as file:
                    name = info.filename.removesuffix(".npy")
                    header = read_npy_header(file, f"array {name!r:.60}", path)
                if header.start + header.n_bytes != info.file_size:
                    raise damaged(
                        f"{path} should hold {header.n_bytes} bytes for array {quoted(name)} {header.shape}, but "
                        f"holds {info.file_size - header.start}"
                    )
                arrays[name] = Member(path, info.filename, header, header.shape)
    return features_from_arrays(arrays, path, part=part)


@dataclass(frozen=True)
class Member:
    """One array of an archive; `shape` may differ from the stored shape."""

    path: Path
    name: str
    header: NpyHeader
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        """Type in the file."""
        return self.header.dtype

    @property
    def streams(self) -> bool:
        """Whether `blocks` needs memory for one block only: not in Fortran order, where rows are scattered."""
        return not self.header.fortran or len(self.header.shape) < 2

    def reshape(self, *shape: int) -> Member:
        """The same numbers in another shape; its first size may be -1."""
        first = math.prod(self.shape) // math.prod(shape[1:]) if shape[0] == -1 else shape[0]
        return replace(self, shape=(first, *shape[1:]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        with _opened(self.path) as archive, archive.open(self.name) as file:
            file.read(self.header.start)
            flat = self._read(file, math.prod(self.header.shape))
        order = "F" if self.header.fortran else "C"
        array = flat.reshape(self.header.shape, order=order).reshape(self.shape)  # type: ignore[call-overload]
        return array if dtype is None else array.astype(dtype, copy=False)

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        """Yield so many rows at a time."""
        if not self.streams:
            yield from blocks(np.asarray(self), rows)
            return
        width = math.prod(self.shape[1:])
        with _opened(self.path) as archive, archive.open(self.name) as file:
            file.read(self.header.start)
            for some in slices(self.shape[0], rows):
                count = some.stop - some.start
                yield self._read(file, count * width).reshape(count, *self.shape[1:])

    def _read(self, file: IO[bytes], count: int) -> np.ndarray:
        data = file.read(count * self.dtype.itemsize)
        if len(data) < count * self.dtype.itemsize:
            raise damaged(f"{self.path} ends inside array {quoted(self.name)}")
        return np.frombuffer(data, self.dtype, count)


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """An open archive; its errors are raised as one sentence."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except _FAULTS as error:
        reason = on_one_line(str(error) or type(error).__name__, 100).rstrip(".")
        raise damaged(f"{path} is not a valid .npz file, {reason}") from None


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse members that a normal `.npz` file never has, before anything is unpacked."""
    end = 0
    seen: set[str] = set()
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        name = info.orig_filename
        who = f"{path} holds a member {name!r:.60}"
        if name.startswith("/") or ".." in name.split("/") or set("\\\0") & set(name) or ":" in name[1:2]:
            raise InputError(f"{who}, a name that points outside the archive: do not use this file.")
        if name in seen:
            raise InputError(f"{who} twice: write the file again.")
        if info.flag_bits & _ENCRYPTED:
            raise InputError(f"{who} that is encrypted: write the file again without a password.")
        if info.compress_type not in _METHODS:
            raise InputError(
                f"{who} compressed by method {info.compress_type}: write it with numpy.savez or numpy.savez_compressed."
            )
        if info.header_offset < end:
            raise InputError(f"{who} that overlaps another: it is damaged or hostile, do not use it.")
        end = info.header_offset + _LOCAL_HEADER + info.compress_size
        seen.add(name)
    if end > path.stat().st_size:
        raise damaged(f"{path} is truncated, it ends before its last member")
    check_size(path, sum(info.file_size for info in archive.infolist()), "arrays")


def write_npz(path: Path, content: Content) -> None:
    """Write arrays X, y, ids, texts and `about` (JSON text), as far as present; uncompressed, like numpy.savez."""
    about = np.array(json.dumps(content.about))
    arrays: list[tuple[str, Any, np.dtype, Iterable[np.ndarray]]] = [
        ("X", content.shape, content.dtype, content.blocks()),
        ("y", content.codes.shape, content.class_array.dtype, _labels(content)),
        *(_texts(path, f"{name}s", kept) for name, kept in content.kept.stored().items() if name in ("id", "text")),
        ("about", about.shape, about.dtype, [about]),
    ]
    with replace_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, shape, dtype, blocks in arrays:
            if name == "y" and not content.classes:
                continue
            # Without a date, the same features make the same file.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                write_array(member, shape, dtype, blocks)


def write_npy(path: Path, content: Content) -> None:
    """Write the features, and beside them `name.labels.npy` with the labels."""
    if not content.classes:
        beside = find_labels(path)
        if beside is not None:
            raise InputError(f"{beside} would be taken for the labels of {path}, which has none: remove it.")
        with replace_file(path) as file:
            write_array(file, content.shape, content.dtype, content.blocks())
        return
    with replace_files(path, path.with_suffix(".labels.npy")) as (features, labels):
        write_array(labels, content.codes.shape, content.class_array.dtype, _labels(content))
        write_array(features, content.shape, content.dtype, content.blocks())


def _texts(path: Path, name: str, values: Sequence[str]) -> tuple[str, Any, np.dtype, Iterable[np.ndarray]]:
    """Text of the samples as an array, in which each takes as much space as the longest."""
    dtype = np.dtype(f"<U{max(1, max(map(len, values)))}")
    if dtype.itemsize * len(values) > ALWAYS_ALLOWED or any(text.endswith("\0") for text in values):
        raise InputError(
            f"{path} cannot hold {name} that are too long (up to {dtype.itemsize // 4} characters) or end in a NUL "
            "character: write .safetensors instead."
        )

    def blocks() -> Iterator[np.ndarray]:
        for some in slices(len(values), ROWS_AT_ONCE):
            block = np.array(list(values[some]), dtype)
            if not is_text(block):
                raise InputError(f"{path} cannot hold {name} with invalid characters: repair them.")
            yield block

    return name, (len(values),), dtype, blocks()


def _labels(content: Content) -> Iterable[np.ndarray]:
    classes = content.class_array
    return (classes[content.codes[some]] for some in slices(len(content.codes), ROWS_AT_ONCE))


def write_array(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype, blocks: Iterable[np.ndarray] = ()) -> None:
    """Write an `.npy` header, whose length is the same for any number of rows, and blocks of numbers."""
    dtype = dtype.newbyteorder("<")
    np.lib.format.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    for block in blocks:
        file.write(np.ascontiguousarray(block, dtype=dtype).data)
