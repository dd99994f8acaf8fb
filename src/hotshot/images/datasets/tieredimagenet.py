"""tieredImageNet (Ren et al. 2018): 351 base, 97 validation and 160 novel classes of ImageNet.

Read in three forms: `train`, `val` and `test` as folders or tars of `wnid/image`; `train_images.npz` (an array
`images`, uint8) with `train_labels.pkl`; and, as first published, `train_images_png.pkl` (a list of PNG files) with
the same labels. The authors' program unpacks the PNG files to arrays by OpenCV, which has blue before red: arrays
beside the authors' labels (`label_specific`) are turned to RGB here, those beside labels of others (`labels`) are not.
"""

from io import BytesIO

import numpy as np

from hotshot.errors import InputError
from hotshot.files.arrays_files import read_npy_header
from hotshot.files.opening import damaged
from hotshot.formatting import quoted
from hotshot.images.datasets import pickled
from hotshot.images.datasets.class_folders import split_trees, splits_of
from hotshot.images.datasets.dataset import DISK_NAMES, Classes, Found, missing_splits
from hotshot.images.datasets.entries import Entry, FileEntry, SliceEntry, Tree
from hotshot.images.datasets.miniimagenet import LICENCE, has_classes
from hotshot.images.datasets.pixels import ArrayImage, EncodedImage, ImageReference
from hotshot.images.datasets.trees import archive_tree

COUNTS = {"base": 351, "val": 97, "novel": 160}
# Words that stand for two classes of ImageNet each: the bird and the machine, the two swimsuits.
_HOMONYMS = ("crane", "maillot")
# A header of the .npy format is shorter.
_HEADER = 2**14


def recognises(tree: Tree) -> bool:
    """Whether there are archives of arrays or PNG files, or splits of the published numbers of classes."""
    return bool(_archives(tree)) or has_classes(split_trees(tree), COUNTS)


def open_layout(tree: Tree) -> Found:
    """Images by split and class."""
    archives = _archives(tree)
    if archives:
        splits: dict[str, Classes] = {}
        for split, entry in archives.items():
            name = f"{DISK_NAMES[split]}_labels.pkl"
            if name not in tree.files:
                raise InputError(
                    f"{tree.path} has images of split '{split}' and no {name}: add it, or remove the images."
                )
            splits[split] = _archived(entry, tree.files[name], split)
        notes = missing_splits(splits, COUNTS)
        return Found("tieredimagenet", "archives and labels", splits, tree.ignored, LICENCE, notes)
    trees = split_trees(tree)
    if not trees:
        raise InputError(
            f"{tree.path} is not tieredImageNet, it has neither folders train, val and test, nor train_images.npz or "
            "train_images_png.pkl with train_labels.pkl: give the folder that holds them."
        )
    return splits_of(tree, trees, "tieredimagenet", COUNTS, LICENCE)


def _archives(tree: Tree) -> dict[str, Entry]:
    """Images of each split, as an array where there is one, else as PNG files."""
    return {
        split: tree.files[f"{name}{ending}"]
        for split, name in DISK_NAMES.items()
        for ending in ("_images_png.pkl", "_images.npz")
        if f"{name}{ending}" in tree.files
    }


def _archived(images: Entry, labels: Entry, split: str) -> Classes:
    codes, names, by_authors = _labels(labels, split)
    references = _from_npz(images, by_authors) if images.name.endswith(".npz") else _from_pngs(images)
    if len(codes) != len(references):
        raise damaged(f"{images.name} has {len(references)} images and {labels.name} {len(codes)} labels")
    order = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[order], np.arange(len(names) + 1))
    return {
        name: [references[i] for i in order[starts[code] : starts[code + 1]]]
        for code, name in enumerate(names)
        if starts[code] < starts[code + 1]
    }


def _labels(entry: Entry, split: str) -> tuple[np.ndarray, list[str], bool]:
    """The class of each image, the classes' names, and whether the authors' program wrote them.

    Files without names number the classes within a split, as do classes with the same name.
    """
    items = pickled.read_dictionary(entry)
    by_authors = "label_specific" in items
    codes = pickled.integers(*pickled.item(items, "label_specific" if by_authors else "labels", entry.name))
    where = DISK_NAMES[split]
    if "label_specific_str" in items:
        words = pickled.texts(*pickled.item(items, "label_specific_str", entry.name))
        names = [f"{word} ({where} {code})" if word in _HOMONYMS else word for code, word in enumerate(words)]
    else:
        known, codes = np.unique(codes, return_inverse=True)
        names = [f"{where}/{code:03}" for code in known.tolist()]
    if not len(codes) or codes.min() < 0 or codes.max() >= len(names) or len(set(names)) < len(names):
        raise damaged(f"{entry.name} has labels that are not among its {len(names)} classes")
    return codes, names, by_authors


def _from_npz(entry: Entry, blue_first: bool) -> list[ImageReference]:
    if not isinstance(entry, FileEntry):
        raise InputError(f"{entry.name} lies inside an archive: unpack that first.")
    member = archive_tree(entry.path, entry.name).files.get("images.npy")
    if member is None:
        raise damaged(f"{entry.name} has no array 'images'")
    buffer, start, end = member.mapped()
    header = read_npy_header(BytesIO(buffer[start : min(end, start + _HEADER)]), "array 'images'", entry.path)
    if header.start + header.n_bytes != end - start or header.fortran or header.dtype != np.uint8:
        raise damaged(f"{entry.name} does not hold uint8 images in full, but {header.dtype} {header.shape}")
    array = np.ndarray(header.shape, np.uint8, buffer, start + header.start)
    rows = pickled.pixels(array, f"{entry.name}, 'images'")
    rows = rows[..., ::-1] if blue_first else rows
    return [ArrayImage(entry, rows, i) for i in range(len(rows))]


def _from_pngs(entry: Entry) -> list[ImageReference]:
    value = pickled.read_value(entry)
    if not isinstance(value, list) or not value:
        raise damaged(f"{entry.name} is not a list of PNG files")
    images: list[ImageReference] = []
    for i, png in enumerate(value):
        name = f"{entry.name}[{i}]"
        if isinstance(png, np.ndarray) and png.dtype == np.uint8:
            png = memoryview(png.reshape(-1))  # type: ignore[arg-type]
        if not isinstance(png, memoryview):
            raise damaged(f"{quoted(name)} is not the bytes of a PNG file")
        images.append(EncodedImage(SliceEntry(name, png, 0, len(png), entry.modified)))
    return images
