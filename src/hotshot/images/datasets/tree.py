"""The files of a dataset by their paths, whether they lie in a folder, a tar or a zip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import NoReturn

from hotshot.errors import InputError
from hotshot.files.names import quoted
from hotshot.images.datasets.entries import Entry
from hotshot.images.datasets.pixels import SUFFIXES

_LITTER = ("thumbs.db", "desktop.ini", "__macosx", "icon\r")


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

    def tops(self) -> set[str]:
        """Names of the files and folders that lie directly here."""
        return {path.split("/", 1)[0] for path in (*self.files, *self.folders)}

    def only_folder(self) -> str | None:
        """The one folder here, where there is such; a README beside it does not count, but an image does."""
        tops = self.tops()
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


def member_path(name: str, archive: Path) -> str | None:
    """The path of an archive's member in the usual form; None for litter, an error for one that leads outside."""
    if name.startswith("/") or "\\" in name or "\0" in name or name[1:2] == ":":
        _refuse(name, archive)
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        _refuse(name, archive)
    return None if any(map(is_litter, parts)) else "/".join(parts)


def _refuse(name: str, archive: Path) -> NoReturn:
    raise InputError(
        f"{archive} holds a member {quoted(name)}, a name that leads outside the archive: do not use this file."
    )
