"""What an evaluation found: accuracies per task, their means with 95% intervals, and paired differences."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from hotshot.errors import InputError, ParameterError
from hotshot.evaluation.chunks import Record
from hotshot.formatting import with_interval
from hotshot.transport import Status


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


@dataclass(frozen=True)
class MethodResult:
    """One method on all tasks of one number of shots.

    Attributes
    ----------
    method, shots
    accuracies : array (tasks,)
        In [0, 1], in the order of the tasks.
    recall : dict of class name to float
        Share of the queries of each novel class that were predicted right, over all tasks it was drawn in.
    calibration_error : float or None
        Expected calibration error of the probabilities: mean distance between confidence and accuracy over 15
        bins of confidence. None for methods without probabilities.
    statuses : dict of Status to int
        How the transport problems ended.
    stopped_early : int
        Fits that stopped before their minimum.
    seconds_per_task : float
        Of one core: draw, fit and predict.
    """

    method: str
    shots: int
    accuracies: np.ndarray
    recall: dict[Any, float]
    calibration_error: float | None
    statuses: dict[Status, int]
    stopped_early: int
    seconds_per_task: float

    @property
    def accuracy(self) -> Estimate:
        """Mean accuracy with its 95% interval."""
        return mean_interval(self.accuracies)

    def share_below(self, threshold: float) -> float:
        """Share of the tasks whose accuracy is below a threshold in [0, 1]."""
        return float(np.mean(self.accuracies < threshold))


@dataclass(frozen=True)
class Evaluation:
    """All methods on the same tasks; `print` it for a table.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from hotshot import evaluate
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(list("abcdef"), 20)
    >>> X = np.repeat(rng.normal(size=(6, 4)), 20, axis=0) + 0.1 * rng.normal(size=(120, 4))
    >>> found = evaluate({"knn": KNeighborsClassifier(1)}, X, y, ways=3, shots=1, tasks=20, n_jobs=1)
    >>> found["knn", 1].accuracies.shape
    (20,)
    """

    results: tuple[MethodResult, ...]
    ways: int
    tasks: int
    reference: str

    def __getitem__(self, key: tuple[str, int]) -> MethodResult:
        for result in self.results:
            if (result.method, result.shots) == key:
                return result
        raise KeyError(key)

    @property
    def shots(self) -> list[int]:
        """Numbers of shots, in the order asked for."""
        return list(dict.fromkeys(result.shots for result in self.results))

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in the order asked for."""
        return list(dict.fromkeys(result.method for result in self.results))

    def difference(self, method: str, shots: int, reference: str | None = None) -> Estimate:
        """Accuracy of the reference minus that of `method`, paired over the tasks, with its 95% interval."""
        other = self[self.reference if reference is None else reference, shots]
        return paired_difference(other.accuracies, self[method, shots].accuracies)

    def rows(self, threshold: float = 0.5) -> list[dict[str, Any]]:
        """One flat dict per method and number of shots, accuracies in percent: for a data frame or JSON."""
        found = []
        for result in self.results:
            own, difference = result.accuracy, self.difference(result.method, result.shots)
            found.append(
                {
                    "method": result.method,
                    "ways": self.ways,
                    "shots": result.shots,
                    "tasks": own.n,
                    "accuracy": 100 * own.mean,
                    "accuracy_half_width": _finite(100 * own.half_width),
                    "reference": self.reference,
                    "reference_minus_this": 100 * difference.mean,
                    "reference_minus_this_half_width": _finite(100 * difference.half_width),
                    "share_below_threshold": result.share_below(threshold),
                    "threshold": threshold,
                    "calibration_error": result.calibration_error,
                    "milliseconds_per_task": 1000 * result.seconds_per_task,
                    "transport": {status.name.lower(): n for status, n in result.statuses.items()},
                    "stopped_early": result.stopped_early,
                    "recall": {str(name): value for name, value in result.recall.items()},
                }
            )
        return found

    def __str__(self) -> str:
        lines = []
        for result in self.results:
            own, gap = result.accuracy, self.difference(result.method, result.shots)
            line = f"{self.ways}-way-{result.shots}-shot  {result.method:<22} "
            line += with_interval(100 * own.mean, 100 * own.half_width)
            if result.method != self.reference:
                lead = with_interval(100 * gap.mean, 100 * gap.half_width, signed=True)
                line += f"   {self.reference} minus it {lead}"
            lines.append(line)
        return "\n".join(lines)


def _finite(value: float) -> float | None:
    """A single task has no interval, and JSON no infinity."""
    return value if np.isfinite(value) else None


def summarise(method: str, shots: int, records: Iterable[Record], names: np.ndarray) -> MethodResult:
    """The result of a method from its records, in the order of the tasks."""
    records = sorted(records, key=lambda record: record.chunk.start)
    classes = np.concatenate([record.classes for record in records])
    correct = np.concatenate([record.correct for record in records])
    queries = records[0].queries
    right = np.bincount(classes.ravel(), correct.ravel(), len(names))
    asked = queries * np.bincount(classes.ravel(), minlength=len(names))
    statuses: Counter[Status] = Counter()
    for record in records:
        statuses.update({Status(int(status)): count for status, count in record.statuses.items()})
    return MethodResult(
        method=method,
        shots=shots,
        accuracies=correct.sum(axis=1) / (queries * correct.shape[1]),
        recall={names[c].item(): float(right[c] / asked[c]) for c in np.flatnonzero(asked)},
        calibration_error=_calibration_error(records),
        statuses=dict(sorted(statuses.items())),
        stopped_early=sum(record.stopped_early for record in records),
        seconds_per_task=sum(record.seconds for record in records) / len(correct),
    )


def _calibration_error(records: list[Record]) -> float | None:
    bins = [record.bins for record in records if record.bins is not None]
    if not bins:
        return None
    count, confidence, correct = np.sum(bins, axis=0).T
    return float(np.sum(np.abs(confidence - correct)) / np.sum(count))


def check_reference(reference: str | None, methods: Iterable[str]) -> str:
    """The method that the others are compared to: the one named, or the first."""
    methods = list(methods)
    if reference is not None and reference not in methods:
        raise ParameterError(f"reference must be one of the methods {', '.join(methods)}, got {reference!r}.")
    return methods[0] if reference is None else reference
