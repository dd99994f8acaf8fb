"""Omniglot (Lake et al. 2015): drawings of characters of fifty alphabets, black on white.

`images_background` (30 alphabets) is the base split and `images_evaluation` (20) the novel one, each
`alphabet/character/drawing.png`; as folders, as the two published zips, or both in one tar. A class is one character,
with a name such as "Greek/character01".
"""

from hotshot.errors import InputError
from hotshot.images.datasets.class_folders import images_by_folder
from hotshot.images.datasets.dataset import Found, missing_splits
from hotshot.images.datasets.entries import Tree
from hotshot.images.datasets.trees import subtree

_FOLDERS = {"base": "images_background", "novel": "images_evaluation"}
_COUNTS = {"base": 964, "novel": 659}
_REMEDY = "copy or download it again as published, alphabet/character/image"


def recognises(tree: Tree) -> bool:
    """Whether one of the two published folders is there, or its zip."""
    return any(subtree(tree, folder) is not None for folder in _FOLDERS.values())


def open_layout(tree: Tree) -> Found:
    """Images by split and character."""
    found = {split: subtree(tree, folder) for split, folder in _FOLDERS.items()}
    trees = {split: inside for split, inside in found.items() if inside is not None}
    if not trees:
        raise InputError(
            f"{tree.path} is not Omniglot, it has neither images_background nor images_evaluation, as a folder or zip: "
            "give the folder that holds them."
        )
    splits, ignored = images_by_folder(tree, trees, _FOLDERS, 2, _REMEDY)
    return Found(
        "omniglot", "alphabet/character/image", splits, ignored, "MIT", missing_splits(splits, _COUNTS, _FOLDERS)
    )
