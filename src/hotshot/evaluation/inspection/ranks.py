"""Spread within classes: the rank of class covariances, and the deviation that scale-dependent parameters meet."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf

from hotshot.evaluation.inspection.sampling import Sample


@dataclass(frozen=True)
class Ranks:
    """Ranks of the covariances of the classes that were looked at, all of at least two samples.

    Attributes
    ----------
    looked_at : int
    smallest, median, largest : float
    possible : tuple of two ints
        Smallest and largest rank that samples so many can have: min(J - 1, V).
    singular : int
        Classes whose rank is below V.
    deficient : int
        Classes whose rank is below min(J - 1, V), because features depend on each other or samples repeat.
    """

    looked_at: int
    smallest: int
    median: float
    largest: int
    possible: tuple[int, int]
    singular: int
    deficient: int


def class_ranks(samples: Iterable[Sample]) -> Ranks | None:
    """Ranks of classes that a sample holds well enough: whole, or with twice as many rows as features."""
    ranks, possible = {}, {}
    width = 0
    for sample in samples:
        width = sample.X.shape[1]
        for number, rows in sample.groups():
            enough = number in sample.whole or len(rows) >= 2 * width
            if number not in ranks and len(rows) > 1 and enough:
                ranks[number] = covariance_rank(rows)
                possible[number] = min(len(rows) - 1, width)
    if not ranks:
        return None
    found, most = np.array(list(ranks.values())), np.array(list(possible.values()))
    return Ranks(
        looked_at=len(found),
        smallest=int(found.min()),
        median=float(np.median(found)),
        largest=int(found.max()),
        possible=(int(most.min()), int(most.max())),
        singular=int(np.sum(found < width)),
        deficient=int(np.sum(found < most)),
    )


def covariance_rank(rows: np.ndarray) -> int:
    """Rank of the covariance of rows (J, V), by the pivoted Cholesky factor of the smaller of its two products."""
    centred = rows.astype(np.float64) * Sample(rows, np.empty(0)).scale
    centred -= centred.mean(axis=0)
    products = centred @ centred.T if centred.shape[0] <= centred.shape[1] else centred.T @ centred
    largest = float(products.diagonal().max())
    if largest == 0:
        return 0
    # Products square what rounding leaves of features that depend on each other.
    precision = np.finfo(np.float64 if rows.dtype.itemsize > 4 else np.float32).eps
    tolerance = max(max(rows.shape) * np.finfo(np.float64).eps, (max(rows.shape) * precision) ** 2)
    _, _, rank, _ = dpstrf(products, tol=tolerance * largest)
    return int(rank)


def deviation_within_classes(sample: Sample) -> float | None:
    """Root of the mean variance of a feature within classes; of all samples where no class has two."""
    if not len(sample.X):
        return None
    scale = sample.scale
    X = sample.X.astype(np.float64) * scale
    groups = Sample(X, sample.labels).groups()
    if all(len(rows) == 1 for _, rows in groups):
        groups = [(0, X)]
    squares = sum(float(((rows - rows.mean(axis=0)) ** 2).sum()) for _, rows in groups)
    freedom = sum(len(rows) - 1 for _, rows in groups)
    return float(np.sqrt(squares / (max(freedom, 1) * X.shape[1]))) / scale
