"""Opening files: without waiting for pipes, within limits, and feature files by the format that their bytes show."""

import importlib
import json
import mmap
import os
import stat
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hotshot.arrays import check_features, check_labels
from hotshot.errors import HotshotError, InputError, ParameterError
from hotshot.files.samples import FeatureSource, Samples
from hotshot.formatting import listing, on_one_line, printable, quoted, readable_size, reason

# Without waiting for the other end of a pipe, and as bytes on every system.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
# Compressed features shrink by a small factor, a bomb by a thousand and more.
MOST_EXPANSION, ALWAYS_ALLOWED = 200, 2**28
# A pickle that begins with it, as torch before 1.6 wrote.
_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
_TEXT = ("feature_tables.open_text", "feature_tables.write_text")
# Wherever these are found instead of features, this is what to say.
_REFUSED = (
    (b"\x1f\x8b", "is compressed with gzip", "unpack it with gunzip"),
    (b"MATLAB 7.3 MAT-file", "is a MATLAB 7.3 file (HDF5)", "save it with save(…, '-v7') in MATLAB"),
    (b"version https://git-lfs", "is a Git LFS pointer, not the data", "fetch the data with git lfs pull"),
)
# What a server sent instead of the file.
_PAGES = (b"<!doctype", b"<html", b"<head", b"<body", b"<?xml", b"<!--", b"<script", b"{", b"[")
_START = 2048


@contextmanager
def opened(path: str | Path, most: int | None = None) -> Iterator[BinaryIO]:
    """A file open for reading, of at most so many bytes; folders, pipes and devices are refused without waiting."""
    if "\0" in str(path):
        raise InputError(f"{printable(path)} cannot be read, its name has a NUL character: rename it.")
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, _FLAGS)) as file:
            facts = os.fstat(file.fileno())
            if not stat.S_ISREG(facts.st_mode):
                raise InputError(f"{printable(path)} is not a regular file: copy its content to one.")
            if most is not None and facts.st_size > most:
                held, allowed = readable_size(facts.st_size), readable_size(most)
                raise InputError(
                    f"{path} has {held}, and at most {allowed} are allowed: it is damaged, or another kind of file."
                )
            yield file
    except FileNotFoundError:
        raise InputError(f"There is no file {printable(path)}.") from None
    except IsADirectoryError:
        raise InputError(f"{printable(path)} is a folder: pass one file.") from None
    except OSError as error:
        raise InputError(f"{printable(path)} cannot be read: {error.strerror or error}.") from None


def map_bytes(path: str | Path) -> mmap.mmap:
    """All bytes of a file, mapped read-only."""
    with opened(path) as file:
        if not os.fstat(file.fileno()).st_size:
            raise damaged(f"{printable(path)} is empty")
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def json_object(text: str | bytes, **options: Any) -> dict[str, Any] | None:
    """The JSON object in a text; None if it is anything else."""
    try:
        value = json.loads(text, **options)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def need(condition: Any, what: str) -> None:
    """Raise unless the condition holds; `one_sentence` and `refuse_damage` turn it into a sentence."""
    if not condition:
        raise ValueError(what)


def damaged(what: str) -> InputError:
    """The error for a damaged file, with what to do about it."""
    return InputError(f"{what}: copy or download it again.")


@contextmanager
def one_sentence(name: str | Path, what: str) -> Iterator[None]:
    """Turn the errors of a library, which are of every type, into one sentence about the file."""
    try:
        yield
    except (HotshotError, MemoryError):
        raise
    except Exception as error:
        said = on_one_line(str(error), 100).rstrip(".") if type(error) is ValueError else reason(error, 100)
        raise damaged(f"{name} is not a valid {what}, {said}") from None


def most_bytes(path: Path) -> int:
    """Bytes that a compressed file may unpack to: 200 times its size, but at least 256 MiB."""
    return max(ALWAYS_ALLOWED, MOST_EXPANSION * path.stat().st_size)


def check_size(path: Path, n_bytes: int, what: str) -> None:
    """Refuse `what` in a compressed file, such as "array 'X'", if it would unpack to more than is allowed."""
    if n_bytes > ALWAYS_ALLOWED and n_bytes > most_bytes(path):
        raise InputError(
            f"{path} holds {what} of {readable_size(n_bytes)}, but a file of {readable_size(path.stat().st_size)} "
            f"may unpack to at most {readable_size(most_bytes(path))}: it is damaged or hostile; if you trust it, "
            "unpack it yourself and store it uncompressed."
        )


# --- feature files


@dataclass(frozen=True)
class Format:
    """A format of feature files; `name` is its name in messages.

    `start` are the first bytes of every such file, if fixed; otherwise `suffixes` identify the format. `open` takes a
    path and the name of a part, or None, and returns a FeatureSource; files may hold several sets of samples only if
    `has_parts` is true. `write` takes a path and a `Content`; None if hotshot does not write the format. Functions of
    this package may be given as "module.function".
    """

    name: str
    suffixes: tuple[str, ...]
    open: str | Callable[..., FeatureSource]
    write: str | Callable[..., None] | None = None
    start: bytes = b""
    has_parts: bool = True


FORMATS = {
    "safetensors": Format("safetensors file", (".safetensors",), "tensors.open_features", "tensors.write_features"),
    "npz": Format(".npz file", (".npz",), "named_arrays.open_npz", "named_arrays.write_npz"),
    "npy": Format(
        ".npy file", (".npy",), "named_arrays.open_npy", "named_arrays.write_npy", b"\x93NUMPY", has_parts=False
    ),
    "csv": Format("CSV file", (".csv",), _TEXT[0], _TEXT[1], has_parts=False),
    "tsv": Format("TSV file", (".tsv", ".txt"), _TEXT[0], _TEXT[1], has_parts=False),
    "parquet": Format(
        "Parquet file", (".parquet",), "feature_tables.open_parquet", "feature_tables.write_parquet", b"PAR1",
        has_parts=False,
    ),
    "torch": Format("torch file", (".pt", ".pth"), "child_readers.open_torch", start=_TORCH),
    "matlab": Format("MATLAB file", (".mat",), "child_readers.open_matlab", start=b"MATLAB 5.0 MAT-file"),
    "hdf5": Format("HDF5 file", (".h5", ".hdf5"), "child_readers.open_hdf5", start=b"\x89HDF\r\n\x1a\n"),
    "pickle": Format("pickle", (".plk", ".pkl", ".pickle", ".p"), "child_readers.open_pickle"),
}  # fmt: skip


def function_of(place: str | Callable[..., Any]) -> Callable[..., Any]:
    """A function, or the one of this place, whose module is imported only when a file needs it."""
    if callable(place):
        return place
    module, function = place.split(".")
    found: Callable[..., Any] = getattr(importlib.import_module(f"hotshot.files.{module}"), function)
    return found


def by_suffix(path: Path) -> Format | None:
    """The format with the suffix of this path."""
    return next((one for one in FORMATS.values() if path.suffix.lower() in one.suffixes), None)


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
        if X.dtype == np.float64 and sniff(source.path).open == _TEXT[0]:
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
    form = sniff(path)
    if part is not None and not form.has_parts:
        raise InputError(f"{path} has no part {quoted(part)}: it holds one set of samples.")
    options: dict[str, Any] = {"lenient": True} if lenient and form.open == _TEXT[0] else {}
    if labels is not None and form is not FORMATS["npy"]:
        raise ParameterError(f"labels= is only for .npy files, and {path} has its own labels: leave it out.")
    if labels is not None:
        options["labels"] = Path(labels)
    source: FeatureSource = function_of(form.open)(path, part, **options)
    if labelled and source.unlabelled:
        raise InputError(source.unlabelled)
    check_size_as_floats(source)
    return source


def check_size_as_floats(source: FeatureSource) -> None:
    """Refuse features that unpack to too much as floats, which few consumers do without."""
    width = 4 if source.dtype.kind == "f" and source.dtype.itemsize < 8 else 8
    check_size(source.path, source.n_samples * source.n_features * width, "features, as floats,")


def split_part(path: Path, part: str | None) -> tuple[Path, str | None]:
    """Split `file.npz:part` in two, unless a file of that name exists."""
    name, colon, named = str(path).rpartition(":")
    if not colon or os.path.exists(path) or not os.path.exists(name):
        return path, part
    if part not in (None, named):
        raise ParameterError(f"The path names part {quoted(named)} and part= names {quoted(part)}: pass one.")
    return Path(name), named


def sniff(path: Path) -> Format:
    """The format of a file; InputError if it is unknown or the file cannot be read."""
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        start = file.read(_START)
    if not start:
        raise damaged(f"{path} is empty")
    # First of all: the length of the header may look like any other start.
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= size:
        return FORMATS["safetensors"]
    for form in FORMATS.values():
        if form.start and start.startswith(form.start):
            return form
    for magic, what, remedy in _REFUSED:
        if start.startswith(magic):
            raise InputError(f"{path} {what}: {remedy}.")
    if start[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        return _kind_of_zip(path)
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return FORMATS["pickle"]
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:80]
    if text.lower().startswith(_PAGES):
        shown = " ".join(text.decode(errors="replace").split())
        raise InputError(
            f"{path} is a web page or JSON text, perhaps the error message of a server ({shown!r}): download the file "
            "itself."
        )
    by_name = by_suffix(path)
    if by_name is None:
        suffixes = ", ".join(suffix for form in FORMATS.values() for suffix in form.suffixes)
        raise InputError(f"{path} has an unknown format: convert it to one of {suffixes}.")
    if by_name in (FORMATS["npz"], FORMATS["npy"], FORMATS["parquet"]) or not start.strip(b"\x00"):
        raise damaged(f"{path} is not in the format of a {by_name.name}, it starts with {start[:12]!r}")
    return by_name


def _kind_of_zip(path: Path) -> Format:
    """The format of a zip archive, `.npz` or torch, by its members, or by the suffix if these are unreadable."""
    names, form = [], by_suffix(path)
    # Lists of contents that are none raise errors of every kind; the reader says which.
    with suppress(Exception), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    for suffix, kind in (("data.pkl", "torch"), (".npy", "npz")):
        if any(name.endswith(suffix) for name in names) or (not names and form is FORMATS[kind]):
            return FORMATS[kind]
    raise InputError(
        f"{path} is a zip archive of {listing(map(quoted, names)) or 'nothing'}: pass the feature file in it."
    )
