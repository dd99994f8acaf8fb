"""Trees of files: a folder, a tar or a zip archive. Archives are read in place and never extracted."""

from __future__ import annotations

import bz2
import gzip
import lzma
import mmap
import os
import re
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from hotshot.errors import InputError
from hotshot.files.opening import check_size, damaged, map_bytes, one_sentence, opened
from hotshot.formatting import quoted

IMAGE_SUFFIXES = (
    ".jpg", ".jpeg", ".jpe", ".png", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm",
)  # fmt: skip
ARCHIVE_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".zip")
# No image that is decoded at once, and no list of files, is longer.
LONGEST = 2**28
# Datasets are three or four folders deep, and archives may have more around them.
_DEEPEST, _DEEPEST_IN_ARCHIVE = 8, 32
_SYSTEM_FILES = ("thumbs.db", "desktop.ini", "__macosx", "icon\r")
_CHUNK = 2**20
_ZIP_MAGIC, _ZIP_ENCRYPTED = b"PK\x03\x04", 0x1
_TAR_BLOCK = 512
# Bytes that no member of an archive does without, however well it is compressed.
_LEAST_MEMBER = 16
# Headers of a tar that hold text, how many values may hold for all members, and digits that are neither a number nor a
# name: tarfile looks through them in time that grows with their square.
_TAR_TEXT, _MOST_COMMON, _TAR_DIGITS = (b"x", b"g", b"X"), 64, re.compile(rb"[0-9]{256}")
# By the first bytes of a file.
_OPENERS: dict[bytes, Callable[[Path], Any]] = {b"\x1f\x8b": gzip.open, b"\xfd7zXZ\0": lzma.open, b"BZh": bz2.open}


@dataclass(frozen=True, slots=True)
class File:
    """A file in a folder or in an archive, and the function that reads it.

    Its name is for messages; `modified` is its last change, or that of its archive, in nanoseconds.
    """

    name: str
    size: int
    modified: int
    read: Callable[[], bytes | memoryview]
    # None in an archive. Up to a million files share it.
    folder: Path | None = None

    @property
    def path(self) -> Path | None:
        """The path on the disk, None in an archive."""
        return None if self.folder is None else self.folder / self.name

    def data(self) -> bytes | memoryview:
        """All bytes of an image or a list; raises if the file is too long for one."""
        if self.size > LONGEST:
            raise InputError(f"{self.name} has {self.size} bytes, more than an image or list ({LONGEST}): remove it.")
        return self.read()


def file_on_disk(folder: Path, name: str) -> File:
    """A file in a folder; where there is none, reading says so."""
    try:
        facts = os.stat(folder / name)
        size, modified = facts.st_size, facts.st_mtime_ns
    except (OSError, ValueError):
        size = modified = 0
    return File(name, size, modified, partial(_read, folder, name), folder)


def _read(folder: Path, name: str) -> bytes:
    try:
        with opened(folder / name) as file:
            return file.read()
    except InputError as error:
        why = getattr(error.__context__, "strerror", None) or "it is not a regular file"
        raise InputError(f"{name} cannot be read, {why}: check the folder.") from None


@dataclass(frozen=True, eq=False)
class Tree:
    """Files by path, sorted, and all folders in a folder or archive on the disk, `path`, or in a folder inside it.

    Messages call it `name`. What operating systems leave behind is left out: hidden files, thumbnails, and in archives
    links and devices.
    """

    path: Path
    name: str
    files: dict[str, File]
    folders: frozenset[str]
    # Archives among the files that were opened already.
    opened: dict[str, Tree] = field(default_factory=dict, repr=False)

    def below(self, folder: str) -> Tree:
        """The subtree of a folder."""
        prefix = f"{folder}/"
        files = {path.removeprefix(prefix): file for path, file in self.files.items() if path.startswith(prefix)}
        folders = frozenset(path.removeprefix(prefix) for path in self.folders if path.startswith(prefix))
        return Tree(self.path, f"{self.name}/{folder}", files, folders)

    def inside(self, name: str) -> Tree | None:
        """The folder `name`, or the content of an archive of that name (`train.tar`); None without either.

        The archive may contain the folder itself, with or without further folders around it, or only its content.
        """
        if name in self.folders:
            return self.below(name)
        archives = [name + suffix for suffix in ARCHIVE_SUFFIXES if name + suffix in self.files]
        if len(archives) > 1:
            raise InputError(f"{self.name} has both {archives[0]} and {archives[1]}: keep one of them.")
        if archives and name not in self.opened:
            file = self.files[archives[0]]
            if file.path is None:
                raise InputError(f"{self.name} holds the archive {quoted(archives[0])} inside it: unpack it first.")
            whole = archive_tree(file.path, file.name)
            layers = (tree for tree in whole.unwrapped() if tree.name.endswith(f"/{name}"))
            self.opened[name] = next(layers, whole)
        return self.opened.get(name)

    def unwrapped(self) -> Iterator[Tree]:
        """The tree itself, then the tree without a single folder or archive around everything."""
        tree = self
        yield tree
        archives = [file for name, file in tree.files.items() if name.endswith(ARCHIVE_SUFFIXES)]
        if len(archives) == 1 and not tree.folders and (path := archives[0].path) is not None:
            tree = archive_tree(path, archives[0].name)
            yield tree
        while (around := tree._only_folder()) is not None:
            tree = tree.below(around)
            yield tree

    def _only_folder(self) -> str | None:
        """The only folder at the top, if any; files that are not images may lie beside it."""
        tops = {path.split("/", 1)[0] for path in (*self.files, *self.folders)}
        inside = tops & self.folders
        return next(iter(inside)) if len(inside) == 1 and not any(map(is_image, tops - inside)) else None


def is_image(path: str) -> bool:
    """Whether a file has the suffix of an image."""
    return path.lower().endswith(IMAGE_SUFFIXES)


def open_tree(path: Path) -> Tree:
    """The files below a folder or in an archive."""
    if os.path.isdir(path):
        return _make_tree(path, _folder_members(path))
    if not os.path.exists(path):
        raise InputError(f"There is no folder or archive {path}: check the path.")
    return archive_tree(path, path.name)


def archive_tree(path: Path, shown: str) -> Tree:
    """The files of a tar or zip archive; names of its files begin with `shown`."""
    buffer = map_bytes(path)
    start = buffer[:_TAR_BLOCK]
    if start.startswith(_ZIP_MAGIC):
        return _make_tree(path, _zip_members(path, shown))
    opener = next((opener for magic, opener in _OPENERS.items() if start.startswith(magic)), None)
    if opener is not None:
        with one_sentence(path, "compressed archive"), opener(path) as stream:
            buffer = to_disk(stream, path)
    elif start[257:262] != b"ustar" and path.suffix != ".tar":
        raise InputError(
            f"{path} is neither a folder nor a tar or zip archive of images, it starts with {start[:12]!r}: give a "
            "folder, a .tar (.gz, .xz, .bz2) or a .zip."
        )
    return _make_tree(path, _tar_members(buffer, path, shown))


def to_disk(stream: Any, path: Path) -> mmap.mmap:
    """What a stream unpacks from `path`, in a temporary file, mapped; raises if it is too much."""
    with tempfile.TemporaryFile() as file:
        size = 0
        while block := stream.read(_CHUNK):
            size += len(block)
            check_size(path, size, "data")
            try:
                file.write(block)
            except OSError as error:
                raise InputError(
                    f"{path} cannot be unpacked to {tempfile.gettempdir()}, {error.strerror or error}: set TMPDIR to "
                    "a folder with more space, or unpack it yourself."
                ) from None
        if size == 0:
            raise damaged(f"{path} holds nothing")
        file.flush()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


# --- members: paths of files and folders, with their files, None for folders; in any order

_Members = Iterable[tuple[str, File | None]]


def _make_tree(path: Path, members: _Members) -> Tree:
    """The tree of all members; missing folders are added."""
    files: dict[str, File] = {}
    folders: set[str] = set()
    for name, file in members:
        if file is None:
            folders.add(name)
        elif name in files:
            raise InputError(f"{path} holds {quoted(name)} twice: pack it again.")
        else:
            files[name] = file
            folders.add(name.rpartition("/")[0])
    for folder in list(folders):
        while (folder := folder.rpartition("/")[0]) not in folders:
            folders.add(folder)
    return Tree(path, str(path), dict(sorted(files.items())), frozenset(folders) - {""})


def _is_system_file(name: str) -> bool:
    """Whether a file or folder of this name was created by the system, such as .DS_Store."""
    return name.startswith(".") or name.lower() in _SYSTEM_FILES


def _folder_members(path: Path) -> _Members:
    """All files and folders below a folder; links to folders are followed."""
    waiting = [""]
    try:
        while waiting:
            prefix = waiting.pop()
            # A link to a folder around it is nested without end.
            if prefix.count("/") > _DEEPEST:
                raise InputError(f"{path / prefix} is nested too deeply, or a link to a folder around it: remove it.")
            for item in os.scandir(path / prefix):
                name = f"{prefix}{item.name}"
                if _is_system_file(item.name):
                    continue
                if item.is_dir():
                    waiting.append(f"{name}/")
                    yield name, None
                elif item.is_file():
                    yield name, file_on_disk(path, name)
    except OSError as error:
        raise InputError(f"{error.filename or path} cannot be read: {error.strerror or error}.") from None


def _member_path(name: str, archive: Path) -> str | None:
    """The normalised path of a member; None for system files, an error if it leads outside."""
    pieces = [piece for piece in name.split("/") if piece not in ("", ".")]
    if name.startswith("/") or "\\" in name or "\0" in name or name[1:2] == ":" or ".." in pieces:
        raise InputError(f"{archive} holds {quoted(name)}, a name that leads outside the archive: do not use it.")
    if len(pieces) > _DEEPEST_IN_ARCHIVE:
        raise InputError(f"{archive} holds {quoted(name)}, nested {len(pieces)} deep: pack the folder of images alone.")
    return None if any(map(_is_system_file, pieces)) else "/".join(pieces)


class _TarMember(tarfile.TarInfo):
    """A member of a tar archive; raises for headers that would loop or take too much memory."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> _TarMember:
        """The next member; tarfile also calls this for extended headers."""
        file: Any = archive.fileobj
        start = file.tell()
        block = file.read(_TAR_BLOCK)
        if block[156:157] in _TAR_TEXT:
            size = cls.frombuf(block, archive.encoding or "utf-8", archive.errors or "strict").size
            if _TAR_DIGITS.search(file.read(size)):
                raise tarfile.ReadError("a header is no text")
        file.seek(start)
        member = super().fromtarfile(archive)
        if member.size < 0 or archive.offset <= start or len(archive.pax_headers) > _MOST_COMMON:
            raise tarfile.ReadError(f"the member at byte {start} has an invalid size, or too many headers")
        # Each would keep a copy of what holds for all.
        member.pax_headers = {}
        return member


def _tar_members(buffer: mmap.mmap, path: Path, shown: str) -> _Members:
    """The members of a tar archive, which is read once for their positions."""
    facts = path.stat()
    most = max(_CHUNK, facts.st_size) // _LEAST_MEMBER
    with one_sentence(path, "tar archive"), tarfile.open(fileobj=buffer, mode="r:", tarinfo=_TarMember) as archive:
        members = list(islice(archive, most + 1))
        end = archive.offset
    if len(members) > most:
        raise damaged(f"{path} has more than {most} members, too many for its size")
    # tarfile takes a damaged header, or the end of the file, for the zeros that every tar ends with.
    if buffer[end : end + _TAR_BLOCK] != bytes(_TAR_BLOCK):
        raise damaged(f"{path} is not a valid tar archive, it is damaged or ends at byte {end}")
    for member in members:
        # A sparse file is not stored as plain bytes.
        if member.sparse is not None or member.offset_data + member.size > len(buffer):
            raise InputError(f"{path} holds {member.name!r:.100}, which cannot be read in place: unpack it yourself.")
        name = _member_path(member.name, path)
        if name is not None and member.isdir():
            yield name, None
        elif name is not None and member.isreg():
            read = partial(_mapped, buffer, slice(member.offset_data, member.offset_data + member.size))
            yield name, File(f"{shown}:{name}", member.size, facts.st_mtime_ns, read)


def _mapped(buffer: mmap.mmap, place: slice) -> memoryview:
    """Bytes inside a mapped file, which stays mapped while they are used."""
    return memoryview(buffer)[place]


def _zip_members(path: Path, shown: str) -> _Members:
    modified = path.stat().st_mtime_ns
    with one_sentence(path, "zip archive"):
        archive = zipfile.ZipFile(path)
    for info in archive.infolist():
        name = _member_path(info.orig_filename, path)
        if name is None:
            continue
        if info.is_dir():
            yield name, None
            continue
        if info.flag_bits & _ZIP_ENCRYPTED or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            how = f"compressed by method {info.compress_type}, or encrypted"
            raise InputError(f"{path} holds a member {quoted(name)} that is {how}: pack it as an ordinary zip or tar.")
        full = f"{shown}:{name}"
        yield name, File(full, info.file_size, modified, partial(_unzipped, archive, info, path, full))


def _unzipped(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path, name: str) -> bytes | memoryview:
    """The bytes of a member, at most as many as it announces; many are unpacked to the disk."""
    with one_sentence(name, "member of its archive"), archive.open(info) as stream:
        return stream.read() if info.file_size <= LONGEST else memoryview(to_disk(stream, path))
