"""What every reader gives: images by class, in splits that share no class."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.names import quoted
from hotshot.images.datasets.references import ImageReference

# The literature's train, val and test, in the vocabulary of this library; "all" where nothing is split.
SPLITS = ("base", "val", "novel", "all")


@dataclass(frozen=True, eq=False)
class ImageSplit:
    """Images of some classes; none is decoded before it is asked for.

    Attributes
    ----------
    name : str
        Of the dataset and the split, such as "miniimagenet-base".
    names : tuple of str
        Class names, sorted.
    labels : integer array (images,)
        Index of each image's class among `names`.
    images : sequence of ImageReference
        Sorted by class and name.
    skip_corrupt : bool
        Whether decoding leaves out what cannot be read instead of refusing the split.
    """

    name: str
    names: tuple[str, ...]
    labels: np.ndarray
    images: Sequence[ImageReference]
    skip_corrupt: bool = False

    def __len__(self) -> int:
        return len(self.images)

    def modified(self) -> int:
        """When the newest file that holds an image changed, in nanoseconds."""
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
        "base", "val" and "novel", as far as they are there, or "all".
    about : dict
        `source` and `layout` say where the images are and in which form, `licence` what is known of their terms,
        `ignored` counts files that are no images, `notes` are sentences on what differs from the published dataset.
    """

    name: str
    splits: dict[str, ImageSplit]
    about: dict[str, Any] = field(default_factory=dict)


def make_split(
    dataset: str,
    split: str,
    classes: Mapping[str, Sequence[ImageReference]],
    *,
    skip_corrupt: bool,
) -> ImageSplit:
    """A split of images by class; a class without any is refused."""
    empty = [name for name in classes if not classes[name]]
    if empty or not classes:
        what = f"{len(empty)} classes without images, {quoted(empty[0])} first" if empty else "no images"
        raise InputError(f"Split '{split}' of {dataset} has {what}: add images, or remove the classes.")
    names = tuple(sorted(classes))
    images = [image for name in names for image in classes[name]]
    labels = np.repeat(np.arange(len(names)), [len(classes[name]) for name in names])
    return ImageSplit(f"{dataset}-{split}", names, labels, images, skip_corrupt)


def check_disjoint(splits: Mapping[str, ImageSplit], source: Any) -> None:
    """Refuse a class that is in two splits: nothing measured on it would be about new classes."""
    for (first, one), (second, other) in combinations(splits.items(), 2):
        shared = sorted(set(one.names) & set(other.names))
        if shared:
            raise InputError(
                f"{source} has {len(shared)} classes in both '{first}' and '{second}', {quoted(shared[0])} first: "
                "a class belongs to one split."
            )
