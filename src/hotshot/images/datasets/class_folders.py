"""`split/class/image` and `class/image`, the most common layouts, in folders or archives."""

from collections.abc import Mapping

from hotshot.errors import InputError
from hotshot.formatting import quoted
from hotshot.images.datasets.dataset import ALIASES, DISK_NAMES, Classes, Found, missing_splits
from hotshot.images.datasets.entries import Tree, is_image
from hotshot.images.datasets.pixels import EncodedImage
from hotshot.images.datasets.trees import subtree

_WANTED = "use split/class/image with splits called train, val and test, or class/image"


def recognises(tree: Tree) -> bool:
    """Whether there are folders or archives of splits, or images directly in folders of classes."""
    return bool(split_trees(tree)) or {path.count("/") for path in tree.files if is_image(path)} == {1}


def open_layout(tree: Tree) -> Found:
    """Images by split and class, or by class alone."""
    trees = split_trees(tree)
    name = tree.path.resolve().name.split(".")[0] or "images"
    if trees:
        return splits_of(tree, trees, name, {}, None)
    return Found(name, "class/image", *images_by_folder(tree, {"all": tree}, {}, 1, _WANTED))


def split_trees(tree: Tree) -> dict[str, Tree]:
    """The splits, as folders or archives of their names.

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
                raise InputError(f"{tree.path} has two splits for '{split}', one of them {alias}: keep one.")
            trees[split] = inside
    return trees


def splits_of(tree: Tree, trees: dict[str, Tree], name: str, counts: Mapping[str, int], licence: str | None) -> Found:
    """Images by split and class from the trees of the splits; images outside get a note."""
    splits, ignored = images_by_folder(tree, trees, DISK_NAMES, 1, _WANTED)
    used = {id(entry) for inside in trees.values() for entry in inside.files.values()}
    outside = [path for path, entry in tree.files.items() if is_image(path) and id(entry) not in used]
    notes = missing_splits(splits, counts)
    if outside:
        notes = (f"left out {len(outside)} images outside the splits, first {quoted(outside[0])}.", *notes)
    return Found(name, "split/class/image", splits, ignored + len(outside), licence, notes)


def images_by_folder(
    tree: Tree, trees: dict[str, Tree], shown: Mapping[str, str], depth: int, remedy: str
) -> tuple[dict[str, Classes], int]:
    """Images by split and folder, if all folders of images are `depth` deep, and the number of other files.

    Messages use the names of splits in `shown`; a split without one is the whole tree.
    """
    splits: dict[str, Classes] = {}
    ignored = tree.ignored
    for split, inside in trees.items():
        where = f"{tree.path}, {shown[split]}" if split in shown else str(tree.path)
        folders: dict[str, list[EncodedImage]] = {name: [] for name in inside.folders if name.count("/") == depth - 1}
        for path, entry in inside.files.items():
            if not is_image(path):
                ignored += 1
            elif path.count("/") != depth:
                what = "deeper than in" if path.count("/") > depth else "outside"
                raise InputError(f"{where} has the image {quoted(path)} {what} the folders of classes: {remedy}.")
            else:
                folders[path.rpartition("/")[0]].append(EncodedImage(entry))
        if not folders:
            raise InputError(f"{where} has no folders of images: {remedy}.")
        splits[split] = folders
        # Folders share what their tree ignored; archives have their own.
        ignored += inside.ignored if inside.path != tree.path else 0
    return splits, ignored
