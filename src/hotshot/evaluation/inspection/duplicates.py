"""Rows that occur more than once, in a file or in two: 64 bits are kept of each row instead of its features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Odd, and otherwise without pattern.
_FACTORS = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93))
_SHIFT = np.uint64(32)


@dataclass(frozen=True)
class Fingerprints:
    """A hash (rows,) of each row that can be told from others, its number in the file and its class.

    Rows of zeros, which are all alike and counted elsewhere, and rows without a label are left out.
    """

    hashes: np.ndarray
    rows: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True)
class Duplicates:
    """Exact duplicates in a file.

    Attributes
    ----------
    repeats : int
        Rows that are equal to an earlier row of their own class.
    conflicts : int
        Different vectors that occur in more than one class.
    repeat, conflict : pairs of row numbers, or None
        The first of each, the later row last.
    """

    repeats: int
    conflicts: int
    repeat: tuple[int, int] | None
    conflict: tuple[int, int] | None


def row_hashes(block: np.ndarray) -> np.ndarray:
    """64 bits of each row (rows, V) of float64; equal rows have equal ones, and others only by rare chance.

    The sum over the features of a well mixed word of the value and the feature's number, modulo 2**64.
    """
    keys = np.arange(1, block.shape[1] + 1, dtype=np.uint64) * _FACTORS[0]
    words = np.ascontiguousarray(block).view(np.uint64) ^ keys
    for factor in _FACTORS:
        words *= factor
        words ^= words >> _SHIFT
    return words.sum(axis=1, dtype=np.uint64)


def find_duplicates(prints: Fingerprints) -> Duplicates:
    """Count the rows of a file that are equal to others."""
    several = _several(prints.hashes)
    order = several[np.lexsort((prints.rows[several], prints.labels[several], prints.hashes[several]))]
    hashes, labels, rows = prints.hashes[order], prints.labels[order], prints.rows[order]
    equal = hashes[1:] == hashes[:-1]
    same = labels[1:] == labels[:-1]
    # Sorted by vector, then by class: a vector changes its class as often as it has further ones.
    changes = np.flatnonzero(equal & ~same)
    repeats = np.flatnonzero(equal & same)
    return Duplicates(
        repeats=len(repeats),
        conflicts=len(np.unique(hashes[changes])),
        repeat=_first_pair(rows, repeats),
        conflict=_first_pair(rows, changes),
    )


def _several(hashes: np.ndarray) -> np.ndarray:
    """Places of the hashes that occur more than once."""
    order = np.argsort(hashes)
    several = np.zeros(len(order), dtype=bool)
    several[1:] = hashes[order[1:]] == hashes[order[:-1]]
    several[:-1] |= several[1:]
    return order[several]


def find_shared(base: Fingerprints, novel: Fingerprints) -> tuple[int, tuple[int, int] | None]:
    """How many rows of the second file are rows of the first too, and the first such pair of row numbers."""
    shared = np.flatnonzero(np.isin(novel.hashes, base.hashes))
    if not len(shared):
        return 0, None
    twin = np.flatnonzero(base.hashes == novel.hashes[shared[0]])[0]
    return len(shared), (int(base.rows[twin]), int(novel.rows[shared[0]]))


def _first_pair(rows: np.ndarray, places: np.ndarray) -> tuple[int, int] | None:
    """Of the pairs of neighbours at these places, the one whose later row comes first in the file."""
    if not len(places):
        return None
    pairs = np.sort(np.stack([rows[places], rows[places + 1]], axis=1), axis=1)
    first, second = pairs[np.argmin(pairs[:, 1])]
    return int(first), int(second)
