"""A file of labels alone: `.npy`, or text with one label per line."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from hotshot.errors import InputError
from hotshot.files.label_text import labels_from_text
from hotshot.files.labels import label_array
from hotshot.files.limits import check_size
from hotshot.files.named import LABEL_NAMES
from hotshot.files.npy_format import map_npy
from hotshot.files.sniff import Kind, sniff
from hotshot.files.text_lines import lines


def read_labels(path: Path) -> np.ndarray:
    """Labels (samples,) of a file; the first line of text may be a heading such as `label`."""
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".txt", ".csv"):
        raise InputError(f"{path} is no file of labels: pass .npy, or .txt or .csv with one label per line.")
    if suffix == ".npy":
        if sniff(path) is not Kind.NPY:
            raise InputError(f"{path} is not an .npy file of labels: write it with numpy.save.")
        return label_array(np.array(map_npy(path)), "it", path)
    try:
        texts = _column(path) if suffix == ".csv" else [line.rstrip("\r\n").strip() for line in lines(path)]
    except csv.Error as error:
        raise InputError(f"{path} is not a sound CSV file: {error}.") from None
    if texts and texts[0].lower() in LABEL_NAMES:
        del texts[0]
    if not all(texts):
        raise InputError(f"{path} has no label in line {texts.index('') + 1} of them: give every sample a label.")
    if not texts:
        raise InputError(f"{path} holds no labels: write one per line.")
    classes = list(dict.fromkeys(texts))
    codes = {text: code for code, text in enumerate(classes)}
    labels = labels_from_text(classes, None, path)
    check_size(path, len(texts) * labels.itemsize, "labels")
    return labels[[codes[text] for text in texts]]


def _column(path: Path) -> list[str]:
    rows = [row for row in csv.reader(lines(path), strict=True) if row]
    if any(len(row) != 1 for row in rows):
        raise InputError(f"{path} must have one column, the labels: remove the others.")
    return [row[0].strip() for row in rows]
