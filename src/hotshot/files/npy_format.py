"""The `.npy` format: a short header and the numbers, read without trusting either."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from hotshot.errors import InputError
from hotshot.files.names import readable_size

_MAGIC = b"\x93NUMPY"
# numpy's own limit; a header of plain numbers is far shorter.
_LONGEST = 10_000
# {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }, in any order; Python 2 wrote sizes as 3L.
_HEADER = re.compile(
    r"""\{(?:["']descr["']\s*:\s*(?P<type>["'][^"']*["']|\[[^]]*\])"""
    r"""|["']fortran_order["']\s*:\s*(?P<fortran>True|False)"""
    r"""|["']shape["']\s*:\s*\((?P<shape>[0-9L,\s]*)\)"""
    r"""|[,\s])*\}\s*""",
)
_PLAIN = re.compile(r"[<>|=]?[fiubcSU][0-9]{1,9}")
_MOST_DIMENSIONS = 32


@dataclass(frozen=True)
class NpyHeader:
    """What a header announces; the numbers start `start` bytes after it does."""

    shape: tuple[int, ...]
    dtype: np.dtype
    fortran: bool
    start: int

    @property
    def n_bytes(self) -> int:
        """Bytes of the numbers."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy_header(file: IO[bytes], what: str, path: Path) -> NpyHeader:
    """The header at the current place of a file; `what` names the array in sentences."""
    prefix = file.read(8)
    if len(prefix) < 8 or prefix[:6] != _MAGIC or prefix[6] not in (1, 2, 3) or prefix[7] != 0:
        raise _damaged(path, what, "it does not start as one")
    width = 2 if prefix[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    if length > _LONGEST:
        raise _damaged(path, what, f"its header has {length} bytes")
    text = file.read(length)
    if len(text) < length:
        raise _damaged(path, what, "it ends inside its header")
    found = _HEADER.fullmatch(text.decode("latin-1"))
    if not found or None in found.groups():
        raise _damaged(path, what, "its header is not readable")
    sizes = [size for size in re.split(r"[,\sL]+", found["shape"]) if size]
    shape = tuple(int(size) for size in sizes[: _MOST_DIMENSIONS + 1] if len(size) < 19)
    # NumPy refuses shapes that would be too large if they were not empty.
    if len(shape) != len(sizes) or len(shape) > _MOST_DIMENSIONS or math.prod(n or 1 for n in shape) >= 2**59:
        raise _damaged(path, what, "its shape is none")
    dtype = _dtype(found["type"].strip("'\""), what, path)
    return NpyHeader(shape, dtype, found["fortran"] == "True", 8 + width + length)


def map_npy(path: Path) -> np.ndarray:
    """The array of an `.npy` file, without reading its numbers."""
    try:
        with path.open("rb") as file:
            header = read_npy_header(file, "an array", path)
        held = path.stat().st_size - header.start
        if header.n_bytes != held:
            raise InputError(
                f"{path} announces {readable_size(header.n_bytes)} of numbers, shape {header.shape}, and holds "
                f"{readable_size(held)}: copy or download it again."
            )
        if header.n_bytes == 0:
            return np.empty(header.shape, dtype=header.dtype)
        order = "F" if header.fortran else "C"
        mapped = np.memmap(path, header.dtype, "r", header.start, header.shape, order)  # type: ignore[call-overload]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    # A plain array: what is computed from it is no map any more.
    return np.asarray(mapped)


def _dtype(code: str, what: str, path: Path) -> np.dtype:
    if code.lstrip("|=<>").startswith("O"):
        raise InputError(
            f"{path} holds {what} of Python objects, a pickle, which hotshot never runs: save labels with "
            "y.astype(str) and features as an array of numbers."
        )
    try:
        if _PLAIN.fullmatch(code):
            return np.dtype(code)
    except (TypeError, ValueError):
        pass
    raise InputError(f"{path} holds {what} of type {code[:60]!r}: save plain numbers or strings.")


def _damaged(path: Path, what: str, why: str) -> InputError:
    return InputError(f"{path} does not hold {what} in the .npy format, {why}: copy or download it again.")
