"""miniImageNet (Vinyals et al. 2016) in the split of Ravi and Larochelle: 64 base, 16 validation, 20 novel classes.

Read in three forms: `train`, `val` and `test` as folders or tars of `wnid/image`; images with the lists `train.csv`,
`val.csv`, `test.csv` (`filename,label`), in one folder `images` or in folders of classes; and the pickled caches
`mini-imagenet-cache-train.pkl` and so on, uint8 (images, 84, 84, 3) with the image numbers of each class.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hotshot.errors import InputError
from hotshot.files.opening import damaged
from hotshot.formatting import quoted
from hotshot.images.datasets import pickled
from hotshot.images.datasets.class_folders import split_trees, splits_of
from hotshot.images.datasets.dataset import DISK_NAMES, Classes, Found, listed_images, missing_splits, text_lines
from hotshot.images.datasets.entries import Entry, Tree, is_image
from hotshot.images.datasets.pixels import ArrayImage
from hotshot.images.datasets.trees import subtree

COUNTS = {"base": 64, "val": 16, "novel": 20}
LICENCE = "ImageNet's terms: research and education only"
_WNID = re.compile(r"n\d{8}")
_CACHES = {split: f"mini-imagenet-cache-{name}.pkl" for split, name in DISK_NAMES.items()}
_LISTS = {split: f"{name}.csv" for split, name in DISK_NAMES.items()}


def recognises(tree: Tree) -> bool:
    """Whether there are caches, the lists, or splits with the published numbers of ImageNet classes."""
    if any(name in tree.files for name in _CACHES.values()):
        return True
    if any(_is_list(tree, name) for name in _LISTS.values()) and _images_of(tree):
        return True
    return has_classes(split_trees(tree), COUNTS)


def has_classes(trees: dict[str, Tree], counts: dict[str, int]) -> bool:
    """Whether the splits hold the published numbers of ImageNet classes, and nothing else."""
    folders = {split: {name for name in tree.folders if "/" not in name} for split, tree in trees.items()}
    return bool(folders) and all(
        len(names) == counts[split] and all(map(_WNID.fullmatch, names)) for split, names in folders.items()
    )


def open_layout(tree: Tree) -> Found:
    """Images by split and class."""
    caches = {split: tree.files[name] for split, name in _CACHES.items() if name in tree.files}
    lists = {split: _read_list(tree.files[name]) for split, name in _LISTS.items() if name in tree.files}
    trees = split_trees(tree)
    if trees and not caches:
        found = splits_of(tree, trees, "miniimagenet", COUNTS, LICENCE)
        return replace(found, notes=found.notes + _compare(found.splits, lists, tree))
    images = {} if caches else _images_of(tree)
    if caches:
        layout, splits = "pickled caches", {split: _cached(entry) for split, entry in caches.items()}
    elif lists and images:
        layout, splits = "images and lists", dict(listed_images(lists, images, tree))
    else:
        what = "no images" if lists else "no train.csv, val.csv or test.csv"
        raise InputError(
            f"{tree.path} is not miniImageNet, it has {what}: give the folder with train, val and test as folders or "
            "tars, with images and the three lists, or with the mini-imagenet-cache files."
        )
    return Found("miniimagenet", layout, splits, tree.ignored, LICENCE, missing_splits(splits, COUNTS))


def _cached(entry: Entry) -> Classes:
    items = pickled.read_dictionary(entry)
    rows = pickled.pixels(*pickled.item(items, "image_data", entry.name))
    classes, where = pickled.item(items, "class_dict", entry.name)
    numbers = {name: pickled.integers(value, where) for name, value in pickled.as_dictionary(classes, where).items()}
    total = sum(map(len, numbers.values()))
    joined = np.concatenate([np.zeros(0, np.int64), *numbers.values()]) if total <= len(rows) else None
    if joined is None or len(np.unique(joined)) < total or ((joined < 0) | (joined >= len(rows))).any():
        raise damaged(f"{where} lists images twice, or not exactly the {len(rows)} images")
    return {name: [ArrayImage(entry, rows, int(i)) for i in np.sort(some)] for name, some in numbers.items()}


def _is_list(tree: Tree, name: str) -> bool:
    return name in tree.files and tree.files[name].data()[:64].lstrip(b"\xef\xbb\xbf").startswith(b"filename,label")


def _read_list(entry: Entry) -> dict[str, str]:
    """Class by file name."""
    lines = text_lines(entry)
    rows = [line.split(",") for line in lines[1:]]
    if not rows or lines[0] != "filename,label" or any(len(row) != 2 or not all(row) for row in rows):
        raise damaged(f"{entry.name} is not a list of 'filename,label' lines")
    return dict(rows)


def _images_of(tree: Tree) -> dict[str, Entry]:
    """Image files by path relative to `images`, or to the folder itself if there is no `images`."""
    inside = subtree(tree, "images")
    inside = tree if inside is None else inside
    return {path: entry for path, entry in inside.files.items() if is_image(path)}


def _compare(splits: Mapping[str, Classes], lists: dict[str, dict[str, str]], tree: Tree) -> tuple[str, ...]:
    """Check the classes of splits against the lists; fewer images than listed get a note."""
    notes = []
    for split in splits.keys() & lists.keys():
        foreign = sorted(set(splits[split]) - set(lists[split].values()))
        if foreign:
            raise InputError(
                f"{tree.path} has the class {quoted(foreign[0])} in {DISK_NAMES[split]}, which {_LISTS[split]} does "
                "not name: use the list that belongs to the images."
            )
        count = sum(map(len, splits[split].values()))
        if count < len(lists[split]):
            notes.append(f"Split '{split}' has {count} of the {len(lists[split])} listed images.")
    return tuple(sorted(notes))
