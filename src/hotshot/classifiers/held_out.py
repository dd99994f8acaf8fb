"""Settings that are "auto", chosen on held-out base classes.

A quarter of the base classes at a time is held out and treated as novel: tasks are drawn from their samples and
answered with the statistics of the other classes. Settings are tried one after another, starting from the constants;
one is taken only if the 95% interval of its gain over classes is above zero. A bank of too few classes or samples keeps
the constants. Base classes that the extractor was trained on have directions of their own, while new classes lie in
directions that base classes share: of a bank that states that it was seen in training, only the power is chosen.

What is learned is kept with the bank, together with a hash of the bank and of the code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from hotshot.arrays import one_thread, slices
from hotshot.bank import BaseClasses
from hotshot.bank.space import LEAST_HELD_OUT
from hotshot.intervals import class_interval
from hotshot.method.hot import FittedTasks, fit_tasks
from hotshot.version import __version__

# Parameters that do not affect what is learned on held-out classes.
IRRELEVANT_PARAMETERS = ("base", "random_state", "include_base", "base_loss", "calibrate_probabilities")
FOLDS, WAYS, SHOTS, QUERIES = 4, 5, (1, 5), 15
# Tasks of each fold and number of shots; a third is enough to reject a setting without a gain.
TASKS, FIRST_TASKS = 60, 20
TASKS_AT_ONCE = 20
# Limits; a random part of larger banks is used.
MOST_CLASSES, MOST_SAMPLES = 96, 60
CHOSEN_IF_SEEN = ("power",)
# Of the proportions of queries in held-out tasks, for methods that classify them jointly.
CONCENTRATION = 2.0
# Called with a sentence on the progress of choosing.
progress: ContextVar[Callable[[str], None]] = ContextVar("progress", default=lambda sentence: None)
T = TypeVar("T")


# --- tasks of held-out classes


@dataclass(frozen=True)
class Task:
    """Row numbers of the support (S,) and query (Q,) samples, class by class, and their labels."""

    support: np.ndarray
    support_labels: np.ndarray
    query: np.ndarray
    query_labels: np.ndarray


@dataclass(frozen=True)
class Fold:
    """A bank without some classes, samples (n, V) of those with labels (n,), and tasks drawn from them, by shots."""

    number: int
    base: BaseClasses
    samples: np.ndarray
    labels: np.ndarray
    tasks: dict[int, list[Task]]


def make_folds(base: BaseClasses) -> list[Fold]:
    """Folds of a bank: a quarter of the classes held out in turn."""
    samples = base.samples
    assert samples is not None
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.flatnonzero(base.counts >= LEAST_HELD_OUT))[:MOST_CLASSES]
    ends = np.cumsum(base.counts)
    rows = [np.sort(ends[c] - base.counts[c] + rng.permutation(base.counts[c])[:MOST_SAMPLES]) for c in classes]
    folds = []
    for fold in range(FOLDS):
        held, others = rows[fold::FOLDS], [some for i, some in enumerate(rows) if i % FOLDS != fold]
        labels, other_labels = (np.repeat(np.arange(len(part)), [*map(len, part)]) for part in (held, others))
        tasks = {
            k: [draw_task(labels, k, WAYS, np.random.default_rng([fold, k, i])) for i in range(TASKS)] for k in SHOTS
        }
        rest = BaseClasses.from_samples(samples[np.concatenate(others)], other_labels)
        folds.append(Fold(fold, rest, samples[np.concatenate(held)], labels, tasks))
    return folds


def draw_task(labels: np.ndarray, shots: int, ways: int, rng: np.random.Generator) -> Task:
    """A task of some of the classes of these samples."""
    counts = np.bincount(labels)
    queries = min(QUERIES, int(counts.min()) - shots)
    classes = rng.choice(len(counts), ways, replace=False)
    drawn = np.stack([rng.choice(np.flatnonzero(labels == c), shots + queries, replace=False) for c in classes])
    places = np.arange(ways)
    return Task(
        drawn[:, :shots].ravel(), np.repeat(places, shots), drawn[:, shots:].ravel(), np.repeat(places, queries)
    )


def fitted_batches(
    estimator: Any, fold: Fold, tasks: Sequence[Task]
) -> Iterator[tuple[FittedTasks, np.ndarray, np.ndarray]]:
    """A calibrated classifier fitted to tasks of one size, some at a time; queries (tasks, Q, V), labels (tasks, Q)."""
    base, method = estimator.parts()
    samples = base.transform(fold.samples)
    for rows in slices(len(tasks), TASKS_AT_ONCE):
        some = tasks[rows]
        support, queries = (samples[np.stack([getattr(t, part) for t in some])] for part in ("support", "query"))
        labels = np.stack([task.support_labels for task in some])
        ways = int(labels.max()) + 1
        fitted = fit_tasks(base, support, labels, method, n_classes=ways, seeds=range(len(some)))
        yield fitted, queries, np.stack([task.query_labels for task in some])


def for_each_fold(work: Callable[[Fold], T], folds: Sequence[Fold]) -> list[T]:
    """What `work` returns for every fold, computed in threads."""
    with ThreadPoolExecutor(min(FOLDS, os.cpu_count() or 1)) as pool:
        return list(pool.map(work, folds))


# --- what a bank keeps


def description(estimator: Any) -> str:
    """Class and parameters of an estimator, apart from its bank."""
    parameters = {name: x for name, x in estimator.get_params(deep=False).items() if name not in IRRELEVANT_PARAMETERS}
    return f"{type(estimator).__name__} {json.dumps(parameters, sort_keys=True, default=repr)}"


def keep(base: BaseClasses, key: str, learned: dict[str, Any]) -> None:
    """Keep with a bank what was learned on it."""
    base.choices[key] = {**learned, "origin": _origin(base)}


def kept(base: BaseClasses, key: str) -> Any:
    """What was learned on a bank; None if by other code or on other samples, as long as it can be learned again."""
    learned = base.choices.get(key)
    is_same = isinstance(learned, dict) and learned.get("origin") == _origin(base)
    return learned if is_same or not base.can_hold_out else None


def _origin(base: BaseClasses) -> str:
    """Hash of a bank and of the code that learns on it."""
    return sha256(f"{_code_hash()} {base.chosen_on} {base.seen_in_training}".encode()).hexdigest()


@cache
def _code_hash() -> str:
    """Hash of the sources of all packages that take part in a fit."""
    root, digest = Path(__file__).parents[1], sha256(__version__.encode())
    for package in ("transport", "bank", "method", "model", "classifiers"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


# --- settings


@dataclass(frozen=True)
class Trial:
    """One setting that was tried: its gain over the current settings, in accuracy points, and whether it was taken.

    ``half_width`` is that of the 95% interval of the gain, over classes.
    """

    parameter: str
    value: Any
    gain: float
    half_width: float
    classes: int
    taken: bool


@dataclass(frozen=True)
class Choice:
    """Settings chosen on a bank, the trials that led to them, and whether it states that it was seen in training."""

    settings: dict[str, Any]
    trials: tuple[Trial, ...] = ()
    seen_in_training: bool = False

    def to_json(self) -> dict[str, Any]:
        """As JSON, to be kept with the bank."""
        return asdict(self)


def choice_on(base: BaseClasses, estimator: Any, candidates: Mapping[str, Sequence[Any]]) -> Choice:
    """Settings chosen for an estimator on this bank, which keeps them; each list begins with the constant."""
    key = description(estimator)
    with base.choosing:
        choice = _restored_choice(kept(base, key), candidates)
        if choice is None and base.can_hold_out:
            with one_thread():
                held_out = HeldOut(make_folds(base), {})
                choice = choose(estimator, candidates, held_out, base.seen_in_training is True)
            keep(base, key, choice.to_json())
            estimator.learn_confidence(base, choice.settings, held_out.folds)
    return choice or Choice({name: values[0] for name, values in candidates.items()})


def _restored_choice(stored: Any, candidates: Mapping[str, Sequence[Any]]) -> Choice | None:
    """A stored choice; None if it is damaged or not among ``candidates``."""
    with suppress(LookupError, TypeError, ValueError):
        trials = tuple(Trial(**trial) for trial in stored["trials"])
        choice = Choice(dict(stored["settings"]), trials, stored["seen_in_training"])
        chosen = choice.settings
        if chosen.keys() == candidates.keys() and all(chosen[name] in candidates[name] for name in candidates):
            return choice
    return None


def choose(estimator: Any, candidates: Mapping[str, Sequence[Any]], held_out: HeldOut, seen: bool) -> Choice:
    """Try one value after another, in the order of ``candidates``, each against the current settings."""
    current = {name: values[0] for name, values in candidates.items()}
    open_names = [name for name in candidates if not seen or name in CHOSEN_IF_SEEN]
    values_to_try = [(name, value) for name in open_names for value in candidates[name][1:]]
    trials = []
    for number, (name, value) in enumerate(values_to_try):
        progress.get()(f"choosing settings on the base classes, {number + 1} of {len(values_to_try)}")
        trials.append(try_setting(estimator, held_out, current, name, value))
        if trials[-1].taken:
            current[name] = value
    return Choice(current, tuple(trials), seen)


def try_setting(estimator: Any, held_out: HeldOut, current: dict[str, Any], name: str, value: Any) -> Trial:
    """One change of the current settings; it is taken if its gain is significant."""
    before = clone(estimator).set_params(**current)
    after = clone(before).set_params(**{name: value})
    for tasks in (FIRST_TASKS, TASKS):
        gains = 100 * (held_out.accuracies(after, tasks) - held_out.accuracies(before, tasks))
        gain = class_interval(gains.ravel(), held_out.classes(tasks))
        if gain.mean <= 0:
            break
    return Trial(name, value, round(gain.mean, 3), round(gain.half_width, 3), gain.n, gain.low > 0)


@dataclass(frozen=True)
class HeldOut:
    """Folds of a bank, and the known accuracies (folds, shots, tasks) of estimators on their first tasks."""

    folds: list[Fold]
    known: dict[str, np.ndarray]

    def classes(self, tasks: int) -> np.ndarray:
        """Classes (folds * shots * tasks, ways) of the first tasks, in the order of their accuracies."""
        drawn = ((n, fold, t) for n, fold in enumerate(self.folds) for k in SHOTS for t in fold.tasks[k][:tasks])
        return np.array([n * MOST_CLASSES + np.unique(fold.labels[task.support]) for n, fold, task in drawn])

    def accuracies(self, estimator: Any, tasks: int) -> np.ndarray:
        """Accuracies (folds, shots, tasks); those of known tasks are not computed again."""
        key = description(estimator)
        known = self.known.get(key, np.empty((len(self.folds), len(SHOTS), 0)))
        if known.shape[2] < tasks:

            def of_fold(fold: Fold) -> np.ndarray:
                model = clone(estimator).set_params(base=fold.base)
                if model.include_base:
                    model.set_params(include_base=False)
                return np.stack([_accuracies(model, fold, fold.tasks[k][known.shape[2] : tasks]) for k in SHOTS])

            known = np.concatenate([known, np.stack(for_each_fold(of_fold, self.folds))], axis=2)
            self.known[key] = known
        return known[:, :, :tasks]


def _accuracies(estimator: Any, fold: Fold, tasks: Sequence[Task]) -> np.ndarray:
    """Accuracy of each task (tasks,)."""
    if hasattr(estimator, "parts"):
        answers = (
            (fitted.decision(queries).argmax(axis=2), labels)
            for fitted, queries, labels in fitted_batches(estimator, fold, tasks)
        )
        return np.concatenate([np.mean(found == labels, axis=1) for found, labels in answers])
    accuracies = []
    for task in tasks:
        model = clone(estimator).fit(fold.samples[task.support], task.support_labels)
        rows = queries_to_classify(model, task)
        predict = getattr(model, "predict_batch", model.predict)
        accuracies.append(np.mean(predict(fold.samples[task.query[rows]]) == task.query_labels[rows]))
    return np.array(accuracies)


def queries_to_classify(model: Any, task: Task) -> np.ndarray:
    """Places of queries of a held-out task: all, or unequal numbers per class for a joint method without balance.

    A class keeps its share of its queries, as a part of the largest share. The shares are from a Dirichlet distribution
    and depend on the task alone.
    """
    places = np.arange(len(task.query))
    if not hasattr(model, "predict_batch") or getattr(model, "assumes_balance", False):
        return places
    classes, labels = np.unique(task.query_labels, return_inverse=True)
    shares = np.random.default_rng(task.query.tolist()).dirichlet(np.full(len(classes), CONCENTRATION))
    most = np.ceil(len(places) / len(classes) * shares / shares.max())
    # Queries are drawn class by class.
    return np.flatnonzero(places % (len(places) // len(classes)) < most[labels])
