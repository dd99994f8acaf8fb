"""Everything that is measured of one feature file, in one pass over its batches and in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.evaluation.inspection.counting import BadEntries, ClassCounts, EntryCounts
from hotshot.evaluation.inspection.duplicates import Duplicates, Fingerprints, find_duplicates, row_hashes
from hotshot.evaluation.inspection.ranks import Ranks, class_ranks, deviation_within_classes
from hotshot.evaluation.inspection.sampling import BoundedSample, Sample
from hotshot.files import FeatureSource
from hotshot.files.source import ROWS_AT_ONCE

# Entries of a batch, and of the blocks of it that stay in a core's cache.
BATCH_ENTRIES, BLOCK_ENTRIES = 2**23, 2**16
# Rows of many classes are kept for costs and deviations, and all rows of few for the ranks of large classes.
MOST_CLASSES, MOST_ROWS, MOST_ENTRIES = 200, 200, 2**24
RANK_CLASSES, RANK_ENTRIES = 20, 2**24
# How far from 1 norms may be that were 1 before they were rounded to 16 bits.
UNIT_TOLERANCE = 2e-3

Watch = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Norms:
    """Euclidean norms of the samples that are finite."""

    smallest: float
    median: float
    largest: float
    zero_vectors: int
    unit: bool


@dataclass(frozen=True)
class Measures:
    """What was found in a file.

    Attributes
    ----------
    path, dtype, about
        As its `FeatureSource` has them.
    n_samples, width : int
    names, counts : tuple and array (classes,)
        Labels in the order of first appearance and their numbers of samples.
    labels : array (samples,)
        Number of the class of each sample, -1 where the label is missing.
    label_kind : str
    missing_labels : int
    zeros, negatives : float
        Shares of the entries.
    smallest, largest : float or None
        Of the finite entries; None where there is none.
    nan, infinite : BadEntries or None
    constant, all_zero : arrays of column numbers
    norms : Norms or None
    duplicates : Duplicates
    ranks : Ranks or None
    deviation : float or None
        Of a feature within classes.
    prints : Fingerprints
    sample : Sample
        What was kept of the rows.
    """

    path: Path
    dtype: np.dtype
    about: dict[str, Any]
    n_samples: int
    width: int
    names: tuple[Any, ...]
    counts: np.ndarray
    labels: np.ndarray
    label_kind: str
    missing_labels: int
    zeros: float
    negatives: float
    smallest: float | None
    largest: float | None
    nan: BadEntries | None
    infinite: BadEntries | None
    constant: np.ndarray
    all_zero: np.ndarray
    norms: Norms | None
    duplicates: Duplicates
    ranks: Ranks | None
    deviation: float | None
    prints: Fingerprints
    sample: Sample

    def label_of(self, row: int) -> Any:
        """The label of a row, None where it has none."""
        number = self.labels[row]
        return None if number < 0 else self.names[number]


def measure(source: FeatureSource, watch: Watch | None = None) -> Measures:
    """Read a file once and measure it; `watch` is called with the rows done and their total, None if unknown."""
    width = source.n_features
    classes, entries = ClassCounts(), EntryCounts(width)
    many, few = _samples(source)
    hashes, labels = [], []
    done = 0
    for X, y in source.batches(max(1, min(ROWS_AT_ONCE, BATCH_ENTRIES // width))):
        numbers = classes.add(y)
        finite = []
        for rows in slices(len(X), max(1, BLOCK_ENTRIES // width)):
            # Adding 0 turns -0 into 0, so that equal rows have equal bits.
            block = np.add(X[rows], 0.0, dtype=np.float64)
            finite.append(entries.add(block))
            hashes.append(row_hashes(block))
        usable = np.flatnonzero(np.concatenate(finite) & (numbers >= 0)) if finite else np.empty(0, np.int64)
        many.add(X, numbers, usable, done)
        few.add(X, numbers, usable, done)
        labels.append(numbers)
        done += len(X)
        if watch is not None:
            watch(done, source.n_samples)
    if not done:
        raise InputError(f"{source.path} holds no samples: write it again from the features.")
    norms = entries.norms
    numbers = np.concatenate(labels)
    prints = _fingerprints(np.concatenate(hashes), numbers, norms)
    sample = many.take()
    seen = entries.highs >= entries.lows
    return Measures(
        path=source.path,
        dtype=source.dtype,
        about=source.about,
        n_samples=done,
        width=width,
        names=classes.names,
        counts=classes.counts,
        labels=numbers,
        label_kind=classes.kind,
        missing_labels=classes.missing,
        zeros=entries.zeros / (done * width),
        negatives=entries.negatives / (done * width),
        smallest=float(entries.lows[seen].min()) if seen.any() else None,
        largest=float(entries.highs[seen].max()) if seen.any() else None,
        nan=entries.nan.found(),
        infinite=entries.infinite.found(),
        constant=np.flatnonzero(entries.lows == entries.highs),
        all_zero=np.flatnonzero((entries.lows == 0) & (entries.highs == 0)),
        norms=_norms(norms[~np.isnan(norms)]),
        duplicates=find_duplicates(prints),
        ranks=class_ranks([sample, few.take()]),
        deviation=deviation_within_classes(sample),
        prints=prints,
        sample=sample,
    )


def _samples(source: FeatureSource) -> tuple[BoundedSample, BoundedSample]:
    width = source.n_features
    many_rows = int(np.clip(MOST_ENTRIES // (MOST_CLASSES * width), 1, MOST_ROWS))
    # A class of twice as many rows as features shows the full rank of its covariance.
    few_rows = int(np.clip(RANK_ENTRIES // width, 2, 2 * width))
    few_classes = int(np.clip(RANK_ENTRIES // (few_rows * width), 1, RANK_CLASSES))
    return (
        BoundedSample(MOST_CLASSES, many_rows, width, source.dtype),
        BoundedSample(few_classes, few_rows, width, source.dtype),
    )


def _fingerprints(hashes: np.ndarray, labels: np.ndarray, norms: np.ndarray) -> Fingerprints:
    rows = np.flatnonzero((labels >= 0) & (norms != 0))
    return Fingerprints(hashes[rows], rows, labels[rows])


def _norms(norms: np.ndarray) -> Norms | None:
    if not len(norms):
        return None
    directed = norms[norms > 0]
    return Norms(
        smallest=float(norms.min()),
        median=float(np.median(norms)),
        largest=float(norms.max()),
        zero_vectors=len(norms) - len(directed),
        unit=bool(len(directed) and (np.abs(directed - 1) <= UNIT_TOLERANCE).all()),
    )
