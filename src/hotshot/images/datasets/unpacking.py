"""Compressed bytes, unpacked once into a file without a name that is gone when nothing refers to it any more."""

from __future__ import annotations

import bz2
import gzip
import lzma
import mmap
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from hotshot.errors import InputError
from hotshot.files.source import check_size

_CHUNK = 2**20
# xz can ask for gigabytes; what its own program writes at its highest setting needs 65 MB.
_MOST_MEMORY = 2**27


def is_compressed(start: bytes) -> bool:
    """Whether a file that starts like this is compressed by gzip, xz or bzip2."""
    return start.startswith(tuple(_UNPACKERS))


def unpack(path: Path) -> mmap.mmap:
    """The unpacked bytes of a file, mapped."""
    try:
        with path.open("rb") as file:
            start = file.read(6)
            file.seek(0)
            unpacker = next(make for magic, make in _UNPACKERS.items() if start.startswith(magic))
            return to_disk(unpacker(file), path)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:100]
        raise InputError(f"{path} cannot be unpacked, {reason}: copy or download it again.") from None


def to_disk(blocks: Iterable[bytes], path: Path) -> mmap.mmap:
    """Bytes that come from `path`, mapped from a temporary file; refused where they are out of proportion."""
    with tempfile.TemporaryFile() as room:
        size = 0
        for block in blocks:
            size += len(block)
            check_size(path, size, "data")
            try:
                room.write(block)
            except OSError as error:
                raise InputError(
                    f"{path} cannot be unpacked to {tempfile.gettempdir()}, {error.strerror or error}: set TMPDIR to "
                    "a folder with more room, or unpack it yourself."
                ) from None
        if size == 0:
            raise InputError(f"{path} holds nothing: copy or download it again.")
        room.flush()
        return mmap.mmap(room.fileno(), 0, access=mmap.ACCESS_READ)


def _gzip(file: IO[bytes]) -> Iterator[bytes]:
    with gzip.open(file) as stream:
        while block := stream.read(_CHUNK):
            yield block


def _streams(
    file: IO[bytes], make: Callable[[], lzma.LZMADecompressor | bz2.BZ2Decompressor]
) -> Iterator[bytes]:
    """One or more streams, one after the other."""
    unpacker = make()
    while True:
        waiting = b""
        if unpacker.eof:
            waiting = unpacker.unused_data or file.read(_CHUNK)
            if not waiting:
                return
            unpacker = make()
        elif unpacker.needs_input:
            waiting = file.read(_CHUNK)
            if not waiting:
                raise EOFError("it is truncated")
        yield unpacker.decompress(waiting, _CHUNK)


_UNPACKERS: dict[bytes, Callable[[IO[bytes]], Iterator[bytes]]] = {
    b"\x1f\x8b": _gzip,
    b"\xfd7zXZ\0": lambda file: _streams(file, lambda: lzma.LZMADecompressor(memlimit=_MOST_MEMORY)),
    b"BZh": lambda file: _streams(file, bz2.BZ2Decompressor),
}
