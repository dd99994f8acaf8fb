"""Units of work: one method on one chunk of tasks, and the record that becomes of it.

Chunks have a fixed size, whoever computes them, so that a task's numbers never depend on the workers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from hotshot.evaluation.plans import Plan
from hotshot.evaluation.tasks import Episodes, FrozenEpisodes

CHUNK_TASKS = 20
CALIBRATION_BINS = 15


@dataclass(frozen=True, order=True)
class Unit:
    """A method on the tasks [start, stop) of one number of shots."""

    shots: int
    start: int
    stop: int
    method: str


@dataclass(frozen=True)
class Record:
    """What a unit gave, as it is kept in the journal.

    `classes` and `correct` (tasks, ways) are the classes of each task, as indices, and its queries of that class
    that were predicted right; `bins` are (count, confidence, correct) per bin of confidence, or None without
    probabilities; `statuses` counts transport problems by status.
    """

    unit: Unit
    queries: int
    classes: list[list[int]]
    correct: list[list[int]]
    bins: list[list[float]] | None
    statuses: dict[str, int]
    stopped_early: int
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """As plain lists and numbers."""
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Record:
        """The record that `to_json` wrote."""
        return cls(**{**found, "unit": Unit(**found["unit"])})


def units_of(methods: Iterable[str], shots: int, start: int, stop: int) -> list[Unit]:
    """All units of tasks [start, stop), chunk by chunk so that the methods stay level."""
    starts = range(start - start % CHUNK_TASKS, stop, CHUNK_TASKS)
    return [Unit(shots, s, min(s + CHUNK_TASKS, stop), method) for s in starts for method in methods]


def run_unit(plan: Plan, episodes: Episodes | FrozenEpisodes, unit: Unit) -> Record:
    """Draw the tasks, fit, predict, count; on one thread, whose order of sums is always the same."""
    begin = time.perf_counter()
    tasks = [episodes[i] for i in range(unit.start, unit.stop)]
    seeds = [task_seed(episodes.seed, i) for i in range(unit.start, unit.stop)]
    with threadpool_limits(1):
        found = plan.run(tasks, seeds)
    classes = np.stack([np.unique(task.support_labels) for task in tasks])
    own = np.stack([task.query_labels for task in tasks])[:, None, :] == classes[:, :, None]
    correct = np.sum(found.correct[:, None, :] & own, axis=2)
    return Record(
        unit=unit,
        queries=int(np.sum(own[0, 0])),
        classes=np.searchsorted(episodes.names, classes).tolist(),
        correct=correct.tolist(),
        bins=None if found.confidence is None else confidence_bins(found.confidence, found.correct),
        statuses={str(status): count for status, count in found.statuses.items()},
        stopped_early=found.stopped_early,
        seconds=round(time.perf_counter() - begin, 6),
    )


def task_seed(seed: int, index: int) -> int:
    """Seed of whatever a method draws in a task, apart from the draw of the task itself."""
    return int(np.random.default_rng([seed, index, 1]).integers(2**31 - 1))


def confidence_bins(confidence: np.ndarray, correct: np.ndarray) -> list[list[float]]:
    """Number of predictions, sum of confidence and number correct, in equal bins of confidence."""
    place = np.minimum((confidence.ravel() * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    columns = (None, confidence.ravel(), correct.ravel().astype(float))
    sums = [np.bincount(place, weights, CALIBRATION_BINS) for weights in columns]
    return np.stack(sums, axis=1).astype(float).round(9).tolist()
