"""Means over tasks with 95% intervals, and paired differences between methods on the same tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from hotshot.errors import InputError


@dataclass(frozen=True)
class Estimate:
    """A mean over n tasks and the half width of its 95% interval."""

    mean: float
    half_width: float
    n: int

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half_width


AHEAD, BEHIND, UNDECIDED = "ahead", "behind", "undecided"


def verdict(difference: Estimate) -> str:
    """Whether the interval of a difference lies above zero, below it, or around it."""
    if difference.low > 0:
        return AHEAD
    return BEHIND if difference.high < 0 else UNDECIDED


def mean_interval(values: np.ndarray) -> Estimate:
    """Mean of values (n,) with Student's 95% interval; infinite for a single value.

    Examples
    --------
    >>> found = mean_interval(np.array([0.5, 0.7, 0.6, 0.6]))
    >>> f"{found.mean:.2f} ± {found.half_width:.2f}"
    '0.60 ± 0.13'
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise InputError(f"values must be a non-empty list of numbers, got shape {values.shape}.")
    n = len(values)
    if n == 1:
        return Estimate(float(values[0]), float("inf"), 1)
    error = values.std(ddof=1) / np.sqrt(n)
    return Estimate(float(values.mean()), float(stats.t.ppf(0.975, n - 1) * error), n)


def paired_difference(values: np.ndarray, reference: np.ndarray) -> Estimate:
    """Mean of values - reference over the same tasks, with its 95% interval."""
    values, reference = np.asarray(values), np.asarray(reference)
    if values.shape != reference.shape:
        raise InputError(
            f"Paired values must come from the same tasks, got shapes {values.shape} and {reference.shape}."
        )
    return mean_interval(values - reference)
