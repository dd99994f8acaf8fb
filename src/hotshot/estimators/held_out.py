"""Base classes held out a quarter at a time, as if they were novel: tasks from their samples, banks of the others.

What is learned on them is kept with the bank, and in a folder of the user's cache from one program to the next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.base import BaseClasses, PreparedBase
from hotshot.base.classes import LEAST_HELD_OUT
from hotshot.errors import HotshotError
from hotshot.files.atomic import write_json
from hotshot.files.objects import read_object
from hotshot.method.fit import FittedTasks, fit_tasks

# Parameters that what is learned on held-out classes does not depend on.
DECIDE_NOTHING = ("base", "random_state", "include_base", "base_loss", "calibrate_probabilities")
FOLDS, WAYS, SHOTS, QUERIES = 4, 5, (1, 5), 15
# Tasks of each fold and number of shots.
TASKS = 60
TASKS_AT_ONCE = 20
# Of larger banks a random part is used.
MOST_CLASSES, MOST_SAMPLES = 96, 60
# To be raised where the rules of what is kept change, so that what was kept before is forgotten.
RULES = 2


@dataclass(frozen=True)
class HeldOutTask:
    """Rows of the held-out samples: support and queries, with their classes from 0."""

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
    tasks: dict[int, list[HeldOutTask]]


def make_folds(base: BaseClasses) -> list[Fold]:
    """A quarter of the classes held out in turn."""
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


def draw_task(labels: np.ndarray, shots: int, ways: int, rng: np.random.Generator) -> HeldOutTask:
    """A task of some of the classes of these samples."""
    counts = np.bincount(labels)
    queries = min(QUERIES, int(counts.min()) - shots)
    classes = rng.choice(len(counts), ways, replace=False)
    drawn = np.stack([rng.choice(np.flatnonzero(labels == c), shots + queries, replace=False) for c in classes])
    own = np.arange(ways)
    return HeldOutTask(
        drawn[:, :shots].ravel(), np.repeat(own, shots), drawn[:, shots:].ravel(), np.repeat(own, queries)
    )


@dataclass(frozen=True)
class Batch:
    """Held-out tasks of one size, fitted: support (tasks, S, V), queries (tasks, Q, V) and the labels of both."""

    base: PreparedBase
    fitted: FittedTasks
    support: np.ndarray
    support_labels: np.ndarray
    queries: np.ndarray
    labels: np.ndarray


def fitted_batches(estimator: Any, fold: Fold, tasks: Sequence[HeldOutTask]) -> Iterator[Batch]:
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
        yield Batch(base, fitted, support, labels, queries, np.stack([task.query_labels for task in some]))


def description(estimator: Any) -> str:
    """Class and parameters of an estimator, apart from its bank."""
    parameters = {name: x for name, x in estimator.get_params(deep=False).items() if name not in DECIDE_NOTHING}
    return f"{type(estimator).__name__} {json.dumps(parameters, sort_keys=True, default=repr)}"


def _kept_file(base: BaseClasses) -> Path:
    """Where choices on this bank are kept between programs: they take seconds, and the bank tells which they are."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(os.environ.get("HOTSHOT_CACHE") or os.path.join(caches, "hotshot"))
    said = {None: "", True: "-seen", False: "-unseen"}[base.seen_in_training]
    return folder / "choices" / f"{base.fingerprint[:32]}{said}-{RULES}.json"


def read_kept(base: BaseClasses) -> dict[str, Any]:
    """What was chosen on this bank before; nothing where it cannot be read."""
    with suppress(HotshotError, OSError, ValueError):
        return read_object(_kept_file(base)) or {}
    return {}


def keep(base: BaseClasses) -> None:
    """Write what the bank knows of itself for the programs that come after; nothing where it cannot be written."""
    with suppress(HotshotError, OSError):
        file = _kept_file(base)
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, {**read_kept(base), **base.choices})
