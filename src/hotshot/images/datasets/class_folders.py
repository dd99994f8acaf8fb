"""`split/class/image` and `class/image`: the layout of most people, in folders or archives."""

from __future__ import annotations

from hotshot.errors import InputError
from hotshot.files.names import quoted
from hotshot.images.datasets.folders import part
from hotshot.images.datasets.layout import ALIASES, Found
from hotshot.images.datasets.references import EncodedImage
from hotshot.images.datasets.tree import Tree, is_image

_WANTED = "use split/class/image with splits called train, val and test, or class/image"


def recognises(tree: Tree) -> bool:
    """Whether there are folders or archives of splits, or images in folders of classes and no deeper."""
    if split_parts(tree):
        return True
    depths = {path.count("/") for path in tree.files if is_image(path)}
    return depths == {1}


def open_layout(tree: Tree) -> Found:
    """Images by split and class, or by class alone."""
    parts = split_parts(tree)
    name = tree.path.resolve().name.split(".")[0] or "images"
    if not parts:
        classes, ignored = classes_of(tree, str(tree.path))
        return Found(name, "class/image", {"all": classes}, tree.ignored + ignored)
    return splits_of(tree, parts, name, "split/class/image")


def splits_of(
    tree: Tree,
    parts: dict[str, Tree],
    name: str,
    layout: str,
    licence: str | None = None,
) -> Found:
    """Images by split and class from the parts of a tree; images outside them are worth a note."""
    splits = {}
    # Folders share what their tree ignored; archives have their own.
    ignored = tree.ignored
    for split, inside in parts.items():
        splits[split], others = classes_of(inside, f"{tree.path}, {ALIASES[split][0]}")
        ignored += others + (inside.ignored if inside.path != tree.path else 0)
    used = {id(entry) for inside in parts.values() for entry in inside.files.values()}
    outside = [path for path, entry in tree.files.items() if is_image(path) and id(entry) not in used]
    notes: tuple[str, ...] = ()
    if outside:
        notes = (f"{len(outside)} images outside the splits are left out, {quoted(outside[0])} first.",)
    return Found(name, layout, splits, ignored + len(outside), licence, notes)


def split_parts(tree: Tree) -> dict[str, Tree]:
    """The splits that are there as folders or archives of their names.

    A folder with images directly in it is a class, whatever its name.
    """
    parts: dict[str, Tree] = {}
    for split, aliases in ALIASES.items():
        for alias in aliases:
            inside = part(tree, alias)
            if inside is None or (
                alias in tree.folders and any(is_image(path) and "/" not in path for path in inside.files)
            ):
                continue
            if split in parts:
                raise InputError(
                    f"{tree.path} has two splits that mean '{split}', one called {alias}: keep one of them."
                )
            parts[split] = inside
    return parts


def classes_of(tree: Tree, where: str) -> tuple[dict[str, list[EncodedImage]], int]:
    """Images by class, where folders are the classes, and how many files are no images."""
    classes: dict[str, list[EncodedImage]] = {name: [] for name in tree.folders if "/" not in name}
    others = 0
    for path, entry in tree.files.items():
        if not is_image(path):
            others += 1
            continue
        folders = path.split("/")[:-1]
        if len(folders) != 1:
            what = "deeper than in folders of classes" if folders else "outside the folders of classes"
            raise InputError(f"{where} has the image {quoted(path)} {what}: {_WANTED}.")
        classes[folders[0]].append(EncodedImage(entry))
    if not classes:
        raise InputError(f"{where} has no folders of images: {_WANTED}.")
    empty = sorted(name for name, images in classes.items() if not images)
    if empty:
        raise InputError(
            f"{where} has {len(empty)} folders without images, {quoted(empty[0])} first: fill or remove them."
        )
    return classes, others
