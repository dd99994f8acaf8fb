"""Unpickling without running anything that is in a file: names are looked up in a fixed table, and never imported.

The entries of the table are harmless functions of this module that stand for what NumPy and Python write. Any other
name is refused. Pickles of any protocol are read, written by Python 2 or 3 with NumPy 1 or 2.
"""

import math
import pickle
import re
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from hotshot.errors import InputError
from hotshot.files.named_arrays import is_text
from hotshot.formatting import on_one_line

_CODES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
_TEXT_CODE = re.compile(r"[US][1-9][0-9]{0,3}")
_MOST_AXES = 7


class Known:
    """A name in the table; `make` replaces a call of it, None if it may not be called."""

    __slots__ = ("make", "text")

    def __init__(self, text: str, make: Callable[..., Any] | None = None) -> None:
        self.text, self.make = text, make

    def __call__(self, *args: Any) -> Any:
        """The replacement for the result of the call."""
        if self.make is None:
            raise ValueError(f"it calls {self.text}")
        return self.make(*args)

    def __setstate__(self, state: Any) -> None:
        raise ValueError(f"it modifies {self.text}")


class Dictionary(dict[Any, Any]):
    """A dictionary of any kind; its attributes are ignored."""

    def __setstate__(self, state: Any) -> None:
        pass


class DType:
    """The type of an array's numbers; the file gives its byte order in a second step."""

    __slots__ = ("dtype",)

    def __init__(self, code: Any, *_: Any) -> None:
        code = as_text(code)
        if code not in _CODES and not (code and _TEXT_CODE.fullmatch(code)):
            raise ValueError("an array has an unusual type")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        """Set the byte order; subarrays, fields and metadata are refused, as are flags, which NumPy would believe."""
        _, order, *fields, width, _, _ = state[:8]
        order = as_text(order)
        plain = fields == [None] * 3 and width in (-1, self.dtype.itemsize) and state[8:] in ((), (None,))
        if order not in ("<", ">", "|", "=") or not plain:
            raise ValueError("an array has a structured type")
        self.dtype = self.dtype.newbyteorder(">" if order == ">" else "<")


class Array(np.ndarray):
    """An array of a pickle, empty until a second step brings its numbers."""

    def __setstate__(self, state: Any) -> None:
        """Take shape, type and bytes, once they fit to each other."""
        if self.shape != (0,):
            raise ValueError("an array has an unknown form")
        _, shape, dtype, fortran, data = state
        view = _view(data, dtype, shape, "F" if fortran else "C")
        super().__setstate__((1, shape, view.dtype, bool(fortran), bytes(data)))  # type: ignore[arg-type]


def _view(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    """An array on bytes of the file; their number must match its shape."""
    data = data.encode("latin-1") if type(data) is str else data
    if not isinstance(data, (bytes, bytearray)) or type(dtype) is not DType:
        raise ValueError("it has an array of Python objects, not of numbers")
    if math.prod(_shape(shape)) * dtype.dtype.itemsize != len(data):
        raise ValueError(f"it has an array of shape {shape} with {len(data)} bytes")
    array: np.ndarray = np.ndarray(shape, dtype.dtype, data, order=order)
    if not is_text(array):
        raise ValueError("it has invalid text")
    return array


def _shape(value: Any) -> tuple[int, ...]:
    """A shape: a few non-negative integers."""
    if type(value) is not tuple or len(value) > _MOST_AXES or any(type(n) is not int or n < 0 for n in value):
        raise ValueError("an array has an invalid shape")
    if math.prod(max(n, 1) for n in value) > 2**58:
        raise ValueError("an array is larger than any memory")
    return value


def _frombuffer(data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> np.ndarray:
    if type(order) is str and order in ("C", "F"):
        return _view(data, dtype, shape, order)
    if order != "K" or sorted(_shape(axes)) != list(range(len(_shape(shape)))):
        raise ValueError("an array has an unknown form")
    return _view(data, dtype, shape, "C").transpose(axes)


def _scalar(dtype: Any, data: Any) -> Any:
    number = _view(data, dtype, (), "C")
    return number.item() if number.dtype.kind in "US" else number[()]


def _encode(text: Any = "", codec: Any = "latin1") -> bytes:
    """Bytes as Python 3 writes them in the protocols of Python 2: text in Latin-1, to be encoded."""
    if isinstance(text, (bytes, bytearray)):
        return bytes(text)
    if type(text) is not str or as_text(codec) not in ("latin1", "latin-1"):
        raise ValueError("bytes have an unknown form")
    return text.encode("latin-1")


_NAMES: dict[str, Callable[..., Any] | None] = {
    **dict.fromkeys(("numpy.ndarray", "numpy.memmap", "builtins.list", "builtins.dict")),
    "numpy.dtype": DType,
    # Its arguments say nothing: shape and type come in a second step.
    "numpy._core.multiarray._reconstruct": lambda *_: Array(0),
    "numpy._core.multiarray.scalar": _scalar,
    "numpy._core.numeric._frombuffer": _frombuffer,
    **dict.fromkeys(("_codecs.encode", "builtins.bytes", "builtins.bytearray"), _encode),
    "collections.OrderedDict": Dictionary,
    # The factory stays a name.
    "collections.defaultdict": lambda *_: {},
}
# The table: everything that a file of plain vectors may name.
TABLE = {text: Known(text, make) for text, make in _NAMES.items()}
# Where Python 2 and NumPy 1 had the same things.
OLD_MODULES = {
    "__builtin__": "builtins",
    "numpy.core.multiarray": "numpy._core.multiarray",
    "numpy.core.numeric": "numpy._core.numeric",
    "numpy.core.memmap": "numpy",
    "numpy._core.memmap": "numpy",
}


class Unpickler(pickle.Unpickler):
    """The next pickle of a file: it may refer to `TABLE` only.

    The strings of Python 2 come as bytes; text in NumPy's own arguments is understood in either form.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        super().__init__(file, encoding="bytes")
        self._name = name

    def find_class(self, module: str, name: str) -> Known:
        """The entry of the table for a name; raises for other names."""
        entry = TABLE.get(f"{OLD_MODULES.get(module, module)}.{name}")
        if entry is not None and "." not in name:
            return entry
        raise refused(self._name, f"{module[:80]}.{name[:80]}")


def refused(name: str, asked: str) -> InputError:
    """The error for a file that names a function or class that is not in the table."""
    asked = on_one_line(asked, 80)
    if asked.split(".")[0] == "torch":
        return InputError(
            f"{name} asks for {asked}, more than plain tensors need: save tensors with "
            "torch.save({'X': X, 'y': y}, path), or arrays with numpy.savez."
        )
    return InputError(
        f"{name} asks to call {asked}, which no file of numbers needs, and nothing of it was run: do not "
        "open it with pickle, get it from a source you trust, best as .npz or .safetensors."
    )


def as_text(value: Any) -> str | None:
    """Text; bytes from Python 2 are decoded as UTF-8, or else as Latin-1, in which every byte is valid."""
    if not isinstance(value, (bytes, bytearray, memoryview)):
        return value if type(value) is str else None
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return bytes(value).decode("latin-1")
