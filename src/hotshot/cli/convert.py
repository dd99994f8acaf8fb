"""`hotshot convert`: features in another format or type, or as a bank, with a record of their source."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli import options
from hotshot.cli.terminal import Console, reading, waiting
from hotshot.errors import ParameterError
from hotshot.formatting import listed, printable, readable_size
from hotshot.version import __version__

if TYPE_CHECKING:
    from hotshot.files import FeatureSource

BANK_SUFFIX = ".bank"
WITHOUT_HEADER = (".csv", ".tsv", ".npy")
# Formats that can store only some of the columns beside the features, and which.
STORED: dict[str, tuple[str, ...]] = {".npz": ("id", "text"), ".npy": (), BANK_SUFFIX: ()}
# Header entries that are not copied from the source.
OF_THE_FILE = ("hash", "source", "created", "hotshot")


def convert(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="Feature file of any format, FILE:PART, or a bank.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="Output. The suffix sets the format: .safetensors, .npz, .npy, .parquet, .csv, .tsv or .bank.",
            show_default=False,
        ),
    ],
    dtype: Annotated[
        str | None, typer.Option(help="Number type: float16, float32 or float64. Default: as in IN.")
    ] = None,
    part: Annotated[str | None, typer.Option(help="Part of IN to convert, if it has several.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Labels of an .npy file, unless stored beside it.")] = None,
    extractor: Annotated[str | None, typer.Option(help="Name of the extractor, for the header.")] = None,
    transform: Annotated[str | None, typer.Option(help="Transform of the features, for the header.")] = None,
    seen_in_training: Annotated[
        bool | None,
        typer.Option(
            help="Record in the header whether the extractor was trained on these classes. If so, only the power is "
            "chosen on them.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[bool, typer.Option("--samples/--no-samples", help="Keep the samples in a bank.")] = True,
    covariance: Annotated[
        str | None, typer.Option(help="Covariances of a bank without samples: low-rank, diagonal, pooled or dense.")
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Convert features to another format or to a bank; record their source."""
    with waiting("starting"):
        from hotshot.bank import BaseClasses
        from hotshot.bank.bank import SEEN
        from hotshot.evaluation.data import open_samples
        from hotshot.files import open_features, write_features
        from hotshot.files.reading import split_part
        from hotshot.files.samples import ROWS_AT_ONCE, THUMBNAIL
    suffix = out.suffix.lower()
    to_bank, is_text = suffix == BANK_SUFFIX, suffix in (".csv", ".tsv")
    if to_bank and dtype is not None:
        raise ParameterError("--dtype is for feature files: a bank keeps the type of its features.")
    if to_bank and not samples and covariance is None:
        raise ParameterError("--no-samples needs --covariance low-rank, diagonal, pooled or dense.")
    if not to_bank and (not samples or covariance is not None):
        raise ParameterError(f"--no-samples and --covariance are for banks: give OUT the suffix {BANK_SUFFIX}.")
    source, part = split_part(Path(source), part)
    given = open_samples(source, part, labels)
    files = [out, out.with_suffix(".labels.npy")] if suffix == ".npy" else [out]
    for path in files:
        if os.path.isdir(path) and not to_bank:
            raise ParameterError(f"{path} is a folder: name a file.")
        options.refuse_existing(path, force, given.path, labels)
    told = {"extractor": extractor, "transform": transform, SEEN: seen_in_training}
    about = provenance(given, part, labels) | {name: value for name, value in told.items() if value is not None}
    classes: set[Any] = set()
    with reading(Console(stderr=True)) as begin:
        # Some formats are written in two passes over the source.
        passes = iter(("reading", "writing"))

        def pieces(rows: int) -> Iterator[Any]:
            watch, done = begin(given.path.name, next(passes, "writing")), 0
            for X, y in given.pieces(rows):
                classes.update(y.tolist())
                done += len(X)
                watch(done, given.n_samples)
                yield X, y

        watched = replace(given, pieces=pieces)
        if to_bank:
            batches = ((X, y) for X, y in watched.batches(ROWS_AT_ONCE))
            BaseClasses.from_batches(batches, out, samples=samples, covariance=covariance, about=about, overwrite=force)
        else:
            write_features(out, watched, dtype=dtype, about=about)
    # A table has no header, and takes long to open.
    written: Any = BaseClasses.load(out) if to_bank else given if is_text else open_features(out)
    type_name = dtype if is_text and dtype is not None else str(written.dtype)
    counts = {"samples": given.n_samples, "classes": len(classes), "features": given.n_features}
    n_bytes = sum(map(_size, files))
    if as_json:
        header = {} if is_text else written.about
        print(json.dumps({"out": str(out), **counts, "dtype": type_name, "bytes": n_bytes, "about": header}, indent=2))
        return
    summary = ", ".join(f"{number} {noun}" for noun, number in counts.items()) + f" of {type_name}"
    if to_bank:
        form = "with its samples" if samples else f"without samples, covariances {covariance}"
        summary = f"a bank of {summary}, {form}"
    print(printable(f"Wrote {out}: {summary}, {readable_size(n_bytes)} from {readable_size(_size(given.path))}."))
    if suffix in WITHOUT_HEADER:
        print(f"A {suffix} file has no header: source, extractor and transform were not written.")
    dropped = [
        name for name in given.columns if (name == THUMBNAIL if is_text else name not in STORED.get(suffix, (name,)))
    ]
    if dropped:
        columns = f"the column{'s' * (len(dropped) > 1)} {listed(dropped)}"
        print(printable(f"{out} cannot hold {columns}: write .safetensors to keep them."))


def provenance(given: FeatureSource, part: str | None, labels: Path | None) -> dict[str, Any]:
    """The new header: that of the source, and where and when the features come from."""
    from hotshot.bank import is_bank
    from hotshot.bank.store import DESCRIPTION
    from hotshot.files.reading import sniff

    path, from_bank = given.path, is_bank(given.path)
    source: dict[str, Any] = {
        "name": path.name,
        "sha256": _sha256(path / DESCRIPTION if from_bank else path),
        "format": "bank" if from_bank else sniff(path).name,
        **({} if part is None else {"part": part}),
        **({} if labels is None else {"labels": {"name": labels.name, "sha256": _sha256(labels)}}),
        **{name: value for name, value in given.about.items() if name == "source"},
    }
    made = {"source": source, "created": datetime.now(UTC).isoformat(timespec="seconds"), "hotshot": __version__}
    return {name: value for name, value in given.about.items() if name not in OF_THE_FILE} | made


def _size(path: Path) -> int:
    """Bytes of a file, or of all files of a bank."""
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _sha256(path: Path) -> str:
    from hotshot.files.opening import opened

    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
