"""The settings that "auto" stands for, chosen on held-out base classes.

Base classes are held out a quarter at a time and treated as novel: tasks are drawn from their samples and solved with
the statistics of the other classes. Settings are tried one after another, starting from the constants, and a setting
is taken only if the 95% interval of its gain over classes is above zero. A bank of too few classes or samples keeps the
constants.

Base classes that the extractor was trained on differ from new classes. Training gives each of them its own directions,
while a new class lies in directions that base classes share. When held out, they are far too easy, and the best
settings for them are not the best for new classes, except for the power: of a bank that states that it was seen in
training, only the power is chosen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from hotshot.arrays import one_thread
from hotshot.bank import BaseClasses
from hotshot.classifiers.confidence import CONFIDENCE, measure_confidence
from hotshot.classifiers.held_out import (
    FOLDS,
    MOST_CLASSES,
    SHOTS,
    TASKS,
    Fold,
    Task,
    description,
    fitted_batches,
    keep,
    kept,
    make_folds,
)
from hotshot.intervals import class_interval

# A third of the tasks is enough to reject a setting without a gain.
FIRST_TASKS = 20
CHOSEN_IF_SEEN = ("power",)
# Of the proportions of queries in held-out tasks, for methods that classify them jointly.
CONCENTRATION = 2.0
# Called with a sentence on the progress of choosing.
progress: ContextVar[Callable[[str], None]] = ContextVar("progress", default=lambda sentence: None)


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

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Choice:
        """The choice that ``to_json`` wrote."""
        return cls(dict(found["settings"]), tuple(Trial(**t) for t in found["trials"]), found["seen_in_training"])


def choice_on(base: BaseClasses, estimator: Any, choices: Mapping[str, Sequence[Any]]) -> Choice:
    """Settings chosen for an estimator on this bank, which keeps them; lists in ``choices`` start with the constant."""
    key = description(estimator)
    with base.choosing:
        known = _restored(kept(base, key), choices)
        if known is None and base.can_hold_out:
            with one_thread():
                held_out = HeldOut(make_folds(base), {})
                known = choose(estimator, choices, held_out, base.seen_in_training is True)
            keep(base, key, known.to_json())
            if hasattr(estimator, "parts"):
                progress.get()("checking probabilities on the base classes")
                settled = clone(estimator).set_params(**known.settings)
                keep(base, CONFIDENCE + key, measure_confidence(settled, held_out.folds).to_json())
    return Choice({name: values[0] for name, values in choices.items()}) if known is None else known


def _restored(found: Any, choices: Mapping[str, Sequence[Any]]) -> Choice | None:
    """A stored choice; None if it is damaged or not among ``choices``."""
    with suppress(LookupError, TypeError, ValueError, AttributeError):
        choice = Choice.from_json(found)
        if choice.settings.keys() == choices.keys() and all(choice.settings[name] in choices[name] for name in choices):
            return choice
    return None


def choose(estimator: Any, choices: Mapping[str, Sequence[Any]], held_out: HeldOut, seen: bool) -> Choice:
    """Try one value after another, in the order of ``choices``, each against the current settings."""
    current = {name: values[0] for name, values in choices.items()}
    open_names = [name for name in choices if not seen or name in CHOSEN_IF_SEEN]
    candidates = [(name, value) for name in open_names for value in choices[name][1:]]
    trials = []
    for number, (name, value) in enumerate(candidates):
        progress.get()(f"choosing settings on the base classes, {number + 1} of {len(candidates)}")
        trials.append(_trial(estimator, held_out, current, name, value))
        if trials[-1].taken:
            current[name] = value
    return Choice(current, tuple(trials), seen)


def _trial(estimator: Any, held_out: HeldOut, current: dict[str, Any], name: str, value: Any) -> Trial:
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
        start = self.known[key].shape[2] if key in self.known else 0
        if start < tasks:

            def of_fold(fold: Fold) -> np.ndarray:
                own = clone(estimator).set_params(base=fold.base)
                if own.include_base:
                    own.set_params(include_base=False)
                return np.stack([_accuracies(own, fold, k, slice(start, tasks)) for k in SHOTS])

            with ThreadPoolExecutor(min(FOLDS, os.cpu_count() or 1)) as pool:
                found = np.stack(list(pool.map(of_fold, self.folds)))
            self.known[key] = np.concatenate([self.known[key], found], axis=2) if start else found
        return self.known[key][:, :, :tasks]


def _jointly_asked(model: Any, task: Task) -> np.ndarray:
    """Places of the queries of a held-out task: all, or unequal numbers per class for a method that needs no balance.

    A class keeps its share of its queries, as a part of the largest share. The shares are from a Dirichlet distribution
    and depend on the task alone.
    """
    everyone = np.arange(len(task.query))
    if not hasattr(model, "predict_batch") or getattr(model, "assumes_balance", False):
        return everyone
    classes, place = np.unique(task.query_labels, return_inverse=True)
    shares = np.random.default_rng(task.query.tolist()).dirichlet(np.full(len(classes), CONCENTRATION))
    kept = np.ceil(len(everyone) / len(classes) * shares / shares.max())
    # Queries are drawn class by class.
    return np.flatnonzero(everyone % (len(everyone) // len(classes)) < kept[place])


def _accuracies(estimator: Any, fold: Fold, shots: int, tasks: slice) -> np.ndarray:
    """Accuracy of each task (tasks,)."""
    drawn = fold.tasks[shots][tasks]
    if not hasattr(estimator, "parts"):
        found = []
        for task in drawn:
            model = clone(estimator).fit(fold.samples[task.support], task.support_labels)
            asked = _jointly_asked(model, task)
            predict = getattr(model, "predict_batch", model.predict)
            found.append(np.mean(predict(fold.samples[task.query[asked]]) == task.query_labels[asked]))
        return np.array(found)
    found = []
    for batch in fitted_batches(estimator, fold, drawn):
        answers = np.argmax(batch.fitted.decision(batch.queries), axis=2)
        found.append(np.mean(answers == batch.labels, axis=1))
    return np.concatenate(found)
