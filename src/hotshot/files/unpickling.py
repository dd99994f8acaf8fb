"""Python's unpickler, restricted to a few harmless functions: code in a pickle is never run.

A name such as `numpy.dtype` in a file is never imported. It is looked up in a fixed table, and refused if it is not
there. All this runs in a child process (see `child`), which limits memory and time.
"""

import math
import pickle
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from hotshot.errors import InputError
from hotshot.files.packing import as_text
from hotshot.files.roles import is_text
from hotshot.formatting import on_one_line

_CODES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
_TEXT_CODE = re.compile(r"[US][1-9][0-9]{0,3}")
_MOST_AXES = 7


class InvalidPickleError(Exception):
    """A pickle is invalid; the message is a phrase."""


class Known:
    """A name in the table; `make` replaces a call of it, None if it may not be called."""

    __slots__ = ("make", "text")

    def __init__(self, text: str, make: Callable[..., Any] | None = None) -> None:
        self.text = text
        self.make = make

    def __call__(self, *args: Any) -> Any:
        """The replacement for the result of the call."""
        if self.make is None:
            raise InvalidPickleError(f"it calls {self.text}")
        return self.make(*args)

    def __setstate__(self, state: Any) -> None:
        raise InvalidPickleError(f"it modifies {self.text}")


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
            raise InvalidPickleError("an array has an unusual type")
        self.dtype = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        """Set the byte order; subarrays, fields and metadata are refused."""
        _, order, *fields, width, _, _ = state[:8]
        order = as_text(order)
        plain = fields == [None] * 3 and width in (-1, self.dtype.itemsize) and state[8:] in ((), (None,))
        if order not in ("<", ">", "|", "=") or not plain:
            raise InvalidPickleError("an array has a structured type")
        self.dtype = self.dtype.newbyteorder(">" if order == ">" else "<")


class Array(np.ndarray):
    """An array of a pickle, empty until a second step brings its numbers."""

    def __setstate__(self, state: Any) -> None:
        """Take shape, type and bytes, once they fit to each other."""
        if self.shape != (0,):
            raise InvalidPickleError("an array has an unknown form")
        _, shape, dtype, fortran, data = state
        view = _view(data, dtype, shape, "F" if fortran else "C")
        super().__setstate__((1, shape, view.dtype, bool(fortran), bytes(data)))  # type: ignore[arg-type]


def shape_of(value: Any) -> tuple[int, ...]:
    """A shape: a few non-negative integers."""
    if type(value) is not tuple or len(value) > _MOST_AXES or any(type(n) is not int or n < 0 for n in value):
        raise InvalidPickleError("an array has an invalid shape")
    if math.prod(max(n, 1) for n in value) > 2**58:
        raise InvalidPickleError("an array is larger than any memory")
    return value


def _view(data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
    """An array on bytes of the file; their number must match its shape."""
    if not isinstance(data, (bytes, bytearray)) or type(dtype) is not DType:
        raise InvalidPickleError("it has an array of Python objects, not of numbers")
    if math.prod(shape_of(shape)) * dtype.dtype.itemsize != len(data):
        raise InvalidPickleError(f"it has an array of shape {shape} with {len(data)} bytes")
    array: np.ndarray = np.ndarray(shape, dtype.dtype, data, order=order)
    if not is_text(array):
        raise InvalidPickleError("it has invalid text")
    return array


def _frombuffer(data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> np.ndarray:
    if type(order) is str and order in ("C", "F"):
        return _view(data, dtype, shape, order)
    if order != "K" or sorted(shape_of(axes)) != list(range(len(shape_of(shape)))):
        raise InvalidPickleError("an array has an unknown form")
    return _view(data, dtype, shape, "C").transpose(axes)


def _scalar(dtype: Any, data: Any) -> Any:
    number = _view(data, dtype, (), "C")
    return number.item() if number.dtype.kind in "US" else number[()]


def _encode(text: Any = "", codec: Any = "latin1") -> bytes:
    """Bytes as Python 3 writes them in the protocols of Python 2: text in Latin-1, to be encoded."""
    if isinstance(text, (bytes, bytearray)):
        return bytes(text)
    if type(text) is not str or as_text(codec) not in ("latin1", "latin-1"):
        raise InvalidPickleError("bytes have an unknown form")
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
    "collections.defaultdict": lambda *_: Dictionary(),
}
# The table: everything that a file of plain vectors may name.
NAMES = {text: Known(text, make) for text, make in _NAMES.items()}
# Where Python 2 and NumPy 1 had the same things.
_OLD_MODULES = {
    "__builtin__": "builtins",
    "numpy.core.multiarray": "numpy._core.multiarray",
    "numpy.core.numeric": "numpy._core.numeric",
    "numpy.core.memmap": "numpy",
    "numpy._core.memmap": "numpy",
}


def refused_name(name: str, asked: str) -> InputError:
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


class Unpickler(pickle.Unpickler):
    """The next pickle of a file: it may refer to `NAMES` only.

    The strings of Python 2 come as bytes; text in NumPy's own arguments is understood in either form.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        super().__init__(file, encoding="bytes")
        self._name = name

    def find_class(self, module: str, name: str) -> Known:
        """The entry of the table for a name; raises for other names."""
        found = NAMES.get(f"{_OLD_MODULES.get(module, module)}.{name}")
        if found is not None and "." not in name:
            return found
        raise refused_name(self._name, f"{module[:80]}.{name[:80]}")

    def persistent_load(self, pid: Any) -> Any:
        """Only files of torch have objects elsewhere."""
        raise InvalidPickleError("it refers to objects outside the file")


@contextmanager
def refuse_invalid(
    file: BinaryIO, name: str, what: str, remedy: str = "its vectors with numpy.savez(path, X=X, y=y)"
) -> Iterator[None]:
    """Turn errors of the unpickler into one sentence."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        # Unpickling raises errors of every kind: the file is to blame, wherever it was.
        reason = on_one_line(str(error) or type(error).__name__, 120).rstrip(".")
        if "allocate memory" in str(error):
            # As torch says it.
            raise MemoryError from None
        if isinstance(error, EOFError) or "truncated" in reason or "exhausted before" in reason:
            raise InputError(
                f"{name} is truncated, it ends at byte {file.seek(0, 2)}, in the middle of its pickle: copy or "
                "download it again."
            ) from None
        raise InputError(
            f"{name} is not a valid {what}, {reason}: copy or download it again, or save {remedy}."
        ) from None
