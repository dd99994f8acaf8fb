"""A bounded sample of a stream: some rows of some classes, the same for any size of the batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Multiples of an odd number visit all 64-bit integers once; those of the golden ratio do so evenly.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
NEVER, ALWAYS = np.uint64(0), np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Sample:
    """Rows (rows, V) as they are stored and the number of the class of each (rows,), sorted by class.

    `whole` are the numbers of the classes none of whose rows was left out.
    """

    X: np.ndarray
    labels: np.ndarray
    whole: frozenset[int] = frozenset()

    @property
    def scale(self) -> float:
        """A power of two that brings the largest entry near 1, so that squares can be summed."""
        largest = max(float(self.X.max()), -float(self.X.min())) if self.X.size else 0.0
        return float(2.0 ** -np.clip(np.round(np.log2(largest)), -1000, 1000)) if largest > 0 else 1.0

    def groups(self) -> list[tuple[int, np.ndarray]]:
        """The number of each class and its rows."""
        numbers, starts = np.unique(self.labels, return_index=True)
        return list(zip(numbers.tolist(), np.split(self.X, starts[1:]), strict=True)) if len(numbers) else []


class BoundedSample:
    """At most `n_rows` rows of each of at most `n_classes` classes, evenly over the file.

    The rows with the smallest multiples of the golden ratio are kept, so that a row is kept or not whatever the
    batches are. Twice as many are held meanwhile.
    """

    def __init__(self, n_classes: int, n_rows: int, width: int, dtype: np.dtype) -> None:
        self._n_classes, self._n_rows = n_classes, n_rows
        self._X = np.empty((0, width), dtype=dtype)
        self._labels = np.empty(0, dtype=np.int64)
        self._rows = np.empty(0, dtype=np.int64)
        # Priorities below which a row of each class is still wanted.
        self._below = np.empty(0, dtype=np.uint64)
        self._waiting: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._n_waiting = 0

    def add(self, X: np.ndarray, labels: np.ndarray, usable: np.ndarray, first: int) -> None:
        """Take from the `usable` rows of a batch X (rows, V) with classes (rows,), which begins at row `first`."""
        if not len(usable):
            return
        self._meet(int(labels.max()) + 1)
        wanted = usable[_priority(usable + first) < self._below[labels[usable]]]
        self._waiting.append((X[wanted], labels[wanted], wanted + first))
        self._n_waiting += len(wanted)
        if self._n_waiting > self._n_classes * self._n_rows:
            self._prune()

    def take(self) -> Sample:
        """What is kept of all rows so far."""
        self._prune()
        return Sample(self._X, self._labels, frozenset(np.flatnonzero(self._below == ALWAYS).tolist()))

    def _meet(self, n_seen: int) -> None:
        """Let classes in that are seen first, and those out that no longer are among the chosen."""
        known = len(self._below)
        if n_seen <= known:
            return
        self._below = np.concatenate([self._below, np.full(n_seen - known, ALWAYS)])
        if n_seen > self._n_classes:
            order = _priority(np.arange(n_seen))
            last = np.partition(order, self._n_classes - 1)[self._n_classes - 1]
            self._below[order > last] = NEVER

    def _prune(self) -> None:
        X = np.concatenate([self._X, *(part[0] for part in self._waiting)])
        labels = np.concatenate([self._labels, *(part[1] for part in self._waiting)])
        rows = np.concatenate([self._rows, *(part[2] for part in self._waiting)])
        self._waiting, self._n_waiting = [], 0
        priority = _priority(rows)
        order = np.lexsort((priority, labels))
        order = order[self._below[labels[order]] > NEVER]
        sorted_labels = labels[order]
        place = np.arange(len(order)) - np.searchsorted(sorted_labels, sorted_labels)
        # Where there was one too many, only what would come before it is wanted from now on.
        full = order[place == self._n_rows]
        self._below[labels[full]] = priority[full]
        kept = order[place < self._n_rows]
        kept = kept[np.lexsort((rows[kept], labels[kept]))]
        self._X, self._labels, self._rows = X[kept], labels[kept], rows[kept]


def _priority(numbers: np.ndarray) -> np.ndarray:
    return (numbers.astype(np.uint64) + np.uint64(1)) * GOLDEN
