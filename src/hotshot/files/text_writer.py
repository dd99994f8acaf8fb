"""Writing CSV and TSV, so that every number and every label reads as it was."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from hotshot.errors import InputError
from hotshot.files.atomic import replace_file
from hotshot.files.content import Content
from hotshot.files.label_text import mark_of

# Above this, integers are not all floats.
_LARGEST_INTEGER = 2**53


def write_text(path: Path, content: Content) -> None:
    """Write a column `label`, with a mark where its labels need one, and the features `f0`, `f1` and so on."""
    content.refuse_nul(path)
    mark = mark_of(content.classes, content.label_type)
    with replace_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        writer.writerow([f"label:{mark}" if mark else "label", *(f"f{i}" for i in range(content.shape[1]))])
        labels = [str(label) for label in content.classes]
        try:
            for X, codes in content.batches():
                for code, row in zip(codes.tolist(), _numbers(X, path), strict=True):
                    writer.writerow([labels[code], *row])
            text.flush()
        except UnicodeEncodeError as error:
            raise InputError(f"{path} cannot hold a label that is no valid text: {error.object[:60]!r}.") from None
        finally:
            text.detach()


def _numbers(X: np.ndarray, path: Path) -> list[list[float]]:
    """Rows of numbers that Python writes in full."""
    if X.dtype.kind in "iu" and (X.max() > _LARGEST_INTEGER or X.min() < -_LARGEST_INTEGER):
        raise InputError(f"{path} cannot hold integers above 2**53, which are read as floats: pass dtype='float64'.")
    return (X if X.dtype.kind in "iu" else X.astype(np.float64)).tolist()
