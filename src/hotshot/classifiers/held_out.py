"""Settings that are "auto", chosen on held-out base classes.

A quarter of the base classes at a time is held out and treated as novel: tasks are drawn from their samples and
answered with the statistics of the other classes. Candidates are tried one after another, starting from the constants;
one is taken only if the 95% interval of its gain over classes is above zero. A bank of too few classes or samples
teaches nothing. What is learned is kept with the bank, together with a hash of the bank and of the code.

Base classes that the extractor was trained on have directions of their own, while new classes lie in directions that
base classes share: of a bank that states that it was seen in training, only the power is chosen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone

from hotshot.arrays import one_thread
from hotshot.bank import BaseClasses
from hotshot.bank.space import LEAST_HELD_OUT
from hotshot.files.objects import need
from hotshot.intervals import class_interval
from hotshot.version import __version__

# Parameters that do not affect what is learned on held-out classes.
IRRELEVANT_PARAMETERS = ("base", "random_state", "include_base", "base_loss", "calibrate_probabilities")
FOLDS, WAYS, SHOTS, QUERIES = 4, 5, (1, 5), 15
# Tasks of each fold and number of shots; a third is enough to reject a setting without a gain.
TASKS, FIRST_TASKS = 60, 20
# Limits; a random part of larger banks is used.
MOST_CLASSES, MOST_SAMPLES = 96, 60
# Of the proportions of queries in held-out tasks, for methods that classify them jointly.
CONCENTRATION = 2.0
CHOSEN_IF_SEEN = ("power",)
# Called with a sentence on the progress of choosing.
progress: ContextVar[Callable[[str], None]] = ContextVar("progress", default=lambda sentence: None)
T = TypeVar("T")


# --- folds and tasks


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
        held, others = rows[fold::FOLDS], [of_class for i, of_class in enumerate(rows) if i % FOLDS != fold]
        labels, other_labels = (np.repeat(np.arange(len(part)), [*map(len, part)]) for part in (held, others))
        tasks = {k: [draw_task(labels, k, WAYS, np.random.default_rng([fold, k, i])) for i in range(TASKS)]
                 for k in SHOTS}  # fmt: skip
        rest = BaseClasses.from_samples(samples[np.concatenate(others)], other_labels)
        folds.append(Fold(fold, rest, samples[np.concatenate(held)], labels, tasks))
    return folds


def draw_task(labels: np.ndarray, shots: int, ways: int, rng: np.random.Generator) -> Task:
    """A task of some of the classes of these samples."""
    counts = np.bincount(labels)
    queries = min(QUERIES, int(counts.min()) - shots)
    classes = rng.choice(len(counts), ways, replace=False)
    drawn = np.stack([rng.choice(np.flatnonzero(labels == c), shots + queries, replace=False) for c in classes])
    support, query = drawn[:, :shots], drawn[:, shots:]
    return Task(support.ravel(), np.repeat(np.arange(ways), shots), query.ravel(), np.repeat(np.arange(ways), queries))


def unequal_queries(task: Task) -> np.ndarray:
    """Places of some queries of a task, in unequal numbers per class, for methods that classify them jointly.

    A class keeps its share of its queries, as a part of the largest share. The shares are from a Dirichlet distribution
    and depend on the task alone.
    """
    places, labels = np.arange(len(task.query)), task.query_labels
    ways = int(labels.max()) + 1
    shares = np.random.default_rng(task.query.tolist()).dirichlet(np.full(ways, CONCENTRATION))
    most = np.ceil(len(places) / ways * shares / shares.max())
    # Queries are drawn class by class.
    return np.flatnonzero(places % (len(places) // ways) < most[labels])


def stacked(tasks: Sequence[Task]) -> list[np.ndarray]:
    """Support, its labels, queries and their labels (tasks, …) of tasks of one size."""
    return [np.stack(part) for part in zip(*(vars(task).values() for task in tasks), strict=True)]


def for_each_fold(work: Callable[[Fold], T], folds: Sequence[Fold]) -> list[T]:
    """What `work` returns for every fold, computed in threads."""
    with ThreadPoolExecutor(min(FOLDS, os.cpu_count() or 1)) as pool:
        return list(pool.map(work, folds))


@dataclass(frozen=True)
class HeldOut:
    """Folds of a bank, and accuracies (folds, shots, tasks) on their first tasks, by description of the estimator."""

    folds: list[Fold]
    computed: dict[str, np.ndarray] = field(default_factory=dict)

    def classes(self, tasks: int) -> np.ndarray:
        """Classes (folds * shots * tasks, ways) of the first tasks, in the order of their accuracies."""
        drawn = ((n, fold, t) for n, fold in enumerate(self.folds) for k in SHOTS for t in fold.tasks[k][:tasks])
        return np.array([n * MOST_CLASSES + np.unique(fold.labels[task.support]) for n, fold, task in drawn])

    def accuracies(self, estimator: Any, tasks: int) -> np.ndarray:
        """Accuracies (folds, shots, tasks); those that are computed already are not computed again."""
        key = description(estimator)
        before = self.computed.get(key, np.empty((len(self.folds), len(SHOTS), 0)))
        if before.shape[2] < tasks:

            def of_fold(fold: Fold) -> np.ndarray:
                model = clone(estimator).set_params(base=fold.base)
                if model.include_base:
                    model.set_params(include_base=False)
                return np.stack([model.accuracies(fold, fold.tasks[k][before.shape[2] : tasks]) for k in SHOTS])

            self.computed[key] = np.concatenate([before, for_each_fold(of_fold, self.folds)], axis=2)
        return self.computed[key][:, :, :tasks]


# --- the choice


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


def choice_on(base: BaseClasses, estimator: Any, candidates: Mapping[str, Sequence[Any]]) -> Choice:
    """Settings chosen for an estimator on this bank, which keeps them; each list begins with the constant."""

    def restored(stored: Any) -> Choice:
        settings, trials = dict(stored["settings"]), tuple(Trial(**trial) for trial in stored["trials"])
        need(settings.keys() == candidates.keys(), "other settings are chosen")
        need(all(value in candidates[name] for name, value in settings.items()), "a setting is no candidate")
        return Choice(settings, trials, stored["seen_in_training"])

    def chosen() -> Choice:
        with one_thread():
            return choose(estimator, candidates, HeldOut(make_folds(base)), base.seen_in_training is True)

    choice = learned_on(base, description(estimator), restored, chosen)
    return choice or Choice({name: values[0] for name, values in candidates.items()})


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


# --- what a bank keeps


def description(estimator: Any) -> str:
    """Class and parameters of an estimator, apart from its bank."""
    parameters = {name: x for name, x in estimator.get_params(deep=False).items() if name not in IRRELEVANT_PARAMETERS}
    return f"{type(estimator).__name__} {json.dumps(parameters, sort_keys=True, default=repr)}"


def learned_on(base: BaseClasses, key: str, restore: Callable[[Any], T], learn: Callable[[], T]) -> T | None:
    """What `learn` learns on a bank, which keeps it; None if no class can be held out.

    It is learned again if it is damaged, or was learned by other code or on other samples.
    """
    with base.choosing:
        stored: Any = base.choices.get(key)
        with suppress(LookupError, TypeError, ValueError, AttributeError):
            if stored.get("origin") == _origin(base) or not base.can_hold_out:
                return restore(stored)
        if not base.can_hold_out:
            return None
        learned = learn()
        keep(base, key, learned)
        return learned


def keep(base: BaseClasses, key: str, learned: Any) -> None:
    """Keep with a bank, as JSON, what was learned on it: a `Choice` or a `Confidence`."""
    values = {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in asdict(learned).items()}
    base.choices[key] = {**values, "origin": _origin(base)}


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
