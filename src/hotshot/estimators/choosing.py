"""What "auto" stands for: settings chosen on the base classes themselves.

Base classes are held out a quarter at a time and treated as novel: tasks are drawn from their samples and answered with
the statistics of the other classes. Settings are tried one after another, from the constants on, and one is taken
only where it gains clearly: its paired interval is above zero, at most one quarter disagrees, and no number of shots
loses. A bank of too few classes or samples keeps the constants.

Base classes that the extractor was trained on are unlike new ones. Training gives each of them directions of its own,
where a new class lies in directions that base classes share. Held out, they look far too easy, and settings of how much
to trust shared directions (`_misled` of an estimator) would be chosen wrongly: those keep their constants. A bank may
say that it was seen in training; where it says nothing, the posterior rule for the means gives it away, which trusts
shared directions: it loses clearly on held-out classes that were seen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from hotshot.arrays import one_thread
from hotshot.base import BaseClasses
from hotshot.base.classes import LEAST_HELD_OUT
from hotshot.method.fit import fit_tasks

FOLDS, WAYS, SHOTS, QUERIES = 4, 5, (1, 5), 15
# Tasks of each fold and number of shots; a third of them is enough to give up a setting that does not gain.
TASKS, FIRST_TASKS = 60, 20
TASKS_AT_ONCE = 20
# Of larger banks a random part is used.
MOST_CLASSES, MOST_SAMPLES = 96, 60
LOOKS_SEEN = "looks seen in training"
# Half widths of a 95% interval, in standard errors.
DECIDED = 1.96
# Called with a sentence and the share of the work that is done.
progress: ContextVar[Callable[[str, float], None] | None] = ContextVar("progress", default=None)


@dataclass(frozen=True)
class Trial:
    """One setting that was tried: its gain over the setting before it, in points of accuracy, and whether it stayed."""

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
        """The choice that `to_json` wrote."""
        return cls(dict(found["settings"]), tuple(Trial(**t) for t in found["trials"]), found["seen_in_training"])


def choice_on(base: BaseClasses, estimator: Any, choices: Mapping[str, Sequence[Any]]) -> Choice:
    """What is chosen for an estimator on this bank, which keeps it: each list in `choices` begins with the constant."""
    parameters = {**estimator.get_params(deep=False), "base": None, "random_state": None}
    key = f"{type(estimator).__name__} {json.dumps(parameters, sort_keys=True, default=repr)}"
    with base.choosing:
        if key not in base.choices:
            seen = base.seen_in_training
            if seen is None:
                seen = base.choices.setdefault(LOOKS_SEEN, {LOOKS_SEEN: looks_seen(base)})[LOOKS_SEEN]
            base.choices[key] = choose(clone(estimator).set_params(base=base), choices, seen).to_json()
        return Choice.from_json(base.choices[key])


@one_thread()
def choose(estimator: Any, open_choices: Mapping[str, Sequence[Any]], seen: bool) -> Choice:
    """Values for the parameters in `open_choices`, each from its list; the first of a list is the constant.

    `seen` tells whether the extractor was trained on the base classes.
    """
    folds = _folds(estimator.base)
    current = {name: values[0] for name, values in open_choices.items()}
    candidates = [
        (name, value)
        for name, values in open_choices.items()
        if not (seen and name in estimator._misled)
        for value in values[1:]
    ]
    trials: list[Trial] = []
    known: Scores = {}
    for number, (name, value) in enumerate(candidates):
        _tell(f"Choosing settings on the base classes: {name}={value}", number / len(candidates))
        trial = _trial(estimator, folds, current, (name, value), known)
        trials.append(trial)
        if trial.taken:
            current = {**current, name: value}
    return Choice(current, tuple(trials), seen)


@one_thread()
def looks_seen(base: BaseClasses) -> bool:
    """Whether the plain mix beats the posterior rule for the means on held-out base classes."""
    from hotshot.estimators.hot import HOTClassifier  # Which chooses its own settings by this module.

    _tell("Looking for signs that the extractor was trained on the base classes", 0)
    constants = {name: values[0] for name, values in HOTClassifier._choices.items()}
    constants["power"] = base.power("auto")
    posterior = {**constants, "mean_rule": "posterior"}
    return _trial(HOTClassifier(), _folds(base), posterior, ("mean_rule", "mix"), {}).taken


def _tell(sentence: str, done: float) -> None:
    watch = progress.get()
    if watch is not None:
        watch(sentence, done)


# Accuracies (folds, shots, tasks) by setting, as far as they are known.
Scores = dict[str, np.ndarray]


def _trial(
    estimator: Any, folds: list[Fold], current: dict[str, Any], change: tuple[str, Any], known: Scores
) -> Trial:
    """Whether one change of the current settings gains clearly."""
    changed = {**current, change[0]: change[1]}
    for tasks in (FIRST_TASKS, TASKS):
        gains = 100 * (_scores(estimator, folds, changed, tasks, known) - _scores(estimator, folds, current, tasks, known))
        gain, half_width = _interval(gains.mean(axis=1))
        if gain <= 0:
            break
    loses = any(mean + half < 0 for mean, half in (_interval(gains[:, k]) for k in range(len(SHOTS))))
    agree = np.sum(gains.mean(axis=(1, 2)) > 0) >= FOLDS - 1
    taken = bool(gain > half_width and agree and not loses)
    return Trial(*change, gain=round(gain, 3), half_width=round(half_width, 3), tasks=gains.size, taken=taken)


def _interval(gains: np.ndarray) -> tuple[float, float]:
    """Mean gain, and half the width of its 95% interval."""
    return float(gains.mean()), float(DECIDED * gains.std(ddof=1) / gains.size**0.5)


def _scores(estimator: Any, folds: list[Fold], settings: dict[str, Any], tasks: int, known: Scores) -> np.ndarray:
    """Accuracies (folds, shots, tasks) with these settings; the first tasks are kept and not computed again."""
    key = json.dumps(settings, sort_keys=True)
    start = known[key].shape[2] if key in known else 0
    if start < tasks:

        def of_fold(fold: Fold) -> np.ndarray:
            own = clone(estimator).set_params(base=fold.base, **settings)
            return np.stack([_accuracies(own, fold, k, slice(start, tasks)) for k in SHOTS])

        with ThreadPoolExecutor(min(FOLDS, os.cpu_count() or 1)) as pool:
            found = np.stack(list(pool.map(of_fold, folds)))
        known[key] = np.concatenate([known[key], found], axis=2) if start else found
    return known[key][:, :, :tasks]


@dataclass(frozen=True)
class HeldOutTask:
    """Rows of the held-out samples: support and queries, with their classes from 0."""

    support: np.ndarray
    support_labels: np.ndarray
    query: np.ndarray
    query_labels: np.ndarray


@dataclass(frozen=True)
class Fold:
    """A bank without some classes, the samples (n, V) of those, and tasks drawn from them, by number of shots."""

    base: BaseClasses
    samples: np.ndarray
    tasks: dict[int, list[HeldOutTask]]


def _folds(base: BaseClasses) -> list[Fold]:
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.flatnonzero(base.counts >= LEAST_HELD_OUT))[:MOST_CLASSES]
    ends = np.cumsum(base.counts)
    rows = [
        np.sort(ends[c] - base.counts[c] + rng.permutation(base.counts[c])[:MOST_SAMPLES]) for c in classes
    ]
    found = []
    for fold in range(FOLDS):
        held, kept = rows[fold::FOLDS], [own for i, own in enumerate(rows) if i % FOLDS != fold]
        labels = np.repeat(np.arange(len(held)), [len(own) for own in held])
        rest = np.repeat(np.arange(len(kept)), [len(own) for own in kept])
        tasks = {k: [_draw(labels, k, np.random.default_rng([fold, k, i])) for i in range(TASKS)] for k in SHOTS}
        samples = base.samples[np.concatenate(held)]
        found.append(Fold(BaseClasses.from_samples(base.samples[np.concatenate(kept)], rest), samples, tasks))
    return found


def _draw(labels: np.ndarray, shots: int, rng: np.random.Generator) -> HeldOutTask:
    counts = np.bincount(labels)
    queries = min(QUERIES, int(counts.min()) - shots)
    classes = rng.choice(len(counts), WAYS, replace=False)
    drawn = np.stack([rng.choice(np.flatnonzero(labels == c), shots + queries, replace=False) for c in classes])
    own = np.arange(WAYS)
    return HeldOutTask(
        drawn[:, :shots].ravel(), np.repeat(own, shots), drawn[:, shots:].ravel(), np.repeat(own, queries)
    )


def _accuracies(estimator: Any, fold: Fold, shots: int, tasks: slice) -> np.ndarray:
    """Accuracy of each task (tasks,)."""
    drawn = fold.tasks[shots][tasks]
    if not hasattr(estimator, "parts"):
        found = []
        for task in drawn:
            model = clone(estimator).fit(fold.samples[task.support], task.support_labels)
            found.append(np.mean(model.predict(fold.samples[task.query]) == task.query_labels))
        return np.array(found)
    prepared, method = estimator.parts()
    samples = prepared.transform(fold.samples)
    found = []
    for start in range(0, len(drawn), TASKS_AT_ONCE):
        some = drawn[start : start + TASKS_AT_ONCE]
        support = samples[np.stack([task.support for task in some])]
        labels = np.stack([task.support_labels for task in some])
        fitted = fit_tasks(prepared, support, labels, method, n_classes=WAYS, seeds=range(len(some)))
        answers = np.argmax(fitted.decision(samples[np.stack([task.query for task in some])]), axis=2)
        found.append(np.mean(answers == np.stack([task.query_labels for task in some]), axis=1))
    return np.concatenate(found)
