"""`hotshot convert`: a feature file in another format or type, with a note of where it came from."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hotshot import __version__
from hotshot.base.storage import DESCRIPTION, is_bank
from hotshot.cli.data import open_samples
from hotshot.errors import InputError, ParameterError
from hotshot.files import FeatureSource, open_features, write_features
from hotshot.files.names import readable_size
from hotshot.files.reading import split_part
from hotshot.files.sniff import sniff

# Formats without a header for what is known of the features.
_TEXT = (".csv", ".tsv")
_SILENT = (*_TEXT, ".npy")
# What is said anew of every file.
_OF_THE_FILE = ("hash", "source", "created", "hotshot")
_SECONDS_WITHOUT_BAR = 1.0


def run_convert(
    *,
    source: Path,
    out: Path,
    dtype: str | None,
    part: str | None,
    labels: Path | None,
    extractor: str | None,
    transform: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Convert, and say in one sentence what was written."""
    source, part = split_part(Path(source), part)
    opened = open_samples(source, part, labels)
    _check_out(opened.path, out, force)
    about = provenance(opened, part, labels, extractor, transform)
    console = Console(stderr=True)
    with ReadingBar(console, opened.n_samples) as bar:
        write_features(out, bar.watched(opened), dtype=dtype, about=about)
    if out.suffix.lower() in _TEXT:
        # There is nothing in it but the numbers, and it takes long to look at.
        written = replace(opened, dtype=np.dtype(dtype or opened.dtype), about={})
    else:
        written = open_features(out)
    n_bytes = sum(size_of(path) for path in _files(out))
    if as_json:
        found = {
            "out": str(out),
            "samples": bar.n_samples,
            "classes": len(bar.classes),
            "features": written.n_features,
            "dtype": str(written.dtype),
            "bytes": n_bytes,
            "about": written.about,
        }
        print(json.dumps(found, indent=2))
        return
    print(
        f"Wrote {out}: {bar.n_samples} samples, {len(bar.classes)} classes, {written.n_features} features of "
        f"{written.dtype}, {readable_size(n_bytes)} from {readable_size(size_of(opened.path))}."
    )
    if out.suffix.lower() in _SILENT:
        print(
            f"A {out.suffix.lower()} file has no place for source, extractor and transform: they are not in it."
        )


def _check_out(source: Path, out: Path, force: bool) -> None:
    for path in _files(out):
        if not path.exists():
            continue
        if path.is_dir():
            raise ParameterError(f"{path} is a folder: name a file.")
        if path.samefile(source):
            raise ParameterError(f"{path} is the file to convert: write to another one.")
        if not force:
            raise ParameterError(f"{path} exists: pass --force to overwrite it.")


def _files(out: Path) -> list[Path]:
    """The files that one feature file consists of."""
    return [out, out.with_suffix(".labels.npy")] if out.suffix.lower() == ".npy" else [out]


def provenance(
    opened: FeatureSource, part: str | None, labels: Path | None, extractor: str | None, transform: str | None
) -> dict[str, Any]:
    """What the file says of its features, with where it came from and when."""
    source: dict[str, Any] = {
        "name": opened.path.name,
        "sha256": _sha256(opened.path / DESCRIPTION if is_bank(opened.path) else opened.path),
        "format": "bank" if is_bank(opened.path) else sniff(opened.path).value,
    }
    if part is not None:
        source["part"] = part
    if labels is not None:
        source["labels"] = {"name": labels.name, "sha256": _sha256(labels)}
    if "source" in opened.about:
        source["source"] = opened.about["source"]
    about = {name: value for name, value in opened.about.items() if name not in _OF_THE_FILE}
    said = {"extractor": extractor, "transform": transform}
    return {
        **about,
        **{name: text for name, text in said.items() if text is not None},
        "source": source,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "hotshot": __version__,
    }


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a bank."""
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


class ReadingBar:
    """A bar that appears after a second, over the two passes that writing takes."""

    def __init__(self, console: Console, n_samples: int | None) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("samples"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("reading", total=n_samples)
        self._start = time.monotonic()
        self._shown = False
        self.n_samples = 0
        self.classes: set[Any] = set()

    def watched(self, source: FeatureSource) -> FeatureSource:
        """The same source, whose batches move the bar."""
        passes = iter(("reading", "writing"))

        def batches(rows: int) -> Iterator[Any]:
            description = next(passes, "writing")
            done = 0
            for X, y in source.batches(rows):
                done += len(X)
                self.n_samples = max(done, self.n_samples)
                self.classes.update(y.tolist())
                if not self._shown and time.monotonic() - self._start > _SECONDS_WITHOUT_BAR:
                    self._progress.start()
                    self._shown = True
                self._progress.update(self._task, description=description, completed=done)
                yield X, y

        return replace(source, batches=batches)

    def __enter__(self) -> ReadingBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._progress.stop()
