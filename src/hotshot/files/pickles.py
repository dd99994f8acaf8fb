"""Pickles of features, such as the `.plk` files of S2M2 and Free-Lunch, and files of torch.save, never run.

Both are read in a child process (see `child`). A name such as `numpy.dtype` in a file is never imported: it is
looked up in a fixed table of harmless functions, and refused if it is not there. Files hold

- a dictionary from label to vectors, as the files of S2M2 and Free-Lunch: lists of vectors, or arrays (samples, V);
- a dictionary of named arrays, such as `features` and `labels`;
- a pair of features and labels;
- a dictionary of any of these, of which `part` chooses one.
"""

import math
import pickle
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hotshot.errors import InputError
from hotshot.files.child import GROWTH_OF_COMPRESSED, Other, as_text, read_in_child
from hotshot.files.opening import check_size, damaged, most_bytes
from hotshot.files.roles import (
    FEATURE_NAMES,
    choose_part,
    class_vectors,
    features_from_arrays,
    features_from_classes,
    is_text,
)
from hotshot.files.samples import FeatureSource
from hotshot.formatting import on_one_line, quoted

# A list of one small integer takes four bytes in a pickle and, with what NumPy needs, 32 in memory; vectors that
# are arrays do not grow.
MOST_GROWTH, GROWTH_ALWAYS = 8, 2**20
# Protocol 2 and later start with the first, and older ones with a container or a name.
_STARTS = b"\x80(]})c"
_LONGEST_LABEL = 1000
_CODES = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
_TEXT_CODE = re.compile(r"[US][1-9][0-9]{0,3}")
_MOST_AXES = 7
# Before torch 2.6, files could run code in spite of weights_only (CVE-2025-32434).
_OLDEST = (2, 6)
# How torch names what it refuses to call, and what it says of other faults, after some advice.
_REFUSED = re.compile(r"(?:GLOBAL|call|instance of class|class) ([\w.]+\.[\w.]+)")
_REASON = re.compile(r"WeightsUnpickler error:\s*(.+)")
# Where programs keep the weights within what they save, and how deep at most.
_NESTS = ("state_dict", "state", "params", "model", "model_state", "net", "backbone")
_DEEPEST = 8


# --- features in the value of a file


def open_pickle(path: str | Path, part: str | None = None) -> FeatureSource:
    """Features in a pickle of any protocol, written by Python 2 or 3 with NumPy 1 or 2.

    The result may take at most eight times the size of the file and a megabyte. A file with more than one pickle is
    refused: the rest would be lost silently. `part` is the key of one of several sets of samples.
    """
    return _features(load_pickle(Path(path)), Path(path), part)


def open_torch(path: str | Path, part: str | None = None) -> FeatureSource:
    """Features in a `.pt` or `.pth` file: tensors by name or by class, or a pair of features and labels.

    The result may take as much memory as a compressed file may unpack to, 200 times its size but at least 256 MiB: a
    tensor may be one number, expanded. `part` is the key of one of several sets of samples.
    """
    _check_torch(Path(path))
    value = read_in_child(_torch_value, Path(path), GROWTH_OF_COMPRESSED, library="torch")
    return _features(value, Path(path), part)


def load_pickle(path: Path, name: str | None = None) -> Any:
    """The value in a pickle, as dictionaries and lists; error messages call the file `name`.

    Arrays are mapped. Lists of numbers or of text are arrays, vectors in a list are flat arrays, and byte strings in
    a list are views of one.
    """
    return read_in_child(_pickled_value, path, name=name)


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Weights of a network by name, in the order of the file, mapped; empty if it holds none.

    Programs save more than weights: options, devices, the state of an optimiser. These are ignored.
    """
    _check_torch(path)
    weights: dict[str, np.ndarray] = read_in_child(_weights, path, GROWTH_OF_COMPRESSED, library="torch")
    return weights


def _features(value: Any, path: Path, part: str | None) -> FeatureSource:
    if isinstance(value, dict):
        return _from_dictionary(value, path, part)
    if isinstance(value, list) and len(value) == 2 and _axes(value[0]) in (2, 3) and _axes(value[1]) == 1:
        arrays = {name: _array(item, name, path) for name, item in zip("Xy", value, strict=True)}
        return features_from_arrays(arrays, path, part=part)
    what = {2: "vectors without labels", 1: "one list of values"}.get(_axes(value), "no vectors by class")
    wrong = (
        f"{path} holds {what}: store a dictionary of label to vectors, or of 'X' (samples, features) and 'y' (samples)."
    )
    if _axes(value) == 2:
        return replace(features_from_arrays({"X": _array(value, "X", path)}, path, part=part), unlabelled=wrong)
    raise InputError(wrong)


def _from_dictionary(items: dict[Any, Any], path: Path, part: str | None, may_have_parts: bool = True) -> FeatureSource:
    if not items:
        raise InputError(f"{path} holds an empty dictionary: store vectors by class.")
    for key in items:
        if not (type(key) is int or (type(key) is str and len(key) <= _LONGEST_LABEL)):
            kind = key.what if isinstance(key, Other) else type(key).__name__
            what = f"text of {len(key)} characters" if type(key) is str else f"of type {kind}"
            raise InputError(f"{path} has a label that is {what}: use short text or integers.")
    arrays = {key: value for key, value in items.items() if _axes(value)}
    parts = {key: value for key, value in items.items() if isinstance(value, dict)}
    if parts and not arrays and may_have_parts:
        chosen = choose_part({str(key): value for key, value in parts.items()}, part, path)
        return _from_dictionary(chosen, path, None, may_have_parts=False)
    if arrays and all(type(key) is str for key in items) and _are_named(arrays):
        about = {key: value for key, value in items.items() if type(value) in (int, float, bool, str)}
        named = {key: _array(value, key, path) for key, value in arrays.items()}
        return features_from_arrays(named, path, part=part, about=about)
    if part is not None:
        raise InputError(f"{path} has no part {quoted(part)}: it holds vectors by class.")
    return features_from_classes(items, path)


def _are_named(items: dict[str, Any]) -> bool:
    """Whether keys are names of arrays, not of classes: lists of vectors under names unlike X are classes."""
    return (
        any(key.lower() in FEATURE_NAMES for key in items)
        or all(isinstance(value, np.ndarray) for value in items.values())
        or any(_axes(value) in (1, 3) for value in items.values())
    )


def _axes(value: Any) -> int:
    """The number of axes of an array or a list of arrays; 0 for anything else."""
    if isinstance(value, np.ndarray):
        return value.ndim
    if not isinstance(value, list) or not value:
        return 0
    nested = isinstance(value[0], (np.ndarray, list))
    return 1 + max(1, _axes(value[0])) if nested else int(not isinstance(value[0], dict))


def _array(value: Any, name: str, path: Path) -> np.ndarray:
    """A named array: of numbers or of text."""
    if isinstance(value, np.ndarray):
        return value
    if all(isinstance(item, memoryview) for item in value):
        texts = [as_text(item) or "" for item in value]
        check_size(path, 4 * len(texts) * max(map(len, texts)), "labels")
        return np.array(texts)
    return np.stack(class_vectors(value, name, path)[0])


# --- in the child: pickles


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
NAMES = {text: Known(text, make) for text, make in _NAMES.items()}
# Where Python 2 and NumPy 1 had the same things.
_OLD_MODULES = {
    "__builtin__": "builtins",
    "numpy.core.multiarray": "numpy._core.multiarray",
    "numpy.core.numeric": "numpy._core.numeric",
    "numpy.core.memmap": "numpy",
    "numpy._core.memmap": "numpy",
}


class Unpickler(pickle.Unpickler):
    """The next pickle of a file: it may refer to `NAMES` only.

    The strings of Python 2 come as bytes; text in NumPy's own arguments is understood in either form.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        super().__init__(file, encoding="bytes")
        self._name = name

    def find_class(self, module: str, name: str) -> Known:
        """The entry of the table for a name; raises for other names."""
        entry = NAMES.get(f"{_OLD_MODULES.get(module, module)}.{name}")
        if entry is not None and "." not in name:
            return entry
        raise _refused(self._name, f"{module[:80]}.{name[:80]}")

    def persistent_load(self, pid: Any) -> Any:
        """Only files of torch have objects elsewhere."""
        raise ValueError("it refers to objects outside the file")


def _refused(name: str, asked: str) -> InputError:
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


@contextmanager
def _one_sentence(file: BinaryIO, name: str, what: str) -> Iterator[None]:
    """Turn errors of the unpickler, which are of every kind, into one sentence: the file is to blame."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        said = on_one_line(str(error) or type(error).__name__, 120).rstrip(".")
        if "allocate memory" in str(error):
            # As torch says it.
            raise MemoryError from None
        if isinstance(error, EOFError) or "truncated" in said or "exhausted before" in said:
            size = file.seek(0, 2)
            raise damaged(f"{name} is truncated, it ends at byte {size}, in the middle of its pickle") from None
        raise InputError(
            f"{name} is not a valid {what}, {said}: copy or download it again, or save its arrays with "
            "numpy.savez(path, X=X, y=y)."
        ) from None


def _pickled_value(path: Path, name: str) -> tuple[Any, int]:
    with path.open("rb") as file, _one_sentence(file, name, "pickle of features"):
        start = file.read(12)
        if start[:1] not in _STARTS:
            raise damaged(f"{name} is not a pickle, it starts with {start!r}")
        file.seek(0)
        value = Unpickler(file, name).load()
        rest = len(file.read())
        if rest:
            raise InputError(
                f"{name} holds {rest} bytes after its first pickle: store all vectors in one dictionary of label "
                "to vectors, in one pickle."
            )
        return value, MOST_GROWTH * path.stat().st_size + GROWTH_ALWAYS


# --- in the child: files of torch, by torch.load(weights_only=True), zip archives and the streams of before 2020


def _check_torch(path: Path) -> None:
    """Raise with instructions if torch is missing, or too old to be safe."""
    # It takes a tenth of the time in which a child starts, which needs it not.
    import importlib.metadata

    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = "0"
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < _OLDEST:
        raise InputError(
            f"{path} is a torch file, and reading it needs PyTorch 2.6 or later: pip install 'hotshot[images]'."
        )


def _torch_value(path: Path, name: str) -> tuple[Any, int]:
    return _with_arrays(_load_torch(path, name, "torch file")), most_bytes(path)


def _weights(path: Path, name: str) -> tuple[dict[str, np.ndarray], None]:
    import torch

    content = _load_torch(path, name, "file of weights")
    for _ in range(_DEEPEST):
        if not isinstance(content, dict) or any(isinstance(x, torch.Tensor) for x in content.values()):
            break
        content = {as_text(key): value for key, value in content.items()}
        content = next((content[key] for key in _NESTS if isinstance(content.get(key), dict)), None)
    items = content.items() if isinstance(content, dict) else ()
    tensors = {as_text(key) or str(key): x for key, x in items if isinstance(x, torch.Tensor)}
    # A tensor may be one number, expanded.
    check_size(path, sum(4 * x.numel() for x in tensors.values()), "weights")
    arrays = {key: _with_arrays(x) for key, x in tensors.items()}
    return {key: x for key, x in arrays.items() if isinstance(x, np.ndarray) and x.dtype.kind in "biuf"}, None


def _load_torch(path: Path, name: str, what: str) -> Any:
    """The value of a torch file, with tensors of torch."""
    import torch

    old = {new: before for before, new in _OLD_MODULES.items()}
    # What the functions of the table return; without a dot, no file can name them.
    allowed: list[Any] = [(DType, "DType"), (Array, "Array"), (Dictionary, "Dictionary")]
    for text, entry in NAMES.items():
        module, _, function = text.rpartition(".")
        allowed += [(entry, text), (entry, f"{old.get(module, module)}.{function}")]
    with path.open("rb") as file, _one_sentence(file, name, what):
        is_archive = file.peek(2)[:2] == b"PK"
        if is_archive:
            _check_archive(path, name)
        try:
            with torch.serialization.safe_globals(allowed):
                return torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            if not is_archive and not file.read(1):
                # Names may be cut off, too.
                raise EOFError from None
            asked = _REFUSED.search(str(error).replace("`", " "))
            if asked:
                raise _refused(name, asked[1]) from None
            if said := _REASON.search(str(error)):
                raise ValueError(said[1]) from None
            raise


def _check_archive(path: Path, name: str) -> None:
    """Refuse archives that unpack to too much, are damaged, or are no data, in sentences of our own."""
    try:
        archive = zipfile.ZipFile(path)
    except Exception:
        # zipfile raises errors of every kind for tables of contents that are none.
        raise damaged(f"{name} has no valid list of contents, as after an unfinished download") from None
    with archive:
        members = archive.infolist()
        if any(member.filename.endswith("/constants.pkl") or "/code/" in member.filename for member in members):
            raise InputError(f"{name} is a TorchScript program, not features: save tensors with torch.save.")
        if any(member.flag_bits & 1 for member in members):
            raise InputError(f"{name} is encrypted: save it without a password.")
        check_size(path, sum(member.file_size for member in members), "members")
        if changed := archive.testzip():
            raise damaged(f"{name} has another checksum than announced for {quoted(changed)}")


def _with_arrays(value: Any, depth: int = 0) -> Any:
    """A value with its tensors as arrays, bfloat16 as float32, but those that NumPy does not have."""
    import torch

    if depth < _DEEPEST and isinstance(value, dict):
        return {key: _with_arrays(x, depth + 1) for key, x in value.items()}
    if depth < _DEEPEST and type(value) in (list, tuple):
        return [_with_arrays(x, depth + 1) for x in value]
    if not isinstance(value, torch.Tensor):
        return value
    try:
        value = value.detach()
        return (value.float() if value.dtype == torch.bfloat16 else value).numpy()
    except (TypeError, NotImplementedError):
        return value
