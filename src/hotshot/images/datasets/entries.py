"""Files wherever they are: on the disk, or inside an archive that is mapped and never extracted."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.tensors import map_bytes

# No image that is decoded at once, and no list of files, is longer.
LONGEST = 2**28
_CHUNK = 2**20


class Entry(Protocol):
    """A file: its name for sentences, its size, and its bytes."""

    @property
    def name(self) -> str:
        """Where it is, as a person would say it."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def modified(self) -> int:
        """When the file, or the archive around it, changed, in nanoseconds."""

    def data(self) -> bytes:
        """All bytes, of a file that is short enough to be taken into memory."""

    def mapped(self) -> tuple[Any, int, int]:
        """A buffer that holds the bytes, where they start and where they end."""


def check_length(entry: Entry) -> None:
    """Refuse to take a huge file into memory."""
    if entry.size > LONGEST:
        raise InputError(
            f"{entry.name} has {entry.size} bytes where an image or a list has at most {LONGEST}: remove it."
        )


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file on the disk, called by its path below the folder `root`."""

    name: str
    root: Path
    size: int
    modified: int

    @property
    def path(self) -> Path:
        """The whole path; there may be a million entries, which share the folder."""
        return self.root / self.name

    def data(self) -> bytes:
        """All bytes."""
        check_length(self)
        try:
            return self.path.read_bytes()
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{self.name} cannot be read, {reason}: check the folder.") from None

    def mapped(self) -> tuple[Any, int, int]:
        """The file, mapped."""
        buffer = map_bytes(self.path)
        return buffer, 0, len(buffer)


@dataclass(frozen=True, slots=True)
class SliceEntry:
    """Bytes that stand as they are inside a larger file, which `buffer` maps."""

    name: str
    buffer: Any
    start: int
    size: int
    modified: int

    def data(self) -> bytes:
        """All bytes."""
        check_length(self)
        return bytes(self.buffer[self.start : self.start + self.size])

    def mapped(self) -> tuple[Any, int, int]:
        """The larger file."""
        return self.buffer, self.start, self.start + self.size


@dataclass(frozen=True, slots=True)
class DeflatedEntry:
    """A compressed member of a zip archive, which `buffer` maps."""

    name: str
    buffer: Any
    start: int
    compressed: int
    size: int
    checksum: int
    modified: int

    def data(self) -> bytes:
        """All bytes; never more of them than the archive announces."""
        check_length(self)
        return b"".join(self.blocks())

    def blocks(self) -> Iterator[bytes]:
        """The bytes, some at a time; an error at the end where they are not what the archive announces."""
        unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
        size = checksum = 0
        try:
            for some in slices(self.compressed, _CHUNK):
                waiting = self.buffer[self.start + some.start : self.start + some.stop]
                while waiting and size <= self.size:
                    block = unpacker.decompress(waiting, _CHUNK)
                    size, checksum = size + len(block), zlib.crc32(block, checksum)
                    yield block
                    waiting = unpacker.unconsumed_tail
        except zlib.error:
            size = -1
        if size != self.size or checksum != self.checksum or not unpacker.eof:
            raise InputError(
                f"{self.name} is damaged inside its archive: copy or download the archive again."
            )

    def mapped(self) -> tuple[Any, int, int]:
        """The bytes in memory: compressed ones cannot be mapped."""
        found = self.data()
        return found, 0, len(found)
