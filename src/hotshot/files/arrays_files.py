"""Files of named arrays: `.npy` and `.npz`, mapped or read a few rows at a time, MATLAB's `.mat`, and HDF5."""

from __future__ import annotations

import importlib.util
import io
import json
import math
import os
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.atomic import replace_file, replace_files
from hotshot.files.child import GROWTH_OF_COMPRESSED, read_in_child
from hotshot.files.feature_tables import read_label_lines
from hotshot.files.opening import ALWAYS_ALLOWED, FORMATS, HDF5, check_size, damaged, one_sentence, opened, sniff
from hotshot.files.roles import FEATURE_NAMES, features_from_arrays, is_text, label_array
from hotshot.files.samples import ID, TEXT, FeatureSource, blocks
from hotshot.formatting import listing, on_one_line, quoted, readable_size

if TYPE_CHECKING:
    from hotshot.files.writing import Content

_MOST_DIMENSIONS = 32
# A header of plain numbers is far shorter.
_LONGEST_HEADER = 2**14
# What the labels of `name.npy` may be called.
_BESIDE = ("{}.labels.npy", "{}_labels.npy", "{}.labels.txt", "{}.labels.csv")
_PAIRS = {"X": "y", "x": "y", "features": "labels"}
# Other methods unpack without a limit inside Python, and numpy writes only these.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED, _LOCAL_HEADER = 0x1, 30


# --- .npy


@dataclass(frozen=True)
class NpyHeader:
    """Contents of a header; the numbers start `start` bytes after its beginning."""

    shape: tuple[int, ...]
    dtype: np.dtype
    order: Any
    start: int

    @property
    def n_bytes(self) -> int:
        """Size of the numbers in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy_header(file: IO[bytes], what: str, size: int, path: Path) -> NpyHeader:
    """The header of an array that takes all of a file of `size` bytes; error messages call the array `what`."""
    # No header may ask for more.
    text = io.BytesIO(file.read(_LONGEST_HEADER))
    try:
        with warnings.catch_warnings():
            # NumPy warns of headers of Python 2.
            warnings.simplefilter("ignore")
            # The text of version 3 is UTF-8, but only the names of fields need that.
            is_first = np.lib.format.read_magic(text) == (1, 0)
            read = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(text)
    except Exception as error:
        # Errors of Python's parser, of every kind, say nothing of the file.
        said = on_one_line(str(error), 100) if isinstance(error, ValueError) else "its header is invalid"
        raise damaged(f"{path} does not hold {what} in the .npy format, {said.rstrip('.')}") from None
    # NumPy refuses shapes that would be too large if they were not empty.
    if len(shape) > _MOST_DIMENSIONS or min(shape, default=0) < 0 or math.prod(n or 1 for n in shape) >= 2**59:
        raise damaged(f"{path} does not hold {what} in the .npy format, its shape is invalid")
    if dtype.hasobject:
        raise InputError(
            f"{path} holds {what} of Python objects, a pickle, which hotshot never runs: save labels with "
            "y.astype(str) and features as an array of numbers."
        )
    # Text of no width would say nothing of any sample.
    if dtype.kind not in "fiubcSU" or dtype.itemsize == 0 or dtype.subdtype is not None:
        raise InputError(f"{path} holds {what} of type {str(dtype)[:60]!r}: save plain numbers or strings.")
    header = NpyHeader(shape, dtype, "F" if fortran and len(shape) > 1 else "C", text.tell())
    if header.start + header.n_bytes != size:
        announced, there = readable_size(header.n_bytes), readable_size(size - header.start)
        raise damaged(f"{path} should hold {announced} of numbers for {what}, shape {shape}, but holds {there}")
    return header


def open_npy(path: Path, part: str | None = None, labels: Path | None = None) -> FeatureSource:
    """Features of an `.npy` file with labels from the given file or from a file beside it."""
    X = map_npy(path)
    labels = find_labels(path) if labels is None else labels
    if labels is None:
        missing = (
            f"{path} has no file of labels beside it, none of {', '.join(_beside(path))}: "
            "write one with numpy.save, or pass labels= (in the shell --labels)."
        )
        return replace(features_from_arrays({"X": X}, path), unlabelled=missing)
    if labels.suffix.lower() != ".npy":
        return features_from_arrays({"X": X, "y": read_label_lines(labels)}, path)
    if sniff(labels) is not FORMATS["npy"]:
        raise InputError(f"{labels} is not an .npy file of labels: write it with numpy.save.")
    return features_from_arrays({"X": X, "y": label_array(np.array(map_npy(labels)), "it", labels)}, path)


def map_npy(path: Path) -> np.ndarray:
    """The array of an `.npy` file, without reading its numbers."""
    with opened(path) as file:
        header = read_npy_header(file, "an array", os.fstat(file.fileno()).st_size, path)
        if header.n_bytes == 0:
            return np.empty(header.shape, dtype=header.dtype)
        mapped = np.memmap(file, header.dtype, "r", header.start, header.shape, header.order)
    # A plain array: results computed from it are not maps.
    return np.asarray(mapped)


def _beside(path: Path) -> list[str]:
    """Possible names for the labels of an `.npy` file."""
    pair = [f"{_PAIRS[path.stem]}.npy"] if path.stem in _PAIRS else []
    return [pattern.format(path.stem) for pattern in _BESIDE] + pair


def find_labels(path: Path) -> Path | None:
    """The file of labels beside an `.npy` file, if there is one."""
    return next((path.parent / name for name in _beside(path) if (path.parent / name).exists()), None)


def write_npy(path: Path, content: Content) -> None:
    """Write the features, and beside them `name.labels.npy` with the labels."""
    if content.classes:
        with replace_files(path, path.with_suffix(".labels.npy")) as (features, labels):
            write_array(labels, content.codes.shape, content.class_array.dtype, content.labels())
            write_array(features, content.shape, content.dtype, content.blocks())
        return
    beside = find_labels(path)
    if beside is not None:
        raise InputError(f"{beside} would be taken for the labels of {path}, which has none: remove it.")
    with replace_file(path) as file:
        write_array(file, content.shape, content.dtype, content.blocks())


def write_array(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype, blocks: Iterable[np.ndarray] = ()) -> None:
    """Write an `.npy` header, whose length is the same for any number of rows, and blocks of numbers."""
    dtype = dtype.newbyteorder("<")
    np.lib.format.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    for block in blocks:
        file.write(np.ascontiguousarray(block, dtype=dtype).data)


# --- .npz


def open_npz(path: Path, part: str | None) -> FeatureSource:
    """Features and labels of an `.npz` file; only the needed arrays are unpacked."""
    arrays: dict[str, Member] = {}
    with _archive(path) as archive:
        _check_members(archive, path)
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                name = info.filename.removesuffix(".npy")
                with archive.open(info) as file:
                    header = read_npy_header(file, f"array {name!r:.60}", info.file_size, path)
                arrays[name] = Member(path, info.filename, header, header.shape)
    return features_from_arrays(arrays, path, part=part)


@dataclass(frozen=True)
class Member:
    """One array of an archive; `shape` may differ from the stored shape."""

    path: Path
    name: str
    header: NpyHeader
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        """Type in the file."""
        return self.header.dtype

    def reshape(self, first: int, *shape: int) -> Member:
        """The same numbers in another shape, whose first size is -1."""
        return replace(self, shape=(math.prod(self.shape) // math.prod(shape), *shape))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        (flat,) = self._read([math.prod(self.shape)])
        array = flat.reshape(self.header.shape, order=self.header.order).reshape(self.shape)
        return array if dtype is None else array.astype(dtype, copy=False)

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        """Yield so many rows at a time; in Fortran's order, which scatters rows, the array is read whole."""
        if self.header.order == "F":
            yield from blocks(np.asarray(self), rows)
            return
        width = math.prod(self.shape[1:])
        for flat in self._read((some.stop - some.start) * width for some in slices(self.shape[0], rows)):
            yield flat.reshape(-1, *self.shape[1:])

    def _read(self, counts: Iterable[int]) -> Iterator[np.ndarray]:
        """So many numbers one after the other."""
        with _archive(self.path) as archive, archive.open(self.name) as file:
            file.read(self.header.start)
            for count in counts:
                content = file.read(count * self.dtype.itemsize)
                if len(content) < count * self.dtype.itemsize:
                    raise damaged(f"{self.path} ends inside array {quoted(self.name)}")
                yield np.frombuffer(content, self.dtype, count)


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with one_sentence(path, ".npz file"), zipfile.ZipFile(path) as archive:
        yield archive


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse members that a normal `.npz` file never has, before anything is unpacked."""
    end, names = 0, set[str]()
    for info in sorted(archive.infolist(), key=lambda info: info.header_offset):
        problems = {
            "twice": info.filename in names,
            "that is encrypted": bool(info.flag_bits & _ENCRYPTED),
            f"compressed by method {info.compress_type}": info.compress_type not in _METHODS,
            "that overlaps another": info.header_offset < end,
        }
        problem = next((what for what, is_so in problems.items() if is_so), None)
        if problem is not None:
            who = f"{path} holds a member {info.orig_filename!r:.60}"
            raise InputError(f"{who} {problem}: do not use it, or write it again with numpy.savez_compressed.")
        end = info.header_offset + _LOCAL_HEADER + info.compress_size
        names.add(info.filename)
    if end > path.stat().st_size:
        raise damaged(f"{path} is truncated, it ends before its last member")
    check_size(path, sum(info.file_size for info in archive.infolist()), "arrays")


def write_npz(path: Path, content: Content) -> None:
    """Write arrays X, y, ids, texts and `about` (JSON text), as far as present; uncompressed, like numpy.savez."""
    arrays: list[tuple[str, Any, np.dtype, Iterable[np.ndarray]]] = [
        ("X", content.shape, content.dtype, content.blocks())
    ]
    if content.classes:
        arrays.append(("y", content.codes.shape, content.class_array.dtype, content.labels()))
    arrays += [_texts(path, f"{name}s", content.columns[name]) for name in (ID, TEXT) if name in content.columns]
    about = np.array(json.dumps(content.about))
    arrays.append(("about", about.shape, about.dtype, [about]))
    with replace_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, shape, dtype, blocks in arrays:
            # Without a date, the same features make the same file.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                write_array(member, shape, dtype, blocks)


def _texts(path: Path, name: str, values: Sequence[str]) -> tuple[str, Any, np.dtype, Iterable[np.ndarray]]:
    """Text of the samples as an array, in which each takes as much space as the longest."""
    dtype = np.dtype(f"<U{max(1, max(map(len, values)))}")
    if dtype.itemsize * len(values) > ALWAYS_ALLOWED or any(text.endswith("\0") for text in values):
        raise InputError(
            f"{path} cannot hold {name} that are too long (up to {dtype.itemsize // 4} characters) or end in a NUL "
            "character: write .safetensors instead."
        )
    array = np.array(list(values), dtype)
    if not is_text(array):
        raise InputError(f"{path} cannot hold {name} with invalid characters: repair them.")
    return name, array.shape, dtype, [array]


# --- .mat and HDF5


def open_matlab(path: Path, part: str | None = None) -> FeatureSource:
    """Features in a `.mat` file up to version 7: a matrix X (samples, V) and labels y, or one matrix per class.

    Labels may be a row or a column of numbers, a matrix of characters or a cell array of text. Variables that are
    neither numbers nor text are ignored. `part` chooses one of several sets, such as `X_base` with `y_base`.
    """
    return features_from_arrays(read_in_child(_matlab_arrays, path, GROWTH_OF_COMPRESSED), path, part=part)


def _matlab_arrays(path: Path, name: str) -> tuple[dict[str, np.ndarray], None]:
    """The variables that are numbers or text, by name; runs in the child."""
    from scipy.io import loadmat

    with path.open("rb") as file:
        start = file.read(520)
    if start[:10] == b"MATLAB 7.3" or HDF5 in (start[:8], start[512:]):
        raise InputError(f"{name} is a MATLAB 7.3 file (HDF5): save it with save(…, '-v7') in MATLAB.")
    with one_sentence(name, "MATLAB file"), warnings.catch_warnings():
        # SciPy goes on after a warning, such as one about a name that stands twice.
        warnings.simplefilter("error")
        values = {key: value for key, value in loadmat(path, appendmat=False).items() if not key.startswith("__")}
        arrays = {key: _matlab_array(value, key, path) for key, value in values.items()}
    usable = {key: array for key, array in arrays.items() if array is not None}
    if not usable:
        raise InputError(
            f"{name} holds no real numbers and no text, only {listing(map(quoted, values)) or 'nothing'}: save X and y "
            "as plain variables."
        )
    return usable, None


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
        return np.array([str(cell.item()) if cell.size else "" for cell in cells], dtype=object).reshape(value.shape)
    if value.dtype.kind == "U":
        # MATLAB fills the rows of a matrix of characters with blanks.
        return np.char.rstrip(value) if value.size > 1 else value
    if value.dtype.kind == "c" and key.lower() in FEATURE_NAMES:
        raise InputError(f"{path} holds complex numbers in {quoted(key)}: take their real part or their modulus.")
    return value if value.dtype.kind in "fiub" else None


def open_hdf5(path: Path, part: str | None = None) -> FeatureSource:
    """Features in an HDF5 file: named datasets, or those of Chen et al. 2019, `all_feats`, `all_labels` and `count`."""
    if importlib.util.find_spec("h5py") is None:
        raise InputError(
            f"{path} is an HDF5 file: pip install 'hotshot[hdf5]', or read it with h5py and save its arrays with "
            "numpy.savez(path, X=X, y=y)."
        )
    arrays = read_in_child(_hdf5_arrays, path, GROWTH_OF_COMPRESSED, library="h5py")
    if {"all_feats", "all_labels", "count"} <= set(arrays):
        # The datasets have room for whole batches; so many rows are filled.
        X, y, count = arrays["all_feats"], arrays["all_labels"], int(arrays["count"].reshape(-1)[0])
        if not 0 < count <= min(len(X), len(y)):
            raise damaged(f"{path} has room for {len(X)} samples and a count of {count}")
        arrays = {"X": X[:count], "y": y[:count]}
    return features_from_arrays(arrays, path, part=part)


def _hdf5_arrays(path: Path, name: str) -> tuple[dict[str, np.ndarray], None]:
    """The datasets of numbers or text, by name; runs in the child."""
    import h5py

    arrays = {}
    with one_sentence(name, "HDF5 file"), h5py.File(path, "r") as file:
        # Other links and virtual datasets lead to other files.
        for key in [key for key in file if isinstance(file.get(key, getlink=True), h5py.HardLink)]:
            item = file[key]
            if not isinstance(item, h5py.Dataset) or item.external is not None or item.is_virtual:
                continue
            check_size(path, item.size * item.dtype.itemsize, f"dataset {quoted(key)}")
            if h5py.check_string_dtype(item.dtype) is not None:
                arrays[key] = np.asarray(item.asstr()[...], dtype=object)
            elif item.dtype.kind in "fiubc":
                arrays[key] = np.asarray(item[...])
    return arrays, None
