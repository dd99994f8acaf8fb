"""Zip archives: their members are read in place, one by one, and never extracted."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

from hotshot.errors import InputError
from hotshot.files.names import quoted
from hotshot.files.tensors import map_bytes
from hotshot.images.datasets.entries import DeflatedEntry, Entry, SliceEntry
from hotshot.images.datasets.tree import Tree, make_tree, member_path

MAGIC = b"PK\x03\x04"
_ENCRYPTED = 0x1
_HEADER = 30


def zip_tree(path: Path, shown: str) -> Tree:
    """The files of a zip archive; `shown` names it in sentences."""
    buffer = map_bytes(path)
    modified = path.stat().st_mtime_ns
    found: list[tuple[str, Entry]] = []
    folders = []
    ignored = 0
    for info in _members(path):
        name = member_path(info.orig_filename, path)
        if name is None:
            ignored += 1
            continue
        if info.is_dir():
            folders.append(name)
            continue
        head = buffer[info.header_offset : info.header_offset + _HEADER]
        if info.flag_bits & _ENCRYPTED or len(head) < _HEADER or head[:4] != MAGIC:
            what = "encrypted" if info.flag_bits & _ENCRYPTED else "damaged"
            raise InputError(f"{path} holds a member {quoted(name)} that is {what}: pack it again.")
        start = info.header_offset + _HEADER + sum(struct.unpack("<HH", head[26:]))
        where = f"{shown}:{name}"
        if start + info.compress_size > len(buffer):
            raise InputError(f"{path} is truncated: copy or download it again.")
        if info.compress_type == zipfile.ZIP_STORED:
            found.append((name, SliceEntry(where, buffer, start, info.compress_size, modified)))
        elif info.compress_type == zipfile.ZIP_DEFLATED:
            found.append(
                (
                    name,
                    DeflatedEntry(
                        where, buffer, start, info.compress_size, info.file_size, info.CRC, modified
                    ),
                )
            )
        else:
            raise InputError(
                f"{path} holds a member {quoted(name)} compressed by method {info.compress_type}: pack it as an "
                "ordinary zip or tar."
            )
    return make_tree(path, found, folders, ignored)


def _members(path: Path) -> list[zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, OverflowError, struct.error) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:100]
        raise InputError(f"{path} is not a sound zip archive, {reason}: copy or download it again.") from None
