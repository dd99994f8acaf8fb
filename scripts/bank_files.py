"""Write the file of an embedded bank: samples in half precision, sorted by class, and a description."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from hotshot.files.tensors import write_tensors

FOLDER = Path(__file__).resolve().parents[1] / "src" / "hotshot" / "bank" / "embedded"
# Features and labels of the samples to keep, in order.
Part = tuple[np.ndarray, np.ndarray]


def first_of_each(X: np.ndarray, y: np.ndarray, names: np.ndarray, most: int) -> Part:
    """The first `most` samples of each named class, sorted by class."""
    rows = np.concatenate([np.flatnonzero(y == name)[:most] for name in np.sort(names)])
    return X[rows], y[rows]


def write_bank(name: str, base: Part, novel: Part, *, about: str, ways: int) -> None:
    """Write a bank and print its sizes; `ways` is the usual number of classes of its tasks."""
    tensors: dict[str, np.ndarray] = {}
    metadata = {"about": about, "ways": str(ways)}
    for part, (X, y) in (("base", base), ("novel", novel)):
        names, counts = np.unique(y, return_counts=True)
        tensors[part] = X.astype(np.float16)
        tensors[f"{part}_counts"] = counts
        metadata[f"{part}_names"] = json.dumps(names.tolist())
    path = FOLDER / f"{name}.safetensors"
    write_tensors(path, tensors, metadata)
    print(f"{path.name}: base {tensors['base'].shape}, novel {tensors['novel'].shape}, {path.stat().st_size:,} bytes")
