"""Opening and reading feature files: the format is recognised by the first bytes, then by the suffix."""

import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_features
from hotshot.errors import InputError, ParameterError
from hotshot.files.arrays_files import (
    HDF5_MAGIC,
    NPY_MAGIC,
    open_hdf5,
    open_matlab,
    open_npy,
    open_npz,
    write_npy,
    write_npz,
)
from hotshot.files.feature_tables import open_parquet, open_text, write_parquet, write_text
from hotshot.files.native import open_safetensors, write_native
from hotshot.files.opening import check_size, damaged, opened
from hotshot.files.pickles import open_pickle
from hotshot.files.samples import FeatureSource, Samples
from hotshot.files.tensors import LONGEST_HEADER
from hotshot.files.torch_files import TORCH_MAGIC, open_torch
from hotshot.formatting import quoted
from hotshot.labels import check_labels


@dataclass(frozen=True)
class Format:
    """A format of feature files; `name` is its name in messages.

    `start` are the first bytes of every such file, if fixed; otherwise `suffixes` identify the format. `open` takes a
    path and the name of a part, or None, and returns a FeatureSource; files may hold several sets of samples only if
    `has_parts` is true. `write` takes a path and a `Content`; None if hotshot does not write the format.
    """

    name: str
    suffixes: tuple[str, ...]
    open: Callable[[Path, str | None], FeatureSource]
    write: Callable[[Path, Any], None] | None = None
    start: bytes = b""
    has_parts: bool = True


FORMATS = {
    "safetensors": Format("safetensors file", (".safetensors",), open_safetensors, write_native),
    "npz": Format(".npz file", (".npz",), open_npz, write_npz),
    "npy": Format(".npy file", (".npy",), open_npy, write_npy, NPY_MAGIC, has_parts=False),
    "csv": Format("CSV file", (".csv",), open_text, write_text, has_parts=False),
    "tsv": Format("TSV file", (".tsv", ".txt"), open_text, write_text, has_parts=False),
    "parquet": Format("Parquet file", (".parquet",), open_parquet, write_parquet, b"PAR1", has_parts=False),
    "torch": Format("torch file", (".pt", ".pth"), open_torch, None, TORCH_MAGIC),
    "matlab": Format("MATLAB file", (".mat",), open_matlab, None, b"MATLAB 5.0 MAT-file"),
    "hdf5": Format("HDF5 file", (".h5", ".hdf5"), open_hdf5, None, HDF5_MAGIC),
    "pickle": Format("pickle", (".plk", ".pkl", ".pickle", ".p"), open_pickle),
}


def by_suffix(path: Path) -> Format | None:
    """The format with the suffix of this path."""
    return next((one for one in FORMATS.values() if path.suffix.lower() in one.suffixes), None)


# Wherever these are found instead of features, this is what to say.
_REFUSED = (
    (b"\x1f\x8b", "is compressed with gzip", "unpack it with gunzip"),
    (b"MATLAB 7.3 MAT-file", "is a MATLAB 7.3 file (HDF5)", "save it with save(…, '-v7') in MATLAB"),
    (b"version https://git-lfs", "is a Git LFS pointer, not the data", "fetch the data with git lfs pull"),
)
_START = 2048


def read_features(
    path: str | Path, *, part: str | None = None, labels: str | Path | None = None, labelled: bool = True
) -> Samples:
    """Read and check the features and labels of a file; no code in the file is ever run.

    Parameters
    ----------
    path : path
        A ``.safetensors``, ``.npz``, ``.npy``, ``.csv``, ``.tsv``, ``.parquet``, ``.pt``, ``.mat`` or ``.h5`` file or a
        pickle; ``file.npz:part`` selects one of several sets of samples.
    part : str, optional
        The part, if it is not in the path.
    labels : path, optional
        Label file of an ``.npy`` file, if it does not have the usual name.
    labelled : bool
        Whether a file without labels is an error; if not, its ``y`` is None.

    Returns
    -------
    Samples
        Features in float32 or float64: shorter floats become float32, integers float64. It unpacks as ``X, y``.

    See Also
    --------
    hotshot.files.open_features : Open a file that does not fit in memory.
    hotshot.files.write_features : Write a file.

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
    source = open_features(path, part=part, labels=labels, labelled=labelled)
    try:
        X, y = source.read()
        if X.dtype == np.float64 and sniff(source.path) in (FORMATS["csv"], FORMATS["tsv"]):
            # Float32 if that changes no number, as if it was written from float32.
            with np.errstate(over="ignore"):
                short = X.astype(np.float32)
            X = short if np.array_equal(short, X, equal_nan=True) else X
        X = check_features(X, f"X of {path}")
    except MemoryError:
        raise InputError(
            f"{path} does not fit in memory: convert it to .safetensors, which is read from the disk."
        ) from None
    if y is not None:
        names, members = check_labels(y, len(X), f"y of {path}")
        y = names[members]
    return Samples(X, y, source.columns, source.about)


def open_features(
    path: str | Path,
    *,
    part: str | None = None,
    labels: str | Path | None = None,
    labelled: bool = True,
    lenient: bool = False,
) -> FeatureSource:
    """Open a feature file of any format, to read it in batches.

    Parameters
    ----------
    path, part, labels, labelled
        As in ``read_features``.
    lenient : bool
        Whether a damaged row of a CSV or TSV file is NaN, and its labels may be missing, instead of an error.

    Returns
    -------
    FeatureSource
        Size, type and batches of the features. Values are not checked, and keep the type in which they are stored.

    See Also
    --------
    read_features : Read a whole file into memory.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/birds.npz", X=np.eye(3), y=["wren", "wren", "kite"])
    ...     source = open_features(f"{folder}/birds.npz")
    ...     sizes = [X.shape for X, y in source.batches(2)]
    >>> source.n_features, sizes
    (3, [(2, 3), (1, 3)])
    """
    path, part = split_part(Path(path), part)
    kind = sniff(path)
    if labels is not None and kind is not FORMATS["npy"]:
        raise ParameterError(f"labels= is only for .npy files, and {path} has its own labels: leave it out.")
    if part is not None and not kind.has_parts:
        raise InputError(f"{path} has no part {quoted(part)}: it holds one set of samples.")
    if lenient and kind.open is open_text:
        source = open_text(path, part, lenient=True)
    else:
        source = kind.open(path, part) if labels is None else open_npy(path, None, Path(labels))
    if labelled and source.unlabelled:
        raise InputError(source.unlabelled)
    width = 4 if source.dtype.kind == "f" and source.dtype.itemsize < 8 else 8
    # As floats, which few consumers do without.
    check_size(source.path, source.n_samples * source.n_features * width, "features, as floats,")
    return source


def split_part(path: Path, part: str | None) -> tuple[Path, str | None]:
    """Split `file.npz:part` in two, unless a file of that name exists."""
    name, colon, own = str(path).rpartition(":")
    if not colon or os.path.exists(path) or not os.path.exists(name):
        return path, part
    if part not in (None, own):
        raise ParameterError(f"The path names part {quoted(own)} and part= names {quoted(part)}: pass one.")
    return Path(name), own


def sniff(path: Path) -> Format:
    """The format of a file; InputError if it is unknown or the file cannot be read."""
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        start = file.read(_START)
    if not start:
        raise damaged(f"{path} is empty")
    # First of all: the length of the header may look like any other start.
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= min(size, LONGEST_HEADER):
        return FORMATS["safetensors"]
    for one in FORMATS.values():
        if one.start and start.startswith(one.start):
            return one
    for magic, what, remedy in _REFUSED:
        if start.startswith(magic):
            raise InputError(f"{path} {what}: {remedy}.")
    if start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _kind_of_zip(path)
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return FORMATS["pickle"]
    _refuse_pages(start, path)
    kind = by_suffix(path)
    if kind is None:
        known = ", ".join(suffix for each in FORMATS.values() for suffix in each.suffixes)
        raise InputError(f"{path} has an unknown format: convert it to one of {known}.")
    if not start.strip(b"\x00"):
        raise damaged(f"{path} starts with only zeros")
    if kind in (FORMATS["npz"], FORMATS["npy"], FORMATS["parquet"]):
        article = "an" if kind.name.startswith(".n") else "a"
        raise damaged(f"{path} is not {article} {kind.name}, it starts with {start[:12]!r}")
    return kind


def _refuse_pages(start: bytes, path: Path) -> None:
    """Refuse a text that a server sent instead of the file."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:64].lower().startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml", b"<!--", b"<script")):
        raise InputError(f"{path} is a web page, not a feature file: download the file itself.")
    if text[:1] in (b"{", b"["):
        shown = " ".join(text[:80].decode(errors="replace").split())
        raise InputError(
            f"{path} is JSON text, perhaps the error message of a server ({shown!r}): "
            "download the file itself, or write its numbers as CSV."
        )


def _kind_of_zip(path: Path) -> Format:
    """The format of a zip archive, `.npz` or torch, by its members, or by the suffix if these are unreadable."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError):
        names = []
    if any(name.endswith("data.pkl") for name in names):
        return FORMATS["torch"]
    if any(name.endswith(".npy") for name in names):
        return FORMATS["npz"]
    kind = by_suffix(path)
    if not names and kind is not None and kind.name in (".npz file", "torch file"):
        return kind
    shown = f" of {', '.join(repr(name[:60]) for name in names[:3])}" + " …" * (len(names) > 3) if names else ""
    raise InputError(f"{path} is a zip archive{shown}: unpack it and pass the feature file.")
