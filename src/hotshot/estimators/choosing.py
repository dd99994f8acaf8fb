"""What "auto" stands for: settings chosen on the base classes themselves.

Base classes are held out a quarter at a time and treated as novel: tasks are drawn from their samples and answered with
the statistics of the other classes. Settings are tried one after another, from the constants on, and one is taken
only where it gains clearly: its paired interval is above zero, at most one quarter disagrees, and no number of shots
loses. A bank of too few classes or samples keeps the constants.

Base classes that the extractor was trained on are unlike new ones. Training gives each of them directions of its own,
where a new class lies in directions that base classes share. Held out, they look far too easy and ask for other
settings than new classes do, but for the power: there only the power is chosen. A bank may say that it was seen in
training; where it says nothing, the posterior rule for the means gives it away, which trusts shared directions: it
loses clearly on held-out classes that were seen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from hotshot.arrays import one_thread
from hotshot.base import BaseClasses
from hotshot.base.classes import LEAST_HELD_OUT
from hotshot.errors import HotshotError
from hotshot.files.atomic import write_json
from hotshot.files.objects import read_object
from hotshot.method.fit import fit_tasks

FOLDS, WAYS, SHOTS, QUERIES = 4, 5, (1, 5), 15
# Tasks of each fold and number of shots; a third of them is enough to give up a setting that does not gain.
TASKS, FIRST_TASKS = 60, 20
TASKS_AT_ONCE = 20
# Of larger banks a random part is used.
MOST_CLASSES, MOST_SAMPLES = 96, 60
CHOSEN_IF_SEEN = ("power",)
LOOKS_SEEN = "looks seen in training"
# Half widths of a 99% interval, in standard errors: several settings are tried.
DECIDED = 2.6
# To be raised where the rules above change, so that what was kept before is forgotten.
RULES = 2
# Called with a sentence on what is being tried, for a progress bar.
telling: ContextVar[Callable[[str], None]] = ContextVar("telling", default=lambda sentence: None)


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
    key = _description(estimator)
    with base.choosing:
        known = _restored(base.choices.get(key), choices)
        if known is None and base.can_hold_out:
            base.choices.update(_read_kept(base))
            known = _restored(base.choices.get(key), choices)
        if known is None and base.can_hold_out:
            with one_thread():
                held_out = HeldOut(_folds(base), {})
                known = choose(estimator, choices, held_out, _seen(base, held_out))
            base.choices[key] = known.to_json()
            _keep(base)
    return Choice({name: values[0] for name, values in choices.items()}) if known is None else known


def _restored(found: Any, choices: Mapping[str, Sequence[Any]]) -> Choice | None:
    """A choice that was kept, unless it is damaged or is none among these."""
    with suppress(LookupError, TypeError, ValueError, AttributeError):
        choice = Choice.from_json(found)
        if choice.settings.keys() == choices.keys() and all(choice.settings[name] in choices[name] for name in choices):
            return choice
    return None


def choose(estimator: Any, choices: Mapping[str, Sequence[Any]], held_out: HeldOut, seen: bool) -> Choice:
    """Try one value after another, in the order of `choices`; each is compared to what was taken before."""
    current = {name: values[0] for name, values in choices.items()}
    open_names = [name for name in choices if not seen or name in CHOSEN_IF_SEEN]
    candidates = [(name, value) for name in open_names for value in choices[name][1:]]
    trials = []
    for number, (name, value) in enumerate(candidates):
        telling.get()(f"choosing settings on the base classes, {number + 1} of {len(candidates)}")
        trials.append(_trial(estimator, held_out, current, name, value))
        if trials[-1].taken:
            current[name] = value
    return Choice(current, tuple(trials), seen)


def _seen(base: BaseClasses, held_out: HeldOut) -> bool:
    """Whether the extractor was trained on the base classes: as the bank says, or as the posterior rule gives away."""
    from hotshot.estimators.hot import HOTClassifier  # Which chooses its own settings by this module.

    if base.seen_in_training is not None:
        return base.seen_in_training
    if not isinstance(base.choices.get(LOOKS_SEEN), bool):
        telling.get()("checking whether the extractor was trained on the base classes")
        constants = {name: values[0] for name, values in HOTClassifier._choices.items()}
        posterior = {**constants, "power": base.power("auto"), "mean_rule": "posterior"}
        base.choices[LOOKS_SEEN] = _trial(HOTClassifier(), held_out, posterior, "mean_rule", "mix").taken
    return bool(base.choices[LOOKS_SEEN])


def _description(estimator: Any) -> str:
    """Class and parameters of an estimator, apart from its bank."""
    parameters = {
        name: x for name, x in estimator.get_params(deep=False).items() if name not in ("base", "random_state")
    }
    return f"{type(estimator).__name__} {json.dumps(parameters, sort_keys=True, default=repr)}"


def _kept_file(base: BaseClasses) -> Path:
    """Where choices on this bank are kept between programs: they take seconds, and the bank tells which they are."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(os.environ.get("HOTSHOT_CACHE") or os.path.join(caches, "hotshot"))
    said = {None: "", True: "-seen", False: "-unseen"}[base.seen_in_training]
    return folder / "choices" / f"{base.fingerprint[:32]}{said}-{RULES}.json"


def _read_kept(base: BaseClasses) -> dict[str, Any]:
    """What was chosen on this bank before; nothing where it cannot be read."""
    with suppress(HotshotError, OSError, ValueError):
        return read_object(_kept_file(base)) or {}
    return {}


def _keep(base: BaseClasses) -> None:
    with suppress(HotshotError, OSError):
        file = _kept_file(base)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, {**_read_kept(base), **base.choices})


def _trial(estimator: Any, held_out: HeldOut, current: dict[str, Any], name: str, value: Any) -> Trial:
    """Whether one change of the current settings gains clearly."""
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
    return float(gains.mean()), float(DECIDED * gains.std(ddof=1) / gains.size**0.5)


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


@dataclass(frozen=True)
class HeldOut:
    """Folds of a bank, and the accuracies (folds, shots, tasks) known of estimators on their first tasks."""

    folds: list[Fold]
    known: dict[str, np.ndarray]

    def accuracies(self, estimator: Any, tasks: int) -> np.ndarray:
        """Accuracies (folds, shots, tasks); the first tasks are not computed again for more."""
        key = _description(estimator)
        start = self.known[key].shape[2] if key in self.known else 0
        if start < tasks:

            def of_fold(fold: Fold) -> np.ndarray:
                own = clone(estimator).set_params(base=fold.base)
                return np.stack([_accuracies(own, fold, k, slice(start, tasks)) for k in SHOTS])

            with ThreadPoolExecutor(min(FOLDS, os.cpu_count() or 1)) as pool:
                found = np.stack(list(pool.map(of_fold, self.folds)))
            self.known[key] = np.concatenate([self.known[key], found], axis=2) if start else found
        return self.known[key][:, :, :tasks]


def _folds(base: BaseClasses) -> list[Fold]:
    samples = base.samples
    assert samples is not None
    rng = np.random.default_rng(0)
    classes = rng.permutation(np.flatnonzero(base.counts >= LEAST_HELD_OUT))[:MOST_CLASSES]
    ends = np.cumsum(base.counts)
    rows = [np.sort(ends[c] - base.counts[c] + rng.permutation(base.counts[c])[:MOST_SAMPLES]) for c in classes]
    found = []
    for fold in range(FOLDS):
        held, kept = rows[fold::FOLDS], [own for i, own in enumerate(rows) if i % FOLDS != fold]
        labels = np.repeat(np.arange(len(held)), [len(own) for own in held])
        rest = np.repeat(np.arange(len(kept)), [len(own) for own in kept])
        tasks = {k: [_draw(labels, k, np.random.default_rng([fold, k, i])) for i in range(TASKS)] for k in SHOTS}
        others = BaseClasses.from_samples(samples[np.concatenate(kept)], rest)
        found.append(Fold(others, samples[np.concatenate(held)], tasks))
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
