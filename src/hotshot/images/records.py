"""Records of many inputs in a file that is computed batch by batch; an interrupted computation resumes.

The file is a line of JSON, which says what it holds, and a record for each input. Records of inputs that could not be
read say so, and their batches are computed again by the next call.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError

# The number of inputs that are done, and their total.
Progress = Callable[[int, int], None]
# From batches to the fields of the inputs in each that can be read, and why others cannot, by their place in the batch.
Compute = Callable[[list[slice]], Iterable[tuple[Mapping[str, np.ndarray], dict[int, str]]]]


def compute_records(
    path: Path,
    about: Mapping[str, Any],
    fields: Sequence[tuple[str, Any, tuple[int, ...]]],
    n_inputs: int,
    at_once: int,
    compute: Compute,
    progress: Progress | None = None,
) -> tuple[np.ndarray, dict[int, str]]:
    """Records of all inputs, mapped from the file, with zeros for those that cannot be read; and why these cannot."""
    record = np.dtype([("readable", bool), *fields])
    header = json.dumps({**about, "count": n_inputs, "record": record.descr}).encode() + b"\n"
    errors: dict[int, str] = {}
    try:
        path.touch()
        with path.open("r+b") as file:
            for rows, fields_of, unreadable in _computed(file, header, record, slices(n_inputs, at_once), compute):
                records = np.zeros(rows.stop - rows.start, record)
                readable = np.delete(np.arange(len(records)), list(unreadable))
                for name, values in {**fields_of, "readable": True}.items():
                    records[name][readable] = values
                _write(file, len(header) + rows.start * record.itemsize, records)
                errors |= {rows.start + i: why for i, why in unreadable.items()}
                if progress is not None:
                    progress(rows.stop, n_inputs)
    except OSError as error:
        why = error.strerror or error
        raise InputError(f"{path} cannot be written: {why}: free disk space and rerun the command.") from None
    return np.memmap(path, record, "r", len(header), (n_inputs,)), errors


def _computed(
    file: BinaryIO, header: bytes, record: np.dtype, batches: list[slice], compute: Compute
) -> Iterator[tuple[slice, Mapping[str, np.ndarray], dict[int, str]]]:
    """The batches that the same computation has not finished; a file of another one starts anew."""
    if file.read(len(header)) != header:
        file.truncate(0)
        _write(file, 0, header)
    n_done = (file.seek(0, os.SEEK_END) - len(header)) // record.itemsize
    readable = np.memmap(file, record, "r", len(header), (n_done,))["readable"] if n_done else np.empty(0, bool)
    # A batch that was cut is computed again as a whole: the last bits of a row may depend on its batch.
    waiting = [rows for rows in batches if rows.stop > n_done or not readable[rows].all()]
    for rows, (fields, unreadable) in zip(waiting, compute(waiting), strict=True):
        yield rows, fields, unreadable


def _write(file: BinaryIO, place: int, content: Any) -> None:
    """Write to a file and force it to the disk, to survive a power cut."""
    file.seek(place)
    file.write(content)
    file.flush()
    os.fsync(file.fileno())
