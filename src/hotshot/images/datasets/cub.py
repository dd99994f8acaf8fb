"""Caltech-UCSD Birds-200-2011 (Wah et al. 2011), split by class number as Chen et al. (2019) do.

`images.txt`, `image_class_labels.txt` and `classes.txt` beside `images/`, in `CUB_200_2011` or in the published tar.
Counting classes from 0, even numbers are base classes, 1, 5, 9… validation and 3, 7, 11… novel classes: 100, 50, 50.
"""

import re

from hotshot.errors import InputError
from hotshot.files.opening import damaged
from hotshot.formatting import quoted
from hotshot.images.datasets.dataset import Found, listed_images, missing_splits, text_lines
from hotshot.images.datasets.entries import Entry, Tree

_LISTS = ("images.txt", "image_class_labels.txt", "classes.txt")
_NUMBER = re.compile("0*[1-9][0-9]{0,8}")
_COUNTS = {"base": 100, "val": 50, "novel": 50}
_LICENCE = "non-commercial research and education only"


def recognises(tree: Tree) -> bool:
    """Whether the published lists of images and classes are there."""
    return all(name in tree.files for name in _LISTS)


def open_layout(tree: Tree) -> Found:
    """Images by split and class."""
    absent = [name for name in _LISTS if name not in tree.files]
    absent += ["images/"] * ("images" not in tree.folders)
    if absent:
        raise InputError(
            f"{tree.path} is not CUB-200-2011, it lacks {', '.join(absent)}: give the folder CUB_200_2011 or the "
            "published CUB_200_2011.tgz."
        )
    files, numbers, classes = (_by_number(tree.files[name]) for name in _LISTS)
    lists: dict[str, dict[str, str]] = {_split(number): {} for number in classes}
    for image, file in files.items():
        number = numbers.get(image, "")
        if number not in classes:
            raise damaged(
                f"{tree.path} has no class for image {quoted(file)} in image_class_labels.txt and classes.txt"
            )
        lists[_split(number)][file] = classes[number]
    splits = listed_images(lists, tree.below("images").files, tree)
    for number, name in classes.items():
        splits[_split(number)].setdefault(name, [])
    return Found("cub", "images and lists", splits, tree.ignored, _LICENCE, missing_splits(splits, _COUNTS))


def _split(number: str) -> str:
    return ("base", "val", "base", "novel")[(int(number) - 1) % 4]


def _by_number(entry: Entry) -> dict[str, str]:
    """Values by number from a list with lines such as `17 002.Laysan_Albatross/Laysan_0001.jpg`."""
    rows = [line.split(maxsplit=1) for line in text_lines(entry)]
    if not rows or any(len(row) != 2 or not _NUMBER.fullmatch(row[0]) for row in rows):
        raise damaged(f"{entry.name} is not a list of numbers and values")
    if len({row[0] for row in rows}) < len(rows):
        raise damaged(f"{entry.name} has a number twice")
    return dict(rows)
