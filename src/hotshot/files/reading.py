"""Opening and reading feature files of every format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.checks import check_features, check_labels
from hotshot.errors import InputError, ParameterError
from hotshot.files.matlab import open_matlab
from hotshot.files.names import quoted
from hotshot.files.native import open_safetensors
from hotshot.files.numpy_files import open_npy, open_npz
from hotshot.files.parquet import open_parquet
from hotshot.files.pickles import open_pickle
from hotshot.files.sniff import Kind, sniff
from hotshot.files.source import FeatureSource
from hotshot.files.text import open_text, shortest_floats
from hotshot.files.torch_files import open_torch

# Formats that hold named arrays, and so may hold several sets of samples.
_WITH_PARTS = {
    Kind.SAFETENSORS: open_safetensors,
    Kind.NPZ: open_npz,
    Kind.TORCH: open_torch,
    Kind.MATLAB: open_matlab,
    Kind.PICKLE: open_pickle,
}


@dataclass(frozen=True)
class FeatureFile:
    """Features X (samples, V), labels y (samples,) and what their file says about them; `X, y = file` works."""

    X: np.ndarray
    y: np.ndarray
    about: dict[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.X, self.y))


def read_features(path: str | Path, *, part: str | None = None, labels: str | Path | None = None) -> FeatureFile:
    """Features and labels of a file in any format, checked; nothing that is in the file is ever run.

    Parameters
    ----------
    path : str or Path
        `.safetensors`, `.npz`, `.npy`, `.csv`, `.tsv`, `.parquet`, `.pt`, `.mat` or a pickle; `file.npz:part` chooses
        one of several sets of samples.
    part : str or None
        The same as in the path.
    labels : str, Path or None
        The file of labels of an `.npy` file where it does not stand beside it under the usual name.

    Returns
    -------
    FeatureFile
        Features in float32 or float64: shorter floats become float32, integers float64. It unpacks: `X, y = …`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/birds.npz", X=np.eye(3), y=["wren", "wren", "kite"])
    ...     X, y = read_features(f"{folder}/birds.npz")
    >>> X.shape, y.tolist()
    ((3, 3), ['wren', 'wren', 'kite'])
    """
    source = open_features(path, part=part, labels=labels)
    try:
        X, y = source.read()
        if sniff(source.path) in (Kind.CSV, Kind.TSV):
            X = shortest_floats(X)
        X = check_features(X, f"X of {path}")
    except MemoryError:
        raise InputError(
            f"{path} does not fit in memory: convert it to .safetensors, which is read from the disk."
        ) from None
    names, members = check_labels(y, len(X), f"y of {path}")
    return FeatureFile(X, names[members], source.about)


def open_features(path: str | Path, *, part: str | None = None, labels: str | Path | None = None) -> FeatureSource:
    """Look at a feature file of any format: its size, its type and what it says, and batches to go through it.

    Parameters are those of `read_features`. Values are not checked, and stay in the type they are stored in.
    """
    path, part = split_part(Path(path), part)
    kind = sniff(path)
    if labels is not None and kind is not Kind.NPY:
        raise ParameterError(f"labels is for .npy files only: {path} holds its own labels.")
    if kind in _WITH_PARTS:
        return _WITH_PARTS[kind](path, part)
    if part is not None:
        raise InputError(f"{path} has no part {quoted(part)}: it holds one set of samples.")
    if kind is Kind.NPY:
        return open_npy(path, None if labels is None else Path(labels))
    if kind is Kind.PARQUET:
        return open_parquet(path)
    return open_text(path, "\t" if kind is Kind.TSV else ",")


def split_part(path: Path, part: str | None) -> tuple[Path, str | None]:
    """`file.npz:part` in two, unless there is a file of that very name."""
    name, colon, own = str(path).rpartition(":")
    if not colon or path.exists() or not Path(name).exists():
        return path, part
    if part not in (None, own):
        raise ParameterError(f"The path asks for part {quoted(own)} and part= for {quoted(part)}: pass one.")
    return Path(name), own
