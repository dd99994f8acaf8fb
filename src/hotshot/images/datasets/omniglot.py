"""Omniglot (Lake et al. 2015): drawings of characters of fifty alphabets, black on white.

`images_background` (30 alphabets) is the base split and `images_evaluation` (20) the novel one, each
`alphabet/character/drawing.png`; as folders, as the two published zips, or both in one tar. A class is one character,
called by its alphabet too, "Greek/character01".
"""

from __future__ import annotations

from hotshot.errors import InputError
from hotshot.files.names import quoted
from hotshot.images.datasets.folders import part
from hotshot.images.datasets.layout import Found
from hotshot.images.datasets.references import EncodedImage
from hotshot.images.datasets.tree import Tree, is_image

_FOLDERS = {"base": "images_background", "novel": "images_evaluation"}
_CHARACTERS = {"base": 964, "novel": 659}
_LICENCE = "MIT"


def recognises(tree: Tree) -> bool:
    """Whether one of the two published folders is there, or its zip."""
    return any(part(tree, folder) is not None for folder in _FOLDERS.values())


def open_layout(tree: Tree) -> Found:
    """Images by split and character."""
    parts = {split: part(tree, folder) for split, folder in _FOLDERS.items()}
    if all(inside is None for inside in parts.values()):
        raise InputError(
            f"{tree.path} is not Omniglot, it has neither images_background nor images_evaluation, as a folder or zip: "
            "give the folder that holds them."
        )
    splits, notes = {}, []
    ignored = tree.ignored
    for split, inside in parts.items():
        if inside is None:
            notes.append(f"Split '{split}' ({_FOLDERS[split]}) is not there.")
            continue
        splits[split], others = _characters(inside, f"{tree.path}, {_FOLDERS[split]}")
        ignored += others + (inside.ignored if inside.path != tree.path else 0)
        if len(splits[split]) != _CHARACTERS[split]:
            notes.append(
                f"Split '{split}' has {len(splits[split])} characters where {_CHARACTERS[split]} were published."
            )
    return Found("omniglot", "alphabet/character/image", splits, ignored, _LICENCE, tuple(notes))


def _characters(tree: Tree, where: str) -> tuple[dict[str, list[EncodedImage]], int]:
    characters: dict[str, list[EncodedImage]] = {path: [] for path in tree.folders if path.count("/") == 1}
    others = 0
    for path, entry in tree.files.items():
        if not is_image(path):
            others += 1
            continue
        character = path.rpartition("/")[0]
        if character not in characters:
            raise InputError(
                f"{where} has the image {quoted(path)} where alphabet/character/image was published: copy or download "
                "it again."
            )
        characters[character].append(EncodedImage(entry))
    return characters, others
