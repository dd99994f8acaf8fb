"""Classes and entries of a file, counted batch by batch; no count depends on the size of the batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Sums of squares beyond these may have lost entries to over- or underflow.
SAFE_SQUARES = (1e-280, 1e280)
LABEL_KINDS = {"U": "text", "i": "whole numbers", "u": "whole numbers", "b": "true and false", "f": "numbers"}


@dataclass(frozen=True)
class BadEntries:
    """Entries that are NaN, or infinite: how many, in how many samples and features, and where the first stands."""

    count: int
    samples: int
    features: int
    row: int
    column: int


class BadCounts:
    """Entries of one bad kind, counted block by block."""

    def __init__(self, width: int) -> None:
        self._count = self._samples = 0
        self._features = np.zeros(width, dtype=bool)
        self._first: tuple[int, int] | None = None

    def add(self, bad: np.ndarray, first_row: int) -> None:
        """Count a block (rows, V) of truth values that begins at row `first_row` of the file."""
        if not bad.any():
            return
        self._count += int(bad.sum())
        self._samples += int(bad.any(axis=1).sum())
        self._features |= bad.any(axis=0)
        if self._first is None:
            row, column = np.argwhere(bad)[0]
            self._first = (first_row + int(row), int(column))

    def found(self) -> BadEntries | None:
        """What was counted, None where there was nothing."""
        if self._first is None:
            return None
        return BadEntries(self._count, self._samples, int(self._features.sum()), *self._first)


class ClassCounts:
    """Samples per class in the order of first appearance; a label that is NaN or infinite is a missing one."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self.counts = np.zeros(0, dtype=np.int64)
        self.missing = 0
        self.kind = ""

    @property
    def names(self) -> tuple[Any, ...]:
        """Labels as Python values."""
        return tuple(self._numbers)

    def add(self, y: np.ndarray) -> np.ndarray:
        """Number of the class of each sample, -1 where its label is missing."""
        self.kind = LABEL_KINDS.get(y.dtype.kind, "text")
        known = np.isfinite(y) if y.dtype.kind == "f" else np.ones(len(y), dtype=bool)
        given = y[known]
        # Most files are sorted by class: one look at the first label of each run is enough.
        first = np.append(np.ones(min(len(given), 1), dtype=bool), given[1:] != given[:-1])
        numbers = self._numbers
        runs = [numbers.setdefault(label, len(numbers)) for label in given[first].tolist()]
        labels = np.full(len(y), -1, dtype=np.int64)
        labels[known] = np.asarray(runs, dtype=np.int64)[np.cumsum(first) - 1]
        counts = np.bincount(labels[known], minlength=len(numbers))
        counts[: len(self.counts)] += self.counts
        self.counts = counts
        self.missing += len(y) - int(known.sum())
        return labels


class EntryCounts:
    """Zeros, negatives, NaN and infinities among the entries; the extremes of each feature; the norms of the rows."""

    def __init__(self, width: int) -> None:
        self.rows = self.zeros = self.negatives = 0
        self.nan, self.infinite = BadCounts(width), BadCounts(width)
        # Of the finite entries.
        self.lows = np.full(width, np.inf)
        self.highs = np.full(width, -np.inf)
        self._norms: list[np.ndarray] = []

    def add(self, block: np.ndarray) -> np.ndarray:
        """Count rows (rows, V) in float64; which of them are finite."""
        self.zeros += block.size - int(np.count_nonzero(block))
        norms, finite = row_norms(block)
        self._norms.append(norms)
        if not finite.all():
            self.nan.add(np.isnan(block), self.rows)
            self.infinite.add(np.isinf(block), self.rows)
            # NaN compares with nothing, and minimum and maximum pass it over.
            block = np.where(np.isfinite(block), block, np.nan)
        self.negatives += int(np.count_nonzero(block < 0))
        np.fmin(self.lows, np.fmin.reduce(block, axis=0), out=self.lows)
        np.fmax(self.highs, np.fmax.reduce(block, axis=0), out=self.highs)
        self.rows += len(block)
        return finite

    @property
    def norms(self) -> np.ndarray:
        """Euclidean norm of each row (rows,), NaN where an entry is not finite."""
        return np.concatenate(self._norms)


def row_norms(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Euclidean norms of rows (rows, V), NaN for rows that are not finite, and which rows are."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        squares = np.einsum("ij,ij->i", block, block)
        low, high = SAFE_SQUARES
        doubtful = np.flatnonzero(~((squares > low) & (squares < high)))
        norms = np.sqrt(squares)
        finite = np.ones(len(block), dtype=bool)
        if len(doubtful):
            rows = block[doubtful]
            finite[doubtful] = np.isfinite(rows).all(axis=1)
            largest = np.abs(rows).max(axis=1)
            rows = rows / np.where(largest > 0, largest, 1.0)[:, None]
            norms[doubtful] = largest * np.sqrt(np.einsum("ij,ij->i", rows, rows))
            norms[~finite] = np.nan
    return norms, finite
