"""Base classes held out a quarter at a time and treated as novel: tasks of their samples, banks of the others.

What is learned on them is kept with the bank, together with a hash of the bank and of the code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.bank import BaseClasses
from hotshot.bank.space import LEAST_HELD_OUT
from hotshot.method.fit import FittedTasks, fit_tasks
from hotshot.version import __version__

# Parameters that do not affect what is learned on held-out classes.
IRRELEVANT_PARAMETERS = ("base", "random_state", "include_base", "base_loss", "calibrate_probabilities")
FOLDS, WAYS, SHOTS, QUERIES = 4, 5, (1, 5), 15
# Tasks of each fold and number of shots.
TASKS = 60
TASKS_AT_ONCE = 20
# Limits; a random part of larger banks is used.
MOST_CLASSES, MOST_SAMPLES = 96, 60


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
    found = []
    for fold in range(FOLDS):
        held, kept = rows[fold::FOLDS], [own for i, own in enumerate(rows) if i % FOLDS != fold]
        labels = np.repeat(np.arange(len(held)), [len(own) for own in held])
        rest = np.repeat(np.arange(len(kept)), [len(own) for own in kept])
        tasks = {
            k: [draw_task(labels, k, WAYS, np.random.default_rng([fold, k, i])) for i in range(TASKS)] for k in SHOTS
        }
        others = BaseClasses.from_samples(samples[np.concatenate(kept)], rest)
        found.append(Fold(others, samples[np.concatenate(held)], labels, tasks))
    return found


def draw_task(labels: np.ndarray, shots: int, ways: int, rng: np.random.Generator) -> Task:
    """A task of some of the classes of these samples."""
    counts = np.bincount(labels)
    queries = min(QUERIES, int(counts.min()) - shots)
    classes = rng.choice(len(counts), ways, replace=False)
    drawn = np.stack([rng.choice(np.flatnonzero(labels == c), shots + queries, replace=False) for c in classes])
    own = np.arange(ways)
    return Task(drawn[:, :shots].ravel(), np.repeat(own, shots), drawn[:, shots:].ravel(), np.repeat(own, queries))


@dataclass(frozen=True)
class Batch:
    """Held-out tasks of one size, fitted, and their queries (tasks, Q, V) with labels (tasks, Q)."""

    fitted: FittedTasks
    queries: np.ndarray
    labels: np.ndarray


def fitted_batches(estimator: Any, fold: Fold, tasks: Sequence[Task]) -> Iterator[Batch]:
    """Fit a calibrated classifier to tasks of one size, some at a time."""
    base, method = estimator.parts()
    samples = base.transform(fold.samples)
    for rows in slices(len(tasks), TASKS_AT_ONCE):
        some = tasks[rows]
        support = samples[np.stack([task.support for task in some])]
        labels = np.stack([task.support_labels for task in some])
        ways = int(labels.max()) + 1
        fitted = fit_tasks(base, support, labels, method, n_classes=ways, seeds=range(len(some)))
        queries = samples[np.stack([task.query for task in some])]
        yield Batch(fitted, queries, np.stack([task.query_labels for task in some]))


def description(estimator: Any) -> str:
    """Class and parameters of an estimator, apart from its bank."""
    parameters = {name: x for name, x in estimator.get_params(deep=False).items() if name not in IRRELEVANT_PARAMETERS}
    return f"{type(estimator).__name__} {json.dumps(parameters, sort_keys=True, default=repr)}"


def keep(base: BaseClasses, key: str, found: dict[str, Any]) -> None:
    """Keep with a bank what was learned on it."""
    base.choices[key] = {**found, "origin": _origin(base)}


def kept(base: BaseClasses, key: str) -> Any:
    """What was learned on a bank; None if by other code or on other samples, as long as it can be learned again."""
    found = base.choices.get(key)
    is_same = isinstance(found, dict) and found.get("origin") == _origin(base)
    return found if is_same or not base.can_hold_out else None


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
