"""Folders of banks and models, spoilt in every way: each generator spoils a file or a field, and then repairs it."""

from __future__ import annotations

import json
import os

INSTEAD = ("nothing", "a folder", "a dangling link", "a pipe", "an empty file", "HTML")
DELETED = object()


def check_sentence(error):
    text = str(error)
    assert "\n" not in text
    assert len(text) < 700
    assert text.endswith(".")


def cut_short(folder):
    """Each file of a folder cut short at many places, or longer than it was."""
    for file in sorted(folder.iterdir()):
        whole = file.read_bytes()
        lengths = {0, 1, 7, 8, 9, *range(0, len(whole), max(1, len(whole) // 15)), len(whole) - 3}
        # A text that lacks its last line feed is whole.
        for length in sorted(lengths - {len(whole) - 1}):
            file.write_bytes(whole[:length])
            yield file.name
        if file.suffix == ".safetensors":
            file.write_bytes(whole + b"\0")
            yield file.name
        file.write_bytes(whole)


def replaced(folder, instead):
    """Each file of a folder replaced by something else."""
    for file in sorted(folder.iterdir()):
        whole = file.read_bytes()
        file.unlink()
        if instead == "a folder":
            file.mkdir()
        elif instead == "a dangling link":
            file.symlink_to("nowhere")
        elif instead == "a pipe":
            os.mkfifo(file)
        elif instead != "nothing":
            file.write_text("" if instead == "an empty file" else "<!DOCTYPE html>\n<html></html>")
        yield file.name
        if file.is_dir():
            file.rmdir()
        else:
            file.unlink(missing_ok=True)
        file.write_bytes(whole)


def changed_fields(content, others):
    """Copies of nested JSON with one field deleted or replaced: its path, what stands there, and the copy."""
    for path in _paths_of(content):
        for other in (DELETED, *others):
            copy = json.loads(json.dumps(content))
            parent = copy
            for key in path[:-1]:
                parent = parent[key]
            if other is DELETED:
                del parent[path[-1]]
            elif parent[path[-1]] == other:
                continue
            else:
                parent[path[-1]] = other
            yield path, other, copy


def _paths_of(value, path=()):
    """Every place in nested JSON; in lists the first item, and those that are built unlike it."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths_of(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            if i == 0 or not _are_alike(item, value[0]):
                yield from _paths_of(item, (*path, i))


def _are_alike(a, b):
    return a.keys() == b.keys() if isinstance(a, dict) and isinstance(b, dict) else type(a) is type(b)
