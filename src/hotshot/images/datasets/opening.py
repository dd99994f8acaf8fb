"""From a path to a dataset: which layout it is, or what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from hotshot.errors import ParameterError
from hotshot.images.datasets import cifar_fs, class_folders, cub, miniimagenet, omniglot, tieredimagenet
from hotshot.images.datasets.dataset import ImageDataset
from hotshot.images.datasets.entries import FileEntry
from hotshot.images.datasets.folders import ARCHIVE_SUFFIXES, archive_tree, open_tree
from hotshot.images.datasets.layout import Found, as_dataset
from hotshot.images.datasets.tree import Tree

_LAYOUTS: dict[str, tuple[Callable[[Tree], bool], Callable[[Tree], Found]]] = {
    "omniglot": (omniglot.recognises, omniglot.open_layout),
    "cub": (cub.recognises, cub.open_layout),
    "miniimagenet": (miniimagenet.recognises, miniimagenet.open_layout),
    "tieredimagenet": (tieredimagenet.recognises, tieredimagenet.open_layout),
    "cifar-fs": (cifar_fs.recognises, cifar_fs.open_layout),
    # Whatever has folders of images is one of these too.
    "folder": (class_folders.recognises, class_folders.open_layout),
}
KINDS = tuple(_LAYOUTS)


def open_dataset(path: str | Path, kind: str = "auto", *, skip_corrupt: bool = False) -> ImageDataset:
    """A dataset of images in a folder or an archive; none is decoded yet.

    Parameters
    ----------
    path : str or Path
        A folder, or a tar (.gz, .xz, .bz2) or zip.
    kind : {"auto", "omniglot", "cub", "miniimagenet", "tieredimagenet", "cifar-fs", "folder"}
        The layout; "folder" is `split/class/image` or `class/image`. "auto" recognises it.
    skip_corrupt : bool
        Whether decoding leaves out images that cannot be read, counted, instead of stopping.

    Returns
    -------
    ImageDataset
        Its splits share no class, and none of its classes is empty.
    """
    if kind != "auto" and kind not in _LAYOUTS:
        raise ParameterError(f"kind must be 'auto' or one of {', '.join(KINDS)}, got {kind!r:.60}.")
    tree = open_tree(Path(path))
    kinds = KINDS if kind == "auto" else (kind,)
    for inside in _unwrapped(tree):
        for name in kinds:
            recognises, open_layout = _LAYOUTS[name]
            if recognises(inside):
                return as_dataset(open_layout(inside), tree, skip_corrupt)
    # The reader knows what it misses.
    open_layout = _LAYOUTS[kinds[-1]][1]
    return as_dataset(open_layout(tree), tree, skip_corrupt)


def _unwrapped(tree: Tree) -> Iterator[Tree]:
    """The tree itself, and what is left of it when folders or an archive that wrap everything are taken off."""
    yield tree
    archives = [name for name in tree.files if name.endswith(ARCHIVE_SUFFIXES)]
    if len(archives) == 1 and not tree.folders and isinstance(entry := tree.files[archives[0]], FileEntry):
        tree = archive_tree(entry.path, entry.name)
        yield tree
    while (around := tree.only_folder()) is not None:
        tree = tree.below(around)
        yield tree
