"""Tar archives: looked through once for where each file starts, then read in place. Nothing is extracted."""

from __future__ import annotations

import mmap
import tarfile
from pathlib import Path

from hotshot.errors import InputError
from hotshot.files.tensors import map_bytes
from hotshot.images.datasets.entries import SliceEntry
from hotshot.images.datasets.tree import Tree, make_tree, member_path
from hotshot.images.datasets.unpacking import is_compressed, unpack

_MAGIC_AT = 257
_BLOCK = 512


def is_tar(path: Path, start: bytes) -> bool:
    """Whether a file is a tar archive, compressed or not, by its first 512 bytes."""
    return start[_MAGIC_AT : _MAGIC_AT + 5] == b"ustar" or is_compressed(start) or path.suffix == ".tar"


def tar_tree(path: Path, shown: str) -> Tree:
    """The files of a tar archive, compressed or not; `shown` names it in sentences."""
    buffer = map_bytes(path)
    if is_compressed(buffer[:6]):
        buffer = unpack(path)
    modified = path.stat().st_mtime_ns
    found, folders = [], []
    ignored = 0
    for member in _members(buffer, path):
        name = member_path(member.name, path)
        if name is None or not (member.isreg() or member.isdir()):
            ignored += 1
        elif member.isdir():
            folders.append(name)
        else:
            where = f"{shown}:{name}"
            found.append((name, SliceEntry(where, buffer, member.offset_data, member.size, modified)))
    return make_tree(path, found, folders, ignored)


def _members(buffer: mmap.mmap, path: Path) -> list[tarfile.TarInfo]:
    try:
        with tarfile.open(fileobj=buffer, mode="r:") as archive:
            members = archive.getmembers()
            end = archive.offset
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError, OSError) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:100]
        raise InputError(f"{path} is not a sound tar archive, {reason}: copy or download it again.") from None
    # tarfile takes a damaged header, or the end of the file, for the zeros that every tar ends with.
    if buffer[end : end + _BLOCK] != bytes(_BLOCK):
        raise InputError(
            f"{path} is not a sound tar archive, it is damaged or ends at byte {end}: copy or download it again."
        )
    for member in members:
        # A sparse file is stored otherwise than it reads.
        if member.sparse is not None or member.offset_data + member.size > len(buffer):
            raise InputError(
                f"{path} holds {member.name!r:.100} in a form that cannot be read in place: unpack it yourself."
            )
    return members
