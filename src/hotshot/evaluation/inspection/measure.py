"""Everything that is measured of one feature file, in one pass over its batches and in bounded memory."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.bank.space import choose_power
from hotshot.errors import InputError
from hotshot.evaluation.inspection.spread import Sample, Section, class_ranks, deviation_within_classes
from hotshot.files import FeatureSource, Kept
from hotshot.files.source import ROWS_AT_ONCE
from hotshot.formatting import shortened

# Entries of a batch, and of the blocks of it that stay in a core's cache.
BATCH_ENTRIES, BLOCK_ENTRIES = 2**23, 2**16
# Rows of many classes are kept for costs and deviations, and all rows of few for the ranks of large classes.
MOST_CLASSES, MOST_ROWS, RANK_CLASSES, MOST_ENTRIES = 200, 200, 20, 2**24
# How far from 1 norms may be that were 1 before they were rounded to 16 bits.
UNIT_TOLERANCE = 2e-3
LABEL_KINDS = {"i": "whole numbers", "u": "whole numbers", "b": "true and false", "f": "numbers"}
BAD_KINDS = {"nan": np.isnan, "infinite": np.isinf}
# Multiples of an odd number visit all 64-bit integers once; those of the golden ratio do so evenly.
GOLDEN, NEVER, ALWAYS = np.array([0x9E3779B97F4A7C15, 0, 2**64 - 1], dtype=np.uint64)

Watch = Callable[[int, int | None], None]


@dataclass(frozen=True)
class InspectedFile:
    """A file with its name, its role ("base", "novel" or None) and all that was measured of it.

    `values` is its part of the JSON document, see `document`. Beside it are the classes by first appearance and their
    numbers of samples (classes,), the class of each row (samples,), -1 where its label is missing, a hash of each row
    (samples,), which rows have a label and are not all zeros, a sample of the rows, and what the rows were taken of.
    """

    name: str
    role: str | None
    values: Section
    class_names: tuple[Any, ...]
    class_counts: np.ndarray
    labels: np.ndarray
    hashes: np.ndarray
    comparable: np.ndarray
    sample: Sample
    kept: Kept

    def row(self, row: int) -> str:
        """What a sample is called: its id in quotes, or `row 17` where the file has none."""
        return f"row {row}" if self.kept.is_numbered else f"'{shortened(self.kept.ids[row], keep='end')}'"

    @property
    def smallest(self) -> float:
        """The smallest finite entry, 0 where none is finite."""
        smallest = self.values["entries"]["smallest"]
        return 0.0 if smallest is None else smallest


def measure(source: FeatureSource, name: str, role: str | None, watch: Watch | None = None) -> InspectedFile:
    """Read a file once and measure all but its costs; `watch` hears of the rows done and their total, if known."""
    width = source.n_features
    # A class of twice as many rows as features shows the full rank of its covariance.
    rank_rows = int(np.clip(MOST_ENTRIES // width, 2, 2 * width))
    rank_classes = int(np.clip(MOST_ENTRIES // (rank_rows * width), 1, RANK_CLASSES))
    many_rows = int(np.clip(MOST_ENTRIES // (MOST_CLASSES * width), 1, MOST_ROWS))
    many = BoundedSample(MOST_CLASSES, many_rows, width, source.dtype)
    few = BoundedSample(rank_classes, rank_rows, width, source.dtype)
    entries, numbers, kind, done = Entries(width), dict[Any, int](), "", 0
    seen: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for X, y in source.batches(max(1, min(ROWS_AT_ONCE, BATCH_ENTRIES // width))):
        kind, labels = LABEL_KINDS.get(y.dtype.kind, "text"), class_numbers(y, numbers)
        norms, hashes = np.empty(len(X)), np.empty(len(X), dtype=np.int64)
        for rows in slices(len(X), max(1, BLOCK_ENTRIES // width)):
            # Adding 0 turns -0 into 0, so that equal rows have equal bits.
            block = np.add(X[rows], 0.0, dtype=np.float64)
            norms[rows], hashes[rows] = entries.add(block), row_hashes(block)
        seen.append((labels, norms, hashes))
        usable = np.flatnonzero((labels >= 0) & ~np.isnan(norms))
        many.add(X, labels, usable, done)
        few.add(X, labels, usable, done)
        done += len(X)
        if watch is not None:
            watch(done, source.n_samples)
    if not done:
        raise InputError(f"{source.path} holds no samples: write it again from the features.")
    labels, norms, hashes = map(np.concatenate, zip(*seen, strict=True))
    names = tuple(numbers)
    counts = np.bincount(labels[labels >= 0], minlength=len(names))
    comparable = np.flatnonzero((labels >= 0) & (norms != 0))
    sample = many.take()
    values = {
        "file": name,
        "role": role,
        "samples": done,
        "features": width,
        "dtype": str(source.dtype),
        # Headers of strangers may hold NaN, which JSON has no word for.
        "about": json.loads(json.dumps(source.about, default=str), parse_constant=str),
        "classes": {"labels": kind, "missing_labels": int(np.sum(labels < 0)), **_class_sizes(names, counts)},
        **entries.sections(lambda row: names[labels[row]] if labels[row] >= 0 else None),
        "duplicates": _duplicates(hashes[comparable], labels[comparable], comparable),
        "norms": _norms(norms),
        "deviation_within_classes": deviation_within_classes(sample),
        "ranks": class_ranks(sample, few.take()),
        "costs": None,
    }
    return InspectedFile(name, role, values, names, counts, labels, hashes, comparable, sample, source.kept)


class Entries:
    """Zeros, negatives, NaN and infinities among the entries, and the extremes of each feature."""

    def __init__(self, width: int) -> None:
        self._rows = self._zeros = self._negatives = 0
        # Of the finite entries.
        self._lows, self._highs = np.full(width, np.inf), np.full(width, -np.inf)
        self._bad: dict[str, Section] = {}
        self._bad_features = {kind: np.zeros(width, dtype=bool) for kind in BAD_KINDS}

    def add(self, block: np.ndarray) -> np.ndarray:
        """Count rows (rows, V) in float64; their norms."""
        self._zeros += block.size - int(np.count_nonzero(block))
        norms = row_norms(block)
        if np.isnan(norms).any():
            for kind, is_bad in BAD_KINDS.items():
                self._add_bad(kind, is_bad(block))
            # NaN compares with nothing, and fmin and fmax pass it over.
            block = np.where(np.isfinite(block), block, np.nan)
        self._negatives += int(np.count_nonzero(block < 0))
        np.fmin(self._lows, np.fmin.reduce(block, axis=0), out=self._lows)
        np.fmax(self._highs, np.fmax.reduce(block, axis=0), out=self._highs)
        self._rows += len(block)
        return norms

    def _add_bad(self, kind: str, bad: np.ndarray) -> None:
        if not bad.any():
            return
        row, column = np.argwhere(bad)[0].tolist()
        found = self._bad.setdefault(kind, {"count": 0, "samples": 0, "row": self._rows + row, "column": column})
        found["count"] += int(bad.sum())
        found["samples"] += int(bad.any(axis=1).sum())
        self._bad_features[kind] |= bad.any(axis=0)
        found["features"] = int(self._bad_features[kind].sum())

    def sections(self, label_of: Callable[[int], Any]) -> Section:
        """What the document says of the entries, of the features that have one value only, and of powers."""
        size, low, high = self._rows * len(self._lows), float(self._lows.min()), float(self._highs.max())
        constant = np.flatnonzero(self._lows == self._highs)
        power = {"auto": choose_power("auto", low), "half": low >= 0, "log": low > 0}
        for bad in self._bad.values():
            bad["class"] = label_of(bad["row"])
        return {
            "entries": {
                "zero_share": self._zeros / size,
                "negative_share": self._negatives / size,
                "smallest": low if low <= high else None,
                "largest": high if low <= high else None,
                **{kind: self._bad.get(kind) for kind in BAD_KINDS},
            },
            "constant_features": {
                "count": len(constant),
                "all_zero": int(np.sum(self._lows[constant] == 0)),
                "columns": constant[:10].tolist(),
            },
            "power": power if low <= high else None,
        }


class BoundedSample:
    """At most `n_rows` rows of each of at most `n_classes` classes, evenly over the file.

    The rows with the smallest multiples of the golden ratio are kept, so that a row is kept or not whatever the
    batches are. Twice as many are held meanwhile.
    """

    def __init__(self, n_classes: int, n_rows: int, width: int, dtype: np.dtype) -> None:
        self._n_classes, self._n_rows = n_classes, n_rows
        # Features, classes and row numbers of what is held.
        nothing = np.empty(0, dtype=np.int64)
        self._held = [(np.empty((0, width), dtype=dtype), nothing, nothing)]
        self._n_waiting = 0
        # Priorities below which a row of each class is still wanted.
        self._below = np.empty(0, dtype=np.uint64)

    def add(self, X: np.ndarray, labels: np.ndarray, usable: np.ndarray, first: int) -> None:
        """Take from the `usable` rows of a batch X (rows, V) with classes (rows,), which begins at row `first`."""
        n_new = int(labels.max(initial=-1)) + 1 - len(self._below)
        if n_new > 0:
            self._below = np.append(self._below, np.full(n_new, ALWAYS))
            self._below[np.argsort(_priority(np.arange(len(self._below))))[self._n_classes :]] = NEVER
        wanted = usable[_priority(usable + first) < self._below[labels[usable]]]
        self._held.append((X[wanted], labels[wanted], wanted + first))
        self._n_waiting += len(wanted)
        if self._n_waiting > self._n_classes * self._n_rows:
            self.take()

    def take(self) -> Sample:
        """What is kept of all rows so far; the others are let go."""
        X, labels, rows = map(np.concatenate, zip(*self._held, strict=True))
        priority = _priority(rows)
        order = np.lexsort((priority, labels))
        order = order[self._below[labels[order]] > NEVER]
        place = np.arange(len(order)) - np.searchsorted(labels[order], labels[order])
        # Where there was one too many, only what would come before it is wanted from now on.
        surplus = order[place == self._n_rows]
        self._below[labels[surplus]] = priority[surplus]
        kept = order[place < self._n_rows]
        kept = kept[np.lexsort((rows[kept], labels[kept]))]
        self._held, self._n_waiting = [(X[kept], labels[kept], rows[kept])], 0
        return Sample(*self._held[0][:2], frozenset(np.flatnonzero(self._below == ALWAYS).tolist()))


def _priority(numbers: np.ndarray) -> np.ndarray:
    return (numbers.astype(np.uint64) + np.uint64(1)) * GOLDEN


def class_numbers(y: np.ndarray, numbers: dict[Any, int]) -> np.ndarray:
    """Number of the class of each label (rows,), -1 for NaN and infinity; new classes enter `numbers` in turn."""
    known = np.isfinite(y) if y.dtype.kind == "f" else np.ones(len(y), dtype=bool)
    given = y[known]
    # Most files are sorted by class: one look at the first label of each run is enough.
    first = np.append(np.ones(min(len(given), 1), dtype=bool), given[1:] != given[:-1])
    runs = [numbers.setdefault(label, len(numbers)) for label in given[first].tolist()]
    labels = np.full(len(y), -1, dtype=np.int64)
    labels[known] = np.asarray(runs, dtype=np.int64)[np.cumsum(first) - 1]
    return labels


def row_norms(block: np.ndarray) -> np.ndarray:
    """Euclidean norms of rows (rows, V), NaN for rows that are not finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        largest = np.abs(block).max(axis=1)
        largest[np.isinf(largest)] = np.nan
        # Dividing by the largest entry keeps the squares of huge and tiny entries representable.
        scaled = block / np.where(largest > 0, largest, 1.0)[:, None]
        return largest * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))


def row_hashes(block: np.ndarray) -> np.ndarray:
    """64 bits of each row (rows, V), kept instead of its features: equal for equal rows, and else by rare chance."""
    return np.fromiter((hash(row.tobytes()) for row in block), dtype=np.int64, count=len(block))


def _class_sizes(names: tuple[Any, ...], counts: np.ndarray) -> Section:
    if not names:
        return {"count": 0, "smallest": None, "median_samples": None, "largest": None, "with_one_sample": 0}
    places = {"smallest": counts.argmin(), "largest": counts.argmax()}
    sizes = {key: {"name": names[place], "samples": int(counts[place])} for key, place in places.items()}
    median, alone = float(np.median(counts)), int(np.sum(counts == 1))
    return {"count": len(names), "median_samples": median, "with_one_sample": alone, **sizes}


def _norms(norms: np.ndarray) -> Section | None:
    zeros, norms = np.flatnonzero(norms == 0), norms[~np.isnan(norms)]
    if not len(norms):
        return None
    directed = norms[norms > 0]
    return {
        "smallest": float(norms.min()),
        "median": float(np.median(norms)),
        "largest": float(norms.max()),
        "zero_vectors": len(zeros),
        "zero_vector": int(zeros[0]) if len(zeros) else None,
        "unit": bool(len(directed) and (np.abs(directed - 1) <= UNIT_TOLERANCE).all()),
    }


def _duplicates(hashes: np.ndarray, labels: np.ndarray, rows: np.ndarray) -> Section:
    """Rows that equal an earlier row of their class, vectors of more than one class, and the first of each."""
    order = np.lexsort((labels, hashes))
    hashes, labels, rows = hashes[order], labels[order], rows[order]
    equal, same = hashes[1:] == hashes[:-1], labels[1:] == labels[:-1]
    # Sorted by vector, then by class: a vector changes its class as often as it has further ones.
    repeats, changes = np.flatnonzero(equal & same), np.flatnonzero(equal & ~same)

    def first(places: np.ndarray) -> list[int] | None:
        """Of the pairs of neighbours at these places, the one whose later row comes first in the file."""
        pairs = np.sort([rows[places], rows[places + 1]], axis=0)
        return pairs[:, pairs[1].argmin()].tolist() if len(places) else None

    counts = {"repeats": len(repeats), "conflicts": len(np.unique(hashes[changes]))}
    return {**counts, "repeat": first(repeats), "conflict": first(changes)}


def shared_rows(base: InspectedFile, novel: InspectedFile) -> tuple[int, int, int]:
    """How many rows of the novel file are rows of the base file too, and the first of them in both, -1 for none."""
    known = base.hashes[base.comparable]
    shared = novel.comparable[np.isin(novel.hashes[novel.comparable], known)]
    if not len(shared):
        return 0, -1, -1
    return len(shared), int(base.comparable[np.argmax(known == novel.hashes[shared[0]])]), int(shared[0])
