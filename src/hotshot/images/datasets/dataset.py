"""Datasets of images in disjoint splits, built from what the reader of a layout finds."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.opening import damaged
from hotshot.formatting import quoted
from hotshot.images.datasets.entries import Entry, Tree
from hotshot.images.datasets.pixels import EncodedImage, ImageReference

# Names of the splits on the disk, the literature's first.
ALIASES = {
    "base": ("train", "base", "meta-train"),
    "val": ("val", "valid", "validation", "meta-val"),
    "novel": ("test", "novel", "meta-test"),
}
DISK_NAMES = {split: names[0] for split, names in ALIASES.items()}
# "all" where nothing is split.
SPLITS = (*ALIASES, "all")

Classes = Mapping[str, Sequence[ImageReference]]


@dataclass(frozen=True, eq=False)
class ImageSplit:
    """Images of some classes; an image is decoded when it is used.

    Attributes
    ----------
    name : str
        Name of the dataset and the split, such as "miniimagenet-base".
    names : tuple of str
        Class names, sorted.
    labels : integer array (images,)
        Index of each image's class among `names`.
    images : sequence of ImageReference
        Sorted by class and name.
    skip_corrupt : bool
        Whether decoding leaves out images that cannot be read, instead of refusing the split.
    """

    name: str
    names: tuple[str, ...]
    labels: np.ndarray
    images: Sequence[ImageReference]
    skip_corrupt: bool

    def __len__(self) -> int:
        return len(self.images)

    def modified(self) -> int:
        """Last change of any file with images, in nanoseconds."""
        return max(image.modified for image in self.images)

    def fingerprint(self) -> str:
        """SHA-256 of the names and sizes of all images and of their classes."""
        digest = hashlib.sha256(json.dumps([self.names, self.labels.tolist()]).encode())
        for image in self.images:
            digest.update(json.dumps([image.name, image.size]).encode())
        return f"sha256:{digest.hexdigest()}"


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """A dataset of images.

    Attributes
    ----------
    name : str
    splits : dict of str to ImageSplit
        "base", "val" and "novel", as far as present, or "all".
    about : dict
        `source` and `layout` of the images, `licence` if known, `ignored` (the number of files that are not images)
        and `notes` (sentences on differences from the published dataset).
    """

    name: str
    splits: dict[str, ImageSplit]
    about: dict[str, Any]


@dataclass(frozen=True)
class Found:
    """Images by split and class in a layout, and notes."""

    name: str
    layout: str
    splits: Mapping[str, Classes]
    ignored: int
    licence: str | None = None
    notes: tuple[str, ...] = ()


def as_dataset(found: Found, tree: Tree, skip_corrupt: bool) -> ImageDataset:
    """The dataset of a layout; raises if a class has no images or is in two splits."""
    splits = {split: _make_split(found, split, tree, skip_corrupt) for split in SPLITS if split in found.splits}
    # Nothing measured on a class that is in two splits would be about new classes.
    for (first, one), (second, other) in combinations(splits.items(), 2):
        shared = sorted(set(one.names) & set(other.names))
        if shared:
            raise InputError(
                f"{tree.path} has {len(shared)} classes in both '{first}' and '{second}', {quoted(shared[0])} first: "
                "keep each class in one split."
            )
    about: dict[str, Any] = {"source": str(tree.path), "layout": found.layout, "ignored": found.ignored}
    if found.licence is not None:
        about["licence"] = found.licence
    about["notes"] = list(found.notes)
    return ImageDataset(found.name, splits, about)


def _make_split(found: Found, split: str, tree: Tree, skip_corrupt: bool) -> ImageSplit:
    classes = found.splits[split]
    names = tuple(sorted(classes))
    empty = [name for name in names if not classes[name]]
    if empty or not classes:
        what = f"{len(empty)} classes without images, {quoted(empty[0])} first" if empty else "no images"
        raise InputError(f"{tree.path} has {what} in split '{split}': add images, or remove the classes.")
    images = [image for name in names for image in classes[name]]
    labels = np.repeat(np.arange(len(names)), [len(classes[name]) for name in names])
    return ImageSplit(f"{found.name}-{split}", names, labels, images, skip_corrupt)


def text_lines(entry: Entry) -> list[str]:
    """The lines of a list that are not empty."""
    try:
        text = entry.data().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise damaged(f"{entry.name} is not a list in UTF-8") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def listed_images(
    lists: Mapping[str, Mapping[str, str]], images: Mapping[str, Entry], tree: Tree
) -> dict[str, dict[str, list[EncodedImage]]]:
    """Images by split and class, from lists with the class of each file; all files must exist."""
    splits: dict[str, dict[str, list[EncodedImage]]] = {split: {} for split in lists}
    lost: list[str] = []
    for split, names in lists.items():
        for file in sorted(names):
            entry = images.get(file) or images.get(f"{names[file]}/{file}")
            if entry is None:
                lost.append(file)
            else:
                splits[split].setdefault(names[file], []).append(EncodedImage(entry))
    if lost:
        raise InputError(
            f"{tree.path} lacks {len(lost)} of the {sum(map(len, lists.values()))} images in its lists, first "
            f"{quoted(lost[0])}: add them, or remove the list of a split that you do not have."
        )
    return splits


def missing_splits(
    splits: Mapping[str, Any], counts: Mapping[str, int], shown: Mapping[str, str] = DISK_NAMES
) -> tuple[str, ...]:
    """Notes on splits that are missing or do not have the published number of classes."""
    notes = []
    for split, count in counts.items():
        if split not in splits:
            notes.append(f"Split '{split}' ({shown[split]}) is missing.")
        elif len(splits[split]) != count:
            notes.append(f"Split '{split}' has {len(splits[split])} classes, but {count} were published.")
    return tuple(notes)
