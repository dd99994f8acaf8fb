"""The variables of a MATLAB file and what they take, found without believing a length in it.

SciPy reads these files but takes their word: for how much memory to allocate, and how deep cells may be nested. So
every length is compared with the bytes around it first. Variables that are no numbers or text, such as structs and
objects, are listed but not looked into.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hotshot.files.limits import check_size
from hotshot.files.unpickling import Unsound

# Types of elements: bytes per number.
_WIDTHS = {1: 1, 2: 1, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 9: 8, 12: 8, 13: 8}
_TEXT_WIDTHS = {**_WIDTHS, 16: 1, 17: 2, 18: 4}
_MATRIX, _COMPRESSED = 14, 15
# Classes of arrays.
_CELL, _CHAR, _SPARSE = 1, 4, 5
_NUMERIC = {6: 8, 7: 4, 8: 1, 9: 1, 10: 2, 11: 2, 12: 4, 13: 4, 14: 8, 15: 8}
_COMPLEX = 0x0800
_HEADER = 128
# A variable without its numbers: flags, shape and name.
_LONGEST_START = 2**12
_MOST_AXES = 8
# Version 4: bytes per number by the third digit of the type.
_OLD_WIDTHS = (8, 4, 4, 2, 2, 1)


@dataclass(frozen=True)
class Variable:
    """A variable: "numbers", "sparse", "text" and "cells" of text can be read, "complex" and "other" cannot."""

    name: str
    kind: str
    shape: tuple[int, ...]


def variables(data: bytes | memoryview, path: Path) -> list[Variable]:
    """All variables of a file, in its order; Unsound where any length contradicts another."""
    data = memoryview(data)
    found = list(_old(data) if 0 in bytes(data[:4]) else _elements(data, path))
    names = [variable.name for variable in found if variable.name]
    if len(set(names)) < len(names):
        raise Unsound("it has two variables of one name")
    return found


# --- version 4


def _old(data: memoryview) -> Iterator[Variable]:
    position = 0
    order = ">" if struct.unpack_from("<I", data.tobytes()[:4].ljust(4, b"\0"))[0] > 5000 else "<"
    while position < len(data):
        if position + 20 > len(data):
            raise Unsound("it ends within a variable")
        kind, rows, columns, imaginary, length = struct.unpack_from(f"{order}5i", data, position)
        position += 20
        if (
            not 0 <= kind < 2000
            or min(rows, columns) < 0
            or imaginary not in (0, 1)
            or not 1 <= length <= 256
        ):
            raise Unsound("it has a variable that is none")
        digit, text = kind // 10 % 10, kind % 10
        if digit >= len(_OLD_WIDTHS) or text > 2 or kind // 100 % 10:
            raise Unsound("it has a variable of an unknown type")
        end = position + length + rows * columns * _OLD_WIDTHS[digit] * (1 + imaginary)
        if end > len(data):
            raise Unsound("it ends within a variable")
        name = data[position : position + length].tobytes().rstrip(b"\0").decode("latin-1")
        yield Variable(name, "complex" if imaginary else ("numbers", "text", "sparse")[text], (rows, columns))
        position = end


# --- version 5


def _elements(data: memoryview, path: Path) -> Iterator[Variable]:
    order = {b"IM": "<", b"MI": ">"}.get(bytes(data[126:128]))
    if order is None or len(data) < _HEADER:
        raise Unsound("it does not start as one")
    position = _HEADER
    total = 0
    while position < len(data):
        if position + 8 > len(data):
            raise Unsound("it ends within a variable")
        kind, size = struct.unpack_from(f"{order}II", data, position)
        start = position + 8
        if start + size > len(data):
            raise Unsound("it ends within a variable")
        body = data[start : start + size]
        if kind == _COMPRESSED:
            variable, n_bytes = _unpacked(body, order, path)
        elif kind == _MATRIX:
            variable, n_bytes = _matrix(body, order), size
        else:
            raise Unsound("it has a variable that is none")
        total += n_bytes + _in_memory(variable)
        check_size(path, total, "variables")
        yield variable
        position = start + size


def _in_memory(variable: Variable) -> int:
    return 8 * math.prod(variable.shape) if variable.kind in ("numbers", "cells", "text") else 0


def _unpacked(packed: memoryview, order: str, path: Path) -> tuple[Variable, int]:
    """A compressed variable and its bytes; only text and cells are unpacked to be looked at."""
    inflate = zlib.decompressobj()
    try:
        start = inflate.decompress(packed, _LONGEST_START)
        if len(start) < 8:
            raise Unsound("it has a compressed variable that is empty")
        kind, size = struct.unpack_from(f"{order}II", start)
        if kind != _MATRIX:
            raise Unsound("it has a variable that is none")
        check_size(path, size, "a variable")
        variable = _matrix(memoryview(start)[8:], order, size)
        if variable.kind in ("text", "cells", "sparse"):
            whole = start + inflate.decompress(inflate.unconsumed_tail, max(size + 8 - len(start), 0) + 1)
            variable = _matrix(memoryview(whole)[8 : size + 8], order)
    except zlib.error:
        raise Unsound("it has a variable that cannot be unpacked") from None
    return variable, size


def _matrix(body: memoryview, order: str, size: int | None = None, in_cell: bool = False) -> Variable:
    """A variable; where only its start is here, `size` is what it has in all, and its values are not looked into."""
    cursor = _Cursor(body, order, len(body) if size is None else size)
    kind, flags = cursor.element()
    if kind != 6 or len(flags) != 8:
        raise Unsound("it has a variable without flags")
    (word,) = struct.unpack_from(f"{order}I", flags)
    of_class = word & 0xFF
    if of_class not in (_CELL, _CHAR, _SPARSE, *_NUMERIC):
        # Objects have other things where arrays have shapes.
        return Variable(_name_only(cursor, of_class), "other", ())
    kind, dimensions = cursor.element()
    if kind not in (5, 6) or len(dimensions) % 4 or not 2 <= len(dimensions) // 4 <= _MOST_AXES:
        raise Unsound("it has a variable without a shape")
    shape = struct.unpack(f"{order}{len(dimensions) // 4}i", dimensions)
    if min(shape) < 0 or math.prod(max(n, 1) for n in shape) > 2**58:
        raise Unsound(f"it has a variable of shape {shape}")
    kind, text = cursor.element()
    if kind not in (1, 2, 16):
        raise Unsound("it has a variable without a name")
    name = text.tobytes().decode("latin-1")
    if word & _COMPLEX:
        return Variable(name, "complex", shape)
    if of_class in _NUMERIC:
        kind, n_bytes = cursor.tag()
        if kind not in _WIDTHS or n_bytes != math.prod(shape) * _WIDTHS[kind]:
            raise Unsound(f"it has a variable of shape {shape} and {n_bytes} bytes")
        return Variable(name, "numbers", shape)
    if of_class == _CELL:
        looked_into = size is not None or (not in_cell and _are_text(cursor, math.prod(shape)))
        return Variable(name, "cells" if looked_into else "other", shape)
    if size is None:
        _check_values(cursor, of_class, math.prod(shape))
    return Variable(name, "text" if of_class == _CHAR else "sparse", shape)


def _name_only(cursor: _Cursor, of_class: int) -> str:
    """The name of an object, after its shape or in its place."""
    while True:
        kind, value = cursor.element()
        if kind in (1, 2):
            return value.tobytes()[:100].decode("latin-1") or f"object {of_class}"


def _check_values(cursor: _Cursor, of_class: int, count: int) -> None:
    if of_class == _CHAR:
        kind, n_bytes = cursor.tag()
        # One character may take up to four bytes in UTF-8 and UTF-16.
        widest = 4 if kind in (16, 17) else _TEXT_WIDTHS.get(kind, 0)
        if kind not in _TEXT_WIDTHS or not count * _TEXT_WIDTHS[kind] <= n_bytes <= count * widest:
            raise Unsound("it has text of another length than announced")
        return
    for _ in range(3):
        kind, value = cursor.element()
        if kind not in _WIDTHS or len(value) % _WIDTHS[kind]:
            raise Unsound("it has a sparse matrix that is none")


def _are_text(cursor: _Cursor, count: int) -> bool:
    """Whether all cells hold text; cells within cells are not looked into."""
    if 8 * count > cursor.left:
        raise Unsound("it has fewer cells than announced")
    kinds = set()
    for _ in range(count):
        kind, value = cursor.element()
        if kind != _MATRIX:
            raise Unsound("it has a cell that holds no array")
        if len(value):
            kinds.add(_matrix(value, cursor.order, in_cell=True).kind)
    return kinds <= {"text"}


class _Cursor:
    """Walks over the elements of a variable, none of which may reach beyond it."""

    def __init__(self, body: memoryview, order: str, size: int) -> None:
        self.body = body
        self.order = order
        self.left = size
        self.position = 0

    def tag(self) -> tuple[int, int]:
        """Type and length of the next element, which must fit into what is left of the variable."""
        if self.position + 8 > len(self.body):
            raise Unsound("it has a variable that ends early")
        kind, size = struct.unpack_from(f"{self.order}II", self.body, self.position)
        if kind >> 16:
            # Up to four bytes are stored within the tag, behind their number.
            kind, size = kind & 0xFFFF, kind >> 16
            if size > 4:
                raise Unsound("it has a small element that is not small")
            self.position += 4
            self.left -= 4
        else:
            self.position += 8
            self.left -= 8
        if size > self.left:
            raise Unsound("it has an element beyond its variable")
        return kind, size

    def element(self) -> tuple[int, memoryview]:
        """Type and bytes of the next element."""
        before = self.position
        kind, size = self.tag()
        start = self.position
        if start + size > len(self.body):
            raise Unsound("it has a variable that starts with too much")
        self.position = start + size
        # The next element starts at a multiple of eight bytes.
        self.position += -(self.position - before) % 8
        self.left -= self.position - start
        return kind, self.body[start : start + size]
