"""`.npz`: a zip archive of `.npy` arrays, each read from its start, a few rows at a time, and only when asked for."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.limits import check_size
from hotshot.files.named import features_from_arrays
from hotshot.files.names import quoted
from hotshot.files.npy_format import NpyHeader, read_npy_header
from hotshot.files.source import FeatureSource

# Other methods unpack without a limit inside Python, and numpy writes only these.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
_LOCAL_HEADER = 30


def open_npz(path: Path, part: str | None) -> FeatureSource:
    """Features and labels of an `.npz` file."""
    arrays: dict[str, Member] = {}
    with _opened(path) as archive:
        _check_members(archive, path)
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                with archive.open(info) as file:
                    name = info.filename.removesuffix(".npy")
                    header = read_npy_header(file, f"array {quoted(name)}", path)
                if header.start + header.n_bytes != info.file_size:
                    raise InputError(
                        f"{path} announces {header.n_bytes} bytes for array {quoted(name)} of shape {header.shape} and "
                        f"holds {info.file_size - header.start}: copy or download it again."
                    )
                arrays[name] = Member(path, info.filename, header, header.shape)
    return features_from_arrays(arrays, path, part=part)


@dataclass(frozen=True)
class Member:
    """One array of an archive; `shape` may be another than it is stored with."""

    path: Path
    name: str
    header: NpyHeader
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        """As it is stored."""
        return self.header.dtype

    @property
    def streams(self) -> bool:
        """Whether `blocks` needs memory for one block only: the rows of Fortran's order are everywhere."""
        return not self.header.fortran or len(self.header.shape) < 2

    def reshape(self, *shape: int) -> Member:
        """The same numbers in another shape, of which the first size may be -1."""
        known = math.prod(shape[1:])
        first = math.prod(self.shape) // known if shape[0] == -1 else shape[0]
        return replace(self, shape=(first, *shape[1:]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        with _opened(self.path) as archive, archive.open(self.name) as file:
            file.read(self.header.start)
            flat = self._read(file, math.prod(self.header.shape))
        order = "F" if self.header.fortran else "C"
        array = flat.reshape(self.header.shape, order=order).reshape(self.shape)  # type: ignore[call-overload]
        return array if dtype is None else array.astype(dtype, copy=False)

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        """A number of rows at a time."""
        if not self.streams:
            whole = np.asarray(self)
            for some in slices(len(whole), rows):
                yield whole[some]
            return
        width = math.prod(self.shape[1:])
        with _opened(self.path) as archive, archive.open(self.name) as file:
            file.read(self.header.start)
            for some in slices(self.shape[0], rows):
                count = some.stop - some.start
                yield self._read(file, count * width).reshape(count, *self.shape[1:])

    def _read(self, file: IO[bytes], count: int) -> np.ndarray:
        numbers = np.empty(count, dtype=self.dtype)
        room = memoryview(numbers.view(np.uint8))  # type: ignore[arg-type]
        while room:
            got = file.readinto(room)  # type: ignore[attr-defined]
            if not got:
                raise InputError(
                    f"{self.path} ends inside array {quoted(self.name)}: copy or download it again."
                )
            room = room[got:]
        return numbers


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """An archive whose faults come out as one sentence."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        OSError,
        EOFError,
        # What zipfile says of encrypted members, of methods it lacks and of sizes that no file has.
        RuntimeError,
        ValueError,
        OverflowError,
    ) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:100]
        raise InputError(
            f"{path} is not a sound .npz file, {reason or type(error).__name__}: copy or download it again."
        ) from None


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse what no honest `.npz` file has, before anything is unpacked."""
    end = 0
    total = 0
    seen: set[str] = set()
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        name = info.orig_filename
        who = f"{path} holds a member {quoted(name)}"
        if (
            name.startswith("/")
            or ".." in name.split("/")
            or "\\" in name
            or "\0" in name
            or ":" in name[1:2]
        ):
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
        total += info.file_size
        seen.add(name)
    if end > path.stat().st_size:
        raise InputError(f"{path} is truncated, it ends before its last member: copy or download it again.")
    check_size(path, total, "arrays")
