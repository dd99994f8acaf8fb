"""Datasets of images, in the layouts in which they were published or in folders of classes; the table ``LAYOUTS``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, combinations
from pathlib import Path

import numpy as np

from hotshot.errors import InputError, ParameterError
from hotshot.formatting import quoted
from hotshot.images.decode import ImageSplit
from hotshot.images.published import (
    CUB_LISTS,
    SPLITS,
    WNID,
    Classes,
    Splits,
    cifar_fs,
    class_folders,
    cub,
    miniimagenet,
    omniglot,
    tieredimagenet,
)
from hotshot.images.tree import Tree, is_image, open_tree


@dataclass(frozen=True)
class Layout:
    """The function that reads a tree, and returns None for one of another layout; and what trees of this one hold.

    `counts` are the published numbers of classes.
    """

    read: Callable[[Tree, bool], Splits | None]
    holds: str
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """A dataset of images: "base", "val" and "novel" splits, as far as present, or "all".

    `notes` are sentences on differences from the published dataset.
    """

    name: str
    splits: dict[str, ImageSplit]
    notes: tuple[str, ...]


def open_dataset(path: str | Path, kind: str = "auto", *, skip_corrupt: bool = False) -> ImageDataset:
    """Open a dataset of images in a folder, a tar (.gz, .xz, .bz2) or a zip; no image is decoded yet.

    `kind` is the layout, one of `LAYOUTS`; "auto" recognises it. With `skip_corrupt` decoding leaves out and counts
    images that cannot be read, instead of stopping. The splits share no class, and none of the classes is empty.
    """
    if kind != "auto" and kind not in LAYOUTS:
        raise ParameterError(f"kind must be 'auto' or one of {', '.join(LAYOUTS)}, got {kind!r:.60}.")
    tree = open_tree(Path(path))
    names = list(LAYOUTS) if kind == "auto" else [kind]
    trees = ((name, inside, False) for inside in tree.unwrapped() for name in names)
    for name, inside, sure in chain(trees, [(names[-1], tree, True)]):
        found = LAYOUTS[name].read(inside, sure)
        if found is not None:
            break
    else:
        raise InputError(
            f"{tree.path} is not in the layout {kind}: give a folder or archive with {LAYOUTS[kind].holds}."
        )
    if name == "folder":
        name = _published(found) or tree.path.resolve().name.split(".")[0] or "images"
    splits = {
        split: _split(f"{name}-{split}", found[split], tree, split, skip_corrupt) for split in SPLITS if split in found
    }
    # Nothing measured on a class that is in two splits would be about new classes.
    for first, second in combinations(splits, 2):
        shared = sorted(set(splits[first].names) & set(splits[second].names))
        if shared:
            raise InputError(
                f"{tree.path} has {len(shared)} classes in both '{first}' and '{second}', {quoted(shared[0])} first: "
                "keep each class in one split."
            )
    return ImageDataset(name, splits, tuple(_differences(name, splits, inside)))


def _published(splits: Splits) -> str | None:
    """The dataset whose published numbers of ImageNet classes these splits have."""
    counts = {split: len(classes) for split, classes in splits.items()}
    if not all(WNID.fullmatch(name) for classes in splits.values() for name in classes):
        return None
    names = ("miniimagenet", "tieredimagenet")
    return next((name for name in names if counts.items() <= LAYOUTS[name].counts.items()), None)


def _differences(name: str, splits: dict[str, ImageSplit], tree: Tree) -> Iterator[str]:
    """What is not as published, in sentences."""
    used = {id(image.file) for split in splits.values() for image in split.images}
    outside = [path for path, file in tree.files.items() if is_image(path) and id(file) not in used]
    if outside:
        yield f"left out {len(outside)} images outside the splits, first {quoted(outside[0])}."
    for split, count in LAYOUTS[name].counts.items() if name in LAYOUTS else ():
        if split not in splits:
            yield f"Split '{split}' is missing."
        elif len(splits[split].names) != count:
            yield f"Split '{split}' has {len(splits[split].names)} classes, but {count} were published."


def _split(name: str, classes: Classes, tree: Tree, split: str, skip_corrupt: bool) -> ImageSplit:
    names = tuple(sorted(classes))
    empty = [name for name in names if not classes[name]]
    if empty or not classes:
        what = f"{len(empty)} classes without images, {quoted(empty[0])} first" if empty else "no images"
        raise InputError(f"{tree.path} has {what} in split '{split}': add images, or remove the classes.")
    labels = np.repeat(np.arange(len(names)), [len(classes[name]) for name in names])
    return ImageSplit(name, names, labels, [image for name in names for image in classes[name]], skip_corrupt)


_SPLIT_FOLDERS = "train, val and test as folders or tars"
LAYOUTS = {
    "omniglot": Layout(
        omniglot, "images_background and images_evaluation, as folders or zips", {"base": 964, "novel": 659}
    ),
    "cub": Layout(
        cub, f"images/ and {', '.join(CUB_LISTS)}, as in CUB_200_2011", {"base": 100, "val": 50, "novel": 50}
    ),
    "miniimagenet": Layout(
        miniimagenet,
        f"{_SPLIT_FOLDERS}, images with the lists train.csv, val.csv and test.csv, or the mini-imagenet-cache files",
        {"base": 64, "val": 16, "novel": 20},
    ),
    "tieredimagenet": Layout(
        tieredimagenet,
        f"{_SPLIT_FOLDERS}, or with train_images.npz or train_images_png.pkl and train_labels.pkl, and so on",
        {"base": 351, "val": 97, "novel": 160},
    ),
    "cifar-fs": Layout(
        cifar_fs,
        "data/class/image.png, with cifar-100-python.tar.gz, or with its pickles train, test and meta",
        {"base": 64, "val": 16, "novel": 20},
    ),
    # Whatever has folders of images is one of these too.
    "folder": Layout(class_folders, "split/class/image or class/image"),
}
