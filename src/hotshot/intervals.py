"""Means with 95% intervals: over tasks, for the classes they were drawn from, and over classes, for new ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import stdtr, stdtrit

from hotshot.errors import InputError

# Shares of queries that differ by less are equal.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Estimate:
    """A mean and the half width of its 95% interval, over n tasks or n classes.

    `degrees` are the degrees of freedom of the interval, n - 1 where they are None.
    """

    mean: float
    half_width: float
    n: int
    degrees: float | None = None

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half_width

    @property
    def p_value(self) -> float:
        """Of Student's test that the mean is 0: below 0.05 where the interval leaves 0 out."""
        degrees = self.n - 1 if self.degrees is None else self.degrees
        if self.half_width == 0:
            # All values are equal and have no spread: by the sign test a few of them are no evidence.
            return 0.5**degrees if self.mean else 1.0
        if not math.isfinite(self.half_width):
            return 1.0
        return float(2 * stdtr(degrees, -abs(self.mean) / self.half_width * _quantile(degrees)))


def _quantile(degrees: float) -> float:
    """How many standard errors half a 95% interval is wide."""
    return float(stdtrit(degrees, 0.975))


def mean_interval(values: np.ndarray) -> Estimate:
    """Mean of values (n,) with Student's 95% interval; infinite for a single value."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise InputError(f"values must be a non-empty list of numbers, got shape {values.shape}.")
    n = len(values)
    if n == 1:
        return Estimate(float(values[0]), float("inf"), 1)
    # Equal values may have a mean that is off by a rounding error.
    error = values.std(ddof=1) / np.sqrt(n) if np.ptp(values) > ROUNDING else 0.0
    return Estimate(float(values.mean()), _quantile(n - 1) * float(error), n)


def class_interval(values: np.ndarray, classes: np.ndarray) -> Estimate:
    r"""Mean of values (tasks,) with its 95% interval over classes: for other classes of the same kind.

    The model is :math:`a_t = \mu + \sum_c Z_{tc} v_c + e_t` with :math:`Z_{tc} = 1/N_t` for the :math:`N_t` classes of
    task t: to first order, the deviation of a task is the mean of those of its classes. The variances of v and e follow
    from the sums of squares :math:`\sum_t (a_t - \bar a)^2` and :math:`\sum_c (\sum_t Z_{tc} (a_t - \bar a))^2`, whose
    expectations are linear in them [1]_. With w the mean row of Z, the variance of the mean is
    :math:`\sigma_v^2 \|w\|^2 + \sigma_e^2 / T`.

    `classes` (tasks, ways) are the classes of each task, -1 where it has fewer. The interval is never narrower than
    `mean_interval`, and infinite after a single task and where every task has all classes: these say nothing of others.

    References
    ----------
    .. [1] C. R. Rao, Estimation of variance and covariance components, Journal of Multivariate Analysis 1, 1971.
    """
    values, classes = np.asarray(values, dtype=np.float64), np.asarray(classes)
    over_tasks = mean_interval(values)
    T, present = over_tasks.n, classes >= 0
    ways = present.sum(axis=1)
    ends = np.concatenate([[0], np.cumsum(ways)])
    Z = sparse.csr_array((np.repeat(1 / ways, ways), classes[present], ends), shape=(T, int(classes.max()) + 1))
    w = Z.sum(axis=0) / T
    n = int(np.sum(w > 0))
    # Trace and squared norm of A = Z'PZ, P taking the mean off: A is never made, there may be many classes.
    product = Z.T @ Z
    trace = product.trace() - T * (w @ w)
    norm = (product.data @ product.data) - 2 * T * (w @ (product @ w)) + (T * (w @ w)) ** 2
    if T == 1 or trace <= 1e-9 * product.trace():
        return Estimate(over_tasks.mean, math.inf, n)
    if over_tasks.half_width == 0:
        return Estimate(over_tasks.mean, 0.0, n, min(T, n) - 1.0)
    deviations = values - over_tasks.mean
    of_tasks, of_classes = np.sum(deviations**2), np.sum((Z.T @ deviations) ** 2)
    determinant = (T - 1) * norm - trace**2
    # Where the two cannot be told apart, as after two tasks, all is put down to the classes.
    variance = most = min(of_classes / norm, of_tasks / trace)
    if determinant > 1e-9 * trace**2:
        variance = float(np.clip(((T - 1) * of_classes - trace * of_tasks) / determinant, 0, most))
    rest = (of_tasks - variance * trace) / (T - 1)
    total = variance * (w @ w) + rest / T
    # What the sum over classes alone says of the mean, of which the part that tasks explain was taken off.
    raw = (variance + rest * trace / norm) * (w @ w)
    degrees = trace**2 / norm
    # Satterthwaite's, which fall to nearly none where classes hardly differ; a quarter keeps the coverage there.
    degrees = max(1.0, degrees * max(0.25, min(1.0, total / raw) ** 2 if raw else 1.0))
    return Estimate(over_tasks.mean, _quantile(degrees) * math.sqrt(total), n, float(degrees))
