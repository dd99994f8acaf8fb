"""The settings that "auto" stands for, chosen on held-out base classes.

Base classes are held out a quarter at a time and treated as novel: tasks are drawn from their samples and solved with
the statistics of the other classes. Settings are tried one after another, starting from the constants, and a setting
is accepted only if its gain is significant: its paired interval is above zero, at most one quarter disagrees, and
accuracy falls for no number of shots. A bank of too few classes or samples keeps the constants.

Base classes that the extractor was trained on differ from new classes. Training gives each of them its own directions,
while a new class lies in directions that base classes share. When held out, they are far too easy, and the best
settings for them are not the best for new classes, except for the power: only the power is then chosen. A bank can
state whether it was seen in training. If it does not, a test decides: the posterior rule for the means, which relies on
shared directions, is significantly worse on held-out classes that were seen in training. It is also worse on small
banks whose classes share few directions, so a bank with fewer samples than networks are trained on is not seen.
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
from hotshot.base import BaseClasses
from hotshot.estimators.confidence import CONFIDENCE, measure_confidence
from hotshot.estimators.held_out import (
    FOLDS,
    SHOTS,
    TASKS,
    Fold,
    Task,
    description,
    fitted_batches,
    make_folds,
    read_cache,
    write_cache,
)

# A third of the tasks is enough to reject a setting without a gain.
FIRST_TASKS = 20
CHOSEN_IF_SEEN = ("power",)
LOOKS_SEEN = "looks seen in training"
# No network of the few-shot literature is trained on fewer samples.
LEAST_TO_TRAIN_ON = 5000
# Of the proportions of queries in held-out tasks, for methods that classify them jointly.
CONCENTRATION = 2.0
# Half the width of a 99% interval, in standard errors: several settings are tried.
INTERVAL_WIDTH = 2.6
# Called with a sentence on the progress of choosing.
progress: ContextVar[Callable[[str], None]] = ContextVar("progress", default=lambda sentence: None)


@dataclass(frozen=True)
class Trial:
    """One setting that was tried: its gain over the current settings, in accuracy points, and whether it was taken."""

    parameter: str
    value: Any
    gain: float
    half_width: float
    tasks: int
    taken: bool


@dataclass(frozen=True)
class Choice:
    """Settings chosen on a bank, the trials that led to them, and whether the bank looks seen in training."""

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
        known = _restored(base.choices.get(key), choices)
        if known is None and base.can_hold_out:
            base.choices.update(read_cache(base))
            known = _restored(base.choices.get(key), choices)
        if known is None and base.can_hold_out:
            with one_thread():
                held_out = HeldOut(make_folds(base), {})
                known = choose(estimator, choices, held_out, _looks_seen(base, held_out))
            base.choices[key] = known.to_json()
            if hasattr(estimator, "parts"):
                progress.get()("checking probabilities on the base classes")
                settled = clone(estimator).set_params(**known.settings)
                base.choices[CONFIDENCE + key] = measure_confidence(settled, held_out.folds).to_json()
            write_cache(base)
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


def _looks_seen(base: BaseClasses, held_out: HeldOut) -> bool:
    """Whether the extractor was trained on the base classes: as the bank states, or by a test of the posterior rule."""
    from hotshot.estimators.hot import HOTClassifier  # Here, because it imports this module.

    if base.seen_in_training is not None:
        return base.seen_in_training
    if base.counts.sum() < LEAST_TO_TRAIN_ON:
        return False
    if not isinstance(base.choices.get(LOOKS_SEEN), bool):
        progress.get()("checking whether the extractor was trained on the base classes")
        constants = {name: values[0] for name, values in HOTClassifier._choices.items()}
        posterior = {**constants, "power": base.power("auto"), "mean_rule": "posterior"}
        base.choices[LOOKS_SEEN] = _trial(HOTClassifier(), held_out, posterior, "mean_rule", "mix").taken
    return bool(base.choices[LOOKS_SEEN])


def _trial(estimator: Any, held_out: HeldOut, current: dict[str, Any], name: str, value: Any) -> Trial:
    """Whether one change of the current settings is a significant gain."""
    before = clone(estimator).set_params(**current)
    after = clone(before).set_params(**{name: value})
    for tasks in (FIRST_TASKS, TASKS):
        gains = 100 * (held_out.accuracies(after, tasks) - held_out.accuracies(before, tasks))
        gain, half_width = _interval(gains.mean(axis=1))
        if gain <= 0:
            break
    loses = any(mean + half < 0 for mean, half in (_interval(gains[:, k]) for k in range(len(SHOTS))))
    agree = np.sum(gains.mean(axis=(1, 2)) > 0) >= FOLDS - 1
    taken = bool(gain > half_width and agree and not loses)
    return Trial(name, value, round(gain, 3), round(half_width, 3), gains.size, taken)


def _interval(gains: np.ndarray) -> tuple[float, float]:
    """Mean gain, and half the width of its interval."""
    return float(gains.mean()), float(INTERVAL_WIDTH * gains.std(ddof=1) / gains.size**0.5)


@dataclass(frozen=True)
class HeldOut:
    """Folds of a bank, and the known accuracies (folds, shots, tasks) of estimators on their first tasks."""

    folds: list[Fold]
    known: dict[str, np.ndarray]

    def accuracies(self, estimator: Any, tasks: int) -> np.ndarray:
        """Accuracies (folds, shots, tasks); those of known tasks are not computed again."""
        key = description(estimator)
        start = self.known[key].shape[2] if key in self.known else 0
        if start < tasks:

            def of_fold(fold: Fold) -> np.ndarray:
                own = clone(estimator).set_params(base=fold.base)
                if hasattr(own, "include_base"):
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
