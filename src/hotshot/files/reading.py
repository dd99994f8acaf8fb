"""Opening and reading feature files: which format a file is of, by its first bytes and then by its suffix."""

import enum
import stat
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hotshot.arrays import check_features, check_labels
from hotshot.errors import InputError, ParameterError
from hotshot.files.matlab import open_matlab
from hotshot.files.native import open_safetensors
from hotshot.files.numpy_files import open_npy, open_npz
from hotshot.files.parquet import open_parquet
from hotshot.files.pickles import open_pickle
from hotshot.files.source import FeatureSource
from hotshot.files.tensors import LONGEST_HEADER
from hotshot.files.text import open_text, shortest_floats
from hotshot.files.torch_files import open_torch
from hotshot.formatting import quoted


class Kind(enum.Enum):
    """A format that is read; the value is its name in sentences."""

    SAFETENSORS = "safetensors file"
    NPZ = ".npz file"
    NPY = ".npy file"
    CSV = "CSV file"
    TSV = "TSV file"
    PARQUET = "Parquet file"
    TORCH = "torch file"
    MATLAB = "MATLAB file"
    PICKLE = "pickle"


SUFFIXES = {
    ".safetensors": Kind.SAFETENSORS,
    ".npz": Kind.NPZ,
    ".npy": Kind.NPY,
    ".csv": Kind.CSV,
    ".tsv": Kind.TSV,
    ".parquet": Kind.PARQUET,
    ".pt": Kind.TORCH,
    ".pth": Kind.TORCH,
    ".mat": Kind.MATLAB,
    ".plk": Kind.PICKLE,
    ".pkl": Kind.PICKLE,
    ".pickle": Kind.PICKLE,
    ".p": Kind.PICKLE,
}

# torch before 1.6: a pickle that starts with this number.
_TORCH_MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
_STARTS = (
    (b"\x93NUMPY", Kind.NPY),
    (b"PAR1", Kind.PARQUET),
    (b"MATLAB 5.0 MAT-file", Kind.MATLAB),
    (_TORCH_MAGIC, Kind.TORCH),
)
_HDF5 = b"\x89HDF\r\n\x1a\n"
_HDF5_REMEDY = "read it with h5py and save its arrays with numpy.savez(path, X=X, y=y)"
# Wherever these are found instead of features, this is what to say.
_REFUSED = (
    (b"\x1f\x8b", "is compressed with gzip", "unpack it with gunzip"),
    (b"BZh", "is compressed with bzip2", "unpack it with bunzip2"),
    (b"\xfd7zXZ\x00", "is compressed with xz", "unpack it with unxz"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd", "unpack it with unzstd"),
    (b"\x04\x22\x4d\x18", "is compressed with lz4", "unpack it with unlz4"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive", "unpack it"),
    (b"Rar!\x1a\x07", "is a RAR archive", "unpack it"),
    (b"%PDF", "is a PDF document", "pass a feature file"),
    (b"\x89PNG\r\n\x1a\n", "is a PNG image", "extract features from the images first"),
    (b"\xff\xd8\xff", "is a JPEG image", "extract features from the images first"),
    (b"GIF8", "is a GIF image", "extract features from the images first"),
    (b"MATLAB 7.3 MAT-file", "is a MATLAB 7.3 file (HDF5)", "save it with save(…, '-v7') in MATLAB"),
    (_HDF5, "is an HDF5 file", _HDF5_REMEDY),
    (b"ARROW1", "is an Arrow file", "write it as Parquet"),
    (b"\xff\xfe", "is UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "is UTF-16 text", "save it as UTF-8"),
    (b"version https://git-lfs", "is a Git LFS pointer, not the data", "fetch the data with git lfs pull"),
)
_START = 2048

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


def sniff(path: Path) -> Kind:
    """The format of a file; InputError where it is none of ours or cannot be read."""
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise InputError(f"{path} is a folder: pass one feature file.")
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{path} is not a regular file: copy the features to one.")
        with path.open("rb") as file:
            return _kind(file, found.st_size, path)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        # ValueError: a NUL character in the path.
        raise InputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None


def _kind(file: BinaryIO, size: int, path: Path) -> Kind:
    start = file.read(_START)
    if not start:
        raise InputError(f"{path} is empty: copy or download it again.")
    # First of all: the length of the header may look like any other start.
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= min(size, LONGEST_HEADER):
        return Kind.SAFETENSORS
    for magic, kind in _STARTS:
        if start.startswith(magic):
            return kind
    for magic, what, remedy in _REFUSED:
        if start.startswith(magic):
            raise InputError(f"{path} {what}: {remedy}.")
    if start[257:262] == b"ustar":
        raise InputError(f"{path} is a tar archive: unpack it.")
    if any(start[at : at + 8] == _HDF5 for at in (512, 1024)):
        raise InputError(f"{path} is an HDF5 file: {_HDF5_REMEDY}.")
    if start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _kind_of_zip(path)
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return Kind.PICKLE
    _refuse_pages(start, path)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path} is of no known format: hotshot reads {', '.join(SUFFIXES)}.")
    by_suffix = SUFFIXES[path.suffix.lower()]
    if not start.strip(b"\x00"):
        raise InputError(f"{path} starts with zeros only: copy or download it again.")
    if by_suffix in (Kind.NPZ, Kind.NPY, Kind.PARQUET):
        raise InputError(f"{path} is not {_a(by_suffix)}, it starts with {start[:12]!r}: copy or download it again.")
    return by_suffix


def _refuse_pages(start: bytes, path: Path) -> None:
    """Text that a server sent in place of the file."""
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:64].lower().startswith((b"<!doctype", b"<html", b"<head", b"<body", b"<?xml", b"<!--", b"<script")):
        raise InputError(f"{path} is a web page, not a feature file: download the file itself.")
    if text[:1] in (b"{", b"["):
        shown = " ".join(text[:80].decode(errors="replace").split())
        raise InputError(
            f"{path} is JSON text, perhaps the error message of a server ({shown!r}): "
            "download the file itself, or write its numbers as CSV."
        )


def _kind_of_zip(path: Path) -> Kind:
    """Both `.npz` and torch files are zip archives; what is inside tells, and the suffix where that is unreadable."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError):
        names = []
    if any(name.endswith("data.pkl") for name in names):
        return Kind.TORCH
    if any(name.endswith(".npy") for name in names):
        return Kind.NPZ
    by_suffix = SUFFIXES.get(path.suffix.lower())
    if not names and by_suffix in (Kind.NPZ, Kind.TORCH):
        return by_suffix
    shown = f" of {', '.join(repr(name[:60]) for name in names[:3])}" + " …" * (len(names) > 3) if names else ""
    raise InputError(f"{path} is a zip archive{shown}: unpack it and pass the feature file.")


def _a(kind: Kind) -> str:
    return f"an {kind.value}" if kind.value.startswith(".n") else f"a {kind.value}"
