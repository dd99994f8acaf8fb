"""Folders, links to folders followed, and archives: whatever a path leads to, as a tree."""

from __future__ import annotations

import os
from pathlib import Path

from hotshot.errors import InputError
from hotshot.files.names import quoted
from hotshot.images.datasets.entries import FileEntry
from hotshot.images.datasets.tars import is_tar, tar_tree
from hotshot.images.datasets.tree import Tree, is_litter, make_tree
from hotshot.images.datasets.zips import MAGIC, zip_tree

ARCHIVE_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".zip")
# Datasets are three or four folders deep.
_DEEPEST = 8


def open_tree(path: Path) -> Tree:
    """The files below a folder or in an archive."""
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except (OSError, ValueError) as error:
        raise InputError(f"{path!r:.200} cannot be read: {error}.") from None
    if is_folder:
        return folder_tree(path)
    if not is_there:
        raise InputError(f"There is no folder or archive {path}: check the path.")
    return archive_tree(path, path.name)


def archive_tree(path: Path, shown: str) -> Tree:
    """The files of a tar or zip archive."""
    if not path.is_file():
        raise InputError(f"{path} is neither a folder nor a file: check the path.")
    try:
        with path.open("rb") as file:
            start = file.read(512)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if start.startswith(MAGIC):
        return zip_tree(path, shown)
    if is_tar(path, start):
        return tar_tree(path, shown)
    raise InputError(
        f"{path} is neither a folder nor a tar or zip archive of images, it starts with {start[:12]!r}: give a folder, "
        "a .tar (.gz, .xz, .bz2) or a .zip."
    )


def folder_tree(path: Path) -> Tree:
    """The files below a folder."""
    found: list[tuple[str, FileEntry]] = []
    folders: list[str] = []
    ignored = 0
    waiting: list[tuple[str, Path, tuple[tuple[int, int], ...]]] = [("", path, ())]
    try:
        while waiting:
            prefix, folder, above = waiting.pop()
            state = folder.stat()
            own = (state.st_dev, state.st_ino)
            if own in above or len(above) > _DEEPEST:
                raise InputError(f"{folder} is nested too deep, or a link to a folder around it: remove it.")
            for item in os.scandir(folder):
                name = f"{prefix}{item.name}"
                if is_litter(item.name):
                    ignored += 1
                elif item.is_dir():
                    folders.append(name)
                    waiting.append((f"{name}/", Path(item.path), (*above, own)))
                elif item.is_file():
                    facts = item.stat()
                    found.append((name, FileEntry(name, path, facts.st_size, facts.st_mtime_ns)))
                else:
                    ignored += 1
    except OSError as error:
        raise InputError(f"{error.filename or path} cannot be read: {error.strerror or error}.") from None
    return make_tree(path, found, folders, ignored)


def part(tree: Tree, name: str) -> Tree | None:
    """The folder `name` of a tree, or what an archive of that name holds (`train.tar`); None where there is neither.

    Archives are packed with the folder itself, with more folders around it, or without any.
    """
    if name in tree.folders:
        return tree.below(name)
    archives = [name + suffix for suffix in ARCHIVE_SUFFIXES if name + suffix in tree.files]
    if not archives:
        return None
    if len(archives) > 1:
        raise InputError(f"{tree.path} has both {archives[0]} and {archives[1]}: keep one of them.")
    if name in tree.opened:
        return tree.opened[name]
    entry = tree.files[archives[0]]
    if not isinstance(entry, FileEntry):
        raise InputError(f"{tree.path} holds the archive {quoted(archives[0])} inside it: unpack it first.")
    whole = archive_tree(entry.path, entry.name)
    tree.opened[name] = _folder_in(whole, name) or whole
    return tree.opened[name]


def _folder_in(tree: Tree, name: str) -> Tree | None:
    """The folder `name` where nothing but folders around it is beside it."""
    while (around := tree.only_folder()) is not None:
        tree = tree.below(around)
        if around == name:
            return tree
    return None
