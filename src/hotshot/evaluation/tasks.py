"""Tasks: N-way-K-shot draws from labelled samples, each given by a seed and its index alone.

In the open and the generalised setting some queries belong to none of the classes of the support.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.arrays import LIMITS, check_labels, check_number, check_numbers
from hotshot.bank import BaseClasses
from hotshot.classifiers.classifier import check_names
from hotshot.classifiers.held_out import Task
from hotshot.errors import InputError, ParameterError
from hotshot.formatting import did_you_mean

# How many numbers of shots are evaluated in turn.
MOST_SHOTS = 100
# Beyond them the proportions of a Dirichlet distribution are all in one class, or equal.
LEAST_ALPHA, MOST_ALPHA = 0.01, 1e6
QUERIES = 15
# Of every so many samples of a base class one is a base query.
ONE_OF = 5
EXAMPLES = {"ways": "5-20", "shots": "1-10"}


@dataclass(frozen=True)
class Setting:
    """What methods are asked in an evaluation.

    `ways` are the classes of a task by default, None for all, `tasks` their number for each number of shots, and
    `chunk` the tasks in a chunk. `measures` are what is measured in each task beside the accuracy, as shares, with what
    a table calls it; methods are compared by the measure `compared`, "" for the accuracy.
    """

    name: str
    ways: int | None
    tasks: int
    chunk: int
    measures: dict[str, str]
    compared: str = ""


CHUNK_TASKS = 20
CLOSED = Setting("closed", 5, 1000, CHUNK_TASKS, {})
# Old and new classes are answered together; a fit takes seconds.
_JOINT = {"base_accuracy": "base", "novel_accuracy": "novel", "harmonic_mean": "harmonic mean"}
_JOINT |= {"base_alone": "base alone", "base_loss": "base loss"}
GENERALISED = Setting("generalised", None, 30, 1, _JOINT, "harmonic_mean")
# Some queries belong to no class.
_OUTLIERS = {"auroc": "AUROC", "false_alarms": "false alarms", "found": "found"}
OPEN = Setting("open", 5, 1000, CHUNK_TASKS, _OUTLIERS, "auroc")
SETTINGS = {setting.name: setting for setting in (CLOSED, GENERALISED, OPEN)}


def check_setting(name: Any) -> Setting:
    """The setting of this name."""
    if not isinstance(name, str) or name not in SETTINGS:
        raise ParameterError(
            f"setting must be one of {', '.join(SETTINGS)}, got {name!r:.60}.{did_you_mean(str(name), SETTINGS)}"
        )
    return SETTINGS[name]


@dataclass(frozen=True)
class OpenTask(Task):
    """A task with queries of other classes than those of the support: row numbers (O,) and labels."""

    others: np.ndarray
    other_labels: np.ndarray


def check_size(name: str, size: Any) -> int | str:
    """Ways or shots: a number, or a range such as "1-10" of which each task or class draws its own."""
    if not isinstance(size, str):
        check_numbers(**{name: size})
        return int(size)
    match = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", size.strip(), re.ASCII)
    low, high = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if low > high:
        raise ParameterError(f"{name} must be a number or a range such as {EXAMPLES[name]}, got {size!r:.60}.")
    check_numbers(**{name: low})
    check_numbers(**{name: high})
    return low if low == high else f"{low}-{high}"


def check_shots(shots: Any) -> list[int | str]:
    """One number or range of shots, or several different ones, as a list."""
    several = list(shots) if isinstance(shots, (list, tuple, range, np.ndarray)) else [shots]
    sizes = [check_size("shots", k) for k in several[:MOST_SHOTS]]
    if not 1 <= len(several) <= MOST_SHOTS or len(set(sizes)) < len(sizes):
        raise ParameterError(f"shots must be one number or up to {MOST_SHOTS} different ones, got {shots!r:.60}.")
    return sizes


def check_queries(queries: Any) -> int | str:
    """Queries of each class: a number, or "dirichlet:ALPHA:PER_CLASS" for unequal ones.

    PER_CLASS queries for each class, 15 by default, are then divided between the classes of a task by proportions from
    a Dirichlet distribution: the smaller ALPHA, the less equal, and some classes may get none. A class that has too few
    samples for its share gives all it has, and the others share the rest.
    """
    if isinstance(queries, str) and re.fullmatch(r"\d{1,18}", queries.strip(), re.ASCII):
        queries = int(queries)
    if not isinstance(queries, str):
        check_numbers(queries=queries)
        return int(queries)
    match = re.fullmatch(r"dirichlet:(\d{1,9}(?:\.\d{1,6})?)(?::(\d{1,18}))?", queries.strip(), re.ASCII)
    if match is None:
        raise ParameterError(f"queries must be a number or dirichlet:ALPHA such as dirichlet:2, got {queries!r:.60}.")
    alpha, per_class = float(match[1]), int(match[2] or QUERIES)
    check_number("ALPHA of queries=dirichlet:ALPHA", alpha, LEAST_ALPHA, MOST_ALPHA)
    check_number("PER_CLASS of queries=dirichlet:ALPHA:PER_CLASS", per_class, *LIMITS["queries"])
    return f"dirichlet:{np.format_float_positional(alpha, trim='-')}:{per_class}"


def size_bounds(size: int | str) -> tuple[int, int]:
    """The least and the largest number of a size that was checked."""
    low, _, high = str(size).partition("-")
    return int(low), int(high or low)


def _shares(queries: int | str) -> tuple[float | None, int]:
    """The parameter of the Dirichlet distribution, None where all classes have as many, and queries per class."""
    if isinstance(queries, int):
        return None, queries
    _, alpha, per_class = queries.split(":")
    return float(alpha), int(per_class)


class Episodes:
    """N-way-K-shot tasks from samples with labels y (samples,); task i depends on (seed, i) only.

    `ways`, `shots` and `queries` are what `check_size` and `check_queries` take.
    """

    def __init__(
        self, y: Any, *, ways: int | str, shots: int | str, queries: int | str = QUERIES, seed: int = 0
    ) -> None:
        check_numbers(seed=seed)
        self.ways, self.shots = check_size("ways", ways), check_size("shots", shots)
        self.queries, self.seed = check_queries(queries), seed
        self.names, labels = check_labels(y, len(y))
        self.members = [np.flatnonzero(labels == c) for c in range(len(self.names))]
        self._check_sizes()

    def _check_sizes(self) -> None:
        """Raise if a task could need more classes or samples than there are."""
        (least_ways, most_ways), most_shots = size_bounds(self.ways), size_bounds(self.shots)[1]
        if most_ways > len(self.names):
            raise InputError(
                f"{most_ways}-way tasks need {most_ways} classes, got {len(self.names)}: "
                "ask for fewer ways or pass more classes."
            )
        alpha, per_class = _shares(self.queries)
        # With proportions, a class may have no query.
        queries = 0 if alpha else per_class
        for name, rows in zip(self.names, self.members, strict=True):
            if len(rows) < most_shots + queries:
                also = f" and {queries} queries" if queries else ""
                raise InputError(
                    f"Class '{name}' has {len(rows)} samples where {most_shots} shots{also} need "
                    f"{most_shots + queries}: ask for fewer, or leave the class out."
                )
        # The smallest classes may meet in a task; their mean size is least where a task has the fewest.
        smallest = sum(sorted(map(len, self.members))[:least_ways])
        needed = least_ways * (most_shots + per_class)
        if smallest < needed:
            raise InputError(
                f"The {least_ways} smallest classes have {smallest} samples together where {most_shots} shots of each "
                f"and {least_ways * per_class} queries need {needed}: ask for fewer, or leave small classes out."
            )

    def __getitem__(self, index: int) -> Task:
        # A size that is one number takes no draw of its own.
        rng = np.random.default_rng([self.seed, index])
        classes = rng.choice(len(self.names), _draw_size(rng, self.ways)[0], replace=False)
        shots = _draw_size(rng, self.shots, len(classes))
        rows = self._draw_rows(rng, classes, shots)
        task = Task(
            support=np.concatenate([of_class[:k] for of_class, k in zip(rows, shots, strict=True)]),
            support_labels=np.repeat(self.names[classes], shots),
            query=np.concatenate([of_class[k:] for of_class, k in zip(rows, shots, strict=True)]),
            query_labels=np.repeat(self.names[classes], np.array([*map(len, rows)]) - shots),
        )
        return self._with_others(task, index, rng)

    def _draw_rows(self, rng: np.random.Generator, classes: np.ndarray, shots: np.ndarray) -> list[np.ndarray]:
        """Rows of each class, those of the support first."""
        alpha, per_class = _shares(self.queries)
        queries = np.full(len(classes), per_class)
        if alpha is not None:
            shares = rng.dirichlet(np.full(len(classes), alpha))
            most = np.array([len(self.members[c]) for c in classes]) - shots
            queries = _capped(_divide(per_class * len(classes), shares), shares, most)
        sizes = zip(classes, shots + queries, strict=True)
        return [rng.choice(self.members[c], size, replace=False) for c, size in sizes]

    def _with_others(self, task: Task, index: int, rng: np.random.Generator) -> Task:
        """The task with queries of other classes, where the setting has them."""
        return task

    def take(self, n: int) -> Iterator[Task]:
        """The first n tasks."""
        return (self[i] for i in range(n))

    def trials(self) -> list[Task]:
        """Tasks to try a method on: the first, and where sizes vary also one of the least and one of the largest."""
        tasks = [self[0]]
        is_equal = all(isinstance(size, int) for size in (self.ways, self.shots, self.queries))
        for end in () if is_equal else (0, 1):
            extreme = copy(self)
            extreme.ways, extreme.shots = size_bounds(self.ways)[end], size_bounds(self.shots)[end]
            tasks.append(extreme[0])
        return tasks


class JointEpisodes(Episodes):
    """Tasks with queries of new classes and of base classes; task i depends on (seed, i) only.

    `y_base` are labels (base samples,) of base queries, whose rows come after those of the novel samples; `ways` of
    None are all novel classes, and `queries` the most of each class, new or old.
    """

    def __init__(
        self, y: Any, y_base: np.ndarray, *, ways: int | str | None, shots: int | str, queries: Any, seed: int
    ) -> None:
        self.most = check_queries(queries)
        if not isinstance(self.most, int):
            raise ParameterError(f"queries must be a number in the generalised setting, got {queries!r:.60}.")
        super().__init__(y, ways=len(np.unique(y)) if ways is None else ways, shots=shots, queries=1, seed=seed)
        self.queries = self.most
        self.base_names, labels = np.unique(y_base, return_inverse=True)
        self.base_members = [len(y) + np.flatnonzero(labels == c) for c in range(len(self.base_names))]

    def _draw_rows(self, rng: np.random.Generator, classes: np.ndarray, shots: np.ndarray) -> list[np.ndarray]:
        return [rng.permutation(self.members[c])[: k + self.most] for c, k in zip(classes, shots, strict=True)]

    def _with_others(self, task: Task, index: int, rng: np.random.Generator) -> OpenTask:
        others = [rng.permutation(rows)[: self.most] for rows in self.base_members]
        labels = np.repeat(self.base_names, [len(rows) for rows in others])
        return OpenTask(**vars(task), others=np.concatenate(others), other_labels=labels)


class OpenEpisodes(Episodes):
    """The tasks of `Episodes`, each with as many queries of classes that it does not have.

    The classes of these are drawn for every task, as many as it has where there are so many. A class gives as many
    queries as one of the task has, as far as it has samples.
    """

    def _check_sizes(self) -> None:
        super()._check_sizes()
        most = size_bounds(self.ways)[1]
        if most >= len(self.names):
            raise InputError(
                f"{most}-way tasks in the open setting need more than {most} classes, for queries of other classes, "
                f"got {len(self.names)}: ask for fewer ways or pass more classes."
            )

    def _with_others(self, task: Task, index: int, rng: np.random.Generator) -> OpenTask:
        rng = np.random.default_rng([self.seed, index, 2])
        asked, sizes = np.unique(task.query_labels, return_counts=True)
        classes = np.searchsorted(self.names, np.unique(task.support_labels))
        strangers = rng.permutation(np.setdiff1d(np.arange(len(self.names)), classes))
        wanted = np.bincount(np.arange(len(asked)) % len(strangers), sizes).astype(int)
        strangers = strangers[: len(wanted)]
        rows = [rng.permutation(self.members[c])[:n] for c, n in zip(strangers, wanted, strict=True)]
        labels = np.repeat(self.names[strangers], [len(some) for some in rows])
        return OpenTask(**vars(task), others=np.concatenate(rows), other_labels=labels)


def joint_samples(
    base: BaseClasses, X: np.ndarray, y: np.ndarray, seed: int
) -> tuple[BaseClasses, np.ndarray, np.ndarray]:
    """The bank that methods get, all samples that tasks are drawn from (n, V), and labels of those of base classes."""
    if base.n_features != X.shape[1]:
        raise InputError(
            f"X_novel has {X.shape[1]} features where the base classes have {base.n_features}: extract both with the "
            "same model."
        )
    check_names(base.names, np.unique(y))
    rest, X_base, y_base = split_base(base, seed)
    return rest, np.concatenate([X, X_base]), y_base


def split_base(base: BaseClasses, seed: int) -> tuple[BaseClasses, np.ndarray, np.ndarray]:
    """A bank without a fifth of the samples of each class, and those samples (n, V) with their labels (n,).

    Classes with fewer than 5 samples give none.
    """
    if base.samples is None:
        raise ParameterError("setting='generalised' needs a bank with samples: save it with samples=True.")
    rng = np.random.default_rng([seed, 0, 3])
    away = np.zeros(len(base.samples), dtype=bool)
    for end, count in zip(np.cumsum(base.counts), base.counts, strict=True):
        away[end - 1 - rng.permutation(count)[: count // ONE_OF]] = True
    if not away.any():
        raise InputError(
            f"No base class has {ONE_OF} samples, a fifth of which would be base queries: pass classes with more."
        )
    labels = base.names[base.labels]
    rest = BaseClasses.from_samples(base.samples[~away], labels[~away], about=base.about)
    return rest, base.samples[away], labels[away]


def _draw_size(rng: np.random.Generator, size: int | str, n: int = 1) -> np.ndarray:
    """Numbers (n,) of a size."""
    low, high = size_bounds(size)
    return np.full(n, low) if low == high else rng.integers(low, high + 1, n)


def _divide(total: int, shares: np.ndarray) -> np.ndarray:
    """A whole number divided by shares that sum to 1: rounded down, and the rest to those that lost most by it."""
    wanted = total * shares
    numbers = np.floor(wanted).astype(np.int64)
    numbers[np.argsort(numbers - wanted, kind="stable")[: total - numbers.sum()]] += 1
    return numbers


def _capped(numbers: np.ndarray, shares: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Whole numbers, none above `most`: what is too much goes to the others, by their shares."""
    while (excess := np.maximum(numbers - most, 0)).any():
        numbers = numbers - excess
        # A share may be 0, and all of those that are left.
        left = np.where(numbers < most, shares + np.finfo(float).tiny, 0)
        numbers = numbers + _divide(excess.sum(), left / left.sum())
    return numbers


def labels_hash(y: Any) -> str:
    """SHA-256 of labels in their order."""
    names, labels = check_labels(y, len(y))
    digest = hashlib.sha256(json.dumps([str(name) for name in names]).encode())
    digest.update(np.ascontiguousarray(labels, dtype=np.int64).tobytes())
    return digest.hexdigest()
