"""Named arrays: `.npy` and `.npz` files, mapped or read a few rows at a time; and which array is what in any file."""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.atomic import replace_file, replace_files
from hotshot.files.opening import ALWAYS_ALLOWED, check_size, damaged, json_object, one_sentence, opened
from hotshot.files.samples import ID, TEXT, Batch, FeatureSource, blocks, choose_part, in_memory
from hotshot.formatting import listing, quoted

if TYPE_CHECKING:
    from hotshot.files.writing import Content

_WORDS = {
    "features": "x features feature feats feat embeddings embedding embeds data vectors representations activations",
    "labels": "y labels label targets target classes class category categories",
    "names": "names class_names classnames classes label_names target_names categories",
    # Arrays of each sample, beside its label.
    "ids": "id ids",
    "texts": "text texts",
}
FEATURE_NAMES, LABEL_NAMES = frozenset(_WORDS["features"].split()), frozenset(_WORDS["labels"].split())
# A name by itself, and with the part that it is of: `X_base`, `base_X`, `base/X`.
_PATTERNS = {
    role: re.compile("({0})|(?P<before>.+?)[_./ -]+({0})|({0})[_./ -]+(?P<after>.+)".format("|".join(words.split())), 2)
    for role, words in _WORDS.items()
}
# Arrays of these names are whole sets of samples, never the samples of one class.
_SET = re.compile(r"arr_\d+|train|training|test|val|valid|validation|base|novel|support|query", re.IGNORECASE)
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,19}")
_LABEL_KINDS: tuple[Any, ...] = (str, (bool, np.bool_), Integral, Real)

# A header of plain numbers is far shorter.
_LONGEST_HEADER, _MOST_DIMENSIONS = 2**14, 32
# What the labels of `name.npy` may be called.
_BESIDE = ("{}.labels.npy", "{}_labels.npy", "{}.labels.txt", "{}.labels.csv")
_PAIRS = {"X": "y", "x": "y", "features": "labels"}
# Other methods unpack without a limit inside Python, and numpy writes only these.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED, _LOCAL_HEADER = 0x1, 30

# An array in a file: a NumPy array, or a `Member`, which becomes one by numpy.asarray.
Numbers = Any
# The names of the arrays of one set of samples, by role.
Part = dict[str, list[str]]


# --- .npy


@dataclass(frozen=True)
class NpyHeader:
    """Contents of a header; the numbers start `start` bytes after its beginning."""

    shape: tuple[int, ...]
    dtype: np.dtype
    order: Any
    start: int


def read_npy_header(file: IO[bytes], what: str, size: int, path: Path) -> NpyHeader:
    """The header of an array that takes all of a file of `size` bytes; error messages call the array `what`."""
    # No header may ask for more.
    text = io.BytesIO(file.read(_LONGEST_HEADER))
    with one_sentence(f"{path} with {what}", ".npy file"), warnings.catch_warnings():
        # NumPy warns of headers of Python 2.
        warnings.simplefilter("ignore")
        # The text of version 3 is UTF-8, but only the names of fields need that.
        is_first = np.lib.format.read_magic(text) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(text)
    if dtype.hasobject:
        raise InputError(
            f"{path} holds {what} of Python objects, a pickle, which hotshot never runs: save labels with "
            "y.astype(str) and features as an array of numbers."
        )
    # Text of no width would say nothing of any sample.
    if dtype.kind not in "fiubcSU" or dtype.itemsize == 0 or dtype.subdtype is not None:
        raise InputError(f"{path} holds {what} of type {str(dtype)[:60]!r}: save plain numbers or strings.")
    # NumPy refuses shapes that would be too large if they were not empty.
    sound = len(shape) <= _MOST_DIMENSIONS and min(shape, default=0) >= 0 and math.prod(n or 1 for n in shape) < 2**59
    if not sound or text.tell() + math.prod(shape) * dtype.itemsize != size:
        raise damaged(f"{path} should hold {what} of shape {str(shape)[:60]} and {dtype}, but has {size} bytes")
    return NpyHeader(shape, dtype, "F" if fortran and len(shape) > 1 else "C", text.tell())


def open_npy(path: Path, part: str | None = None, labels: Path | None = None) -> FeatureSource:
    """Features of an `.npy` file with labels from the given file or from a file beside it."""
    from hotshot.files.feature_tables import read_label_lines

    X = map_npy(path)
    labels = find_labels(path) if labels is None else labels
    if labels is None:
        missing = (
            f"{path} has no file of labels beside it, none of {', '.join(_beside(path))}: "
            "write one with numpy.save, or pass labels= (in the shell --labels)."
        )
        return replace(features_from_arrays({"X": X}, path), unlabelled=missing)
    if labels.suffix.lower() == ".npy":
        y = label_array(np.array(map_npy(labels)), "it", labels)
    else:
        y = read_label_lines(labels)
    return features_from_arrays({"X": X, "y": y}, path)


def map_npy(path: Path) -> np.ndarray:
    """The array of an `.npy` file, without reading its numbers."""
    with opened(path) as file:
        header = read_npy_header(file, "an array", os.fstat(file.fileno()).st_size, path)
        if 0 in header.shape:
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
    if content.y is not None:
        with replace_files(path, path.with_suffix(".labels.npy")) as (features, labels):
            _write_array(labels, content.y.shape, content.y.dtype, [content.y])
            _write_array(features, content.shape, content.dtype, content.blocks())
        return
    beside = find_labels(path)
    if beside is not None:
        raise InputError(f"{beside} would be taken for the labels of {path}, which has none: remove it.")
    with replace_file(path) as file:
        _write_array(file, content.shape, content.dtype, content.blocks())


def _write_array(file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype, parts: Iterable[np.ndarray]) -> None:
    """Write an `.npy` header and numbers, a few rows at a time."""
    dtype = dtype.newbyteorder("<")
    np.lib.format.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    for block in parts:
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
                yield np.frombuffer(file.read(count * self.dtype.itemsize), self.dtype, count)


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with one_sentence(path, ".npz file"), zipfile.ZipFile(path) as archive:
        yield archive


def _check_members(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse members that a normal `.npz` file never has, before anything is unpacked."""
    infos, end = sorted(archive.infolist(), key=lambda info: info.header_offset), 0
    times = Counter(info.filename for info in infos)
    for info in infos:
        is_unusual = info.compress_type not in _METHODS or info.flag_bits & _ENCRYPTED
        if is_unusual or times[info.filename] > 1 or info.header_offset < end:
            raise InputError(
                f"{path} holds a member {info.orig_filename!r:.60} that numpy never writes, twice, encrypted, over "
                "another or of another compression: do not use it, or write it again with numpy.savez_compressed."
            )
        end = info.header_offset + _LOCAL_HEADER + info.compress_size
    check_size(path, sum(info.file_size for info in archive.infolist()), "arrays")


def write_npz(path: Path, content: Content) -> None:
    """Write arrays X, y, ids, texts and `about` (JSON text), as far as present; uncompressed, like numpy.savez."""
    arrays = {} if content.y is None else {"y": content.y}
    arrays |= {
        f"{name}s": _texts(path, f"{name}s", content.columns[name]) for name in (ID, TEXT) & content.columns.keys()
    }
    arrays["about"] = np.array(json.dumps(content.about))
    with replace_file(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name in ("X", *arrays):
            # Without a date, the same features make the same file.
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                if name == "X":
                    _write_array(member, content.shape, content.dtype, content.blocks())
                else:
                    _write_array(member, arrays[name].shape, arrays[name].dtype, [arrays[name]])


def _texts(path: Path, name: str, values: Sequence[str]) -> np.ndarray:
    """Text of the samples as an array, in which each takes as much space as the longest."""
    longest = max(map(len, values))
    if 4 * longest * len(values) > ALWAYS_ALLOWED or any(text.endswith("\0") for text in values):
        raise InputError(
            f"{path} cannot hold {name} that are too long (up to {longest} characters) or end in a NUL character: "
            "write .safetensors instead."
        )
    array = np.array(list(values), f"<U{max(1, longest)}")
    if not is_text(array):
        raise InputError(f"{path} cannot hold {name} with invalid characters: repair them.")
    return array


# --- features and labels among named arrays


def features_from_arrays(
    arrays: Mapping[str, Numbers], path: Path, *, part: str | None = None, about: dict[str, Any] | None = None
) -> FeatureSource:
    """Features and labels among named arrays, in any of the layouts that feature files come in.

    - `X` (samples, V) and `y` (samples,), or other usual names for them; class names of integer labels
      may be stored beside them;
    - one array (classes, samples, V), with the names of the classes in another array, or numbered from 0;
    - one array (samples, V) per class, whose name is the label.

    Arrays `ids` and `texts` of each sample are stored beside them. `part` chooses one of several sets, such as
    `X_base`, `y_base`. `about` is the header of the file, by default the JSON text in an array `about`.
    """
    arrays = dict(arrays)
    header = arrays.pop("about", None)
    if about is None:
        text = "".join(np.asarray(header).reshape(-1).tolist()) if _is_valid_text(header) else ""
        about = json_object(text) or {}
    parts = {name: one for name, one in _parts(arrays).items() if one["features"]}
    if not parts:
        return _from_class_arrays(arrays, path, part, about)
    chosen = choose_part({name or one["features"][0]: one for name, one in parts.items()}, part, path)
    name, *others = chosen["features"]
    if others:
        both = listing(map(quoted, chosen["features"]))
        raise InputError(f"{path} holds several arrays of features, {both}: keep one.")
    X, unlabelled = arrays[name], ""
    _check_numbers(X, name, path)
    if len(X.shape) == 3:
        labels: np.ndarray | None = _labels_of_stack(arrays, name, chosen, path)
        X = X.reshape(-1, X.shape[2])
    else:
        labels, unlabelled = _labels_of_rows(arrays, name, chosen, path)
    columns = {}
    for column, names in ((ID, chosen["ids"]), (TEXT, chosen["texts"])):
        # Arrays of other lengths are ignored.
        fitting = next((name for name in names if arrays[name].shape == (X.shape[0],)), None)
        if fitting is not None:
            columns[column] = label_array(arrays[fitting], quoted(fitting), path).astype(str).tolist()
    return in_memory(path, X, labels, about, columns, unlabelled)


def _is_valid_text(array: Numbers) -> bool:
    return array is not None and array.dtype.kind == "U" and is_text(np.asarray(array))


def _parts(arrays: Mapping[str, Numbers]) -> dict[str, Part]:
    """Sets of samples by name; the name is empty if arrays have no part in their names."""
    parts: dict[str, Part] = {}
    fitting = [(part, role, name) for name, x in arrays.items() for role, part in _roles(name) if _fits(role, x)]
    if not any(role == "features" for _, role, _ in fitting):
        fitting += [(name, "features", name) for name, x in arrays.items() if len(x.shape) == 3]
    for part, role, name in fitting:
        parts.setdefault(part, {role: [] for role in _WORDS})[role].append(name)
    # Class names without a part serve every part that has none of its own.
    common = parts[""]["names"] if "" in parts else []
    return {name: {**part, "names": part["names"] or common} for name, part in parts.items()}


def _roles(name: str) -> list[tuple[str, str]]:
    """What an array of this name may be, and of which part: `X_base`, `base_X` and `base/X` are features of base."""
    matches = {role: match for role, pattern in _PATTERNS.items() if (match := pattern.fullmatch(name))}
    parts = [(role, match["before"] or match["after"] or "") for role, match in matches.items()]
    return [(role, part) for role, part in parts if not part] or parts


def _fits(role: str, array: Numbers) -> bool:
    dimensions, kind = len(array.shape), array.dtype.kind
    if role == "features":
        return dimensions >= 2 and kind not in "US"
    if role in ("ids", "texts"):
        return dimensions == 1 and kind in ("USiu" if role == "ids" else "US")
    return dimensions in (1, 2) and (role == "labels" or kind in "US")


def _check_numbers(X: Numbers, name: str, path: Path) -> None:
    if X.dtype.kind == "c":
        raise InputError(f"{path} holds complex numbers in {quoted(name)}: take their real part or their modulus.")
    if X.dtype.kind not in "fiub" or len(X.shape) > 3 or 0 in X.shape:
        raise InputError(
            f"{path} holds {_described(name, X)} of type {X.dtype}: store numbers (samples, features) or (classes, "
            "samples, features), at least one sample and one feature."
        )


def _labels_of_rows(arrays: Mapping[str, Numbers], name: str, part: Part, path: Path) -> tuple[np.ndarray | None, str]:
    """Labels of the samples, or None and the message that there are none."""
    n_samples, width = arrays[name].shape
    # A single row or column counts, as MATLAB has no vectors; a table does not.
    counts = {
        other: max(x.shape) if sum(n != 1 for n in x.shape) <= 1 else -1 for other, x in arrays.items() if x.shape
    }
    per_sample = [other for other in part["labels"] if counts[other] == n_samples]
    if len(per_sample) > 1:
        # As many classes as samples: `classes` beside `y` are their names.
        per_sample = [other for other in per_sample if other not in part["names"]]
    if len(per_sample) > 1:
        raise InputError(f"{path} holds several arrays of labels, {listing(map(quoted, per_sample))}: keep one.")
    others = [other for other in part["labels"] if other not in part["names"]]
    if not per_sample and others:
        remedy = (
            "transpose the features to (samples, features)"
            if counts[others[0]] == width
            else "give one label per sample"
        )
        wrong = _described(others[0], arrays[others[0]])
        raise InputError(f"{path} has features {_described(name, arrays[name])} and labels {wrong}: {remedy}.")
    if not per_sample:
        return None, (
            f"{path} has no labels for its features {_described(name, arrays[name])}, it holds "
            f"{_inventory(arrays, name)}: add an array y with one label per sample."
        )
    labels = label_array(arrays[per_sample[0]], quoted(per_sample[0]), path)
    names = [other for other in part["names"] if other not in per_sample]
    if not names or labels.dtype.kind == "U":
        return labels, ""
    where = quoted(names[0])
    return _named_labels(labels, label_array(arrays[names[0]], where, path), where, path), ""


def _labels_of_stack(arrays: Mapping[str, Numbers], name: str, part: Part, path: Path) -> np.ndarray:
    """Labels of the samples of an array (classes, samples, V), in its order."""
    n_classes, per_class = arrays[name].shape[:2]
    given = [*part["names"], *part["labels"]]
    if not given:
        return np.repeat(np.arange(n_classes), per_class)
    labels = np.asarray(arrays[given[0]])
    if labels.shape == (n_classes, per_class) and per_class > 1:
        return label_array(labels.reshape(-1), quoted(given[0]), path)
    names = label_array(labels, quoted(given[0]), path)
    if len(names) != n_classes or len(np.unique(names)) != n_classes:
        raise InputError(
            f"{path} has {n_classes} classes in {_described(name, arrays[name])}, taken as (classes, samples, "
            f"features), and {len(names)} names, {len(np.unique(names))} of them different, in {quoted(given[0])}: "
            "give every class a name, or features (samples, features) and one label per sample."
        )
    check_size(path, n_classes * per_class * names.itemsize, "labels")
    return np.repeat(names, per_class)


def _named_labels(codes: np.ndarray, names: np.ndarray, name: str, path: Path) -> np.ndarray:
    """The class names of integer labels that count from 0 or, as in MATLAB, from 1."""
    if not np.isfinite(codes).all() or (codes != np.floor(codes)).any():
        raise InputError(f"{path} has class names {name} but labels that are not integers: use whole numbers.")
    low, high = int(codes.min()), int(codes.max())
    first = 1 if low >= 1 and high == len(names) else 0
    # Of files of MATLAB, which counts from 1, nobody knows if the last class has no samples.
    unclear = low >= 1 and high < len(names) and path.suffix.lower() == ".mat"
    if low < first or high - first >= len(names) or unclear:
        raise InputError(
            f"{path} has labels from {low} to {high} but {len(names)} class names in {name}: give a name to every "
            "class, and to no other."
        )
    check_size(path, len(codes) * names.itemsize, "labels")
    return names[codes.astype(np.int64) - first]


def _from_class_arrays(
    arrays: Mapping[str, Numbers], path: Path, part: str | None, about: dict[str, Any]
) -> FeatureSource:
    """Features from one array (samples, V) per class, or from a single one without labels; raises if neither fits."""
    are_tables = all(len(x.shape) == 2 and x.dtype.kind in "fiub" for x in arrays.values())
    if len(arrays) < 2 or not are_tables or all(_SET.fullmatch(name) for name in arrays):
        missing = (
            f"{path} must hold two arrays, X and y, or one array (samples, features) per class, and holds "
            f"{_inventory(arrays)}: write it with numpy.savez(path, X=X, y=y)."
        )
        if len(arrays) == 1 and are_tables and part is None and 0 not in next(iter(arrays.values())).shape:
            return in_memory(path, next(iter(arrays.values())), None, about, unlabelled=missing)
        raise InputError(missing)
    if part is not None:
        raise InputError(f"{path} has no part {quoted(part)}: it holds one array per class.")
    return features_from_classes(arrays, path, about=about)


def _described(name: str, array: Numbers) -> str:
    return f"{quoted(name)} {tuple(array.shape)}"


def _inventory(arrays: Mapping[str, Numbers], but: str | None = None) -> str:
    others = [f"{_described(name, array)} {array.dtype}" for name, array in arrays.items() if name != but]
    return listing(others) or ("nothing" if but is None else "nothing else")


def features_from_classes(
    classes: Mapping[Any, Any], path: Path, *, about: dict[str, Any] | None = None
) -> FeatureSource:
    """Features and labels of a mapping from label to vectors: a list of vectors, or one array (samples, V).

    Labels are all strings or all integers, and come in the order of the mapping.
    """
    labels = label_array(list(classes), "its classes", path)
    groups = {label: class_vectors(vectors, label, path) for label, vectors in classes.items()}
    widths = {label: shape[1] for label, (_, shape, _) in groups.items()}
    first, width = next(iter(widths.items()))
    other = next((label for label in widths if widths[label] != width), None)
    if other is not None:
        raise InputError(
            f"{path} has {width} features in class {quoted(first)} and {widths[other]} in class "
            f"{quoted(other)}: extract all features with the same model."
        )
    n_samples = sum(shape[0] for _, shape, _ in groups.values())
    check_size(path, n_samples * labels.itemsize, "labels")
    dtype = np.result_type(*(dtype for _, _, dtype in groups.values()))

    def pieces(rows: int) -> Iterator[Batch]:
        for label, (vectors, _, _) in zip(labels, groups.values(), strict=True):
            for X in blocks(vectors, rows):
                yield np.asarray(X, dtype=dtype), np.full(len(X), label)

    return FeatureSource(path, n_samples, width, dtype, pieces, about or {})


def class_vectors(vectors: Any, label: Any, path: Path) -> tuple[Any, tuple[int, ...], np.dtype]:
    """The vectors of one class, checked, their shape (samples, V) and their type."""
    who = f"class {quoted(label)}"
    if hasattr(vectors, "dtype"):
        shape, dtype = tuple(vectors.shape), vectors.dtype.newbyteorder("=")
    else:
        try:
            vectors = [_flat(np.asarray(vector)) for vector in vectors]
        except (TypeError, ValueError):
            raise InputError(f"{path} has no list of vectors in {who}: store (samples, features).") from None
        shapes = sorted({vector.shape for vector in vectors})
        if len(shapes) > 1:
            raise InputError(
                f"{path} has vectors of different shapes in {who}, {shapes[0]} and {shapes[1]}: "
                "extract all features with the same model."
            )
        shape = (len(vectors), *(shapes[0] if shapes else ()))
        dtype = np.result_type(*{vector.dtype for vector in vectors}) if vectors else np.dtype(float)
    if shape and shape[0] == 0:
        raise InputError(f"{path} has no samples in {who}: remove the class.")
    if len(shape) != 2 or 0 in shape or dtype.kind not in "fiub":
        raise InputError(f"{path} holds an array {shape} of {dtype} in {who}: store numbers (samples, features).")
    return vectors, shape, dtype


def _flat(vector: np.ndarray) -> np.ndarray:
    """A vector of one axis, if only one is longer than 1, as after pooling."""
    return vector.reshape(-1) if vector.size and vector.size == max(vector.shape, default=0) else vector


# --- labels


def label_array(values: Any, name: str, path: Path) -> np.ndarray:
    """Labels as a one-dimensional array of strings, integers, booleans or floats; raises for anything else."""
    where = f"{path} has labels in {name}"
    if isinstance(values, list):
        kinds = {next((kind for kind in _LABEL_KINDS if issubclass(of, kind)), None) for of in set(map(type, values))}
        if len(kinds) > 1 or None in kinds:
            raise InputError(f"{where} of different or unknown types: use all strings or all integers.")
        if kinds == {str}:
            values = text_array(values, path)
        elif kinds == {Integral}:
            values = integer_array(values, path)
    array = np.asarray(values)
    if array.ndim == 2 and 1 in array.shape:
        # MATLAB has no vectors, only rows and columns.
        array = array.reshape(-1)
    if array.ndim != 1:
        raise InputError(
            f"{where} of shape {array.shape}, and one label per sample is needed: take the argmax of one-hot rows."
        )
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{where} that are not UTF-8: store them as text.") from None
    if array.dtype.kind not in "Uiubf":
        raise InputError(f"{where} of type {array.dtype}: use strings or integers.")
    if not is_text(array):
        raise damaged(f"{where} with invalid characters")
    return array


def text_array(texts: list[str], path: Path) -> np.ndarray:
    """Texts as an array, which gives each the room of the longest, and would drop NUL characters at the end."""
    check_size(path, 4 * len(texts) * max(map(len, texts), default=0), "labels")
    if any(text.endswith("\0") for text in texts):
        raise InputError(f"{path} has labels that end in a NUL character: rename them.")
    return np.array(texts, dtype=str)


def is_text(array: np.ndarray) -> bool:
    """Whether an array holds no text, or only valid characters: NumPy does not check them."""
    if array.dtype.kind != "U" or not array.size:
        return True
    codes = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    # Surrogates of UTF-16 are not characters.
    return bool(codes.max() <= sys.maxunicode and not ((codes >= 0xD800) & (codes < 0xE000)).any())


def integer_array(values: Sequence[int], path: Path) -> np.ndarray:
    """Integers as int64 or uint64."""
    for dtype in (np.int64, np.uint64):
        try:
            return np.array(values, dtype=dtype)
        except OverflowError:
            continue
    raise InputError(f"{path} has integer labels of more than 64 bits: store them as strings.")


def labels_from_text(texts: Sequence[str], path: Path) -> np.ndarray:
    """Labels from their distinct texts: integers of 64 bits if all look like integers (7, not 007 or 7.0)."""
    if all(map(_INTEGER.fullmatch, texts)):
        with suppress(InputError):
            return integer_array(list(map(int, texts)), path)
    return label_array(list(texts), "its labels", path)
