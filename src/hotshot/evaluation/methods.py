"""One method on one chunk of tasks: how it is run, what is measured, and the record of the result.

Chunks have a fixed size, whoever computes them, so that a task's numbers never depend on the workers. A runner holds
all of a method that depends on the data alone: the prepared bank, the novel samples in its space. It is made once and
sent to the workers, so it carries no more than its method needs.
"""

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np
from scipy.special import softmax
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hotshot.arrays import cast, one_thread, slices
from hotshot.bank import BaseClasses, PreparedBase
from hotshot.classifiers.calibrated import CalibratedClassifier, head_seed
from hotshot.classifiers.classifier import FewShotClassifier
from hotshot.classifiers.confidence import Confidence
from hotshot.errors import (
    HotshotError,
    HotshotWarning,
    InputError,
    OpenWorldWarning,
    ParameterError,
    SharedClassWarning,
)
from hotshot.evaluation.journal import CALIBRATION_BINS, Chunk, Record
from hotshot.evaluation.tasks import CHUNK_TASKS, GENERALISED, OPEN, Episodes, OpenTask, Task
from hotshot.method import Method
from hotshot.method.heads import HEADS
from hotshot.method.hot import fit_tasks
from hotshot.method.transfer import COSTS
from hotshot.transport import count_statuses

# Entries of the dense covariances of the tasks that are fitted together.
BATCH_ENTRIES = 2**25
# Share of the queries of a task's own classes that may be rejected, for those of other classes to be detected.
REJECT = 0.05

# Measures of a task from a fitted model, all samples, the task, and the predictions for its queries and the others.
Measure = Callable[[Any, np.ndarray, OpenTask, np.ndarray], dict[str, float]]


@dataclass(frozen=True)
class Answers:
    """Answers to the queries of a task: whether each is right (Q,), and measures of the setting.

    `confidence` (Q,) is the probability of the class predicted, None for methods without probabilities.
    """

    right: np.ndarray
    confidence: np.ndarray | None = None
    measures: dict[str, float] = field(default_factory=dict)


# Answers in the order of the tasks, transport problems by `Status`, and how many fits stopped before their minimum.
Answered = tuple[list[Answers], Counter[int], int]


@dataclass(frozen=True)
class BatchedRunner:
    """A calibrated classifier, fitted to many tasks at once by the functions that the estimator calls with one."""

    base: PreparedBase
    novel: np.ndarray
    method: Method
    random_state: int | None
    confidence: Confidence | None = None

    def run(self, tasks: Sequence[Task], seeds: Sequence[int]) -> Answered:
        """Fit and predict, tasks of one size together; a task's numbers do not depend on the number of workers."""
        answered: dict[int, Answers] = {}
        statuses, stopped_early = Counter[int](), 0
        if self.random_state is not None:
            seeds = [head_seed(self.random_state)] * len(tasks)
        for places in self._batches(tasks):
            # The classes of a task in sorted order, as the estimator has them.
            names, labels = zip(*(np.unique(tasks[i].support_labels, return_inverse=True) for i in places), strict=True)
            support = self.novel[np.stack([tasks[i].support for i in places])]
            fitted = fit_tasks(
                self.base,
                support,
                np.stack(labels),
                self.method,
                n_classes=len(names[0]),
                seeds=[seeds[i] for i in places],
            )
            logits = fitted.decision(self.novel[np.stack([tasks[i].query for i in places])])
            tempered = logits.astype(np.float64)
            if self.confidence is not None:
                tempered /= self.confidence.temperatures_of(self.base, support, np.stack(labels))[:, None, None]
            best, sure = np.argmax(logits, axis=2), np.max(softmax(tempered, axis=2), axis=2)
            for i, classes, answers, confidence in zip(places, names, best, sure, strict=True):
                answered[i] = Answers(classes[answers] == tasks[i].query_labels, confidence)
            statuses.update({int(s): n for s, n in count_statuses(fitted.transfer.statuses).items()})
            stopped_early += int(np.sum(~fitted.converged))
        return [answered[i] for i in range(len(tasks))], statuses, stopped_early

    def _batches(self, tasks: Sequence[Task]) -> Iterator[list[int]]:
        """Places of tasks of the same size, as many at a time as fit into memory."""
        sizes = [(len(np.unique(task.support_labels)), len(task.support), len(task.query)) for task in tasks]
        for size in dict.fromkeys(sizes):
            members = [i for i, other in enumerate(sizes) if other == size]
            targets = size[0] if self.method.per == "class" else size[1]
            most = max(1, BATCH_ENTRIES // (targets * self.novel.shape[1] ** 2))
            for some in slices(len(members), most if HEADS[self.method.head].in_batches else 1):
                yield members[some]


@dataclass(frozen=True)
class EstimatorRunner:
    """Any scikit-learn classifier, cloned, fitted and asked task by task, for all queries jointly if `batch`."""

    estimator: Any
    novel: np.ndarray
    # Spaces of its bank that it uses, which a copy of the bank in another process would prepare again.
    spaces: Mapping[Any, PreparedBase] = field(default_factory=dict)
    measure: Measure | None = None
    batch: bool = False

    def run(self, tasks: Sequence[Task], seeds: Sequence[int]) -> Answered:
        """Fit and predict each task; parameters called random_state that are None are seeded by the task."""
        answered, stopped_early = [], 0
        if self.spaces:
            self.estimator.base.prepared.update(self.spaces)
        for task, seed in zip(tasks, seeds, strict=True):
            with warnings.catch_warnings(record=True) as caught:
                # Others were heard once, when the method was tried.
                warnings.simplefilter("ignore", HotshotWarning)
                warnings.simplefilter("always", ConvergenceWarning)
                model = self.fitted(task, seed)
                stopped_early += any(issubclass(w.category, ConvergenceWarning) for w in caught)
                answered.append(self.answers(model, task))
        return answered, Counter(), stopped_early

    def fitted(self, task: Task, seed: int) -> Any:
        """A clone of the estimator, seeded where it wants to be, fitted to the support of a task."""
        model = clone(self.estimator)
        unseeded = [
            name
            for name, value in model.get_params(deep=True).items()
            if name.rpartition("__")[2] == "random_state" and value is None
        ]
        model.set_params(**dict.fromkeys(unseeded, seed))
        return model.fit(self.novel[task.support], task.support_labels)

    def answers(self, model: Any, task: Task) -> Answers:
        """What a fitted model answers; in a batch all queries are classified jointly, those of other classes too."""
        others = task.others if isinstance(task, OpenTask) else task.query[:0]
        X, n_queries = self.novel[np.concatenate([task.query, others])], len(task.query)
        suffix = "_batch" if self.batch else ""
        proba = getattr(model, f"predict_proba{suffix}", None)
        probabilities = None if proba is None else proba(X)
        if self.batch and probabilities is not None:
            answers = model.classes_[probabilities.argmax(axis=1)]
        else:
            answers = getattr(model, f"predict{suffix}")(X)
        confidence, measures = None, {}
        if probabilities is not None:
            place = np.searchsorted(model.classes_, answers[:n_queries])
            confidence = probabilities[np.arange(n_queries), place]
        if self.measure is not None and isinstance(task, OpenTask):
            measures = self.measure(model, self.novel, task, answers)
        return Answers(answers[:n_queries] == task.query_labels, confidence, measures)


Runner = BatchedRunner | EstimatorRunner


@one_thread()
def make_runners(
    estimators: Mapping[str, Any],
    X: np.ndarray,
    episodes: Mapping[int | str, Episodes],
    measure: Measure | None = None,
    jointly: Sequence[str] = (),
) -> dict[str, Runner]:
    """The runner of each method, tried on tasks of each number of shots; those of one space share samples.

    Models are fitted one by one if something is measured with them, or if they classify the queries of a task together,
    as the methods named in `jointly` do.
    """
    transformed: list[tuple[PreparedBase, np.ndarray]] = []
    trials = [task for drawn in episodes.values() for task in drawn.trials()]
    seed = task_seed(next(iter(episodes.values())).seed, 0)
    runners: dict[str, Runner] = {}
    for name, estimator in estimators.items():
        runner = EstimatorRunner(estimator, X, {}, measure, name in jointly)
        model = _tried(name, runner, trials, seed)
        is_alone = runner.batch or measure is not None or getattr(estimator, "include_base", False)
        if isinstance(estimator, CalibratedClassifier) and estimator.base is not None and not is_alone:
            runners[name] = _batched(estimator, X, transformed)
            continue
        base = getattr(model, "base", None) if isinstance(model, FewShotClassifier) else None
        prepared = base.prepared.items() if isinstance(base, BaseClasses) else ()
        spaces = {space: bank for space, bank in prepared if bank.transform is getattr(model, "transform_", None)}
        runners[name] = replace(runner, spaces=spaces)
    return runners


def _batched(
    estimator: CalibratedClassifier, X: np.ndarray, transformed: list[tuple[PreparedBase, np.ndarray]]
) -> BatchedRunner:
    """The runner of a calibrated classifier; `transformed` keeps the samples in each space for the next ones."""
    assert estimator.base is not None
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


def _tried(name: str, runner: EstimatorRunner, trials: Sequence[Task], seed: int) -> Any:
    """A model fitted to the last of the trials; errors and warnings of all name the method."""
    if isinstance(getattr(runner.estimator, "random_state", None), np.random.RandomState):
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
                model = runner.fitted(trial, seed)
                runner.answers(model, trial)
            if isinstance(model, FewShotClassifier):
                # A sample that no task may hold is better named now.
                model.predict(runner.novel)
    except HotshotError as error:
        raise type(error)(f"Method '{name}': {error}") from None
    except (ValueError, TypeError, MemoryError) as error:
        raise InputError(f"Method '{name}' cannot be fitted to a task: {' '.join(str(error).split())}") from None
    for kind, message in {warning.category: warning.message for warning in reversed(caught)}.items():
        warnings.warn(str(message), kind, stacklevel=2)
    return model


def chunks_of(methods: Iterable[str], shots: int | str, start: int, stop: int, size: int = CHUNK_TASKS) -> list[Chunk]:
    """All chunks of tasks [start, stop), chunk by chunk so that the methods stay level."""
    return [Chunk(shots, s, min(s + size, stop), method) for s in range(start, stop, size) for method in methods]


def run_chunk(runner: Runner, episodes: Episodes, chunk: Chunk) -> Record:
    """Draw the tasks, fit, predict, count; on one thread, whose order of sums is always the same."""
    begin = time.perf_counter()
    tasks = [episodes[i] for i in range(chunk.start, chunk.stop)]
    seeds = [task_seed(episodes.seed, i) for i in range(chunk.start, chunk.stop)]
    with one_thread():
        answered, statuses, stopped_early = runner.run(tasks, seeds)
    counts = []
    for task, answers in zip(tasks, answered, strict=True):
        if answers.confidence is not None and not np.isfinite(answers.confidence).all():
            row = task.query[~np.isfinite(answers.confidence)][0]
            raise InputError(
                f"Method '{chunk.method}' has no finite probabilities for row {row} of X_novel: rescale it."
            )
        names = np.unique(task.support_labels)
        places = np.searchsorted(names, task.query_labels)
        n_queries, n_correct = (np.bincount(x, minlength=len(names)) for x in (places, places[answers.right]))
        counts.append(np.stack([np.searchsorted(episodes.names, names), n_queries, n_correct], axis=1).tolist())
    return Record(
        chunk=chunk,
        counts=counts,
        bins=confidence_bins(answered),
        statuses={str(status): count for status, count in statuses.items()},
        stopped_early=stopped_early,
        seconds=round(time.perf_counter() - begin, 6),
        measures={name: [answers.measures[name] for answers in answered] for name in answered[0].measures},
    )


def task_seed(seed: int, index: int) -> int:
    """Seed of whatever a method draws in a task, apart from the draw of the task itself."""
    return int(np.random.default_rng([seed, index, 1]).integers(2**31 - 1))


# --- what is measured beside the accuracy


def confidence_bins(answered: Sequence[Answers]) -> list[list[float]] | None:
    """Number of predictions, sum of confidence and number right in equal bins of confidence; None without it."""
    confidences = [answers.confidence for answers in answered if answers.confidence is not None]
    if not confidences:
        return None
    sure = np.concatenate(confidences)
    right = np.concatenate([answers.right for answers in answered]).astype(float)
    place = np.minimum((sure * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    sums = [np.bincount(place, weights, CALIBRATION_BINS) for weights in (None, sure, right)]
    return np.stack(sums, axis=1).astype(float).round(9).tolist()


def joint_measures(model: Any, X: np.ndarray, task: OpenTask, answers: np.ndarray) -> dict[str, float]:
    """Accuracy on base and on novel classes, each the mean over its classes, and their harmonic mean.

    If the model has scores, also what the accuracy on base classes would be alone, one by one and with new classes left
    out of the answers, and what is lost to them.
    """
    n_queries = len(task.query)
    novel = accuracy_over_classes(answers[:n_queries] == task.query_labels, task.query_labels)
    base = accuracy_over_classes(answers[n_queries:] == task.other_labels, task.other_labels)
    measures = {"base_accuracy": base, "novel_accuracy": novel, "harmonic_mean": harmonic_mean(base, novel)}
    scores = class_scores(model, X[task.others])
    if scores is not None:
        is_base = ~np.isin(model.classes_, task.support_labels)
        of_base = model.classes_[is_base][scores[:, is_base].argmax(axis=1)]
        alone = accuracy_over_classes(of_base == task.other_labels, task.other_labels)
        measures.update(base_alone=alone, base_loss=alone - base)
    return measures


def open_measures(model: Any, X: np.ndarray, task: OpenTask, answers: np.ndarray) -> dict[str, float]:
    """How well the outlier score separates queries of other classes, and what is rejected at 5% false alarms."""
    n_queries, rows = len(task.query), X[np.concatenate([task.query, task.others])]
    scores = np.asarray(model.outlier_score(rows), dtype=np.float64)
    if scores.shape != (len(rows),) or np.isnan(scores).any():
        raise InputError(
            f"outlier_score must return one number per sample, got shape {scores.shape} with "
            f"{np.isnan(scores).sum()} NaN: return one number per sample, without NaN."
        )
    measures = {"auroc": auroc(scores[:n_queries], scores[n_queries:])}
    if {"reject", "unknown"} <= signature(model.predict).parameters.keys():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OpenWorldWarning)
            try:
                rejected = np.array([answer is None for answer in model.predict(rows, reject=REJECT, unknown=None)])
            except ParameterError:
                # It has too few base classes to learn from.
                return measures
        measures.update(false_alarms=float(rejected[:n_queries].mean()), found=float(rejected[n_queries:].mean()))
    return measures


MEASURES: dict[str, Measure] = {GENERALISED.name: joint_measures, OPEN.name: open_measures}


def accuracy_over_classes(right: np.ndarray, labels: np.ndarray) -> float:
    """Share of the answers (n,) that are right in each class, and the mean of these shares."""
    members = np.unique(labels, return_inverse=True)[1]
    return float(np.mean(np.bincount(members, right) / np.bincount(members)))


def harmonic_mean(one: float, other: float) -> float:
    """2ab / (a + b): 0 where one of them is."""
    return 2 * one * other / (one + other) if one + other else 0.0


def auroc(inside: np.ndarray, others: np.ndarray) -> float:
    """The chance that a score of `others` (m,) is above one of `inside` (n,); a tie counts half."""
    ranks = rankdata(np.concatenate([inside, others]))[len(inside) :]
    return float((ranks.mean() - (len(others) + 1) / 2) / len(inside))


def class_scores(model: Any, X: np.ndarray) -> np.ndarray | None:
    """Scores (samples, classes) by which a model chooses; None if it has none."""
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            scores = np.asarray(getattr(model, name)(X))
            scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
            if scores.shape == (len(X), len(model.classes_)):
                return scores
    return None


# --- which methods an open or a generalised setting takes


def bank_of(estimators: Mapping[str, Any], base: BaseClasses | None) -> BaseClasses:
    """The bank that all methods share, whose classes they are to answer too; raise where one of them cannot."""
    banks = {} if base is None else {base.fingerprint: base}
    for name, estimator in estimators.items():
        parameters = estimator.get_params(deep=False)
        bank = parameters.get("base")
        if "include_base" not in parameters or not isinstance(bank, BaseClasses):
            raise ParameterError(
                f"Method '{name}' cannot answer base classes too: setting='generalised' needs base classes and methods "
                "with the parameters base and include_base, such as hot, lda or centroid-cl2n."
            )
        banks[bank.fingerprint] = bank
    if len(banks) > 1:
        raise ParameterError(
            f"setting='generalised' needs one bank for all methods, got {len(banks)}: pass the same base to all."
        )
    return next(iter(banks.values()))


def with_base_classes(estimators: Mapping[str, Any], rest: BaseClasses) -> dict[str, Any]:
    """The methods with the rest of their bank, whose classes they answer too."""
    return {name: clone(estimator).set_params(base=rest, include_base=True) for name, estimator in estimators.items()}


def check_outlier_scores(estimators: Mapping[str, Any]) -> None:
    """Raise where a method has no score for outliers."""
    for name, estimator in estimators.items():
        if not hasattr(estimator, "outlier_score"):
            raise ParameterError(
                f"Method '{name}' has no outlier_score: setting='open' needs methods with one, such as hot, lda or "
                "centroid-cl2n."
            )
