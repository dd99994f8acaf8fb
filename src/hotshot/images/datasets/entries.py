"""Files wherever they are, on the disk or inside an archive that is never extracted, and trees of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from hotshot.errors import InputError
from hotshot.files.names import quoted
from hotshot.files.tensors import map_bytes
from hotshot.images.datasets.pixels import SUFFIXES

# No image that is decoded at once, and no list of files, is longer.
LONGEST = 2**28
_LITTER = ("thumbs.db", "desktop.ini", "__macosx", "icon\r")


class Entry:
    """A file: its name for sentences, its size in bytes, when it or the archive around it changed (nanoseconds)."""

    __slots__ = ()
    name: str
    size: int
    modified: int

    def data(self) -> bytes:
        """All bytes, of a file that is short enough to be taken into memory."""
        if self.size > LONGEST:
            raise InputError(
                f"{self.name} has {self.size} bytes where an image or a list has at most {LONGEST}: remove it."
            )
        return self.read()

    def read(self) -> bytes:
        """All bytes, however many."""
        raise NotImplementedError

    def mapped(self) -> tuple[Any, int, int]:
        """A buffer that holds the bytes, where they start and where they end."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FileEntry(Entry):
    """A file on the disk, called by its path below the folder `root`."""

    name: str
    root: Path
    size: int
    modified: int

    @property
    def path(self) -> Path:
        """The whole path; there may be a million entries, which share the folder."""
        return self.root / self.name

    def read(self) -> bytes:
        """The file."""
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
class SliceEntry(Entry):
    """Bytes that stand as they are inside a larger file, which `buffer` maps."""

    name: str
    buffer: Any
    start: int
    size: int
    modified: int

    def read(self) -> bytes:
        """A copy of the bytes."""
        return bytes(self.buffer[self.start : self.start + self.size])

    def mapped(self) -> tuple[Any, int, int]:
        """The larger file."""
        return self.buffer, self.start, self.start + self.size


@dataclass(frozen=True, eq=False)
class Tree:
    """Files and folders below one place.

    Attributes
    ----------
    path : Path
        The folder or archive that was opened, for sentences.
    files : dict
        From paths with forward slashes to entries, sorted.
    folders : frozenset of str
        All folders, empty ones too.
    ignored : int
        What operating systems leave behind: hidden files, thumbnails, and in archives links and devices.
    opened : dict
        Archives among the files that were looked through already.
    """

    path: Path
    files: dict[str, Entry]
    folders: frozenset[str]
    ignored: int = 0
    opened: dict[str, Tree] = field(default_factory=dict, repr=False)

    def below(self, folder: str) -> Tree:
        """What lies in one of the folders; all that is ignored stays counted."""
        prefix = f"{folder}/"
        length = len(prefix)
        return replace(
            self,
            files={path[length:]: entry for path, entry in self.files.items() if path.startswith(prefix)},
            folders=frozenset(path[length:] for path in self.folders if path.startswith(prefix)),
            opened={},
        )

    def only_folder(self) -> str | None:
        """The one folder here, where there is such; a README beside it does not count, but an image does."""
        tops = {path.split("/", 1)[0] for path in (*self.files, *self.folders)}
        inside = tops & self.folders
        return next(iter(inside)) if len(inside) == 1 and not any(map(is_image, tops - inside)) else None


def make_tree(path: Path, found: Iterable[tuple[str, Entry]], folders: Iterable[str], ignored: int) -> Tree:
    """A tree of files that may come in any order; folders are completed by those that files lie in."""
    files: dict[str, Entry] = {}
    all_folders = set(folders)
    for name, entry in found:
        if name in files:
            raise InputError(f"{path} holds {quoted(name)} twice: pack it again.")
        files[name] = entry
        all_folders.add(name.rpartition("/")[0])
    for folder in list(all_folders):
        all_folders.update(str(parent) for parent in PurePosixPath(folder).parents)
    ordered = {name: files[name] for name in sorted(files)}
    return Tree(path, ordered, frozenset(all_folders) - {"", "."}, ignored)


def is_litter(name: str) -> bool:
    """Whether a file or folder of this name is none that a person put there."""
    return name.startswith(".") or name.lower() in _LITTER


def is_image(path: str) -> bool:
    """Whether a file is called as images are."""
    return path.lower().endswith(SUFFIXES)
