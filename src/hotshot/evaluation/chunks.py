"""One method on one chunk of tasks: how it is run, and the record of the result.

Chunks have a fixed size, whoever computes them, so that a task's numbers never depend on the workers. A runner holds
all of a method that depends on the data alone: the prepared bank, the novel samples in its space. It is made once and
sent to the workers, so it carries no more than its method needs.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hotshot.arrays import cast, one_thread, slices
from hotshot.bank import BaseClasses, PreparedBase
from hotshot.classifiers.calibrated import CalibratedClassifier, head_seed
from hotshot.classifiers.classifier import FewShotClassifier
from hotshot.classifiers.confidence import Confidence
from hotshot.errors import HotshotError, HotshotWarning, InputError, ParameterError, SharedClassWarning
from hotshot.evaluation.measures import Measure
from hotshot.evaluation.tasks import CHUNK_TASKS, Episodes, OpenTask, Task
from hotshot.method.fit import fit_tasks
from hotshot.method.heads import HEADS
from hotshot.method.heads.problem import softmax
from hotshot.method.hierarchy import COSTS
from hotshot.method.parameters import Method
from hotshot.transport import count_statuses

CALIBRATION_BINS = 15
# Entries of the dense covariances of the tasks that are fitted together.
BATCH_ENTRIES = 2**25


@dataclass(frozen=True)
class Chunk:
    """A method on the tasks [start, stop) of one number of shots, or of a range such as "1-10"."""

    shots: int | str
    start: int
    stop: int
    method: str


@dataclass(frozen=True)
class Record:
    """The result of a chunk, as the journal keeps it.

    `classes`, `queries` and `correct` have a list for each task: its classes, as indices, how many queries each class
    had, and how many of these were predicted right. `bins` are (count, confidence, correct) per bin of confidence, or
    None without probabilities; `statuses` counts transport problems by status. `measures` are what else the setting
    measures, one number per task; a closed one has None.
    """

    chunk: Chunk
    classes: list[list[int]]
    queries: list[list[int]]
    correct: list[list[int]]
    bins: list[list[float]] | None
    statuses: dict[str, int]
    stopped_early: int
    seconds: float
    measures: dict[str, list[float]] | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain lists and numbers."""
        found = asdict(self)
        if self.measures is None:
            del found["measures"]
        return {"unit": found.pop("chunk"), **found}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Record:
        """The record that `to_json` wrote; ValueError or the like where it cannot be one."""
        record = cls(chunk=Chunk(**found["unit"]), **{name: x for name, x in found.items() if name != "unit"})
        tasks = [record.classes, record.queries, record.correct]
        ways = [list(map(len, rows)) for rows in tasks]
        classes, queries, correct = (np.array([number for row in rows for number in row]) for rows in tasks)
        bins = np.zeros((CALIBRATION_BINS, 3)) if record.bins is None else np.array(record.bins)
        sound = (
            ways[0] == ways[1] == ways[2]
            and len(ways[0]) == record.chunk.stop - record.chunk.start
            and min(ways[0]) > 0
            and all(numbers.ndim == 1 and numbers.dtype.kind == "i" for numbers in (classes, queries, correct))
            and classes.min() >= 0
            and correct.min() >= 0
            and (correct <= queries).all()
            and min(map(sum, record.queries)) > 0
            and np.isfinite(bins).all()
            and bins.shape == (CALIBRATION_BINS, 3)
            and all(isinstance(n, int) for n in (*record.statuses.values(), record.stopped_early))
            and record.seconds >= 0
            and _are_measures(record.measures, len(ways[0]))
        )
        if not sound:
            raise ValueError(f"the record of {record.chunk.method} from task {record.chunk.start} on holds no counts")
        return record


def _are_measures(found: Any, tasks: int) -> bool:
    """Whether these are finite numbers under names, one for each task; or none at all."""
    if found is None:
        return True
    return isinstance(found, dict) and all(
        isinstance(values, list)
        and len(values) == tasks
        and all(type(value) in (int, float) and np.isfinite(value) for value in values)
        for values in found.values()
    )


@dataclass(frozen=True)
class Predictions:
    """Predictions of a method for the queries of some tasks.

    Attributes
    ----------
    correct : list of boolean arrays (queries,), one for each task
    confidence : list of arrays (queries,), or None
        Probability of the class predicted, where the method gives probabilities.
    statuses : dict of int to int
        How many transport problems ended in each `Status`.
    stopped_early : int
        Heads that stopped before their minimum.
    measures : dict of str to list of float, or None
        What else is measured in each task.
    """

    correct: list[np.ndarray]
    confidence: list[np.ndarray] | None
    statuses: dict[int, int]
    stopped_early: int = 0
    measures: dict[str, list[float]] | None = None


@dataclass(frozen=True)
class BatchedRunner:
    """A calibrated classifier, fitted to many tasks at once by the functions that the estimator calls with one."""

    base: PreparedBase
    novel: np.ndarray
    method: Method
    random_state: int | None
    confidence: Confidence | None = None

    def run(self, tasks: Sequence[Task], seeds: Sequence[int]) -> Predictions:
        """Fit and predict, tasks of one size together; a task's numbers do not depend on the number of workers."""
        groups: dict[tuple[int, int, int], list[int]] = {}
        for place, task in enumerate(tasks):
            sizes = len(np.unique(task.support_labels)), len(task.support), len(task.query)
            groups.setdefault(sizes, []).append(place)
        correct, confidence = [np.empty(0)] * len(tasks), [np.empty(0)] * len(tasks)
        counts: Counter[int] = Counter()
        stopped_early = 0
        width = self.novel.shape[1]
        for (ways, support, _), members in groups.items():
            targets = ways if self.method.per == "class" else support
            size = max(1, BATCH_ENTRIES // (targets * width**2)) if HEADS[self.method.head].in_batches else 1
            for some in slices(len(members), size):
                places = members[some]
                found = self._run_batch([tasks[i] for i in places], [seeds[i] for i in places], ways)
                for place, right, sure in zip(places, found.correct, found.confidence or (), strict=True):
                    correct[place], confidence[place] = right, sure
                counts.update(found.statuses)
                stopped_early += found.stopped_early
        return Predictions(correct, confidence, counts, stopped_early)

    def _run_batch(self, tasks: Sequence[Task], seeds: Sequence[int], ways: int) -> Predictions:
        """Tasks of the same size, together."""
        # Classes in sorted order, as the estimator has them.
        labels, queries = [], []
        for task in tasks:
            classes, own = np.unique(task.support_labels, return_inverse=True)
            labels.append(own)
            queries.append(np.searchsorted(classes, task.query_labels))
        if self.random_state is not None:
            seeds = [head_seed(self.random_state)] * len(tasks)
        support = self.novel[np.stack([task.support for task in tasks])]
        fitted = fit_tasks(self.base, support, np.stack(labels), self.method, n_classes=ways, seeds=seeds)
        logits = fitted.decision(self.novel[np.stack([task.query for task in tasks])])
        tempered = logits.astype(np.float64)
        if self.confidence is not None:
            tempered /= self.confidence.temperatures_of(self.base, support, np.stack(labels))[:, None, None]
        probabilities = softmax(tempered)[0]
        transfer = fitted.transfer
        statuses = [np.ravel(s) for s in (transfer.low_status, transfer.high_status) if s is not None]
        return Predictions(
            list(np.argmax(logits, axis=2) == np.stack(queries)),
            list(np.max(probabilities, axis=2)),
            {int(s): n for s, n in count_statuses(np.concatenate(statuses)).items()} if statuses else {},
            int(np.sum(~fitted.converged)),
        )


@dataclass(frozen=True)
class EstimatorRunner:
    """Any scikit-learn classifier, cloned, fitted and asked task by task."""

    estimator: Any
    novel: np.ndarray
    # Spaces of its bank that it uses, which a copy of the bank in another process would prepare again.
    spaces: Mapping[Any, PreparedBase] = field(default_factory=dict)
    measure: Measure | None = None
    # Whether it classifies the queries of a task jointly.
    batch: bool = False

    def run(self, tasks: Sequence[Task], seeds: Sequence[int]) -> Predictions:
        """Fit and predict each task; parameters called random_state that are None are seeded by the task."""
        with warnings.catch_warnings():
            # They were heard once, when the method was tried.
            warnings.simplefilter("ignore", HotshotWarning)
            return self._run(tasks, seeds)

    def _run(self, tasks: Sequence[Task], seeds: Sequence[int]) -> Predictions:
        correct, confidence = [], []
        measured: list[dict[str, float]] = []
        stopped_early = 0
        if self.spaces:
            self.estimator.base.adopt(self.spaces)
        for task, seed in zip(tasks, seeds, strict=True):
            model = _seeded(clone(self.estimator), seed)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                model.fit(self.novel[task.support], task.support_labels)
            stopped_early += any(issubclass(w.category, ConvergenceWarning) for w in caught)
            answers, probabilities = answers_to(model, self.novel, task, self.batch)
            predicted = answers[: len(task.query)]
            correct.append(predicted == task.query_labels)
            if probabilities is not None:
                place = np.searchsorted(model.classes_, predicted)
                confidence.append(probabilities[np.arange(len(predicted)), place])
            if self.measure is not None and isinstance(task, OpenTask):
                measured.append(self.measure(model, self.novel, task, answers))
        measures = {name: [own[name] for own in measured] for name in measured[0]} if measured else None
        return Predictions(correct, confidence or None, {}, stopped_early, measures)


def answers_to(model: Any, X: np.ndarray, task: Task, batch: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Predictions of a fitted model for the queries of a task, and probabilities of each class if it has them.

    Queries of other classes come after those of the task, if it has them; in a batch all are classified jointly.
    """
    rows = np.concatenate([task.query, task.others]) if isinstance(task, OpenTask) else task.query
    suffix = "_batch" if batch else ""
    if batch and hasattr(model, "predict_proba_batch"):
        probabilities = model.predict_proba_batch(X[rows])
        return model.classes_[probabilities.argmax(axis=1)], probabilities
    predicted = getattr(model, f"predict{suffix}")(X[rows])
    proba = getattr(model, f"predict_proba{suffix}", None)
    return predicted, None if proba is None else proba(X[rows])


Runner = BatchedRunner | EstimatorRunner
# A prepared bank and the novel samples in its space.
Transformed = tuple[PreparedBase, np.ndarray]


def make_runner(
    name: str,
    estimator: Any,
    X: np.ndarray,
    trials: Sequence[Task],
    seed: int,
    transformed: list[Transformed],
    measure: Measure | None = None,
    batch: bool = False,
) -> Runner:
    """The runner of one method, tried on some tasks so that what cannot work fails now and in one sentence.

    `transformed` keeps the novel samples in each space for the runners that follow. Models are fitted one by one if
    something is measured with them, or if they classify the queries of a task jointly (`batch`).
    """
    if isinstance(getattr(estimator, "random_state", None), np.random.RandomState):
        raise ParameterError(f"random_state of method '{name}' must be an integer or None to be repeatable.")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", HotshotWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            # One shot of each of many classes is what was asked for.
            warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
            # Of all classes, not of those in a trial, where a run begins.
            warnings.simplefilter("ignore", SharedClassWarning)
            for trial in trials:
                model = _seeded(clone(estimator), seed).fit(X[trial.support], trial.support_labels)
                answers = answers_to(model, X, trial, batch)[0]
                if measure is not None and isinstance(trial, OpenTask):
                    measure(model, X, trial, answers)
            if isinstance(model, FewShotClassifier):
                # A sample that no task may hold is better named now.
                model.predict(X)
    except HotshotError as error:
        raise type(error)(f"Method '{name}': {error}") from None
    except (ValueError, TypeError, MemoryError) as error:
        raise InputError(f"Method '{name}' cannot be fitted to a task: {' '.join(str(error).split())}") from None
    for kind, said in {warning.category: warning.message for warning in reversed(caught)}.items():
        warnings.warn(str(said), kind, stacklevel=2)
    batched = isinstance(estimator, CalibratedClassifier) and estimator.base is not None
    if not batched or batch or measure is not None or getattr(estimator, "include_base", False):
        own = isinstance(model, FewShotClassifier) and isinstance(getattr(model, "base", None), BaseClasses)
        spaces = model.base.prepared_by(getattr(model, "transform_", None)) if own else {}
        return EstimatorRunner(estimator, X, spaces, measure, batch)
    X = cast(X, estimator.base.dtype, "X_novel")
    base, method = estimator.parts()
    novel = next((samples for bank, samples in transformed if bank is base), None)
    if novel is None:
        novel = base.transform(X, "X_novel")
        transformed.append((base, novel))
    if method.cost not in COSTS or not COSTS[method.cost].needs_samples:
        # Factored covariances keep their own hold on the samples.
        base = replace(base, buckets=())
    return BatchedRunner(base, novel, method, estimator.random_state, estimator.confidence())


def _seeded(estimator: Any, seed: int) -> Any:
    missing = {
        name: seed
        for name, value in estimator.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    return estimator.set_params(**missing) if missing else estimator


def chunks_of(methods: Iterable[str], shots: int | str, start: int, stop: int, size: int = CHUNK_TASKS) -> list[Chunk]:
    """All chunks of tasks [start, stop), chunk by chunk so that the methods stay level."""
    starts = range(start - start % size, stop, size)
    return [Chunk(shots, s, min(s + size, stop), method) for s in starts for method in methods]


def run_chunk(runner: Runner, episodes: Episodes, chunk: Chunk) -> Record:
    """Draw the tasks, fit, predict, count; on one thread, whose order of sums is always the same."""
    begin = time.perf_counter()
    tasks = [episodes[i] for i in range(chunk.start, chunk.stop)]
    seeds = [task_seed(episodes.seed, i) for i in range(chunk.start, chunk.stop)]
    with one_thread():
        found = runner.run(tasks, seeds)
    for task, confidence in zip(tasks, found.confidence or (), strict=False):
        if not np.isfinite(confidence).all():
            row = task.query[~np.isfinite(confidence)][0]
            raise InputError(
                f"Method '{chunk.method}' has no finite probabilities for row {row} of X_novel: rescale it."
            )
    classes, queries, correct = [], [], []
    for task, right in zip(tasks, found.correct, strict=True):
        own = np.unique(task.support_labels)
        asked = np.searchsorted(own, task.query_labels)
        classes.append(np.searchsorted(episodes.names, own).tolist())
        queries.append(np.bincount(asked, minlength=len(own)).tolist())
        correct.append(np.bincount(asked[right], minlength=len(own)).tolist())
    return Record(
        chunk=chunk,
        classes=classes,
        queries=queries,
        correct=correct,
        bins=None if found.confidence is None else confidence_bins(found.confidence, found.correct),
        statuses={str(status): count for status, count in found.statuses.items()},
        stopped_early=found.stopped_early,
        seconds=round(time.perf_counter() - begin, 6),
        measures=found.measures,
    )


def task_seed(seed: int, index: int) -> int:
    """Seed of whatever a method draws in a task, apart from the draw of the task itself."""
    return int(np.random.default_rng([seed, index, 1]).integers(2**31 - 1))


def confidence_bins(confidence: Sequence[np.ndarray], correct: Sequence[np.ndarray]) -> list[list[float]]:
    """Number of predictions, sum of confidence and number correct, in equal bins of confidence."""
    sure, right = np.concatenate(confidence), np.concatenate(correct).astype(float)
    place = np.minimum((sure * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    sums = [np.bincount(place, weights, CALIBRATION_BINS) for weights in (None, sure, right)]
    return np.stack(sums, axis=1).astype(float).round(9).tolist()
