"""What a pickle may build: inert records of numbers and names, made by functions of our own and by nothing else.

A name such as `numpy.dtype` in a file never becomes the thing of that name. It is looked up in a fixed table, and
what is not in the table is refused. Nothing here imports, calls or looks up anything that a file names.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Buffer = bytes | memoryview
Spend = Callable[[int], None]
# Takes the arguments in the file, and a function that accounts for bytes that are made anew.
Make = Callable[[tuple[Any, ...], Spend], Any]


class Unsound(Exception):  # noqa: N818 - a phrase for the sentence of the error, not an error by itself
    """What is wrong with a pickle, as a phrase."""


@dataclass(frozen=True, slots=True)
class Name:
    """A name in the table; `make` is what stands for a call of it, None where it is only ever mentioned."""

    text: str
    make: Make | None = None


class Pairs(list[Any]):
    """A dictionary: key, value, key, value… as in the file. No key is hashed, so none can be made to collide."""

    __slots__ = ()


class DTypeRecord:
    """The type of an array's numbers; the file gives its byte order in a second step."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype

    def build(self, state: Any) -> None:
        """Set the byte order; subarrays, fields and metadata are refused."""
        if type(state) is not tuple or len(state) not in (8, 9) or any(x is not None for x in state[2:5]):
            raise Unsound("it has a type of numbers that is not plain")
        if len(state) == 9 and state[8] is not None:
            raise Unsound("it has a type of numbers that is not plain")
        order = as_text(state[1])
        if order not in ("<", ">", "|", "=") or type(state[5]) is not int or state[5] not in (-1, self.dtype.itemsize):
            raise Unsound("it has a type of numbers that is not plain")
        self.dtype = self.dtype.newbyteorder(">" if order == ">" else "<")


class ArrayRecord:
    """An array; its numbers are a view of the file, which the file gives in a second step."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray | None = None) -> None:
        self.array = array

    def build(self, state: Any) -> None:
        """Take shape, type and bytes."""
        if self.array is not None or type(state) is not tuple or len(state) != 5:
            raise Unsound("it has an array that is made in no usual way")
        _, shape, dtype, fortran, data = state
        if type(fortran) not in (bool, int):
            raise Unsound("it has an array that is made in no usual way")
        self.array = view_of(data, dtype, shape, "F" if fortran else "C")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return self.numbers().shape

    @property
    def n_bytes(self) -> int:
        """That its numbers take in memory."""
        return self.numbers().nbytes

    def numbers(self) -> np.ndarray:
        """The array itself, read-only."""
        if self.array is None:
            raise Unsound("it has an array without numbers")
        return self.array


# Names of NumPy's types of numbers, without byte order; `a` is what Python 2 called a byte string.
_CODES = {
    code: np.dtype(code)
    for code in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
}  # fmt: skip
_TEXT_CODE = re.compile(r"([US])([1-9][0-9]{0,3})")
MOST_AXES = 7
# NumPy counts the bytes of an array in this many bits, of arrays without numbers too.
_MOST_BYTES = 2**62


def as_text(value: Any) -> str | None:
    """Text that Python 2 stored as bytes, or Python 3 as text; None for anything else."""
    if type(value) is str:
        return value
    if isinstance(value, (bytes, memoryview)):
        return decoded(value)
    return None


def decoded(value: Buffer) -> str:
    """A byte string of Python 2 as text: UTF-8, or else Latin-1, in which every byte has a meaning."""
    data = bytes(value)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def shape_of(value: Any) -> tuple[int, ...]:
    """A shape: a few integers that are not negative."""
    if type(value) is not tuple or len(value) > MOST_AXES or any(type(n) is not int or n < 0 for n in value):
        raise Unsound("it has an array whose shape is no shape")
    return value


def view_of(data: Any, dtype: Any, shape: Any, order: Literal["C", "F"]) -> np.ndarray:
    """An array over bytes of the file; they must be as many as its shape needs."""
    if not isinstance(data, (bytes, memoryview)):
        raise Unsound("it has an array of Python objects, not of numbers")
    if type(dtype) is not DTypeRecord:
        raise Unsound("it has an array without a type of numbers")
    shape = shape_of(shape)
    itemsize = dtype.dtype.itemsize
    if math.prod(max(n, 1) for n in shape) * itemsize > _MOST_BYTES:
        raise Unsound("it has an array larger than any memory")
    if math.prod(shape) * itemsize != len(data):
        raise Unsound(f"it has an array of shape {shape} with {len(data)} bytes")
    return np.ndarray(shape, dtype.dtype, data, order=order)


def checked_text(array: np.ndarray) -> np.ndarray:
    """An array of text itself, where every number in it is a character: NumPy stumbles over others later."""
    if array.dtype.kind == "U":
        codes = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if codes.size and (codes.max() > sys.maxunicode or ((codes >= 0xD800) & (codes < 0xE000)).any()):
            raise Unsound("it has text that is none")
    return array


def _dtype(args: tuple[Any, ...], spend: Spend) -> DTypeRecord:
    code = as_text(args[0]) if 1 <= len(args) <= 3 else None
    if code in _CODES:
        return DTypeRecord(_CODES[code])
    if code is not None and (text := _TEXT_CODE.fullmatch(code)):
        return DTypeRecord(np.dtype(f"{text[1]}{text[2]}"))
    raise Unsound("it has an array whose type is neither a number of the usual sizes nor text")


def _reconstruct(args: tuple[Any, ...], spend: Spend) -> ArrayRecord:
    if len(args) != 3 or (args[0] is not _NDARRAY and args[0] is not _MEMMAP):
        raise Unsound("it has an array that is made in no usual way")
    return ArrayRecord()


def _frombuffer(args: tuple[Any, ...], spend: Spend) -> ArrayRecord:
    if len(args) not in (4, 5):
        raise Unsound("it has an array that is made in no usual way")
    data, dtype, shape, order = args[:4]
    axes = args[4] if len(args) == 5 else None
    if type(order) is str and order in ("C", "F"):
        return ArrayRecord(view_of(data, dtype, shape, "F" if order == "F" else "C"))
    if type(order) is not str or order != "K" or sorted(shape_of(axes)) != list(range(len(shape_of(shape)))):
        raise Unsound("it has an array that is made in no usual way")
    return ArrayRecord(view_of(data, dtype, shape, "C").transpose(axes))


def _scalar(args: tuple[Any, ...], spend: Spend) -> Any:
    if len(args) != 2:
        raise Unsound("it has a number that is made in no usual way")
    array = view_of(args[1], args[0], (), "C")
    spend(array.nbytes)
    return checked_text(array).item() if array.dtype.kind in "US" else array[()]


def _encode(args: tuple[Any, ...], spend: Spend) -> bytes:
    """Bytes as Python 3 writes them in the protocols of Python 2: text in Latin-1, to be encoded."""
    if len(args) != 2 or type(args[0]) is not str or as_text(args[1]) not in ("latin1", "latin-1"):
        raise Unsound("it has bytes that are made in no usual way")
    spend(len(args[0]))
    try:
        return args[0].encode("latin-1")
    except UnicodeEncodeError:
        raise Unsound("it has bytes that are made in no usual way") from None


def _bytes(args: tuple[Any, ...], spend: Spend) -> Buffer:
    """`bytes()` and `bytearray(…)`, the latter of bytes, or of text as above."""
    if args == ():
        return b""
    if len(args) == 1 and isinstance(args[0], (bytes, memoryview)):
        return args[0]
    return _encode(args, spend)


def _ordered_dict(args: tuple[Any, ...], spend: Spend) -> Pairs:
    """`OrderedDict()`, or of a list of pairs, as Python 2 wrote it."""
    pairs = Pairs()
    if len(args) > 1 or (args and type(args[0]) is not list):
        raise Unsound("it has a dictionary that is made in no usual way")
    spend(16 * len(args[0]) if args else 0)
    for pair in args[0] if args else ():
        if type(pair) not in (list, tuple) or len(pair) != 2 or any(type(x) is np.ndarray for x in pair):
            raise Unsound("it has a dictionary that is made in no usual way")
        pairs.extend(pair)
    return pairs


def _default_dict(args: tuple[Any, ...], spend: Spend) -> Pairs:
    """`defaultdict(factory)`: the factory stays a name."""
    if len(args) > 1 or (args and args[0] is not None and type(args[0]) is not Name):
        raise Unsound("it has a dictionary that is made in no usual way")
    return Pairs()


_NDARRAY = Name("numpy.ndarray")
_MEMMAP = Name("numpy.memmap")

# The table: everything that a file of plain vectors may name.
NAMES: Mapping[tuple[str, str], Name] = {
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "memmap"): _MEMMAP,
    ("numpy._core.memmap", "memmap"): _MEMMAP,
    ("numpy", "dtype"): Name("numpy.dtype", _dtype),
    ("numpy._core.multiarray", "_reconstruct"): Name("numpy._core.multiarray._reconstruct", _reconstruct),
    ("numpy._core.multiarray", "scalar"): Name("numpy._core.multiarray.scalar", _scalar),
    ("numpy._core.numeric", "_frombuffer"): Name("numpy._core.numeric._frombuffer", _frombuffer),
    ("_codecs", "encode"): Name("_codecs.encode", _encode),
    ("builtins", "bytes"): Name("builtins.bytes", _bytes),
    ("builtins", "bytearray"): Name("builtins.bytearray", _bytes),
    ("collections", "OrderedDict"): Name("collections.OrderedDict", _ordered_dict),
    ("collections", "defaultdict"): Name("collections.defaultdict", _default_dict),
    ("builtins", "list"): Name("builtins.list"),
    ("builtins", "dict"): Name("builtins.dict"),
}
# Where Python 2 and NumPy 1 had the same things.
OLD_MODULES = {
    "__builtin__": "builtins",
    "numpy.core.multiarray": "numpy._core.multiarray",
    "numpy.core.numeric": "numpy._core.numeric",
    "numpy.core.memmap": "numpy._core.memmap",
}
