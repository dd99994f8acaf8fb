"""`hotshot convert FEATURES NAME.bank`: base classes on disk, ready to be mapped into memory."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from hotshot.base import BaseClasses
from hotshot.cli.convert import ReadingBar, provenance, size_of
from hotshot.cli.data import open_samples
from hotshot.errors import ParameterError
from hotshot.files.names import readable_size

SUFFIX = ".bank"
ROWS_AT_ONCE = 2**13


def run_make_bank(
    *,
    source: Path,
    out: Path,
    dtype: str | None,
    part: str | None,
    labels: Path | None,
    extractor: str | None,
    transform: str | None,
    samples: bool,
    covariance: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Build a bank in one pass over the file, and say in one sentence what was written."""
    if dtype is not None:
        raise ParameterError("--dtype is for feature files: a bank keeps the type of its features.")
    if not samples and covariance is None:
        raise ParameterError("--no-samples needs --covariance diagonal, pooled or dense.")
    if out.exists() and source.exists() and out.samefile(source):
        raise ParameterError(f"{out} is what is to be converted: write to another folder.")
    if out.exists() and not force:
        raise ParameterError(f"{out} exists: pass --force to overwrite it.")
    opened = open_samples(source, part, labels)
    about = provenance(opened, part, labels, extractor, transform)
    with ReadingBar(Console(stderr=True), opened.n_samples) as bar:
        bank = BaseClasses.from_batches(
            bar.watched(opened).batches(ROWS_AT_ONCE),
            out,
            samples=samples,
            covariance=covariance,
            about=about,
            overwrite=force,
        )
    n_bytes = size_of(out)
    if as_json:
        found = {
            "out": str(out),
            "samples": int(bank.counts.sum()),
            "classes": len(bank.names),
            "features": bank.n_features,
            "dtype": str(bank.dtype),
            "bytes": n_bytes,
            "about": bank.about,
        }
        print(json.dumps(found, indent=2))
        return
    kept = "with its samples" if samples else f"without samples, covariances {covariance}"
    print(
        f"Wrote {out}: a bank of {len(bank.names)} classes, {bank.counts.sum()} samples, {bank.n_features} features, "
        f"{kept}, {readable_size(n_bytes)}."
    )
