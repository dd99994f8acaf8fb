"""Features by class: a mapping from label to vectors, as the pickles of few-shot papers hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.labels import label_array
from hotshot.files.limits import check_size
from hotshot.files.names import quoted
from hotshot.files.source import Batch, FeatureSource, blocks, from_disk, rebatch


def features_from_classes(
    classes: Mapping[Any, Any], path: Path, *, about: dict[str, Any] | None = None
) -> FeatureSource:
    """Features and labels of a mapping from label to vectors: a sequence of them, or one array (samples, V).

    Labels are all strings or all integers, and come in the order of the mapping.
    """
    if not classes:
        raise InputError(f"{path} holds no classes: store a mapping from label to vectors.")
    labels = label_array(list(classes), "its classes", path)
    groups = [_group(vectors, label, path) for label, vectors in classes.items()]
    for label, group in zip(labels, groups, strict=True):
        if group.width != groups[0].width:
            raise InputError(
                f"{path} has vectors of {groups[0].width} features in class {quoted(labels[0])} and of {group.width} "
                f"in class {quoted(label)}: extract all features with the same model."
            )
    n_samples = sum(group.count for group in groups)
    check_size(path, n_samples * labels.itemsize, "labels")
    dtype = np.result_type(*(group.dtype for group in groups))

    def pieces(rows: int) -> Iterator[Batch]:
        for label, group in zip(labels, groups, strict=True):
            for X in blocks(group.vectors, rows):
                yield np.asarray(X, dtype=dtype), np.full(len(X), label)

    return FeatureSource(
        path=path,
        n_samples=n_samples,
        n_features=groups[0].width,
        dtype=dtype,
        batches=lambda rows: rebatch(pieces(rows), rows),
        about=dict(about or {}),
        streams=all(from_disk(group.vectors) for group in groups),
    )


@dataclass(frozen=True)
class _Group:
    """The vectors of one class, an array (samples, V) or a list of arrays (V,)."""

    vectors: Any
    count: int
    width: int
    dtype: np.dtype


def _group(vectors: Any, label: Any, path: Path) -> _Group:
    who = f"class {quoted(label)}"
    if hasattr(vectors, "shape") and hasattr(vectors, "dtype"):
        shape, dtype = tuple(vectors.shape), vectors.dtype
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
        dtype = np.result_type(*(vector.dtype for vector in vectors)) if vectors else np.dtype(float)
    if shape and shape[0] == 0:
        raise InputError(f"{path} has no samples in {who}: remove the class.")
    if len(shape) != 2 or 0 in shape or dtype.kind not in "fiub":
        raise InputError(
            f"{path} holds an array {shape} of {dtype} in {who}: store numbers (samples, features) for every class."
        )
    return _Group(vectors, shape[0], shape[1], dtype)
