"""Readers that run in a child process: pickles, such as the `.plk` files of S2M2 and Free-Lunch, torch, MATLAB, HDF5.

The child writes features in the native form, which its parent maps. Pickles and files of torch hold

- a dictionary from label to vectors, as the files of S2M2 and Free-Lunch: lists of vectors, or arrays (samples, V);
- a dictionary of named arrays, such as `features` and `labels`;
- a pair of features and labels;
- a dictionary of any of these, of which `part` chooses one.
"""

import importlib.metadata
import importlib.util
import math
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.child import GROWTH, read_in_child
from hotshot.files.named_arrays import (
    FEATURE_NAMES,
    class_vectors,
    features_from_arrays,
    features_from_classes,
    text_array,
)
from hotshot.files.opening import check_size, check_size_as_floats, damaged, one_sentence
from hotshot.files.pickles import OLD_MODULES, TABLE, Array, Dictionary, DType, Unpickler, as_text, refused
from hotshot.files.samples import FeatureSource, choose_part
from hotshot.files.tensors import native_features, native_form
from hotshot.files.writing import check_content
from hotshot.formatting import quoted

# Protocol 2 and later start with the first, and older ones with a container or a name.
_STARTS = b"\x80(]})c"
_LONGEST_LABEL = 1000
# Before torch 2.6, files could run code in spite of weights_only (CVE-2025-32434).
_OLDEST = (2, 6)
# How torch names what it refuses to call, and what it says of other faults, after some advice.
_REFUSED = re.compile(r"(?:GLOBAL|call|instance of class|class) ([\w.]+\.[\w.]+)")
_REASON = re.compile(r"WeightsUnpickler error:\s*(.+)")
# Where programs keep the weights within what they save, and how deep at most.
_NESTS = ("state_dict", "state", "params", "model", "model_state", "net", "backbone")
_DEEPEST = 8
# The key of values that are no dictionary, and what follows the keys of lists of texts or bytes.
_ALL, _ENDS = "", ".ends"

Tensors = tuple[Mapping[str, Any], dict[str, str]]


# --- in the parent


def open_pickle(path: Path, part: str | None = None) -> FeatureSource:
    """Features in a pickle of any protocol, written by Python 2 or 3 with NumPy 1 or 2."""
    return _open(path, "pickle", part, growth=GROWTH)


def open_torch(path: Path, part: str | None = None) -> FeatureSource:
    """Features in a `.pt` or `.pth` file: tensors by name or by class, or a pair of features and labels."""
    _check_torch(path)
    return _open(path, "torch", part, library="torch")


def open_matlab(path: Path, part: str | None = None) -> FeatureSource:
    """Features in a `.mat` file up to version 7: variables that are neither numbers nor text are ignored."""
    return _open(path, "matlab", part)


def open_hdf5(path: Path, part: str | None = None) -> FeatureSource:
    """Features in an HDF5 file: named datasets, or those of Chen et al. 2019, `all_feats`, `all_labels` and `count`."""
    if importlib.util.find_spec("h5py") is None:
        raise InputError(f"{path} is an HDF5 file, and reading it needs h5py: pip install 'hotshot[hdf5]'.")
    return _open(path, "hdf5", part, library="h5py")


def _open(path: Path, reader: str, part: str | None, **options: Any) -> FeatureSource:
    file = read_in_child(convert_features, path, reader=reader, part=part, **options)
    return replace(native_features(file, path), unlabelled=file.metadata["unlabelled"])


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Weights of a network by name, in the order of the file, mapped; empty if it holds none.

    Programs save more than weights: options, devices, the state of an optimiser. These are ignored.
    """
    _check_torch(path)
    return read_in_child(convert_weights, path, library="torch").tensors


def read_pickle(path: Path, name: str) -> dict[str, Any]:
    """The arrays in a pickle by their keys, and lists of texts or bytes as views of bytes; the rest is left out.

    Keys of dictionaries in dictionaries are joined by "/"; the key of a value that is no dictionary is empty.
    """
    tensors = read_in_child(convert_pickle, path, growth=GROWTH, name=name, source=name).tensors
    values: dict[str, Any] = {}
    for key, array in tensors.items():
        if key + _ENDS in tensors:
            data = memoryview(array)  # type: ignore[arg-type]
            values[key] = [data[start:end] for start, end in pairwise([0, *tensors[key + _ENDS].tolist()])]
        elif not key.endswith(_ENDS):
            values[key] = array
    return values


def _check_torch(path: Path) -> None:
    """Raise with instructions if torch is missing, or too old to be safe."""
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        version = "0"
    if tuple(int(number) for number in re.findall(r"\d+", version)[:2]) < _OLDEST:
        raise InputError(
            f"{path} is a torch file, and reading it needs PyTorch 2.6 or later: pip install 'hotshot[images]'."
        )


# --- in the child: values as features


def convert_features(path: Path, reader: str, part: str | None) -> Tensors:
    """Features of a file in the native form."""
    source = _READERS[reader](path, part)
    check_size_as_floats(source)
    tensors, metadata = native_form(path, check_content(source, None, None))
    return tensors, {**metadata, "unlabelled": source.unlabelled}


def _features(value: Any, path: Path, part: str | None, may_have_parts: bool = True) -> FeatureSource:
    """Features in a value: a dictionary, or a pair of features and labels."""
    if isinstance(value, dict):
        return _from_dictionary(_with_plain_keys(value, path), path, part, may_have_parts)
    if isinstance(value, (list, tuple)) and len(value) == 2 and _axes(value[0]) in (2, 3) and _axes(value[1]) == 1:
        arrays = {name: _array(item, name, path) for name, item in zip("Xy", value, strict=True)}
        return features_from_arrays(arrays, path, part=part)
    what = {2: "vectors without labels", 1: "one list of values"}.get(_axes(value), "no vectors by class")
    wrong = (
        f"{path} holds {what}: store a dictionary of label to vectors, or of 'X' (samples, features) and 'y' (samples)."
    )
    if _axes(value) == 2:
        return replace(features_from_arrays({"X": _array(value, "X", path)}, path, part=part), unlabelled=wrong)
    raise InputError(wrong)


def _with_plain_keys(value: dict[Any, Any], path: Path) -> dict[Any, Any]:
    items: dict[Any, Any] = {}
    for key, item in value.items():
        plain = key.item() if isinstance(key, np.generic) else key
        plain = as_text(plain) if isinstance(plain, (bytes, bytearray)) else plain
        if type(plain) is not int and not (type(plain) is str and len(plain) <= _LONGEST_LABEL):
            what = f"text of {len(plain)} characters" if type(plain) is str else f"of type {type(key).__name__}"
            raise InputError(f"{path} has a label that is {what}: use short text or integers.")
        if plain in items:
            raise InputError(f"{path} has two entries for {quoted(plain)}: give every class one entry.")
        items[plain] = item
    return items


def _from_dictionary(items: dict[Any, Any], path: Path, part: str | None, may_have_parts: bool) -> FeatureSource:
    if not items:
        raise InputError(f"{path} holds an empty dictionary: store vectors by class.")
    arrays = {key: value for key, value in items.items() if _axes(value)}
    parts = {str(key): value for key, value in items.items() if isinstance(value, dict)}
    if parts and not arrays and may_have_parts:
        return _features(choose_part(parts, part, path), path, None, may_have_parts=False)
    if arrays and all(type(key) is str for key in items) and _are_named(arrays):
        about = {key: value for key, value in items.items() if _is_short(value)}
        named = {key: _array(value, key, path) for key, value in arrays.items()}
        return features_from_arrays(named, path, part=part, about=about)
    if part is not None:
        raise InputError(f"{path} has no part {quoted(part)}: it holds vectors by class.")
    return features_from_classes(items, path)


def _is_short(value: Any) -> bool:
    """Whether a value may stand in the header: a number of 64 bits, or valid text."""
    if type(value) is str:
        return not any("\ud800" <= c <= "\udfff" for c in value)
    return type(value) in (bool, float) or (type(value) is int and abs(value) < 2**63)


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
    if not isinstance(value, (list, tuple)) or not value:
        return 0
    nested = isinstance(value[0], (np.ndarray, list, tuple))
    return 1 + max(1, _axes(value[0])) if nested else int(not isinstance(value[0], dict))


def _array(value: Any, name: str, path: Path) -> np.ndarray:
    """A named array: of numbers or of text."""
    if isinstance(value, np.ndarray):
        return value
    kinds = set(map(type, value))
    if kinds <= {bytes, bytearray, str}:
        return text_array([as_text(x) or "" for x in value], path)
    if any(issubclass(kind, (list, tuple, np.ndarray)) for kind in kinds):
        return np.stack(class_vectors(value, name, path)[0])
    return np.asarray(value)


# --- in the child: pickles


def convert_pickle(path: Path, source: str) -> Tensors:
    """The arrays in a pickle by their keys, and lists of texts or bytes as their bytes and the ends of each."""
    tensors: dict[str, np.ndarray] = {}

    def collect(key: str, value: Any, depth: int = 0) -> None:
        if isinstance(value, dict) and depth < 2:
            for inside, item in value.items():
                name = as_text(inside) if isinstance(inside, (bytes, str)) else str(inside)
                collect(f"{key}/{name}" if key else str(name), item, depth + 1)
            return
        if isinstance(value, np.ndarray) and value.dtype.kind in "US":
            value = value.reshape(-1).tolist()
        if isinstance(value, list) and all(isinstance(x, np.ndarray) and x.dtype == np.uint8 for x in value):
            value = [x.tobytes() for x in value]
        if isinstance(value, list) and value and all(isinstance(x, (bytes, bytearray, str)) for x in value):
            rows = [x.encode(errors="replace") if isinstance(x, str) else bytes(x) for x in value]
            tensors[key + _ENDS] = np.cumsum([len(row) for row in rows], dtype=np.int64)
            value = np.frombuffer(b"".join(rows), np.uint8)
        elif isinstance(value, list) and all(type(x) is int and abs(x) < 2**63 for x in value):
            value = np.array(value, np.int64)
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            tensors[key] = np.asarray(value)

    collect(_ALL, _load_pickle(path, source))
    return tensors, {}


def _load_pickle(path: Path, name: str) -> Any:
    """The value of a file that holds one pickle."""
    with path.open("rb") as file, one_sentence(name, "pickle of features"):
        start = file.read(12)
        if start[:1] not in _STARTS:
            raise damaged(f"{name} is not a pickle, it starts with {start!r}")
        file.seek(0)
        value = Unpickler(file, name).load()
        rest = len(file.read())
    if rest:
        # It would be lost.
        raise InputError(
            f"{name} holds {rest} bytes after its first pickle: store all vectors in one dictionary of label to "
            "vectors, in one pickle."
        )
    return value


# --- in the child: files of torch, by torch.load(weights_only=True), zip archives and the streams of before 2020


def convert_weights(path: Path) -> Tensors:
    """The tensors of a file by name, where programs keep the weights of a network."""
    import torch

    content = _load_torch(path)
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
    return {key: x for key, x in arrays.items() if isinstance(x, np.ndarray) and x.dtype.kind in "biuf"}, {}


def _load_torch(path: Path) -> Any:
    """The value of a torch file, with tensors of torch."""
    import torch

    old = {new: before for before, new in OLD_MODULES.items()}
    # What the functions of the table return; without a dot, no file can name them.
    allowed: list[Any] = [(DType, "DType"), (Array, "Array"), (Dictionary, "Dictionary")]
    for text, entry in TABLE.items():
        module, _, function = text.rpartition(".")
        allowed += [(entry, text), (entry, f"{old.get(module, module)}.{function}")]
    with path.open("rb") as file, one_sentence(path, "torch file"):
        is_archive = file.peek(2)[:2] == b"PK"
        try:
            if is_archive:
                _check_archive(path)
            with torch.serialization.safe_globals(allowed):
                return torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            asked, said = _REFUSED.search(str(error).replace("`", " ")), _REASON.search(str(error))
            if "allocate memory" in str(error):
                raise MemoryError from None
            if not is_archive and not file.read(1):
                # Names may be cut off, too.
                raise EOFError("the file is truncated") from None
            if asked:
                raise refused(str(path), asked[1]) from None
            if said:
                raise ValueError(said[1]) from None
            raise


def _check_archive(path: Path) -> None:
    """Refuse archives that unpack to too much, or are damaged."""
    with zipfile.ZipFile(path) as archive:
        check_size(path, sum(member.file_size for member in archive.infolist()), "members")
        if changed := archive.testzip():
            raise damaged(f"{path} has another checksum than announced for {quoted(changed)}")


def _with_arrays(value: Any, depth: int = 0) -> Any:
    """A value with its tensors as arrays, bfloat16 as float32; None for those that NumPy does not have."""
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
        return None


# --- in the child: MATLAB and HDF5


def _matlab_arrays(path: Path) -> dict[str, np.ndarray]:
    """The variables that are numbers or text, by name."""
    from scipy.io import loadmat

    with one_sentence(path, "MATLAB file"), warnings.catch_warnings():
        # SciPy goes on after a warning, such as one about a name that stands twice.
        warnings.simplefilter("error")
        values = {key: value for key, value in loadmat(path, appendmat=False).items() if not key.startswith("__")}
        arrays = {key: _matlab_array(value, key, path) for key, value in values.items()}
    return {key: array for key, array in arrays.items() if array is not None}


def _matlab_array(value: Any, key: str, path: Path) -> np.ndarray | None:
    """A variable as an array of numbers or text; None if it is neither."""
    if hasattr(value, "toarray"):
        check_size(path, 8 * math.prod(value.shape), f"the sparse matrix {quoted(key)}")
        if hasattr(value, "check_format"):
            # SciPy writes to wherever the indices point.
            value.check_format(full_check=True)
        value = value.toarray()
    if value.dtype.kind == "O":
        cells = [np.asarray(cell) for cell in value.flat]
        if any(cell.size > 1 or (cell.size and cell.dtype.kind != "U") for cell in cells):
            return None
        return text_array([str(cell.item()) if cell.size else "" for cell in cells], path).reshape(value.shape)
    if value.dtype.kind == "U":
        # MATLAB fills the rows of a matrix of characters with blanks.
        return np.char.rstrip(value) if value.size > 1 else value
    return value if value.dtype.kind in "fiubc" else None


def _hdf5_arrays(path: Path) -> dict[str, np.ndarray]:
    """The datasets of numbers or text, by name."""
    import h5py

    arrays = {}
    with one_sentence(path, "HDF5 file"), h5py.File(path, "r") as file:
        # Other links and virtual datasets lead to other files.
        for key in [key for key in file if isinstance(file.get(key, getlink=True), h5py.HardLink)]:
            item = file[key]
            if not isinstance(item, h5py.Dataset) or item.external is not None or item.is_virtual:
                continue
            check_size(path, item.size * item.dtype.itemsize, f"dataset {quoted(key)}")
            if h5py.check_string_dtype(item.dtype) is not None:
                texts = np.asarray(item.asstr()[...], dtype=object)
                arrays[key] = text_array(texts.reshape(-1).tolist(), path).reshape(texts.shape)
            elif item.dtype.kind in "fiubc":
                arrays[key] = np.asarray(item[...])
    if {"all_feats", "all_labels", "count"} <= set(arrays):
        # The datasets have room for whole batches; so many rows are filled.
        X, y, count = arrays["all_feats"], arrays["all_labels"], int(arrays["count"].reshape(-1)[0])
        if not 0 < count <= min(len(X), len(y)):
            raise damaged(f"{path} has room for {len(X)} samples and a count of {count}")
        return {"X": X[:count], "y": y[:count]}
    return arrays


_READERS: dict[str, Callable[[Path, str | None], FeatureSource]] = {
    "pickle": lambda path, part: _features(_load_pickle(path, str(path)), path, part),
    "torch": lambda path, part: _features(_with_arrays(_load_torch(path)), path, part),
    "matlab": lambda path, part: features_from_arrays(_matlab_arrays(path), path, part=part),
    "hdf5": lambda path, part: features_from_arrays(_hdf5_arrays(path), path, part=part),
}
