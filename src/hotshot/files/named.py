"""The meaning of named arrays in any format: features, labels or class names."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.kept import Kept, kept_of
from hotshot.files.source import (
    Batch,
    FeatureSource,
    SeveralPartsError,
    blocks,
    check_size,
    from_disk,
    in_memory,
    is_text,
    json_object,
    label_array,
    name_labels,
    rebatch,
)
from hotshot.formatting import listing, on_one_line, quoted

_FEATURES = "x features feature feats feat embeddings embedding embeds data vectors representations activations"
_LABELS = "y labels label targets target classes class category categories"
_NAMES = "names class_names classnames classes label_names target_names categories"
FEATURE_NAMES, LABEL_NAMES, CLASS_NAMES = (frozenset(t.split()) for t in (_FEATURES, _LABELS, _NAMES))
# Of each sample, beside its label.
_IDS, _TEXTS = frozenset(("id", "ids")), frozenset(("text", "texts"))
_ROLES = {"features": FEATURE_NAMES, "labels": LABEL_NAMES, "names": CLASS_NAMES, "ids": _IDS, "texts": _TEXTS}
_LONGEST_ROLE = max(len(word) for words in _ROLES.values() for word in words)
# Arrays of these names are whole sets of samples, never the samples of one class.
_SET = re.compile(r"arr_\d+|train|training|test|val|valid|validation|base|novel|support|query", re.IGNORECASE)


# An array in a file: a NumPy array, or one with its shape, dtype and reshape that becomes such by numpy.asarray and has
# `blocks(rows)`, an iterator over that many rows at a time.
Numbers = Any


@dataclass
class _Part:
    """The arrays of one set of samples, by their names in the file."""

    features: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)


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
        about = parsed_about("".join(words.tolist()) if is_text(words) else "")
    parts = {own: found for own, found in _parts(arrays).items() if found.features}
    if not parts:
        return _from_class_arrays(arrays, path, part, about)
    unlabelled = ""
    called = {own or found.features[0]: own for own, found in parts.items()}
    chosen = parts[choose_part(called, part, path)]
    name, *others = chosen.features
    if others:
        raise InputError(f"{path} holds several arrays of features, {listing(map(quoted, chosen.features))}: keep one.")
    X = arrays[name]
    _check_numbers(X, name, path)
    if len(X.shape) == 3:
        labels: np.ndarray | None = _labels_of_stack(arrays, name, chosen, path)
        X = X.reshape(-1, X.shape[2])
    else:
        found = _labels_of_rows(arrays, name, chosen, path)
        labels, unlabelled = (None, found) if isinstance(found, str) else (found, "")
    return _source(X, labels, path, about, unlabelled, _kept(arrays, chosen, X.shape[0], path))


def _source(
    X: Numbers, labels: np.ndarray | None, path: Path, about: dict[str, Any], unlabelled: str, kept: Kept | None = None
) -> FeatureSource:
    about = dict(about)
    label_type = about.pop("label_type", None)
    if labels is not None and label_type in ("float", "bool") and labels.dtype.kind != "U":
        # Not every format keeps what type numbers are of.
        labels = labels.astype(label_type)
    return in_memory(path, X, lambda some: None if labels is None else labels[some], about, kept, unlabelled)


def _kept(arrays: Mapping[str, Numbers], part: _Part, n_samples: int, path: Path) -> Kept:
    """Ids and texts of the samples; arrays of other lengths are ignored."""
    columns = {}
    for role, names in (("id", part.ids), ("text", part.texts)):
        name = next((name for name in names if arrays[name].shape == (n_samples,)), None)
        if name is not None:
            columns[role] = label_array(np.asarray(arrays[name]), quoted(name), path).astype(str).tolist()
    return kept_of(columns, n_samples)


def _parts(arrays: Mapping[str, Numbers]) -> dict[str, _Part]:
    """Sets of samples by name; the name is empty if arrays have no part in their names."""
    parts: dict[str, _Part] = {}
    for name, array in arrays.items():
        for role, own in _roles(name):
            if _fits(role, array):
                getattr(parts.setdefault(own, _Part()), role).append(name)
    if not any(part.features for part in parts.values()):
        for name, array in arrays.items():
            if len(array.shape) == 3:
                parts.setdefault(name, _Part()).features.append(name)
    # Class names without a part serve every part that has none of its own.
    common = parts.get("", _Part())
    for part in parts.values():
        part.names = part.names or common.names
    return parts


def _roles(name: str) -> Iterator[tuple[str, str]]:
    """What an array of this name may be, and of which part: `X_base`, `base_X` and `base/X` are features of base."""
    exact = [role for role, words in _ROLES.items() if name.lower() in words]
    if exact:
        yield from ((role, "") for role in exact)
        return
    cuts = [match.span() for match in re.finditer(r"[_./\- ]+", name)]
    # No word is before or after the others; to look would take time that grows with the square of the name.
    cuts = [(start, end) for start, end in cuts if min(start, len(name) - end) <= _LONGEST_ROLE]
    for role, words in _ROLES.items():
        for start, end in cuts:
            before, after = name[:start], name[end:]
            own = before if after.lower() in words else after if before.lower() in words else ""
            if own:
                yield role, own
                break


def _fits(role: str, array: Numbers) -> bool:
    dimensions, kind = len(array.shape), array.dtype.kind
    if role == "features":
        return dimensions >= 2 and kind not in "US"
    if role in ("ids", "texts"):
        return dimensions == 1 and kind in ("USiu" if role == "ids" else "US")
    return dimensions in (1, 2) and (role == "labels" or kind in "US")


def choose_part(called: Mapping[str, Any], part: str | None, path: Path) -> Any:
    """The requested set of samples, or the only one."""
    if part is not None and part in called:
        return called[part]
    if part is not None:
        raise InputError(f"{path} has no part {quoted(part)}: it has {listing(map(quoted, called))}.")
    if len(called) > 1:
        raise SeveralPartsError(
            f"{path} holds several sets of samples, {listing(map(quoted, called))}: "
            f"choose one, for example {path.name}:{on_one_line(next(iter(called)), 60)}.",
            called,
        )
    return next(iter(called.values()))


def _check_numbers(X: Numbers, name: str, path: Path) -> None:
    if X.dtype.kind == "c":
        raise InputError(f"{path} holds complex numbers in {quoted(name)}: take their real part or their modulus.")
    if X.dtype.kind not in "fiub":
        raise InputError(f"{path} holds {_described(name, X)} of type {X.dtype}: store features as numbers.")
    if len(X.shape) > 3:
        raise InputError(
            f"{path} holds {_described(name, X)}: reshape it to (samples, features) or (classes, samples, features)."
        )
    if 0 in X.shape:
        raise InputError(f"{path} holds {_described(name, X)}: store at least one sample and one feature.")


def _labels_of_rows(arrays: Mapping[str, Numbers], name: str, part: _Part, path: Path) -> np.ndarray | str:
    """Labels of the samples, or the message that there are none."""
    X = arrays[name]
    per_sample = [other for other in part.labels if _count(arrays[other]) == X.shape[0]]
    if len(per_sample) > 1:
        # As many classes as samples: `classes` beside `y` are their names.
        per_sample = [other for other in per_sample if other not in part.names]
    if len(per_sample) > 1:
        raise InputError(f"{path} holds several arrays of labels, {listing(map(quoted, per_sample))}: keep one.")
    if not per_sample:
        others = [other for other in part.labels if other not in part.names]
        if not others:
            return (
                f"{path} has no labels for its features {_described(name, X)}, it holds {_inventory(arrays, name)}: "
                "add an array y with one label per sample."
            )
        wrong = arrays[others[0]]
        turned = _count(wrong) == X.shape[1]
        raise InputError(
            f"{path} has features {_described(name, X)} and labels {_described(others[0], wrong)}: "
            + ("transpose the features to (samples, features)." if turned else "give one label per sample.")
        )
    labels = label_array(np.asarray(arrays[per_sample[0]]), f"{per_sample[0]!r:.60}", path)
    names = [other for other in part.names if other not in per_sample]
    if not names or labels.dtype.kind == "U":
        return labels
    called = quoted(names[0])
    return name_labels(labels, label_array(np.asarray(arrays[names[0]]), called, path), called, path)


def _labels_of_stack(arrays: Mapping[str, Numbers], name: str, part: _Part, path: Path) -> np.ndarray:
    """Labels of the samples of an array (classes, samples, V), in its order."""
    X = arrays[name]
    n_classes, per_class = X.shape[:2]
    given = [*part.names, *part.labels]
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
    tables = all(len(a.shape) == 2 and a.dtype.kind in "fiub" for a in arrays.values())
    if len(arrays) < 2 or not tables or all(_SET.fullmatch(name) for name in arrays):
        missing = (
            f"{path} must hold two arrays, X and y, or one array (samples, features) per class, and holds "
            f"{_inventory(arrays)}: write it with numpy.savez(path, X=X, y=y)."
        )
        if len(arrays) == 1 and tables and part is None and 0 not in next(iter(arrays.values())).shape:
            return _source(next(iter(arrays.values())), None, path, about, missing)
        raise InputError(missing)
    if part is not None:
        raise InputError(f"{path} has no part {quoted(part)}: it holds one array per class.")
    return features_from_classes(arrays, path, about=about)


def _count(array: Numbers) -> int:
    """The number of labels in an array; a single row or column counts, a table does not."""
    if len(array.shape) == 1 or 1 in array.shape:
        return int(np.prod(array.shape))
    return -1


def parsed_about(text: str) -> dict[str, Any]:
    """The header in JSON text; empty if it is not a JSON object."""
    return json_object(text) or {}


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
    for label in widths:
        if widths[label] != width:
            raise InputError(
                f"{path} has {width} features in class {quoted(first)} and {widths[label]} in class "
                f"{quoted(label)}: extract all features with the same model."
            )
    n_samples = sum(shape[0] for _, shape, _ in groups.values())
    check_size(path, n_samples * labels.itemsize, "labels")
    dtype = np.result_type(*(dtype for _, _, dtype in groups.values()))

    def pieces(rows: int) -> Iterator[Batch]:
        for label, (vectors, _, _) in zip(labels, groups.values(), strict=True):
            for X in blocks(vectors, rows):
                yield np.asarray(X, dtype=dtype), np.full(len(X), label)

    streams = all(from_disk(vectors) for vectors, _, _ in groups.values())
    about = dict(about or {})
    return FeatureSource(path, n_samples, width, dtype, lambda rows: rebatch(pieces(rows), rows), about, streams)


def class_vectors(vectors: Any, label: Any, path: Path) -> tuple[Any, tuple[int, ...], np.dtype]:
    """The vectors of one class, checked, their shape (samples, V) and their type."""
    who = f"class {quoted(label)}"
    if not hasattr(vectors, "dtype"):
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
        shape: tuple[int, ...] = (len(vectors), *(shapes[0] if shapes else ()))
        dtype = np.result_type(*{vector.dtype for vector in vectors}) if vectors else np.dtype(float)
    else:
        shape, dtype = tuple(vectors.shape), vectors.dtype.newbyteorder("=")
    if shape and shape[0] == 0:
        raise InputError(f"{path} has no samples in {who}: remove the class.")
    if len(shape) != 2 or 0 in shape or dtype.kind not in "fiub":
        raise InputError(
            f"{path} holds an array {shape} of {dtype} in {who}: store numbers (samples, features) for every class."
        )
    return vectors, shape, dtype
