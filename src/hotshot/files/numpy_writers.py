"""Writing `.npz`, and `.npy` with its labels beside it, a batch at a time."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import numpy as np

from hotshot.arrays import slices
from hotshot.files.atomic import replace_file
from hotshot.files.content import Content
from hotshot.files.source import ROWS_AT_ONCE


def write_npz(path: Path, content: Content) -> None:
    """Write arrays X and y, and `about`, JSON text; uncompressed, as numpy.savez does."""
    about = np.array(json.dumps(content.about))
    with replace_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, shape, dtype, blocks in (
            ("X", content.shape, content.dtype, content.blocks()),
            ("y", content.codes.shape, content.class_array.dtype, _labels(content)),
            ("about", about.shape, about.dtype, [about]),
        ):
            # Without a date of its own the same features make the same file.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                _write_array(member, shape, dtype, blocks)


def write_npy(path: Path, content: Content) -> None:
    """Write the features, and beside them `name.labels.npy` with the labels."""
    with replace_file(path.with_suffix(".labels.npy")) as labels, replace_file(path) as features:
        _write_array(labels, content.codes.shape, content.class_array.dtype, _labels(content))
        _write_array(features, content.shape, content.dtype, content.blocks())


def _labels(content: Content) -> Iterable[np.ndarray]:
    classes = content.class_array
    return (classes[content.codes[some]] for some in slices(len(content.codes), ROWS_AT_ONCE))


def _write_array(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype, blocks: Iterable[np.ndarray]) -> None:
    dtype = dtype.newbyteorder("<")
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    for block in blocks:
        file.write(np.ascontiguousarray(block, dtype=dtype).data)
