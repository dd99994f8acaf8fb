"""Omniglot (Lake et al. 2015): drawings of characters of fifty alphabets, black on white.

`images_background` (30 alphabets) is the base split and `images_evaluation` (20) the novel one, each
`alphabet/character/drawing.png`; as folders, as the two published zips, or both in one tar. A class is one character,
called by its alphabet too, "Greek/character01".
"""

from __future__ import annotations

from hotshot.errors import InputError
from hotshot.images.datasets.class_folders import images_by_folder
from hotshot.images.datasets.dataset import Found
from hotshot.images.datasets.entries import Tree
from hotshot.images.datasets.trees import subtree

_FOLDERS = {"base": "images_background", "novel": "images_evaluation"}
_CHARACTERS = {"base": 964, "novel": 659}
_LICENCE = "MIT"
_REMEDY = "copy or download it again as published, alphabet/character/image"


def recognises(tree: Tree) -> bool:
    """Whether one of the two published folders is there, or its zip."""
    return any(subtree(tree, folder) is not None for folder in _FOLDERS.values())


def open_layout(tree: Tree) -> Found:
    """Images by split and character."""
    trees = {split: subtree(tree, folder) for split, folder in _FOLDERS.items()}
    if all(inside is None for inside in trees.values()):
        raise InputError(
            f"{tree.path} is not Omniglot, it has neither images_background nor images_evaluation, as a folder or zip: "
            "give the folder that holds them."
        )
    splits, notes = {}, []
    ignored = tree.ignored
    for split, inside in trees.items():
        if inside is None:
            notes.append(f"Split '{split}' ({_FOLDERS[split]}) is not there.")
            continue
        where = f"{tree.path}, {_FOLDERS[split]}"
        splits[split], others = images_by_folder(inside, 2, where, _REMEDY)
        ignored += others + (inside.ignored if inside.path != tree.path else 0)
        if len(splits[split]) != _CHARACTERS[split]:
            notes.append(
                f"Split '{split}' has {len(splits[split])} characters where {_CHARACTERS[split]} were published."
            )
    return Found("omniglot", "alphabet/character/image", splits, ignored, _LICENCE, tuple(notes))
