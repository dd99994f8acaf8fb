"""Datasets of images in the usual layouts (extra `images`).

`open_dataset` recognises miniImageNet, tieredImageNet, CUB-200-2011, CIFAR-FS, Omniglot, and folders or archives of
`split/class/image` or `class/image`; `decode` turns a split into one mapped array for training and extraction.
To add a layout, write a module with `recognises` and `open_layout`, and add it to the table here.
"""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from hotshot.errors import ParameterError
from hotshot.images.datasets import cifar_fs, class_folders, cub, miniimagenet, omniglot, tieredimagenet
from hotshot.images.datasets.dataset import ImageDataset, ImageSplit, as_dataset
from hotshot.images.datasets.decoding import Corrupt, DecodedSplit, decode
from hotshot.images.datasets.entries import FileEntry, Tree
from hotshot.images.datasets.pixels import CorruptImageError, ImageReference
from hotshot.images.datasets.trees import ARCHIVE_SUFFIXES, archive_tree, open_tree

LAYOUTS: dict[str, ModuleType] = {
    "omniglot": omniglot,
    "cub": cub,
    "miniimagenet": miniimagenet,
    "tieredimagenet": tieredimagenet,
    "cifar-fs": cifar_fs,
    # Whatever has folders of images is one of these too.
    "folder": class_folders,
}
KINDS = tuple(LAYOUTS)


def open_dataset(path: str | Path, kind: str = "auto", *, skip_corrupt: bool = False) -> ImageDataset:
    """Open a dataset of images in a folder or an archive; no image is decoded yet.

    Parameters
    ----------
    path : str or Path
        A folder, or a tar (.gz, .xz, .bz2) or zip.
    kind : {"auto", "omniglot", "cub", "miniimagenet", "tieredimagenet", "cifar-fs", "folder"}
        The layout; "folder" is `split/class/image` or `class/image`. "auto" recognises it.
    skip_corrupt : bool
        Whether decoding leaves out and counts images that cannot be read, instead of stopping.

    Returns
    -------
    ImageDataset
        Its splits share no class, and none of its classes is empty.
    """
    if kind != "auto" and kind not in LAYOUTS:
        raise ParameterError(f"kind must be 'auto' or one of {', '.join(KINDS)}, got {kind!r:.60}.")
    tree = open_tree(Path(path))
    layouts = list(LAYOUTS.values()) if kind == "auto" else [LAYOUTS[kind]]
    for inside in _unwrapped(tree):
        for layout in layouts:
            if layout.recognises(inside):
                return as_dataset(layout.open_layout(inside), tree, skip_corrupt)
    # The reader knows what it misses.
    return as_dataset(layouts[-1].open_layout(tree), tree, skip_corrupt)


def _unwrapped(tree: Tree) -> Iterator[Tree]:
    """The tree itself, then the tree without a single folder or archive around everything."""
    yield tree
    archives = [name for name in tree.files if name.endswith(ARCHIVE_SUFFIXES)]
    if len(archives) == 1 and not tree.folders and isinstance(entry := tree.files[archives[0]], FileEntry):
        tree = archive_tree(entry.path, entry.name)
        yield tree
    while (around := tree.only_folder()) is not None:
        tree = tree.below(around)
        yield tree


__all__ = [
    "KINDS", "Corrupt", "CorruptImageError", "DecodedSplit", "ImageDataset", "ImageReference", "ImageSplit",
    "decode", "open_dataset",
]  # fmt: skip
