"""Files on the disk or inside archives, which are never extracted, and trees of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hotshot.errors import InputError
from hotshot.files.opening import map_bytes, opened
from hotshot.formatting import quoted
from hotshot.images.datasets.pixels import SUFFIXES

# No image that is decoded at once, and no list of files, is longer.
LONGEST = 2**28
_LITTER = ("thumbs.db", "desktop.ini", "__macosx", "icon\r")


class Entry:
    """A file: its name for messages, its size in bytes, and its last change or that of its archive (nanoseconds)."""

    __slots__ = ()
    name: str
    size: int
    modified: int

    def data(self) -> bytes:
        """All bytes; raises if the file is too long for memory."""
        if self.size > LONGEST:
            raise InputError(f"{self.name} has {self.size} bytes, more than an image or list ({LONGEST}): remove it.")
        return self.read()

    def read(self) -> bytes:
        """All bytes, without a limit."""
        buffer, start, end = self.mapped()
        return bytes(buffer[start:end])

    def mapped(self) -> tuple[Any, int, int]:
        """A buffer with the bytes, their start and their end."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FileEntry(Entry):
    """A file on the disk; its name is its path relative to the folder `root`."""

    name: str
    root: Path
    size: int
    modified: int

    @property
    def path(self) -> Path:
        """The full path; up to a million entries share the folder."""
        return self.root / self.name

    def read(self) -> bytes:
        """The bytes of the file; raises if it is no longer a regular file."""
        try:
            with opened(self.path) as file:
                return file.read()
        except InputError as error:
            why = getattr(error.__context__, "strerror", None) or "it is not a regular file"
            raise InputError(f"{self.name} cannot be read, {why}: check the folder.") from None

    def mapped(self) -> tuple[Any, int, int]:
        """The file, mapped."""
        buffer = map_bytes(self.path)
        return buffer, 0, len(buffer)


@dataclass(frozen=True, slots=True)
class SliceEntry(Entry):
    """Uncompressed bytes inside a larger file, which `buffer` maps."""

    name: str
    buffer: Any
    start: int
    size: int
    modified: int

    def mapped(self) -> tuple[Any, int, int]:
        """The larger file."""
        return self.buffer, self.start, self.start + self.size


@dataclass(frozen=True, eq=False)
class Tree:
    """Files by path, sorted, and all folders in the folder or archive `path`."""

    path: Path
    files: dict[str, Entry]
    folders: frozenset[str]
    # What operating systems leave behind: hidden files, thumbnails, and in archives links and devices.
    ignored: int = 0
    # Archives among the files that were looked through already.
    opened: dict[str, Tree] = field(default_factory=dict, repr=False)

    def below(self, folder: str) -> Tree:
        """The subtree of a folder; the number of ignored files is copied."""
        prefix = f"{folder}/"
        length = len(prefix)
        return replace(
            self,
            files={path[length:]: entry for path, entry in self.files.items() if path.startswith(prefix)},
            folders=frozenset(path[length:] for path in self.folders if path.startswith(prefix)),
            opened={},
        )

    def only_folder(self) -> str | None:
        """The only folder at the top, if any; files that are not images may lie beside it."""
        tops = {path.split("/", 1)[0] for path in (*self.files, *self.folders)}
        inside = tops & self.folders
        return next(iter(inside)) if len(inside) == 1 and not any(map(is_image, tops - inside)) else None


# Paths of files and folders, None for what is ignored, with their entries, None for folders; in any order.
Members = Iterable[tuple[str | None, Entry | None]]


def make_tree(path: Path, members: Members) -> Tree:
    """The tree of all members; missing folders are added."""
    files: dict[str, Entry] = {}
    folders: set[str] = set()
    ignored = 0
    for name, entry in members:
        if name is None:
            ignored += 1
        elif entry is None:
            folders.add(name)
        elif name in files:
            raise InputError(f"{path} holds {quoted(name)} twice: pack it again.")
        else:
            files[name] = entry
            folders.add(name.rpartition("/")[0])
    for folder in list(folders):
        while (folder := folder.rpartition("/")[0]) not in folders:
            folders.add(folder)
    return Tree(path, {name: files[name] for name in sorted(files)}, frozenset(folders) - {""}, ignored)


def is_system_file(name: str) -> bool:
    """Whether a file or folder of this name was created by the system, such as .DS_Store."""
    return name.startswith(".") or name.lower() in _LITTER


def is_image(path: str) -> bool:
    """Whether a file has the suffix of an image."""
    return path.lower().endswith(SUFFIXES)
