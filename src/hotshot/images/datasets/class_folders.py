"""`split/class/image` and `class/image`: the layout of most people, in folders or archives."""

from __future__ import annotations

from hotshot.errors import InputError
from hotshot.files.names import quoted
from hotshot.images.datasets.dataset import ALIASES, DISK_NAMES, Found
from hotshot.images.datasets.entries import Tree, is_image
from hotshot.images.datasets.pixels import EncodedImage
from hotshot.images.datasets.trees import subtree

_WANTED = "use split/class/image with splits called train, val and test, or class/image"


def recognises(tree: Tree) -> bool:
    """Whether there are folders or archives of splits, or images in folders of classes and no deeper."""
    return bool(split_trees(tree)) or {path.count("/") for path in tree.files if is_image(path)} == {1}


def open_layout(tree: Tree) -> Found:
    """Images by split and class, or by class alone."""
    trees = split_trees(tree)
    name = tree.path.resolve().name.split(".")[0] or "images"
    if trees:
        return splits_of(tree, trees, name)
    classes, others = _classes_of(tree, str(tree.path))
    return Found(name, "class/image", {"all": classes}, tree.ignored + others)


def split_trees(tree: Tree) -> dict[str, Tree]:
    """The splits that are there as folders or archives of their names.

    A folder with images directly in it is a class, whatever its name.
    """
    trees: dict[str, Tree] = {}
    for split, aliases in ALIASES.items():
        for alias in aliases:
            inside = subtree(tree, alias)
            if inside is None or (
                alias in tree.folders and any(is_image(path) and "/" not in path for path in inside.files)
            ):
                continue
            if split in trees:
                raise InputError(
                    f"{tree.path} has two splits that mean '{split}', one called {alias}: keep one of them."
                )
            trees[split] = inside
    return trees


def splits_of(tree: Tree, trees: dict[str, Tree], name: str, licence: str | None = None) -> Found:
    """Images by split and class from the trees of the splits; images outside them are worth a note."""
    splits = {}
    # Folders share what their tree ignored; archives have their own.
    ignored = tree.ignored
    for split, inside in trees.items():
        splits[split], others = _classes_of(inside, f"{tree.path}, {DISK_NAMES[split]}")
        ignored += others + (inside.ignored if inside.path != tree.path else 0)
    used = {id(entry) for inside in trees.values() for entry in inside.files.values()}
    outside = [path for path, entry in tree.files.items() if is_image(path) and id(entry) not in used]
    notes: tuple[str, ...] = ()
    if outside:
        notes = (f"{len(outside)} images outside the splits are left out, {quoted(outside[0])} first.",)
    return Found(name, "split/class/image", splits, ignored + len(outside), licence, notes)


def _classes_of(tree: Tree, where: str) -> tuple[dict[str, list[EncodedImage]], int]:
    """Images by class, where folders are the classes, and how many files are no images."""
    classes, others = images_by_folder(tree, 1, where, _WANTED)
    if not classes:
        raise InputError(f"{where} has no folders of images: {_WANTED}.")
    empty = sorted(name for name, images in classes.items() if not images)
    if empty:
        raise InputError(
            f"{where} has {len(empty)} folders without images, {quoted(empty[0])} first: fill or remove them."
        )
    return classes, others


def images_by_folder(tree: Tree, depth: int, where: str, remedy: str) -> tuple[dict[str, list[EncodedImage]], int]:
    """Images by their folders, which are all `depth` deep, and how many files are no images."""
    folders: dict[str, list[EncodedImage]] = {name: [] for name in tree.folders if name.count("/") == depth - 1}
    others = 0
    for path, entry in tree.files.items():
        if not is_image(path):
            others += 1
        elif path.count("/") != depth:
            what = "deeper than in" if path.count("/") > depth else "outside"
            raise InputError(f"{where} has the image {quoted(path)} {what} the folders of classes: {remedy}.")
        else:
            folders[path.rpartition("/")[0]].append(EncodedImage(entry))
    return folders, others
