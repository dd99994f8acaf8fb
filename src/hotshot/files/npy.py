"""`.npy`: features in one file, mapped into memory, and their labels in another beside it."""

from __future__ import annotations

from pathlib import Path

from hotshot.errors import InputError
from hotshot.files.labels_file import read_labels
from hotshot.files.named import features_from_arrays
from hotshot.files.npy_format import map_npy
from hotshot.files.source import FeatureSource

# What the labels of `name.npy` may be called.
_BESIDE = ("{}.labels.npy", "{}_labels.npy", "{}.labels.txt", "{}.labels.csv")
_PAIRS = {"X": "y", "x": "y", "features": "labels"}


def open_npy(path: Path, labels: Path | None) -> FeatureSource:
    """Features of an `.npy` file with the labels that were named or that stand beside it."""
    X = map_npy(path)
    if labels is None:
        labels = _find_labels(path)
    return features_from_arrays({"X": X, "y": read_labels(labels)}, path)


def _find_labels(path: Path) -> Path:
    names = [pattern.format(path.stem) for pattern in _BESIDE]
    if path.stem in _PAIRS:
        names.append(f"{_PAIRS[path.stem]}.npy")
    for name in names:
        if (path.parent / name).exists():
            return path.parent / name
    raise InputError(
        f"{path} needs a file of labels beside it, and none of {', '.join(names)} is there: "
        "write one with numpy.save, or name it with labels=."
    )
