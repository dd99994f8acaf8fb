"""CIFAR-FS (Bertinetto et al. 2019): CIFAR-100's classes as 64 base, 16 validation and 20 novel ones.

Read in two forms: `data/class/image.png` with the lists `splits/bertinetto/train.txt`, `val.txt` and `test.txt`; and
CIFAR-100 as published for Python, `cifar-100-python.tar.gz` or the pickles `train`, `test` and `meta` in it, by the
same lists, which are included here.
"""

import numpy as np

from hotshot.errors import InputError
from hotshot.files.opening import damaged
from hotshot.formatting import quoted
from hotshot.images.datasets import pickled
from hotshot.images.datasets.dataset import DISK_NAMES, Classes, Found, text_lines
from hotshot.images.datasets.entries import Entry, Tree, is_image
from hotshot.images.datasets.pixels import ArrayImage, EncodedImage
from hotshot.images.datasets.trees import subtree

_PICKLES = ("train", "test", "meta")
_SIDE = 32
_CLASSES = {
    "base": """
        apple aquarium_fish bear bee bottle bowl boy bridge bus can castle caterpillar chair clock cloud cockroach
        couch cup dinosaur dolphin elephant forest girl hamster house kangaroo keyboard lawn_mower lion lizard lobster
        mountain mouse mushroom oak_tree orange orchid palm_tree pear pine_tree plate porcupine possum rabbit raccoon
        ray road seal shrew skunk skyscraper snake spider squirrel streetcar sunflower tank tiger train trout tulip
        turtle willow_tree wolf
    """,
    "val": """
        beaver beetle butterfly camel cattle crab crocodile flatfish lamp maple_tree motorcycle otter sea shark
        television tractor
    """,
    "novel": """
        baby bed bicycle chimpanzee fox leopard man pickup_truck plain poppy rocket rose snail sweet_pepper table
        telephone wardrobe whale woman worm
    """,
}
CLASSES = {split: text.split() for split, text in _CLASSES.items()}


def recognises(tree: Tree) -> bool:
    """Whether there are folders with the lists, or the archive of CIFAR-100 or its pickles."""
    has_lists = any(path.startswith("splits/bertinetto/") for path in tree.files)
    return (has_lists and subtree(tree, "data") is not None) or _python_version(tree) is not None


def open_layout(tree: Tree) -> Found:
    """Images by split and class."""
    lists = _lists(tree)
    data = subtree(tree, "data")
    if data is not None:
        return _from_folders(tree, data, lists)
    pickles = _python_version(tree)
    if pickles is None:
        raise InputError(
            f"{tree.path} is not CIFAR-FS, it has neither data/class/image.png nor cifar-100-python.tar.gz or its "
            "pickles train, test and meta: give the folder that holds them."
        )
    return _from_pickles(tree, pickles, lists)


def _lists(tree: Tree) -> dict[str, list[str]]:
    """The lists on the disk, if complete, else those in this file."""
    files = {split: f"splits/bertinetto/{name}.txt" for split, name in DISK_NAMES.items()}
    absent = [name for name in files.values() if name not in tree.files]
    if len(absent) == len(files):
        return CLASSES
    if absent:
        raise InputError(f"{tree.path} lacks the list {absent[0]}: add it, or remove the other lists.")
    return {split: text_lines(tree.files[name]) for split, name in files.items()}


def _chosen(classes: Classes, lists: dict[str, list[str]], tree: Tree) -> dict[str, Classes]:
    lost = [name for names in lists.values() for name in names if not classes.get(name)]
    if lost:
        raise damaged(f"{tree.path} has no images of {len(lost)} classes that the lists name, {quoted(lost[0])} first")
    return {split: {name: classes[name] for name in names} for split, names in lists.items()}


def _from_folders(tree: Tree, data: Tree, lists: dict[str, list[str]]) -> Found:
    classes: dict[str, list[EncodedImage]] = {}
    for path, entry in data.files.items():
        if is_image(path) and path.count("/") == 1:
            classes.setdefault(path.split("/")[0], []).append(EncodedImage(entry))
    ignored = tree.ignored + len(data.files) - sum(map(len, classes.values()))
    return Found("cifar-fs", "data/class/image and lists", _chosen(classes, lists, tree), ignored)


def _python_version(tree: Tree) -> Tree | None:
    """The tree with the three pickles: this one, or the folder or archive in it that was published."""
    for inside in (tree, subtree(tree, "cifar-100-python")):
        if inside is not None and all(name in inside.files for name in _PICKLES):
            return inside
    return None


def _from_pickles(tree: Tree, pickles: Tree, lists: dict[str, list[str]]) -> Found:
    meta = pickles.files["meta"]
    names = pickled.texts(*pickled.item(pickled.read_dictionary(meta), "fine_label_names", meta.name))
    classes: dict[str, list[ArrayImage]] = {name: [] for name in names}
    for name in ("train", "test"):
        entry = pickles.files[name]
        rows, labels = _images(entry, len(names))
        for i, label in enumerate(labels.tolist()):
            classes[names[label]].append(ArrayImage(entry, rows, i))
    return Found("cifar-fs", "CIFAR-100 for Python", _chosen(classes, lists, tree), tree.ignored)


def _images(entry: Entry, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Pixels uint8 (images, 32, 32, 3), stored channel by channel, and labels."""
    items = pickled.read_dictionary(entry)
    labels = pickled.integers(*pickled.item(items, "fine_labels", entry.name))
    flat = pickled.array(*pickled.item(items, "data", entry.name))
    if flat.dtype != np.uint8 or flat.shape != (len(labels), 3 * _SIDE**2) or not len(labels):
        found = f"{flat.dtype} {flat.shape} and {len(labels)} labels"
        raise damaged(f"{entry.name} holds {found} instead of uint8 (images, 3072)")
    if labels.min() < 0 or labels.max() >= n_classes:
        raise damaged(f"{entry.name} has labels beyond its {n_classes} classes")
    return flat.reshape(-1, 3, _SIDE, _SIDE).transpose(0, 2, 3, 1), labels
