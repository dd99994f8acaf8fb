"""Which array or column is what: features, labels, class names, ids or texts; and labels in any form as one array."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.opening import check_size, damaged, json_object
from hotshot.files.samples import ID, TEXT, THUMBNAIL, Batch, FeatureSource, Lazy, SeveralPartsError, blocks, in_memory
from hotshot.formatting import listing, on_one_line, quoted

_WORDS = {
    "features": "x features feature feats feat embeddings embedding embeds data vectors representations activations",
    "labels": "y labels label targets target classes class category categories",
    "names": "names class_names classnames classes label_names target_names categories",
    # Arrays of each sample, beside its label.
    "ids": "id ids",
    "texts": "text texts",
}
_ROLES = {role: frozenset(words.split()) for role, words in _WORDS.items()}
FEATURE_NAMES, LABEL_NAMES = _ROLES["features"], _ROLES["labels"]
# Between the role and the part of an array: `X_base`, `base_X`, `base/X`.
_SIGNS = "_./- "
# Arrays of these names are whole sets of samples, never the samples of one class.
_SET = re.compile(r"arr_\d+|train|training|test|val|valid|validation|base|novel|support|query", re.IGNORECASE)

# Columns of these names say where a row comes from. Numbers called as a place or time may be features, unless features
# have no names but numbers. Names are compared without case, signs and units: `Start (s)` is start.
_ID_COLUMNS = ("id", "ids")
_TEXT_COLUMNS = ("text", "texts", "sentence", "question", "query", "utterance")
_PLACES = ("file", "filename", "filepath", "path", "recording", "key", "sourceid")
_TIMES = ("start", "starttime", "begintime", "end", "endtime", "time", "offset", "timestamp")

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,19}")
_LABEL_KINDS: tuple[Any, ...] = (str, (bool, np.bool_), Integral, Real)

# An array in a file: a NumPy array, or one with its shape, dtype and reshape that becomes such by numpy.asarray and has
# `blocks(rows)`, an iterator over that many rows at a time.
Numbers = Any
# The names of the arrays of one set of samples, by role.
Part = dict[str, list[str]]


# --- columns of tables

# What a column holds. Unknown are cells that may be labels, but are not stored beside features: bytes, or nothing.
NUMBERS, TEXTS, DATES, VECTORS, UNKNOWN, OTHERS = "numbers", "texts", "dates", "vectors", "unknown", "others"


@dataclass(frozen=True)
class Roles:
    """Roles of columns, by their places.

    `missing` is the error message if there is no label. `features` are columns of numbers or, if `of_vectors`, one
    column of vectors. Those `beside` are stored with the features; those of them in `texts` only because they are text.
    """

    label: int | None
    missing: str
    features: tuple[int, ...]
    of_vectors: bool
    beside: tuple[int, ...]
    texts: frozenset[int]


def roles_of(
    names: Sequence[str], kinds: Sequence[str], path: Path, where: str = "", label: int | None = None
) -> Roles:
    """Which column is what; `label` is that of the labels, if it is certain."""
    labels = [i for i, name in enumerate(names) if name.lower() in LABEL_NAMES and kinds[i] != VECTORS]
    if label is not None:
        labels = [label]
    elif not labels:
        # Without a usual name, the only column of text is the label.
        candidates = [i for i, kind in enumerate(kinds) if kind in (TEXTS, UNKNOWN)]
        labels = [i for i in candidates if not is_beside(names[i]) and names[i] != THUMBNAIL]
    label, missing = labels[0] if len(labels) == 1 else None, ""
    if label is None:
        several = listing(quoted(names[i]) for i in labels) or "none"
        missing = (
            f"{path} must have one column of labels and has {several} among {listing(map(quoted, names))}: "
            f"rename exactly one column to 'label'{where}."
        )
    others = [i for i in range(len(names)) if i != label]
    vectors = [i for i in others if kinds[i] == VECTORS]
    vectors = [i for i in vectors if names[i].lower() in FEATURE_NAMES] or vectors
    if len(vectors) > 1:
        both = listing(quoted(names[i]) for i in vectors)
        raise InputError(f"{path} has several columns of lists, {both}: keep one.")
    # Features by number are f0, f1 and so on, beside files and times or alone.
    plain = [names[i] for i in others if kinds[i] == NUMBERS and not is_beside(names[i])]
    numbered, possible = bool(plain) and all(name[-1:].isdigit() for name in plain), set(labels)

    def stands_beside(i: int) -> bool:
        if names[i] == THUMBNAIL:
            return kinds[i] == UNKNOWN
        # Beside a column of vectors, numbers are identifiers and the like.
        usual = bool(vectors) or i in possible or is_beside(names[i], kinds[i] == NUMBERS and not numbered)
        return kinds[i] in (TEXTS, DATES) or (kinds[i] == NUMBERS and usual)

    beside = {i for i in others if stands_beside(i)}
    features = vectors or [i for i in others if i not in beside]
    texts = {i for i in beside if kinds[i] in (TEXTS, DATES) and i not in possible and not is_beside(names[i])}
    only = frozenset() if vectors else frozenset(texts)
    return Roles(label, missing, tuple(features), bool(vectors), tuple(sorted(beside)), only)


def bare(name: str) -> str:
    """The name of a column, normalised for comparison with the names above."""
    return re.sub(r"\([^)]*\)|[^a-z0-9]", "", name.lower())


def is_beside(name: str, of_numbers: bool = False) -> bool:
    """Whether a column of this name, of texts or of numbers, is stored beside the features."""
    usual = (*_ID_COLUMNS, *_TEXT_COLUMNS)
    return bare(name) in (usual if of_numbers else (*usual, *_PLACES, *_TIMES))


def columns_of(columns: Mapping[str, Sequence[Any]], n_samples: int) -> dict[str, Sequence[Any]]:
    """Columns with `id` and `text` under these names; without an id, file and time columns together are it."""
    columns = dict(columns)
    usual: dict[str, Sequence[Any]] = {}
    for role, names in ((ID, _ID_COLUMNS), (TEXT, _TEXT_COLUMNS)):
        called = {bare(name): name for name in reversed(columns) if name != THUMBNAIL}
        name = next((called[n] for n in names if n in called), None)
        if name is not None:
            usual[role] = columns.pop(name)
    places, times = ([columns[n] for n in columns if bare(n) in names] for names in (_PLACES, _TIMES))

    def made(row: int) -> str:
        """`XC123.wav 3.0-6.0`."""
        parts = [*(values[row] for values in places), "-".join(values[row] for values in times)]
        return " ".join(part for part in parts if part)

    if ID not in usual and (places or times):
        usual = {ID: Lazy(made, range(n_samples)), **usual}
    return {**usual, **columns}


# --- named arrays


def features_from_arrays(
    arrays: Mapping[str, Numbers], path: Path, *, part: str | None = None, about: dict[str, Any] | None = None
) -> FeatureSource:
    """Features and labels among named arrays, in any of the layouts that feature files come in.

    - `X` (samples, V) and `y` (samples,), or other usual names for them; class names of integer labels
      may be stored beside them;
    - one array (classes, samples, V), with the names of the classes in another array, or numbered from 0;
    - one array (samples, V) per class, whose name is the label.

    Arrays `ids` and `texts` with one entry per sample are stored beside them.

    `part` chooses one of several sets of samples, such as `X_base`, `y_base` and `X_novel`, `y_novel`. `about` is the
    header of the file; if it is None, an array `about` of JSON text is read as header.
    """
    arrays = dict(arrays)
    text = arrays.pop("about", None)
    if about is None:
        words = np.asarray(text).reshape(-1) if text is not None and text.dtype.kind == "U" else np.array([""])
        about = json_object("".join(words.tolist()) if is_text(words) else "") or {}
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
    for role, names in ((ID, chosen["ids"]), (TEXT, chosen["texts"])):
        # Arrays of other lengths are ignored.
        fitting = next((name for name in names if arrays[name].shape == (X.shape[0],)), None)
        if fitting is not None:
            columns[role] = label_array(arrays[fitting], quoted(fitting), path).astype(str).tolist()
    return in_memory(path, X, labels, about, columns, unlabelled)


def _parts(arrays: Mapping[str, Numbers]) -> dict[str, Part]:
    """Sets of samples by name; the name is empty if arrays have no part in their names."""
    parts: dict[str, Part] = {}
    fitting = [(part, role, name) for name, x in arrays.items() for role, part in _roles(name) if _fits(role, x)]
    if not any(role == "features" for _, role, _ in fitting):
        fitting += [(name, "features", name) for name, x in arrays.items() if len(x.shape) == 3]
    for part, role, name in fitting:
        parts.setdefault(part, {role: [] for role in _ROLES})[role].append(name)
    # Class names without a part serve every part that has none of its own.
    common = parts[""]["names"] if "" in parts else []
    return {name: {**part, "names": part["names"] or common} for name, part in parts.items()}


def _roles(name: str) -> Iterator[tuple[str, str]]:
    """What an array of this name may be, and of which part: `X_base`, `base_X` and `base/X` are features of base."""
    lower = name.lower()
    exact = [role for role, words in _ROLES.items() if lower in words]
    yield from ((role, "") for role in exact)
    for role, words in {} if exact else _ROLES.items():
        parts = []
        for word in words:
            if lower.endswith(tuple(sign + word for sign in _SIGNS)):
                part = name[: -len(word)].rstrip(_SIGNS)
                parts.append((len(part), 0, part))
            if lower.startswith(tuple(word + sign for sign in _SIGNS)):
                parts.append((len(word), 1, name[len(word) :].lstrip(_SIGNS)))
        # The first cut decides, and at one cut the word after it.
        part = min((place for place in parts if place[2]), default=(0, 0, ""))[2]
        if part:
            yield role, part


def _fits(role: str, array: Numbers) -> bool:
    dimensions, kind = len(array.shape), array.dtype.kind
    if role == "features":
        return dimensions >= 2 and kind not in "US"
    if role in ("ids", "texts"):
        return dimensions == 1 and kind in ("USiu" if role == "ids" else "US")
    return dimensions in (1, 2) and (role == "labels" or kind in "US")


def choose_part(parts: Mapping[str, Any], part: str | None, path: Path) -> Any:
    """The requested set of samples, or the only one."""
    if part is None and len(parts) > 1:
        raise SeveralPartsError(
            f"{path} holds several sets of samples, {listing(map(quoted, parts))}: "
            f"choose one, for example {path.name}:{on_one_line(next(iter(parts)), 60)}.",
            parts,
        )
    if part is not None and part not in parts:
        raise InputError(f"{path} has no part {quoted(part)}: it has {listing(map(quoted, parts))}.")
    return next(iter(parts.values())) if part is None else parts[part]


def _check_numbers(X: Numbers, name: str, path: Path) -> None:
    if X.dtype.kind in "fiub" and len(X.shape) <= 3 and 0 not in X.shape:
        return
    holds = f"{path} holds {_described(name, X)}"
    if X.dtype.kind == "c":
        raise InputError(f"{path} holds complex numbers in {quoted(name)}: take their real part or their modulus.")
    if X.dtype.kind not in "fiub":
        raise InputError(f"{holds} of type {X.dtype}: store features as numbers.")
    if len(X.shape) > 3:
        raise InputError(f"{holds}: reshape it to (samples, features) or (classes, samples, features).")
    raise InputError(f"{holds}: store at least one sample and one feature.")


def _labels_of_rows(arrays: Mapping[str, Numbers], name: str, part: Part, path: Path) -> tuple[np.ndarray | None, str]:
    """Labels of the samples, or None and the message that there are none."""
    X = arrays[name]
    # A single row or column counts, as MATLAB has no vectors; a table does not.
    counts = {other: math.prod(s) if len(s) == 1 or 1 in s else -1 for other in arrays for s in [arrays[other].shape]}
    per_sample = [other for other in part["labels"] if counts[other] == X.shape[0]]
    if len(per_sample) > 1:
        # As many classes as samples: `classes` beside `y` are their names.
        per_sample = [other for other in per_sample if other not in part["names"]]
    if len(per_sample) > 1:
        raise InputError(f"{path} holds several arrays of labels, {listing(map(quoted, per_sample))}: keep one.")
    if not per_sample:
        others = [other for other in part["labels"] if other not in part["names"]]
        if not others:
            return None, (
                f"{path} has no labels for its features {_described(name, X)}, it holds {_inventory(arrays, name)}: "
                "add an array y with one label per sample."
            )
        is_turned = counts[others[0]] == X.shape[1]
        remedy = "transpose the features to (samples, features)" if is_turned else "give one label per sample"
        wrong = _described(others[0], arrays[others[0]])
        raise InputError(f"{path} has features {_described(name, X)} and labels {wrong}: {remedy}.")
    labels = label_array(arrays[per_sample[0]], f"{per_sample[0]!r:.60}", path)
    names = [other for other in part["names"] if other not in per_sample]
    if not names or labels.dtype.kind == "U":
        return labels, ""
    where = quoted(names[0])
    return _named_labels(labels, label_array(arrays[names[0]], where, path), where, path), ""


def _labels_of_stack(arrays: Mapping[str, Numbers], name: str, part: Part, path: Path) -> np.ndarray:
    """Labels of the samples of an array (classes, samples, V), in its order."""
    X = arrays[name]
    n_classes, per_class = X.shape[:2]
    given = [*part["names"], *part["labels"]]
    if not given:
        return np.repeat(np.arange(n_classes), per_class)
    labels = np.asarray(arrays[given[0]])
    if labels.shape == (n_classes, per_class) and per_class > 1:
        return label_array(labels.reshape(-1), quoted(given[0]), path)
    names = label_array(labels, quoted(given[0]), path)
    if len(names) != n_classes or len(np.unique(names)) != n_classes:
        raise InputError(
            f"{path} has {n_classes} classes in {_described(name, X)}, taken as (classes, samples, features), and "
            f"{len(names)} names, {len(np.unique(names))} of them different, in {quoted(given[0])}: give every class "
            "a name, or features (samples, features) and one label per sample."
        )
    check_size(path, n_classes * per_class * names.itemsize, "labels")
    return np.repeat(names, per_class)


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
    """Features and labels of a mapping from label to vectors: a list of arrays (V,), or one array (samples, V).

    Labels are all strings or all integers, and come in the order of the mapping.
    """
    if not classes:
        raise InputError(f"{path} holds no classes: store a mapping from label to vectors.")
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
            vectors = [np.asarray(vector) for vector in vectors]
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


# --- labels


def label_array(values: Any, name: str, path: Path) -> np.ndarray:
    """Labels as a one-dimensional array of strings, integers, booleans or floats; raises for anything else."""
    where = f"{path} has labels in {name}"
    if isinstance(values, Sequence):
        kinds = {next((kind for kind in _LABEL_KINDS if isinstance(value, kind)), None) for value in values}
        if len(kinds) > 1 or None in kinds:
            raise InputError(f"{where} of different or unknown types: use all strings or all integers.")
        if kinds == {str}:
            # NumPy gives every string the room of the longest, and drops NUL characters at the end.
            check_size(path, 4 * len(values) * max(map(len, values)), "labels")
            if any(value.endswith("\0") for value in values):
                raise InputError(f"{where} that end in a NUL character: rename them.")
        if kinds == {Integral}:
            return integer_array(values, path)
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
        values = [int(text) for text in texts]
        if min(values) >= (-(2**63) if max(values) < 2**63 else 0) and max(values) < 2**64:
            return integer_array(values, path)
    return label_array(list(texts), "its labels", path)


def _named_labels(codes: np.ndarray, names: np.ndarray, name: str, path: Path) -> np.ndarray:
    """The class names of integer labels that count from 0 or, as in MATLAB, from 1."""
    if not np.isfinite(codes).all() or (codes != np.floor(codes)).any():
        raise InputError(f"{path} has class names {name} but labels that are not integers: use whole numbers.")
    low, high = int(codes.min()), int(codes.max())
    held = f"{path} has labels from {low} to {high}"
    if low >= 1 and high < len(names) and path.suffix.lower() == ".mat":
        raise InputError(
            f"{held} and {len(names)} class names in {name}, which may be counted from 0 or from 1: remove the names "
            "of classes without samples."
        )
    first = 1 if low >= 1 and high == len(names) else 0
    if low < first or high - first >= len(names):
        raise InputError(f"{held} but {len(names)} class names in {name}: give a name to every class.")
    check_size(path, len(codes) * names.itemsize, "labels")
    return names[codes.astype(np.int64) - first]
