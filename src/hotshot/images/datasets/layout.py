"""What the readers of all layouts share: the splits' names on disk, and a dataset from images by split and class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotshot.errors import InputError
from hotshot.images.datasets.dataset import SPLITS, ImageDataset, check_disjoint, make_split
from hotshot.images.datasets.entries import Entry
from hotshot.images.datasets.references import ImageReference
from hotshot.images.datasets.tree import Tree

# Names of the splits in files, the literature's first.
ALIASES = {
    "base": ("train", "base", "meta-train"),
    "val": ("val", "valid", "validation", "meta-val"),
    "novel": ("test", "novel", "meta-test"),
}
PUBLISHED = {split: names[0] for split, names in ALIASES.items()}

Classes = Mapping[str, Sequence[ImageReference]]


@dataclass(frozen=True)
class Found:
    """Images by split and class as a layout has them, and what is to be said of it."""

    name: str
    layout: str
    splits: Mapping[str, Classes]
    ignored: int
    licence: str | None = None
    notes: tuple[str, ...] = ()


def as_dataset(found: Found, tree: Tree, skip_corrupt: bool) -> ImageDataset:
    """The dataset of a layout, checked."""
    splits = {
        split: make_split(found.name, split, found.splits[split], skip_corrupt=skip_corrupt)
        for split in SPLITS
        if split in found.splits
    }
    check_disjoint(splits, tree.path)
    about: dict[str, Any] = {"source": str(tree.path), "layout": found.layout, "ignored": found.ignored}
    if found.licence:
        about["licence"] = found.licence
    about["notes"] = list(found.notes)
    return ImageDataset(found.name, splits, about)


def text_lines(entry: Entry) -> list[str]:
    """The lines of a list that are not empty."""
    try:
        text = entry.data().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{entry.name} is not a list in UTF-8: copy or download it again.") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def absences(splits: Mapping[str, Any], counts: Mapping[str, int]) -> tuple[str, ...]:
    """Sentences on splits that are absent or have another number of classes than was published."""
    notes = []
    for split, count in counts.items():
        if split not in splits:
            notes.append(f"Split '{split}' ({PUBLISHED[split]}) is not there.")
        elif len(splits[split]) != count:
            notes.append(f"Split '{split}' has {len(splits[split])} classes where {count} were published.")
    return tuple(notes)
