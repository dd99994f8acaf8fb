"""Features converted to another format or type, or to a bank, and merged banks, with a record of their origin."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.bank.bank import EXTRACTOR, SEEN, TRANSFORM, BaseClasses
from hotshot.bank.store import DESCRIPTION, is_bank
from hotshot.errors import InputError, ParameterError
from hotshot.files import FeatureSource, open_features, write_features
from hotshot.files.opening import opened, sniff, split_part
from hotshot.files.samples import ROWS_AT_ONCE, THUMBNAIL, Batch, SeveralPartsError, in_memory
from hotshot.version import __version__

BANK_SUFFIX = ".bank"
# Formats that can store only some of the columns beside the features, and which.
STORED: dict[str, tuple[str, ...]] = {".npz": ("id", "text"), ".npy": (), BANK_SUFFIX: ()}
TABLES = (".csv", ".tsv")
# Header entries that are not copied from the source.
OF_THE_FILE = ("hash", "source", "created", "hotshot")


@dataclass(frozen=True)
class Conversion:
    """What `convert` has written: numbers, type and header of the features, and columns that `out` cannot hold."""

    out: Path
    n_samples: int
    n_classes: int
    n_features: int
    dtype: str
    about: dict[str, Any]
    left_out: tuple[str, ...]
    n_bytes: int
    n_bytes_before: int


def open_samples(path: Path, part: str | None = None, labels: Path | None = None) -> FeatureSource:
    """The samples of a feature file or a bank, to be read in batches."""
    if not is_bank(path):
        return open_features(path, part=part, labels=labels)
    if part is not None or labels is not None:
        raise ParameterError(f"{path} is a bank, which has no parts and holds its own labels: leave these out.")
    bank = BaseClasses.load(path)
    if bank.samples is None:
        raise InputError(f"{path} is a bank without samples: use one that was saved with them.")
    return in_memory(path, bank.samples, lambda some: bank.names[bank.labels[some]], bank.about)


def open_parts(path: Path) -> list[tuple[str, FeatureSource]]:
    """The samples of a file with its name, or of each of its parts if it has several, base classes first."""
    try:
        return [(str(path), open_samples(path))]
    except SeveralPartsError as error:
        parts = sorted(error.parts, key=lambda part: part.lower() not in ("base", "train"))
    return [(f"{path}:{part}", open_samples(path, part)) for part in parts]


def files_of(out: Path) -> list[Path]:
    """The files or the folder that features are written to: labels of .npy files have a file of their own."""
    return [out, out.with_suffix(".labels.npy")] if out.suffix.lower() == ".npy" else [out]


def convert(
    source: str | Path,
    out: str | Path,
    *,
    part: str | None = None,
    labels: Path | None = None,
    dtype: str | None = None,
    about: dict[str, Any] | None = None,
    samples: bool = True,
    covariance: str | None = None,
    overwrite: bool = False,
    watch: Callable[[str, int, int], None] | None = None,
) -> Conversion:
    """Write features in the format of the suffix of `out`, or as a bank (.bank), some rows at a time.

    Parameters
    ----------
    source : path
        Feature file, FILE:PART, or a bank.
    out : path
        A feature file, as for ``write_features``, which is replaced; or the folder of a bank.
    part, labels
        Part of a file that has several, and the labels of an ``.npy`` file.
    dtype : {"float16", "float32", "float64"}, optional
        Type of the numbers of a feature file.
    about : dict, optional
        Entries of the header, such as ``{"extractor": "DINO"}``, in addition to those of the source and a record of it.
    samples, covariance, overwrite
        Of a bank, as in ``BaseClasses.save``.
    watch : callable, optional
        Called with what is being done, the rows done and their total. Some formats are written in two passes.
    """
    path, part = split_part(Path(source), part)
    given, out = open_samples(path, part, labels), Path(out)
    if os.path.exists(out) and os.path.samefile(out, path):
        raise ParameterError(f"{out} is both input and output: name another output.")
    header = provenance(given, part, labels) | (about or {})
    classes: set[Any] = set()
    passes = iter(("reading", "writing"))

    def pieces(rows: int) -> Iterator[Batch]:
        doing, done = next(passes, "writing"), 0
        for X, y in given.pieces(rows):
            classes.update(y.tolist())
            done += len(X)
            if watch is not None:
                watch(doing, done, given.n_samples)
            yield X, y

    watched, suffix = replace(given, pieces=pieces), out.suffix.lower()
    written: Any = given
    if suffix == BANK_SUFFIX:
        written = BaseClasses.from_batches(
            watched.batches(ROWS_AT_ONCE), out, samples=samples, covariance=covariance, about=header,
            overwrite=overwrite,
        )  # fmt: skip
    else:
        write_features(out, watched, dtype=dtype, about=header)
        # A table has no header, and takes long to open.
        written = given if suffix in TABLES else open_features(out)
    stored = [name for name in given.columns if suffix not in TABLES or name != THUMBNAIL]
    left_out = tuple(name for name in given.columns if name not in STORED.get(suffix, stored))
    final = dtype if suffix in TABLES and dtype else str(written.dtype)
    return Conversion(
        out, given.n_samples, len(classes), given.n_features, final, {} if suffix in TABLES else written.about,
        left_out, sum(map(_size, files_of(out))), _size(given.path),
    )  # fmt: skip


def merge_banks(sources: Sequence[str | Path], path: str | Path, *, overwrite: bool = False) -> BaseClasses:
    """Write a bank with the samples of several banks to the folder ``path``, as if made from all samples at once.

    A class of several banks gets the samples of all. Settings chosen on the parts are not kept: they are chosen again
    on the merged bank.
    """
    if len(sources) < 2:
        raise ParameterError(f"A merge needs two banks or more, got {len(sources)}: name the others too.")
    banks = [(Path(source), BaseClasses.load(source)) for source in sources]
    without = [source for source, bank in banks if bank.samples is None]
    if without:
        raise InputError(
            f"{without[0]} keeps no samples, which a merge needs: merge banks with samples, then compact the result."
        )
    for (source, one), (other, two) in combinations(banks, 2):
        if one.fingerprint == two.fingerprint:
            raise InputError(f"{source} and {other} hold the same samples: name each bank once.")
        for key in ("features", EXTRACTOR, TRANSFORM):
            mine, theirs = ({**bank.about, "features": bank.n_features}.get(key) for bank in (one, two))
            if mine is not None and theirs is not None and mine != theirs:
                raise InputError(
                    f"{source} and {other} differ in {key}, {mine} and {theirs}: "
                    "extract all features with the same model."
                )
    abouts = [bank.about for _, bank in banks]
    about = {key: value for key, value in abouts[0].items() if all(one.get(key) == value for one in abouts)}
    about |= {key: one[key] for one in abouts for key in (EXTRACTOR, TRANSFORM) if one.get(key) is not None}
    # Classes seen in training are too easy, whatever they are merged with.
    about |= {SEEN: True} if any(bank.seen_in_training for _, bank in banks) else {}
    about["source"] = [{"name": source.name, "fingerprint": bank.fingerprint} for source, bank in banks]
    dtype = np.result_type(*(bank.dtype for _, bank in banks))
    batches = ((X.astype(dtype), y) for source, _ in banks for X, y in open_samples(source).batches(ROWS_AT_ONCE))
    return BaseClasses.from_batches(batches, path, about=about, overwrite=overwrite)


def provenance(given: FeatureSource, part: str | None, labels: Path | None) -> dict[str, Any]:
    """The new header: that of the source, and where and when the features come from."""
    path, from_bank, before = given.path, is_bank(given.path), given.about
    source: dict[str, Any] = {
        "name": path.name,
        "sha256": _sha256(path / DESCRIPTION if from_bank else path),
        "format": "bank" if from_bank else sniff(path).name,
        "part": part,
        "labels": None if labels is None else {"name": labels.name, "sha256": _sha256(labels)},
        "source": before.get("source"),
    }
    source = {name: value for name, value in source.items() if value is not None}
    made = {"source": source, "created": datetime.now(UTC).isoformat(timespec="seconds"), "hotshot": __version__}
    return {name: value for name, value in before.items() if name not in OF_THE_FILE} | made


def _size(path: Path) -> int:
    """Bytes of a file, or of all files of a bank."""
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _sha256(path: Path) -> str:
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
