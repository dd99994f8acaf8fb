"""Datasets of images in the layouts in which they were published, and in folders of classes.

A layout is a function of a tree and a line in `LAYOUTS`: it returns the images by split and class, or says what the
tree lacks; where the user is `sure` of the layout, fewer classes than published will do. Splits are called base, val
and novel, or all where nothing is split.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError, ParameterError
from hotshot.files.opening import damaged
from hotshot.files.packing import as_text
from hotshot.files.pickles import load_pickle
from hotshot.formatting import quoted
from hotshot.images.decode import ImageSplit, Picture
from hotshot.images.tree import File, Tree, archive_tree, is_image, open_tree

# Names of the splits on the disk, the literature's first.
ALIASES = {
    "base": ("train", "base", "meta-train"),
    "val": ("val", "valid", "validation", "meta-val"),
    "novel": ("test", "novel", "meta-test"),
}
DISK_NAMES = {split: names[0] for split, names in ALIASES.items()}
# "all" where nothing is split.
SPLITS = (*ALIASES, "all")
# Published numbers of classes, and licences.
COUNTS = {
    "omniglot": {"base": 964, "novel": 659},
    "cub": {"base": 100, "val": 50, "novel": 50},
    "miniimagenet": {"base": 64, "val": 16, "novel": 20},
    "tieredimagenet": {"base": 351, "val": 97, "novel": 160},
}
_IMAGENET = "ImageNet's terms: research and education only"
LICENCES = {
    "omniglot": "MIT",
    "cub": "non-commercial research and education only",
    "miniimagenet": _IMAGENET,
    "tieredimagenet": _IMAGENET,
}

# Images of a split by class.
Classes = Mapping[str, Sequence[Picture]]


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """A dataset of images: "base", "val" and "novel" splits, as far as present, or "all".

    `about` has the `source` and `layout` of the images, their `licence` if known, `ignored` (the number of files that
    are not images) and `notes` (sentences on differences from the published dataset).
    """

    name: str
    splits: dict[str, ImageSplit]
    about: dict[str, Any]


@dataclass(frozen=True)
class Contents:
    """Images by split and class in a layout, the number of ignored files, and notes."""

    name: str
    layout: str
    splits: Mapping[str, Classes]
    ignored: int
    notes: tuple[str, ...] = ()


def open_dataset(path: str | Path, kind: str = "auto", *, skip_corrupt: bool = False) -> ImageDataset:
    """Open a dataset of images in a folder or an archive; no image is decoded yet.

    Parameters
    ----------
    path : str or Path
        A folder, or a tar (.gz, .xz, .bz2) or zip.
    kind : {"auto", "omniglot", "cub", "miniimagenet", "tieredimagenet", "cifar-fs", "folder"}
        The layout; "folder" is `split/class/image` or `class/image`. "auto" recognises it.
    skip_corrupt : bool
        Whether decoding leaves out and counts images that cannot be read, instead of stopping.

    Returns
    -------
    ImageDataset
        Its splits share no class, and none of its classes is empty.
    """
    if kind != "auto" and kind not in LAYOUTS:
        raise ParameterError(f"kind must be 'auto' or one of {', '.join(LAYOUTS)}, got {kind!r:.60}.")
    tree = open_tree(Path(path))
    layouts = list(LAYOUTS.values()) if kind == "auto" else [LAYOUTS[kind]]
    for inside in tree.unwrapped():
        for layout in layouts:
            contents = layout(inside, False)
            if isinstance(contents, Contents):
                return _dataset(contents, tree, skip_corrupt)
    contents = layouts[-1](tree, True)
    if isinstance(contents, str):
        raise InputError(f"{tree.path} {contents}.")
    return _dataset(contents, tree, skip_corrupt)


def _dataset(contents: Contents, tree: Tree, skip_corrupt: bool) -> ImageDataset:
    """The dataset of a layout; raises if a class has no images or is in two splits."""
    splits = {}
    for split in SPLITS:
        if split in contents.splits:
            splits[split] = _split(f"{contents.name}-{split}", contents.splits[split], tree, split, skip_corrupt)
    # Nothing measured on a class that is in two splits would be about new classes.
    for (first, one), (second, other) in combinations(splits.items(), 2):
        shared = sorted(set(one.names) & set(other.names))
        if shared:
            raise InputError(
                f"{tree.path} has {len(shared)} classes in both '{first}' and '{second}', {quoted(shared[0])} first: "
                "keep each class in one split."
            )
    about: dict[str, Any] = {"source": str(tree.path), "layout": contents.layout, "ignored": contents.ignored}
    if contents.name in LICENCES:
        about["licence"] = LICENCES[contents.name]
    return ImageDataset(contents.name, splits, {**about, "notes": list(contents.notes)})


def _split(name: str, classes: Classes, tree: Tree, split: str, skip_corrupt: bool) -> ImageSplit:
    names = tuple(sorted(classes))
    empty = [name for name in names if not classes[name]]
    if empty or not classes:
        what = f"{len(empty)} classes without images, {quoted(empty[0])} first" if empty else "no images"
        raise InputError(f"{tree.path} has {what} in split '{split}': add images, or remove the classes.")
    labels = np.repeat(np.arange(len(names)), [len(classes[name]) for name in names])
    return ImageSplit(name, names, labels, [image for name in names for image in classes[name]], skip_corrupt)


# --- what several layouts share


def _by_folder(
    tree: Tree, trees: dict[str, Tree], depth: int, remedy: str, shown: Mapping[str, str] = DISK_NAMES
) -> tuple[dict[str, Classes], int]:
    """Images by split and folder, if all folders of images are `depth` deep, and the number of other files.

    Messages use the names of splits in `shown`; a split without one is the whole tree.
    """
    splits: dict[str, Classes] = {}
    ignored = tree.ignored
    for split, inside in trees.items():
        where = f"{tree.path}, {shown[split]}" if split in shown else str(tree.path)
        classes: dict[str, list[Picture]] = {name: [] for name in inside.folders if name.count("/") == depth - 1}
        for path, file in inside.files.items():
            if not is_image(path):
                ignored += 1
            elif path.count("/") != depth:
                what = "deeper than in" if path.count("/") > depth else "outside"
                raise InputError(f"{where} has the image {quoted(path)} {what} the folders of classes: {remedy}.")
            else:
                classes[path.rpartition("/")[0]].append(Picture(file))
        if not classes:
            raise InputError(f"{where} has no folders of images: {remedy}.")
        splits[split] = classes
        # Folders share what their tree ignored; archives have their own.
        ignored += inside.ignored if inside.path != tree.path else 0
    return splits, ignored


def _listed(lists: Mapping[str, Mapping[str, str]], images: Mapping[str, File], tree: Tree) -> dict[str, Classes]:
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
    return dict(splits)


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


def _differences(name: str, splits: Mapping[str, Classes], shown: Mapping[str, str] = DISK_NAMES) -> tuple[str, ...]:
    """Notes on splits that are missing or do not have the published number of classes."""
    notes = []
    for split, count in COUNTS.get(name, {}).items():
        if split not in splits:
            notes.append(f"Split '{split}' ({shown[split]}) is missing.")
        elif len(splits[split]) != count:
            notes.append(f"Split '{split}' has {len(splits[split])} classes, but {count} were published.")
    return tuple(notes)


# --- folders of classes

_WANTED = "use split/class/image with splits called train, val and test, or class/image"
_WNID = re.compile(r"n\d{8}")


def class_folders(tree: Tree, sure: bool) -> Contents | str:
    """`split/class/image` and `class/image`, the most common layouts."""
    trees = _split_trees(tree)
    name = tree.path.resolve().name.split(".")[0] or "images"
    if trees:
        return _split_folders(tree, trees, name)
    if sure or {path.count("/") for path in tree.files if is_image(path)} == {1}:
        return Contents(name, "class/image", *_by_folder(tree, {"all": tree}, 1, _WANTED))
    return "has no folders of classes"


def _split_trees(tree: Tree) -> dict[str, Tree]:
    """The splits, as folders or archives of their names.

    A folder with images directly in it is a class, whatever its name.
    """
    trees: dict[str, Tree] = {}
    for split, aliases in ALIASES.items():
        for alias in aliases:
            inside = tree.inside(alias)
            if inside is None or (
                alias in tree.folders and any(is_image(path) and "/" not in path for path in inside.files)
            ):
                continue
            if split in trees:
                raise InputError(f"{tree.path} has two splits for '{split}', one of them {alias}: keep one.")
            trees[split] = inside
    return trees


def _split_folders(tree: Tree, trees: dict[str, Tree], name: str) -> Contents:
    """Images by split and class from the trees of the splits; images outside get a note."""
    splits, ignored = _by_folder(tree, trees, 1, _WANTED)
    used = {id(file) for inside in trees.values() for file in inside.files.values()}
    outside = [path for path, file in tree.files.items() if is_image(path) and id(file) not in used]
    notes = _differences(name, splits)
    if outside:
        notes = (f"left out {len(outside)} images outside the splits, first {quoted(outside[0])}.", *notes)
    return Contents(name, "split/class/image", splits, ignored + len(outside), notes)


def _has_wnids(trees: dict[str, Tree], name: str) -> bool:
    """Whether the splits hold the published numbers of ImageNet classes, and nothing else."""
    folders = {split: {path for path in tree.folders if "/" not in path} for split, tree in trees.items()}
    return bool(folders) and all(
        len(names) == COUNTS[name][split] and all(map(_WNID.fullmatch, names)) for split, names in folders.items()
    )


# --- Omniglot (Lake et al. 2015)

_OMNIGLOT = {"base": "images_background", "novel": "images_evaluation"}


def omniglot(tree: Tree, sure: bool) -> Contents | str:
    """Drawings of characters of 30 alphabets (base) and 20 (novel), `alphabet/character/drawing.png`."""
    trees = {split: inside for split, name in _OMNIGLOT.items() if (inside := tree.inside(name)) is not None}
    if not trees:
        return (
            "is not Omniglot, it has neither images_background nor images_evaluation, as a folder or zip: give the "
            "folder that holds them"
        )
    remedy = "copy or download it again as published, alphabet/character/image"
    splits, ignored = _by_folder(tree, trees, 2, remedy, _OMNIGLOT)
    notes = _differences("omniglot", splits, _OMNIGLOT)
    return Contents("omniglot", "alphabet/character/image", splits, ignored, notes)


# --- Caltech-UCSD Birds-200-2011 (Wah et al. 2011), split by class number as Chen et al. (2019) do

_CUB_LISTS = ("images.txt", "image_class_labels.txt", "classes.txt")
_CUB_NUMBER = re.compile("0*[1-9][0-9]{0,8}")


def cub(tree: Tree, sure: bool) -> Contents | str:
    """`images/` with lists; counting classes from 0, even ones are base, 1, 5, 9… val and 3, 7, 11… novel classes."""
    absent = [name for name in _CUB_LISTS if name not in tree.files]
    absent += ["images/"] * ("images" not in tree.folders)
    if absent:
        remedy = "give the folder CUB_200_2011 or the published CUB_200_2011.tgz"
        return f"is not CUB-200-2011, it lacks {', '.join(absent)}: {remedy}"
    files, numbers, classes = (_by_number(tree.files[name]) for name in _CUB_LISTS)
    split_of = {number: ("base", "val", "base", "novel")[(int(number) - 1) % 4] for number in classes}
    lists: dict[str, dict[str, str]] = {split: {} for split in split_of.values()}
    for image, file in files.items():
        number = numbers.get(image, "")
        if number not in classes:
            raise damaged(
                f"{tree.path} has no class for image {quoted(file)} in image_class_labels.txt and classes.txt"
            )
        lists[split_of[number]][file] = classes[number]
    listed = _listed(lists, tree.below("images").files, tree)
    every = {split: {classes[number]: () for number in classes if split_of[number] == split} for split in listed}
    splits = {split: {**every[split], **listed[split]} for split in listed}
    return Contents("cub", "images and lists", splits, tree.ignored, _differences("cub", splits))


def _by_number(file: File) -> dict[str, str]:
    """Values by number from a list with lines such as `17 002.Laysan_Albatross/Laysan_0001.jpg`."""
    rows = [line.split(maxsplit=1) for line in _text_lines(file)]
    if not rows or any(len(row) != 2 or not _CUB_NUMBER.fullmatch(row[0]) for row in rows):
        raise damaged(f"{file.name} is not a list of numbers and values")
    if len({row[0] for row in rows}) < len(rows):
        raise damaged(f"{file.name} has a number twice")
    return dict(rows)


# --- miniImageNet (Vinyals et al. 2016) in the split of Ravi and Larochelle


def miniimagenet(tree: Tree, sure: bool) -> Contents | str:
    """Splits of `wnid/image`; images with the lists `train.csv` and so on; or the pickled caches of 84x84 arrays."""
    caches = _files_of_splits(tree, "mini-imagenet-cache-{}.pkl")
    if caches:
        splits = {split: _cached(file) for split, file in caches.items()}
        return Contents("miniimagenet", "pickled caches", splits, tree.ignored, _differences("miniimagenet", splits))
    files = _files_of_splits(tree, "{}.csv")
    lists = {split: _classes_in(file) for split, file in files.items() if sure or _is_list(file)}
    trees = _split_trees(tree)
    if trees and (sure or lists or _has_wnids(trees, "miniimagenet")):
        contents = _split_folders(tree, trees, "miniimagenet")
        return replace(contents, notes=contents.notes + _compared(contents.splits, lists, tree))
    images = {path: file for path, file in (tree.inside("images") or tree).files.items() if is_image(path)}
    if lists and images:
        splits = _listed(lists, images, tree)
        return Contents("miniimagenet", "images and lists", splits, tree.ignored, _differences("miniimagenet", splits))
    return (
        f"is not miniImageNet, it has {'no images' if lists else 'no train.csv, val.csv or test.csv'}: give the folder "
        "with train, val and test as folders or tars, with images and the three lists, or with the mini-imagenet-cache "
        "files"
    )


def _is_list(file: File) -> bool:
    return bytes(file.data()[:64]).lstrip(b"\xef\xbb\xbf").startswith(b"filename,label")


def _classes_in(file: File) -> dict[str, str]:
    """Class by file name, from a list."""
    lines = _text_lines(file)
    rows = [line.split(",") for line in lines[1:]]
    if not rows or lines[0] != "filename,label" or any(len(row) != 2 or not all(row) for row in rows):
        raise damaged(f"{file.name} is not a list of 'filename,label' lines")
    return dict(rows)


def _compared(splits: Mapping[str, Classes], lists: dict[str, dict[str, str]], tree: Tree) -> tuple[str, ...]:
    """Check the classes of splits against the lists; fewer images than listed get a note."""
    notes = []
    for split in sorted(splits.keys() & lists.keys()):
        name, foreign = DISK_NAMES[split], sorted(set(splits[split]) - set(lists[split].values()))
        if foreign:
            raise InputError(
                f"{tree.path} has the class {quoted(foreign[0])} in {name}, which {name}.csv does not name: use the "
                "list that belongs to the images."
            )
        count = sum(map(len, splits[split].values()))
        if count < len(lists[split]):
            notes.append(f"Split '{split}' has {count} of the {len(lists[split])} listed images.")
    return tuple(notes)


def _cached(file: File) -> Classes:
    items = _unpickled(file)
    rows, classes = _item(items, "image_data", file, _pixels), _item(items, "class_dict", file, _dictionary)
    where = f"{file.name}, 'class_dict'"
    numbers = {name: _integers(value, where) for name, value in classes.items()}
    total = sum(map(len, numbers.values()))
    joined = np.concatenate([np.zeros(0, np.int64), *numbers.values()]) if total <= len(rows) else None
    if joined is None or len(np.unique(joined)) < total or ((joined < 0) | (joined >= len(rows))).any():
        raise damaged(f"{where} lists images twice, or not exactly the {len(rows)} images")
    return {name: [Picture(file, rows, int(i)) for i in np.sort(some)] for name, some in numbers.items()}


# --- tieredImageNet (Ren et al. 2018)

# Words that stand for two classes of ImageNet each: the bird and the machine, the two swimsuits.
_HOMONYMS = ("crane", "maillot")


def tieredimagenet(tree: Tree, sure: bool) -> Contents | str:
    """Splits of `wnid/image`; or `train_images.npz`, or `train_images_png.pkl`, with `train_labels.pkl` and so on."""
    archives = _files_of_splits(tree, "{}_images_png.pkl") | _files_of_splits(tree, "{}_images.npz")
    labels = _files_of_splits(tree, "{}_labels.pkl")
    for split in archives.keys() - labels.keys():
        raise InputError(
            f"{tree.path} has images of split '{split}' and no {DISK_NAMES[split]}_labels.pkl: add it, or remove the "
            "images."
        )
    if archives:
        splits = {split: _archived(file, labels[split], DISK_NAMES[split]) for split, file in archives.items()}
        notes = _differences("tieredimagenet", splits)
        return Contents("tieredimagenet", "archives and labels", splits, tree.ignored, notes)
    trees = _split_trees(tree)
    if trees and (sure or _has_wnids(trees, "tieredimagenet")):
        return _split_folders(tree, trees, "tieredimagenet")
    return (
        "is not tieredImageNet, it has neither folders train, val and test, nor train_images.npz or "
        "train_images_png.pkl with train_labels.pkl: give the folder that holds them"
    )


def _archived(images: File, labels: File, split: str) -> Classes:
    codes, names, by_authors = _labels(labels, split)
    # The authors' program unpacks PNG files by OpenCV, which has blue before red; labels of others come with RGB.
    pictures = _from_npz(images, blue_first=by_authors) if images.name.endswith(".npz") else _from_pngs(images)
    if len(codes) != len(pictures):
        raise damaged(f"{images.name} has {len(pictures)} images and {labels.name} {len(codes)} labels")
    rows = {code: np.flatnonzero(codes == code).tolist() for code in np.unique(codes).tolist()}
    return {names[code]: [pictures[i] for i in some] for code, some in rows.items()}


def _labels(file: File, split: str) -> tuple[np.ndarray, list[str], bool]:
    """The class of each image, the classes' names, and whether the authors' program wrote them.

    Files without names number the classes within a split, as do classes with the same name.
    """
    items = _unpickled(file)
    by_authors = isinstance(items, dict) and "label_specific" in items
    codes = _item(items, "label_specific" if by_authors else "labels", file, _integers)
    if "label_specific_str" in items:
        words = _item(items, "label_specific_str", file, _texts)
        names = [f"{word} ({split} {code})" if word in _HOMONYMS else word for code, word in enumerate(words)]
    else:
        numbers, codes = np.unique(codes, return_inverse=True)
        names = [f"{split}/{code:03}" for code in numbers.tolist()]
    if not len(codes) or codes.min() < 0 or codes.max() >= len(names) or len(set(names)) < len(names):
        raise damaged(f"{file.name} has labels that are not among its {len(names)} classes")
    return codes, names, by_authors


def _from_npz(file: File, blue_first: bool) -> list[Picture]:
    if file.path is None:
        raise InputError(f"{file.name} lies inside an archive: unpack that first.")
    member = archive_tree(file.path, file.name).files.get("images.npy")
    if member is None:
        raise damaged(f"{file.name} has no array 'images'")
    data = member.read()
    start = BytesIO(data[: 2**14])
    try:
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        shape, fortran, dtype = read_header[np.lib.format.read_magic(start)](start)
    except (ValueError, KeyError) as error:
        raise damaged(f"{file.name} has an array 'images' with an invalid header ({error})") from None
    if len(data) - start.tell() != np.prod(shape, dtype=object) * dtype.itemsize or fortran or dtype != np.uint8:
        raise damaged(f"{file.name} does not hold uint8 images in full, but {dtype} {shape}")
    rows = _pixels(np.frombuffer(data, np.uint8, offset=start.tell()).reshape(shape), f"{file.name}, 'images'")
    rows = rows[..., ::-1] if blue_first else rows
    return [Picture(file, rows, i) for i in range(len(rows))]


def _from_pngs(file: File) -> list[Picture]:
    pngs = _unpickled(file)
    if not isinstance(pngs, list) or not pngs:
        raise damaged(f"{file.name} is not a list of PNG files")
    images = []
    for i, png in enumerate(pngs):
        name = f"{file.name}[{i}]"
        if isinstance(png, np.ndarray) and png.dtype == np.uint8:
            png = memoryview(png.reshape(-1))  # type: ignore[arg-type]
        if not isinstance(png, (bytes, memoryview)):
            raise damaged(f"{quoted(name)} is not the bytes of a PNG file")
        images.append(Picture(File(name, len(png), file.modified, partial(bytes, png))))
    return images


# --- CIFAR-FS (Bertinetto et al. 2019)

_CIFAR_CLASSES = {
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
CIFAR_CLASSES = {split: text.split() for split, text in _CIFAR_CLASSES.items()}
_CIFAR_PICKLES, _CIFAR_SIDE = ("train", "test", "meta"), 32


def cifar_fs(tree: Tree, sure: bool) -> Contents | str:
    """`data/class/image.png` with the lists in `splits/bertinetto`, or CIFAR-100 as published for Python."""
    has_lists = any(path.startswith("splits/bertinetto/") for path in tree.files)
    data = tree.inside("data") if sure or has_lists else None
    published = [inside for inside in (tree, tree.inside("cifar-100-python")) if inside is not None]
    pickles = next((inside for inside in published if all(name in inside.files for name in _CIFAR_PICKLES)), None)
    classes: dict[str, list[Picture]] = {}
    layout, ignored = "CIFAR-100 for Python", tree.ignored
    if data is not None:
        layout = "data/class/image and lists"
        for path, file in data.files.items():
            if is_image(path) and path.count("/") == 1:
                classes.setdefault(path.split("/")[0], []).append(Picture(file))
            else:
                ignored += 1
    elif pickles is not None:
        classes = _cifar_pickles(pickles)
    else:
        return (
            "is not CIFAR-FS, it has neither data/class/image.png nor cifar-100-python.tar.gz or its pickles train, "
            "test and meta: give the folder that holds them"
        )
    lists = _cifar_lists(tree)
    lost = [name for names in lists.values() for name in names if not classes.get(name)]
    if lost:
        raise damaged(f"{tree.path} has no images of {len(lost)} classes that the lists name, {quoted(lost[0])} first")
    splits = {split: {name: classes[name] for name in names} for split, names in lists.items()}
    return Contents("cifar-fs", layout, splits, ignored)


def _cifar_lists(tree: Tree) -> dict[str, list[str]]:
    """The lists on the disk, if complete, else those in this file."""
    files = _files_of_splits(tree, "splits/bertinetto/{}.txt")
    absent = [f"splits/bertinetto/{name}.txt" for split, name in DISK_NAMES.items() if split not in files]
    if files and absent:
        raise InputError(f"{tree.path} lacks the list {absent[0]}: add it, or remove the other lists.")
    return {split: _text_lines(file) for split, file in files.items()} or CIFAR_CLASSES


def _cifar_pickles(tree: Tree) -> dict[str, list[Picture]]:
    """The images of CIFAR-100 by class; pixels are stored channel by channel."""
    names = _item(_unpickled(tree.files["meta"]), "fine_label_names", tree.files["meta"], _texts)
    classes: dict[str, list[Picture]] = {name: [] for name in names}
    for file in (tree.files["train"], tree.files["test"]):
        items = _unpickled(file)
        labels, flat = _item(items, "fine_labels", file, _integers), _item(items, "data", file, _numbers)
        if flat.dtype != np.uint8 or flat.shape != (len(labels), 3 * _CIFAR_SIDE**2) or not len(labels):
            held = f"{flat.dtype} {flat.shape} and {len(labels)} labels"
            raise damaged(f"{file.name} holds {held} instead of uint8 (images, 3072)")
        if labels.min() < 0 or labels.max() >= len(names):
            raise damaged(f"{file.name} has labels beyond its {len(names)} classes")
        rows = flat.reshape(-1, 3, _CIFAR_SIDE, _CIFAR_SIDE).transpose(0, 2, 3, 1)
        for i, label in enumerate(labels.tolist()):
            classes[names[label]].append(Picture(file, rows, i))
    return classes


# --- pickles, whose code is never run


def _unpickled(file: File) -> Any:
    """The value of a pickle, which is read from the disk."""
    if file.path is not None:
        return load_pickle(file.path, file.name)
    with tempfile.TemporaryDirectory(prefix="hotshot-") as folder:
        path = Path(folder) / "pickle"
        path.write_bytes(file.read())
        return load_pickle(path, file.name)


def _item(items: Any, key: str, file: File, check: Callable[[Any, str], Any]) -> Any:
    """A value of a pickled dictionary, checked and converted."""
    items = _dictionary(items, file.name)
    if key not in items:
        shown = ", ".join(f"'{name[:40]}'" for name in list(items)[:8])
        raise damaged(f"{file.name} has no '{key}', only {shown or 'nothing'}")
    return check(items[key], f"{file.name}, '{key}'")


def _dictionary(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(type(key) is str for key in value):
        raise damaged(f"{where} is not a dictionary with text as keys")
    return value


def _numbers(value: Any, where: str) -> np.ndarray:
    """An array of numbers, a view of the file."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiub":
        raise damaged(f"{where} is not an array of numbers")
    return value


def _pixels(value: Any, where: str) -> np.ndarray:
    """An array uint8 (images, height, width, 3)."""
    rows = _numbers(value, where)
    if rows.dtype != np.uint8 or rows.ndim != 4 or rows.shape[3] != 3 or 0 in rows.shape:
        raise damaged(f"{where} is {rows.dtype} {rows.shape} instead of uint8 (images, height, width, 3)")
    return rows


def _integers(value: Any, where: str) -> np.ndarray:
    """A list or array of integers."""
    numbers = np.zeros(0, np.int64) if isinstance(value, list) and not value else value
    if not isinstance(numbers, np.ndarray) or numbers.dtype.kind not in "iu":
        raise damaged(f"{where} is not a list of integers")
    return numbers.reshape(-1).astype(np.int64)


def _texts(value: Any, where: str) -> list[str]:
    """A list or array of text, which Python 2 stored as bytes."""
    items = value.reshape(-1).tolist() if isinstance(value, np.ndarray) else value
    names = [as_text(x) for x in items] if isinstance(items, list) else [None]
    if None in names:
        raise damaged(f"{where} is not a list of text")
    return names  # type: ignore[return-value]


LAYOUTS: dict[str, Callable[[Tree, bool], Contents | str]] = {
    "omniglot": omniglot,
    "cub": cub,
    "miniimagenet": miniimagenet,
    "tieredimagenet": tieredimagenet,
    "cifar-fs": cifar_fs,
    # Whatever has folders of images is one of these too.
    "folder": class_folders,
}
