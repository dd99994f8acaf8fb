"""`hotshot convert`: features in another format or type, or as a bank, with a note of where they came from."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hotshot import __version__
from hotshot.base import BaseClasses
from hotshot.base.classes import SEEN, is_bank
from hotshot.base.store import DESCRIPTION
from hotshot.cli.inputs import Json, open_samples
from hotshot.cli.terminal import Console, Watch, reading
from hotshot.errors import ParameterError
from hotshot.files import FeatureSource, open_features, write_features
from hotshot.files.kept import THUMBNAIL
from hotshot.files.reading import sniff, split_part
from hotshot.files.source import ROWS_AT_ONCE, opened
from hotshot.formatting import listed, printable, readable_size

BANK_SUFFIX = ".bank"
_TEXT = (".csv", ".tsv")
# Formats without a place for what is known of the features.
_WITHOUT_HEADER = (*_TEXT, ".npy")
# What is kept of each sample and has a place in a format that has none for all of it.
_KEPT_IN: dict[str, tuple[str, ...]] = {".npz": ("id", "text"), ".npy": (), ".mat": (), BANK_SUFFIX: ()}
# What is said anew of every file.
_OF_THE_FILE = ("hash", "source", "created", "hotshot")


def convert(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="A feature file of any format, FILE:PART, or a bank.", show_default=False),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="Its suffix says the format: .safetensors, .npz, .npy, .parquet, .csv, .tsv, .mat, or .bank.",
            show_default=False,
        ),
    ],
    dtype: Annotated[str | None, typer.Option(help="float16, float32 or float64; as in IN by default.")] = None,
    part: Annotated[str | None, typer.Option(help="Which part of a file with several.")] = None,
    labels: Annotated[Path | None, typer.Option(help="Labels of an .npy file, where they have another name.")] = None,
    extractor: Annotated[str | None, typer.Option(help="What the features come from, for the header.")] = None,
    transform: Annotated[str | None, typer.Option(help="What was done to them, for the header.")] = None,
    seen_in_training: Annotated[
        bool | None,
        typer.Option(
            help="For the header, whether the extractor was trained on these very classes: they then choose no "
            "setting but the power.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[bool, typer.Option("--samples/--no-samples", help="Whether a bank keeps its samples.")] = True,
    covariance: Annotated[
        str | None, typer.Option(help="What a bank without samples keeps: low-rank, diagonal, pooled or dense.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.")] = False,
    as_json: Json = False,
) -> None:
    """Write features in another format, or as a bank, with where they come from in the header."""
    to_bank = out.suffix == BANK_SUFFIX
    if to_bank and dtype is not None:
        raise ParameterError("--dtype is for feature files: a bank keeps the type of its features.")
    if to_bank and not samples and covariance is None:
        raise ParameterError("--no-samples needs --covariance low-rank, diagonal, pooled or dense.")
    if not to_bank and (not samples or covariance is not None):
        raise ParameterError(f"--no-samples and --covariance are for banks: give OUT the suffix {BANK_SUFFIX}.")
    source, part = split_part(Path(source), part)
    given = open_samples(source, part, labels)
    _check_out(given.path, out, force)
    given_by_user = {"extractor": extractor, "transform": transform, SEEN: seen_in_training}
    about = _provenance(given, part, labels, {name: x for name, x in given_by_user.items() if x is not None})
    per_class: Counter[Any] = Counter()
    with reading(Console(stderr=True)) as begin:
        watched = _watched(given, begin, per_class)
        if to_bank:
            batches = watched.batches(ROWS_AT_ONCE)
            BaseClasses.from_batches(batches, out, samples=samples, covariance=covariance, about=about, overwrite=force)
        else:
            write_features(out, watched, dtype=dtype, about=about)
    counts = {"samples": per_class.total(), "classes": len(per_class), "features": given.n_features}
    written, about = _look_at(out, given, dtype)
    n_bytes = sum(map(_size, _files(out)))
    if as_json:
        found = {"out": str(out), **counts, "dtype": str(written), "bytes": n_bytes, "about": about}
        print(json.dumps(found, indent=2))
        return
    said = ", ".join(f"{number} {noun}" for noun, number in counts.items()) + f" of {written}"
    if to_bank:
        kept = "with its samples" if samples else f"without samples, covariances {covariance}"
        said = f"a bank of {said}, {kept}"
    print(printable(f"Wrote {out}: {said}, {readable_size(n_bytes)} from {readable_size(_size(given.path))}."))
    if out.suffix.lower() in _WITHOUT_HEADER:
        print(f"A {out.suffix.lower()} file has no place for source, extractor and transform: they are not in it.")
    lost = _lost(list(given.kept.stored()), out)
    if lost:
        print(printable(f"{out} has no place for {listed(lost)} of each sample: write .safetensors to keep them."))


def _check_out(source: Path, out: Path, force: bool) -> None:
    for path in _files(out):
        if not os.path.exists(path):
            continue
        if path.samefile(source):
            raise ParameterError(f"{path} is what is to be converted: name another one.")
        if path.is_dir() and path.suffix != BANK_SUFFIX:
            raise ParameterError(f"{path} is a folder: name a file.")
        if not force:
            raise ParameterError(f"{path} exists: pass --force to overwrite it.")


def _lost(kept: list[str], out: Path) -> list[str]:
    """What the source keeps of each sample and the output does not."""
    suffix = out.suffix.lower()
    if suffix in _TEXT:
        return [name for name in kept if name == THUMBNAIL]
    return [name for name in kept if name not in _KEPT_IN.get(suffix, kept)]


def _files(out: Path) -> list[Path]:
    """The files that one feature file consists of."""
    return [out, out.with_suffix(".labels.npy")] if out.suffix.lower() == ".npy" else [out]


def _look_at(out: Path, given: FeatureSource, dtype: str | None) -> tuple[np.dtype[Any], dict[str, Any]]:
    """Type of the features that were written, and what the file says of them."""
    if is_bank(out):
        bank = BaseClasses.load(out)
        return bank.dtype, bank.about
    if out.suffix.lower() in _TEXT:
        # There is nothing in it but the numbers, and it takes long to look at.
        return np.dtype(given.dtype if dtype is None else dtype), {}
    written = open_features(out)
    return written.dtype, written.about


def _provenance(given: FeatureSource, part: str | None, labels: Path | None, said: dict[str, Any]) -> dict[str, Any]:
    """What the file, and the user beside it, says of its features, with where it came from and when."""
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
        **said,
        "source": source,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "hotshot": __version__,
    }


def _size(path: Path) -> int:
    """Bytes of a file, or of all files of a bank."""
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _sha256(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _watched(source: FeatureSource, begin: Callable[..., Watch], samples: Counter[Any]) -> FeatureSource:
    """The same source, whose batches move a bar and count the samples of each class.

    Some formats are written in two passes over the source; `samples` is what the fullest pass saw.
    """
    passes = iter(("reading", "writing"))

    def batches(rows: int) -> Iterator[Any]:
        watch = begin(source.path.name, next(passes, "writing"))
        seen: Counter[Any] = Counter()
        for X, y in source.batches(rows):
            seen.update(y.tolist())
            samples.update(seen - samples)
            watch(seen.total(), source.n_samples)
            yield X, y

    return replace(source, batches=batches)
