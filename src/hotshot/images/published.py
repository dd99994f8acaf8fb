"""How each layout of a dataset of images is read: folders of classes, and those in which datasets were published.

A layout is a function of a tree and of whether the user is sure of it, where fewer classes than published will do. It
returns the images by split and class, or None for a tree of another layout. Splits are called base, val and novel, or
all where nothing is split.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.child_readers import read_pickle
from hotshot.files.named_arrays import read_npy_header
from hotshot.files.objects import need, refuse_damage
from hotshot.files.opening import damaged
from hotshot.files.pickles import as_text
from hotshot.formatting import quoted
from hotshot.images.decode import Picture
from hotshot.images.tree import File, Tree, archive_tree, is_image

# Names of the splits on the disk, the literature's first; "all" where nothing is split.
ALIASES = {
    "base": ("train", "base", "meta-train"),
    "val": ("val", "valid", "validation", "meta-val"),
    "novel": ("test", "novel", "meta-test"),
}
SPLITS = (*ALIASES, "all")
DISK_NAMES = {split: names[0] for split, names in ALIASES.items()}
# Images of a split by class, and all of them by split.
Classes = Mapping[str, Sequence[Picture]]
Splits = Mapping[str, Classes]


# --- what several layouts share


def _by_folder(trees: Mapping[str, Tree], depth: int, remedy: str) -> dict[str, Classes]:
    """Images by split and folder, if all folders of images are `depth` deep."""
    splits: dict[str, Classes] = {}
    for split, tree in trees.items():
        classes: dict[str, list[Picture]] = {name: [] for name in tree.folders if name.count("/") == depth - 1}
        for path, file in tree.files.items():
            if is_image(path) and path.count("/") != depth:
                what = "deeper than in" if path.count("/") > depth else "outside"
                raise InputError(f"{tree.name} has the image {quoted(path)} {what} the folders of classes: {remedy}.")
            if is_image(path):
                classes[path.rpartition("/")[0]].append(Picture(file))
        if not classes:
            raise InputError(f"{tree.name} has no folders of images: {remedy}.")
        splits[split] = classes
    return splits


def _listed(
    lists: Mapping[str, Mapping[str, str]], images: Mapping[str, File], tree: Tree
) -> dict[str, dict[str, list[Picture]]]:
    """Images by split and class, from lists with the class of each file; all files must exist."""
    splits: dict[str, dict[str, list[Picture]]] = {split: {} for split in lists}
    lost: list[str] = []
    for split, classes in lists.items():
        for name in sorted(classes):
            file = images.get(name) or images.get(f"{classes[name]}/{name}")
            if file is None:
                lost.append(name)
            else:
                splits[split].setdefault(classes[name], []).append(Picture(file))
    if lost:
        raise InputError(
            f"{tree.path} lacks {len(lost)} of the {sum(map(len, lists.values()))} images in its lists, first "
            f"{quoted(lost[0])}: add them, or remove the list of a split that you do not have."
        )
    return splits


def _files_of_splits(tree: Tree, form: str) -> dict[str, File]:
    """The files of the splits whose names have this form, as far as present."""
    names = {split: form.format(name) for split, name in DISK_NAMES.items()}
    return {split: tree.files[name] for split, name in names.items() if name in tree.files}


def _text_lines(file: File) -> list[str]:
    """The lines of a list that are not empty."""
    try:
        text = str(file.data(), "utf-8-sig")
    except UnicodeDecodeError:
        raise damaged(f"{file.name} is not a list in UTF-8") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


# --- folders of classes

_WANTED = "use split/class/image with splits called train, val and test, or class/image"
WNID = re.compile(r"n\d{8}")


def class_folders(tree: Tree, sure: bool) -> Splits | None:
    """`split/class/image` and `class/image`, the most common layouts."""
    trees = _split_trees(tree)
    if not trees and (sure or {path.count("/") for path in tree.files if is_image(path)} == {1}):
        trees = {"all": tree}
    return _by_folder(trees, 1, _WANTED) if trees else None


def _split_trees(tree: Tree) -> dict[str, Tree]:
    """The splits, as folders or archives of their names.

    A folder with images directly in it is a class, whatever its name.
    """
    trees: dict[str, Tree] = {}
    for split, alias in ((split, alias) for split, aliases in ALIASES.items() for alias in aliases):
        inside = tree.inside(alias)
        if inside is None:
            continue
        if alias in tree.folders and any(is_image(path) and "/" not in path for path in inside.files):
            continue
        if split in trees:
            raise InputError(f"{tree.path} has two splits for '{split}', one of them {alias}: keep one.")
        trees[split] = inside
    return trees


# --- Omniglot (Lake et al. 2015)


def omniglot(tree: Tree, sure: bool) -> Splits | None:
    """Drawings of characters of 30 alphabets (base) and 20 (novel), `alphabet/character/drawing.png`."""
    names = {"base": "images_background", "novel": "images_evaluation"}
    trees = {split: inside for split, name in names.items() if (inside := tree.inside(name)) is not None}
    return _by_folder(trees, 2, "download it again as published, alphabet/character/image") if trees else None


# --- Caltech-UCSD Birds-200-2011 (Wah et al. 2011), split by class number as Chen et al. (2019) do

CUB_LISTS = ("images.txt", "image_class_labels.txt", "classes.txt")


def cub(tree: Tree, sure: bool) -> Splits | None:
    """`images/` with lists; counting classes from 0, even ones are base, 1, 5, 9… val and 3, 7, 11… novel classes."""
    if not all(name in tree.files for name in CUB_LISTS) or "images" not in tree.folders:
        return None
    images, labels, classes = (_numbered(tree.files[name]) for name in CUB_LISTS)
    split_of = {number: ("base", "val", "base", "novel")[(int(number) - 1) % 4] for number in classes}
    lists: dict[str, dict[str, str]] = {split: {} for split in split_of.values()}
    for image, file in images.items():
        number = labels.get(image, "")
        if number not in classes:
            raise damaged(f"{tree.path} has no class for image {quoted(file)} in image_class_labels.txt, classes.txt")
        lists[split_of[number]][file] = classes[number]
    splits = _listed(lists, tree.below("images").files, tree)
    for number, split in split_of.items():
        splits[split].setdefault(classes[number], [])  # Refused, as all classes without images.
    return splits


def _numbered(file: File) -> dict[str, str]:
    """Values by number from a list with lines such as `17 002.Laysan_Albatross/Laysan_0001.jpg`."""
    with refuse_damage(file.name, "list of numbers and values"):
        rows = [line.split(maxsplit=1) for line in _text_lines(file)]
        values = {str(int(number)): value for number, value in rows}
        need(len(values) == len(rows), "a number twice")
        return values


# --- miniImageNet (Vinyals et al. 2016) in the split of Ravi and Larochelle


def miniimagenet(tree: Tree, sure: bool) -> Splits | None:
    """Splits of `wnid/image`; images with the lists `train.csv` and so on; or the pickled caches of 84x84 arrays."""
    caches = _files_of_splits(tree, "mini-imagenet-cache-{}.pkl")
    if caches:
        return {split: _cached(file) for split, file in caches.items()}
    files = _files_of_splits(tree, "{}.csv")
    lists = {split: _classes_in(file) for split, file in files.items() if sure or _is_list(file)}
    trees = _split_trees(tree) if sure or lists else {}
    if trees:
        return _by_folder(trees, 1, _WANTED)
    images = {path: file for path, file in (tree.inside("images") or tree).files.items() if is_image(path)}
    return _listed(lists, images, tree) if lists and images else None


def _is_list(file: File) -> bool:
    return bytes(file.data()[:64]).lstrip(b"\xef\xbb\xbf").startswith(b"filename,label")


def _classes_in(file: File) -> dict[str, str]:
    """Class by file name, from a list."""
    with refuse_damage(file.name, "list of 'filename,label' lines"):
        first, *others = _text_lines(file)
        need(first == "filename,label" and others, "it begins otherwise, or is empty")
        rows = [line.split(",") for line in others]
        need(all(map(all, rows)), "a line lacks a value")
        return dict(rows)


def _cached(file: File) -> Classes:
    with refuse_damage(file.name, "cache of miniImageNet"):
        items = _unpickled(file)
        rows = _pixels(items["image_data"])
        classes = {
            key.removeprefix("class_dict/"): rows for key, rows in items.items() if key.startswith("class_dict/")
        }
        need(classes, "it has no class_dict")
        numbers = {name: _integers(some) for name, some in classes.items()}
        every = np.concatenate([np.zeros(0, np.int64), *numbers.values()])
        complete = len(np.unique(every)) == len(every) and np.isin(every, np.arange(len(rows))).all()
        need(complete, f"its class_dict lists images twice, or not exactly the {len(rows)} images")
        return {name: [Picture(file, rows, int(i)) for i in np.sort(some)] for name, some in numbers.items()}


# --- tieredImageNet (Ren et al. 2018)

# Words that stand for two classes of ImageNet each: the bird and the machine, the two swimsuits.
_HOMONYMS = ("crane", "maillot")


def tieredimagenet(tree: Tree, sure: bool) -> Splits | None:
    """Splits of `wnid/image`; or `train_images.npz`, or `train_images_png.pkl`, with `train_labels.pkl` and so on."""
    archives = _files_of_splits(tree, "{}_images_png.pkl") | _files_of_splits(tree, "{}_images.npz")
    labels = _files_of_splits(tree, "{}_labels.pkl")
    for split in archives.keys() - labels.keys():
        raise InputError(
            f"{tree.path} has images of split '{split}' and no {DISK_NAMES[split]}_labels.pkl: add it, or remove the "
            "images."
        )
    if archives:
        return {split: _archived(file, labels[split], DISK_NAMES[split]) for split, file in archives.items()}
    trees = _split_trees(tree) if sure else {}
    return _by_folder(trees, 1, _WANTED) if trees else None


def _archived(images: File, labels: File, split: str) -> Classes:
    with refuse_damage(labels.name, "file of labels"):
        codes, names, by_authors = _labels(_unpickled(labels), split)
    with refuse_damage(images.name, "file of images"):
        # The authors' program unpacks PNG files by OpenCV, which has blue before red; labels of others come with RGB.
        pictures = _from_npz(images, blue_first=by_authors) if images.name.endswith(".npz") else _from_pngs(images)
        need(len(codes) == len(pictures), f"it has {len(pictures)} images, and {labels.name} {len(codes)} labels")
        return {names[code]: [pictures[i] for i in np.flatnonzero(codes == code)] for code in np.unique(codes)}


def _labels(items: Any, split: str) -> tuple[np.ndarray, list[str], bool]:
    """The class of each image, the classes' names, and whether the authors' program wrote them.

    Files without names number the classes within a split, as do classes with the same name.
    """
    by_authors = "label_specific" in items
    codes = _integers(items["label_specific" if by_authors else "labels"])
    if "label_specific_str" in items:
        words = _texts(items["label_specific_str"])
        names = [f"{word} ({split} {code})" if word in _HOMONYMS else word for code, word in enumerate(words)]
    else:
        numbers, codes = np.unique(codes, return_inverse=True)
        names = [f"{split}/{code:03}" for code in numbers.tolist()]
    need(len(set(names)) == len(names), "two classes of one name")
    need(codes.min() >= 0 and codes.max() < len(names), f"labels that are not among its {len(names)} classes")
    return codes, names, by_authors


def _from_npz(file: File, blue_first: bool) -> list[Picture]:
    if file.path is None:
        raise InputError(f"{file.name} lies inside an archive: unpack that first.")
    members = archive_tree(file.path, file.name).files
    need("images.npy" in members, "it has no array 'images'")
    data = members["images.npy"].read()
    header = read_npy_header(BytesIO(data[: 2**14]), "array 'images'", len(data), file.path)
    array = np.frombuffer(data, header.dtype, offset=header.start)
    need(header.order == "C", "its images are in Fortran's order")
    rows = _pixels(array.reshape(header.shape))[..., :: -1 if blue_first else 1]
    return [Picture(file, rows, i) for i in range(len(rows))]


def _from_pngs(file: File) -> list[Picture]:
    images = []
    pngs = _unpickled(file)[""]
    need(isinstance(pngs, list), "it is no list of PNG files")
    for i, data in enumerate(pngs):
        images.append(Picture(File(f"{file.name}[{i}]", len(data), file.modified, partial(bytes, data))))
    return images


# --- CIFAR-FS (Bertinetto et al. 2019)

# All other classes are base classes.
_CIFAR_CLASSES = {
    "val": """
        beaver beetle butterfly camel cattle crab crocodile flatfish lamp maple_tree motorcycle otter sea shark
        television tractor
    """,
    "novel": """
        baby bed bicycle chimpanzee fox leopard man pickup_truck plain poppy rocket rose snail sweet_pepper table
        telephone wardrobe whale woman worm
    """,
}
CIFAR_CLASSES = {split: text.split() for split, text in _CIFAR_CLASSES.items()}
_CIFAR_PICKLES = ("meta", "train", "test")


def cifar_fs(tree: Tree, sure: bool) -> Splits | None:
    """`data/class/image.png` with the lists in `splits/bertinetto`, or CIFAR-100 as published for Python."""
    has_lists = any(path.startswith("splits/bertinetto/") for path in tree.files)
    data = tree.inside("data") if sure or has_lists else None
    if data is not None:
        classes = _by_folder({"all": data}, 1, "use data/class/image")["all"]
    else:
        published = [inside for inside in (tree, tree.inside("cifar-100-python")) if inside is not None]
        pickles = next((inside for inside in published if all(name in inside.files for name in _CIFAR_PICKLES)), None)
        if pickles is None:
            return None
        classes = _cifar_pickles(pickles)
    others = sorted(classes.keys() - {name for names in CIFAR_CLASSES.values() for name in names})
    lists = _cifar_lists(tree) or {"base": others, **CIFAR_CLASSES}
    lost = [name for names in lists.values() for name in names if not classes.get(name)]
    if lost:
        raise damaged(f"{tree.path} has no images of {len(lost)} classes that the lists name, {quoted(lost[0])} first")
    return {split: {name: classes[name] for name in names} for split, names in lists.items()}


def _cifar_lists(tree: Tree) -> dict[str, list[str]]:
    """The lists on the disk, all or none."""
    files = _files_of_splits(tree, "splits/bertinetto/{}.txt")
    absent = [f"splits/bertinetto/{name}.txt" for split, name in DISK_NAMES.items() if split not in files]
    if files and absent:
        raise InputError(f"{tree.path} lacks the list {absent[0]}: add it, or remove the other lists.")
    return {split: _text_lines(file) for split, file in files.items()}


def _cifar_pickles(tree: Tree) -> Classes:
    """The images of CIFAR-100 by class; pixels are stored channel by channel."""
    meta, *files = (tree.files[name] for name in _CIFAR_PICKLES)
    with refuse_damage(meta.name, "file of CIFAR-100"):
        names = _texts(_unpickled(meta)["fine_label_names"])
    classes: dict[str, list[Picture]] = {name: [] for name in names}
    for file in files:
        with refuse_damage(file.name, "file of CIFAR-100"):
            items = _unpickled(file)
            labels, planes = _integers(items["fine_labels"]), items["data"]
            rows = _pixels(planes.reshape(len(labels), 3, 32, 32).transpose(0, 2, 3, 1))
            need(labels.min() >= 0 and labels.max() < len(names), f"labels beyond its {len(names)} classes")
            for i, label in enumerate(labels.tolist()):
                classes[names[label]].append(Picture(file, rows, i))
    return classes


# --- pickles, whose code is never run: inside `refuse_damage`, whatever they hold instead is one sentence


def _unpickled(file: File) -> dict[str, Any]:
    """The arrays and lists in a pickle, which is read from the disk."""
    if file.path is not None:
        return read_pickle(file.path, file.name)
    with tempfile.TemporaryDirectory(prefix="hotshot-") as folder:
        path = Path(folder) / "pickle"
        path.write_bytes(file.read())
        return read_pickle(path, file.name)


def _pixels(rows: np.ndarray) -> np.ndarray:
    """An array uint8 (images, height, width, 3)."""
    fits = rows.dtype == np.uint8 and rows.ndim == 4 and rows.shape[3] == 3 and rows.size
    need(fits, f"its images are {rows.dtype} {rows.shape} instead of uint8 (images, height, width, 3)")
    return rows


def _integers(values: Any) -> np.ndarray:
    are_numbers = isinstance(values, np.ndarray) and values.dtype.kind in "iu"
    need(are_numbers, "labels or numbers of images that are not integers")
    return values.reshape(-1).astype(np.int64)


def _texts(values: Any) -> list[str]:
    """A list or array of text, which Python 2 stored as bytes."""
    names = [as_text(x) for x in (values.tolist() if isinstance(values, np.ndarray) else values)]
    need(None not in names, "names of classes that are not text")
    return names  # type: ignore[return-value]
