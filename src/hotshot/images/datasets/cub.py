"""Caltech-UCSD Birds-200-2011 (Wah et al. 2011), split by class number as Chen et al. (2019) do.

`images.txt`, `image_class_labels.txt` and `classes.txt` beside `images/`, in `CUB_200_2011` or in the published tar.
Counting classes from 0, even numbers are base classes, 1, 5, 9… validation and 3, 7, 11… novel classes: 100, 50, 50.
"""

from __future__ import annotations

from hotshot.errors import InputError
from hotshot.files.names import quoted
from hotshot.images.datasets.dataset import Found, absences, text_lines
from hotshot.images.datasets.entries import Entry, Tree
from hotshot.images.datasets.pixels import EncodedImage

_LISTS = ("images.txt", "image_class_labels.txt", "classes.txt")
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
    images: dict[str, list[EncodedImage]] = {name: [] for name in classes.values()}
    lost = []
    for number, file in files.items():
        name = classes.get(numbers.get(number, ""))
        if name is None:
            raise InputError(
                f"{tree.path} gives image {quoted(file)} no class in image_class_labels.txt and classes.txt: copy or "
                "download the lists again."
            )
        entry = tree.files.get(f"images/{file}")
        if entry is None:
            lost.append(file)
        else:
            images[name].append(EncodedImage(entry))
    if lost:
        raise InputError(
            f"{tree.path} lacks {len(lost)} of the {len(files)} images in images.txt, {quoted(lost[0])} first: copy or "
            "download it again."
        )
    splits: dict[str, dict[str, list[EncodedImage]]] = {}
    for number, name in classes.items():
        split = ("base", "val", "base", "novel")[(int(number) - 1) % 4]
        splits.setdefault(split, {})[name] = sorted(images[name], key=lambda x: x.name)
    return Found("cub", "images and lists", splits, tree.ignored, _LICENCE, absences(splits, _COUNTS))


def _by_number(entry: Entry) -> dict[str, str]:
    """What stands beside each number of a list, `17 002.Laysan_Albatross/Laysan_0001.jpg`."""
    rows = [line.split(maxsplit=1) for line in text_lines(entry)]
    if not rows or any(len(row) != 2 or not row[0].isdecimal() or row[0] == "0" for row in rows):
        raise InputError(f"{entry.name} is not a list of numbers and values: copy or download it again.")
    if len({row[0] for row in rows}) < len(rows):
        raise InputError(f"{entry.name} has a number twice: copy or download it again.")
    return dict(rows)
