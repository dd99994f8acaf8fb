"""`hotshot convert`: features in another format or type, or as a bank, with a record of their source."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli import options
from hotshot.cli.terminal import Console, Watch, reading
from hotshot.errors import ParameterError
from hotshot.formatting import listed, printable, readable_size
from hotshot.version import __version__

if TYPE_CHECKING:
    import numpy as np

    from hotshot.files import FeatureSource

BANK_SUFFIX = ".bank"
_TEXT = (".csv", ".tsv")
# Formats that have no header.
_WITHOUT_HEADER = (*_TEXT, ".npy")
# Formats that can store only some of the columns beside the features, and which.
_KEPT_IN: dict[str, tuple[str, ...]] = {".npz": ("id", "text"), ".npy": (), BANK_SUFFIX: ()}
# Header entries that are not copied from the source.
_OF_THE_FILE = ("hash", "source", "created", "hotshot")


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
    from hotshot.bank import BaseClasses
    from hotshot.bank.bank import SEEN
    from hotshot.evaluation.data import open_samples
    from hotshot.files import write_features
    from hotshot.files.reading import split_part
    from hotshot.files.samples import ROWS_AT_ONCE

    to_bank = out.suffix == BANK_SUFFIX
    if to_bank and dtype is not None:
        raise ParameterError("--dtype is for feature files: a bank keeps the type of its features.")
    if to_bank and not samples and covariance is None:
        raise ParameterError("--no-samples needs --covariance low-rank, diagonal, pooled or dense.")
    if not to_bank and (not samples or covariance is not None):
        raise ParameterError(f"--no-samples and --covariance are for banks: give OUT the suffix {BANK_SUFFIX}.")
    source, part = split_part(Path(source), part)
    given = open_samples(source, part, labels)
    for path in _files(out):
        if os.path.isdir(path) and path.suffix != BANK_SUFFIX:
            raise ParameterError(f"{path} is a folder: name a file.")
        options.refuse_existing(path, force, given.path, labels)
    given_by_user = {"extractor": extractor, "transform": transform, SEEN: seen_in_training}
    about = _provenance(given, part, labels, {name: x for name, x in given_by_user.items() if x is not None})
    per_class: Counter[Any] = Counter()
    with reading(Console(stderr=True)) as begin:
        watched = _watched(given, begin, per_class)
        if to_bank:
            batches = ((X, y) for X, y in watched.batches(ROWS_AT_ONCE))
            BaseClasses.from_batches(batches, out, samples=samples, covariance=covariance, about=about, overwrite=force)
        else:
            write_features(out, watched, dtype=dtype, about=about)
    counts = {"samples": per_class.total(), "classes": len(per_class), "features": given.n_features}
    written, about = _header(out, given, dtype)
    n_bytes = sum(map(_size, _files(out)))
    if as_json:
        found = {"out": str(out), **counts, "dtype": str(written), "bytes": n_bytes, "about": about}
        print(json.dumps(found, indent=2))
        return
    summary = ", ".join(f"{number} {noun}" for noun, number in counts.items()) + f" of {written}"
    if to_bank:
        kept = "with its samples" if samples else f"without samples, covariances {covariance}"
        summary = f"a bank of {summary}, {kept}"
    print(printable(f"Wrote {out}: {summary}, {readable_size(n_bytes)} from {readable_size(_size(given.path))}."))
    if out.suffix.lower() in _WITHOUT_HEADER:
        print(f"A {out.suffix.lower()} file has no header: source, extractor and transform were not written.")
    dropped = _dropped(list(given.columns), out)
    if dropped:
        columns = f"the column{'s' * (len(dropped) > 1)} {listed(dropped)}"
        print(printable(f"{out} cannot hold {columns}: write .safetensors to keep them."))


def _dropped(kept: list[str], out: Path) -> list[str]:
    """Columns beside the features that the source has and the output cannot hold."""
    from hotshot.files.samples import THUMBNAIL

    suffix = out.suffix.lower()
    if suffix in _TEXT:
        return [name for name in kept if name == THUMBNAIL]
    return [name for name in kept if name not in _KEPT_IN.get(suffix, kept)]


def _files(out: Path) -> list[Path]:
    """The files that one feature file consists of."""
    return [out, out.with_suffix(".labels.npy")] if out.suffix.lower() == ".npy" else [out]


def _header(out: Path, given: FeatureSource, dtype: str | None) -> tuple[np.dtype[Any], dict[str, Any]]:
    """Type of the written features, and the header."""
    import numpy as np

    from hotshot.bank import BaseClasses, is_bank
    from hotshot.files import open_features

    if is_bank(out):
        bank = BaseClasses.load(out)
        return bank.dtype, bank.about
    if out.suffix.lower() in _TEXT:
        # It has no header, and takes long to open.
        return np.dtype(given.dtype if dtype is None else dtype), {}
    written = open_features(out)
    return written.dtype, written.about


def _provenance(given: FeatureSource, part: str | None, labels: Path | None, added: dict[str, Any]) -> dict[str, Any]:
    """The new header: that of the source, what the user adds, and where and when the features come from."""
    from hotshot.bank import is_bank
    from hotshot.bank.store import DESCRIPTION
    from hotshot.files.reading import sniff

    source: dict[str, Any] = {
        "name": given.path.name,
        "sha256": _sha256(given.path / DESCRIPTION if is_bank(given.path) else given.path),
        "format": "bank" if is_bank(given.path) else sniff(given.path).name,
    }
    if part is not None:
        source["part"] = part
    if labels is not None:
        source["labels"] = {"name": labels.name, "sha256": _sha256(labels)}
    if "source" in given.about:
        source["source"] = given.about["source"]
    about = {name: value for name, value in given.about.items() if name not in _OF_THE_FILE}
    return {
        **about,
        **added,
        "source": source,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "hotshot": __version__,
    }


def _size(path: Path) -> int:
    """Bytes of a file, or of all files of a bank."""
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _sha256(path: Path) -> str:
    from hotshot.files.opening import opened

    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _watched(source: FeatureSource, begin: Callable[..., Watch], samples: Counter[Any]) -> FeatureSource:
    """The same source with a progress bar and a count of samples per class.

    Some formats are written in two passes over the source; `samples` counts the longest pass.
    """
    passes = iter(("reading", "writing"))

    def pieces(rows: int) -> Iterator[Any]:
        watch = begin(source.path.name, next(passes, "writing"))
        seen: Counter[Any] = Counter()
        for X, y in source.pieces(rows):
            seen.update(y.tolist())
            samples.update(seen - samples)
            watch(seen.total(), source.n_samples)
            yield X, y

    return replace(source, pieces=pieces)
