"""Tasks: N-way-K-shot draws from labelled samples, each given by a seed and its index alone."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_labels, check_numbers
from hotshot.errors import InputError, ParameterError
from hotshot.files.tensors import map_tensors, write_tensors

FILE_FORMAT = "hotshot tasks 1"
# How many numbers of shots are evaluated in turn, and how many samples a file of tasks draws.
MOST_SHOTS, MOST_FROZEN = 100, 2**25


@dataclass(frozen=True)
class Task:
    """Row numbers of the support (N * K,) and query (N * Q,) samples, class by class, and their labels."""

    support: np.ndarray
    support_labels: np.ndarray
    query: np.ndarray
    query_labels: np.ndarray


def check_shots(shots: Any) -> list[int]:
    """One number of shots, or several different ones, as a list."""
    numbers = list(shots) if isinstance(shots, (list, tuple, range, np.ndarray)) else [shots]
    if not 1 <= len(numbers) <= MOST_SHOTS or any(numbers.count(k) > 1 for k in numbers):
        raise ParameterError(f"shots must be one number or up to {MOST_SHOTS} different ones, got {shots!r:.60}.")
    for k in numbers:
        check_numbers(shots=k)
    return [int(k) for k in numbers]


class Episodes:
    """N-way-K-shot tasks from the samples labelled `y`; task i depends on (seed, i) only.

    Parameters
    ----------
    y : array (samples,)
    ways, shots, queries : int
        Classes per task, and support and query samples per class.
    seed : int

    Examples
    --------
    >>> tasks = Episodes(["a", "b", "c"] * 10, ways=2, shots=1, queries=3, seed=0)
    >>> tasks[7].support.shape, tasks[7].query.shape
    ((2,), (6,))
    """

    def __init__(self, y: Any, *, ways: int, shots: int, queries: int = 15, seed: int = 0) -> None:
        check_numbers(ways=ways, shots=shots, queries=queries, seed=seed)
        self.names, labels = check_labels(y, len(y))
        self.members = [np.flatnonzero(labels == c) for c in range(len(self.names))]
        if ways > len(self.names):
            raise InputError(
                f"{ways}-way tasks need {ways} classes, got {len(self.names)}: ask for fewer ways or pass more classes."
            )
        for name, rows in zip(self.names, self.members, strict=True):
            if len(rows) < shots + queries:
                raise InputError(
                    f"Class '{name}' has {len(rows)} samples where {shots} shots and {queries} queries need "
                    f"{shots + queries}: ask for fewer, or leave the class out."
                )
        self.ways, self.shots, self.queries, self.seed = ways, shots, queries, seed

    def __getitem__(self, index: int) -> Task:
        rng = np.random.default_rng([self.seed, index])
        classes = rng.choice(len(self.names), self.ways, replace=False)
        drawn = [rng.choice(self.members[c], self.shots + self.queries, replace=False) for c in classes]
        return Task(
            support=np.concatenate([rows[: self.shots] for rows in drawn]),
            support_labels=np.repeat(self.names[classes], self.shots),
            query=np.concatenate([rows[self.shots :] for rows in drawn]),
            query_labels=np.repeat(self.names[classes], self.queries),
        )

    def take(self, n: int) -> Iterator[Task]:
        """The first n tasks."""
        return (self[i] for i in range(n))


class FrozenEpisodes:
    """Tasks read from a file: `support` (tasks, N * K) and `query` (tasks, N * Q) rows of the samples `y`."""

    def __init__(self, y: np.ndarray, support: np.ndarray, query: np.ndarray, ways: int, seed: int) -> None:
        self.y, self.support, self.query, self.ways, self.seed = y, support, query, ways, seed
        self.names = np.unique(y)
        self.shots = support.shape[1] // ways
        self.queries = query.shape[1] // ways

    def __len__(self) -> int:
        return len(self.support)

    def __getitem__(self, index: int) -> Task:
        support, query = self.support[index], self.query[index]
        return Task(support, self.y[support], query, self.y[query])


def freeze_tasks(
    path: str | Path,
    y: Any,
    *,
    tasks: int,
    ways: int = 5,
    shots: int | Sequence[int] = (1, 5),
    queries: int = 15,
    seed: int = 0,
) -> str:
    """Write the first `tasks` tasks for each number of shots to a file, and return its hash.

    Whoever has the same samples in the same order can `load_tasks` and evaluate on exactly these tasks.
    """
    check_numbers(tasks=tasks, ways=ways, queries=queries)
    arrays: dict[str, np.ndarray] = {}
    shots = check_shots(shots)
    if tasks * ways * sum(k + queries for k in shots) > MOST_FROZEN:
        raise ParameterError(f"{tasks} tasks are too many for a file: evaluate them without one, or ask for fewer.")
    for k in shots:
        drawn = list(Episodes(y, ways=ways, shots=k, queries=queries, seed=seed).take(tasks))
        arrays[f"support_{k}"] = np.stack([task.support for task in drawn]).astype(np.int64)
        arrays[f"query_{k}"] = np.stack([task.query for task in drawn]).astype(np.int64)
    about = json.dumps({"ways": ways, "shots": shots, "queries": queries, "seed": seed, "tasks": tasks})
    digest = _hash_of_tasks(about, arrays)
    header = {"format": FILE_FORMAT, "about": about, "labels": labels_hash(y), "tasks": digest}
    write_tensors(path, arrays, header)
    return digest


def load_tasks(path: str | Path, y: Any) -> tuple[dict[int, FrozenEpisodes], str]:
    """Frozen tasks by number of shots, and their hash; `y` must be the labels they were drawn from."""
    if not os.path.exists(path):
        raise InputError(f"There is no file of tasks at {path}: write one with freeze_tasks.")
    file = map_tensors(path)
    header, arrays = file.metadata, file.tensors
    if header.get("format") != FILE_FORMAT:
        raise InputError(f"{path} is not a file of tasks: write one with freeze_tasks.")
    if header.get("tasks") != _hash_of_tasks(header.get("about", ""), arrays):
        raise InputError(f"The tasks in {path} do not have the hash it names: get the file again.")
    if header.get("labels") != labels_hash(y):
        raise InputError(
            f"The tasks in {path} were drawn from other labels: pass the samples they were drawn from, in order."
        )
    names, labels = check_labels(y, len(y))
    try:
        about = json.loads(header["about"])
        tasks, ways, queries, seed = (about[name] for name in ("tasks", "ways", "queries", "seed"))
        _need(isinstance(about["shots"], list) and about["shots"], "it names no shots")
        _need(
            all(type(n) is int and n >= 0 for n in (tasks, ways, queries, seed, *about["shots"])),
            "its sizes are no whole numbers",
        )
        frozen = {}
        for k in about["shots"]:
            support, query = (arrays[f"{part}_{k}"] for part in ("support", "query"))
            _check_rows(support, query, labels, tasks, ways, queries, k)
            frozen[k] = FrozenEpisodes(names[labels], support, query, ways, seed)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        reason = error if type(error) is ValueError else "what it should hold is missing or of another kind"
        raise InputError(f"The tasks in {path} cannot be used ({reason}): write them anew with freeze_tasks.") from None
    return frozen, header["tasks"]


def _need(holds: Any, problem: str) -> None:
    if not holds:
        raise ValueError(problem)


def _check_rows(
    support: np.ndarray, query: np.ndarray, labels: np.ndarray, tasks: int, ways: int, queries: int, shots: int
) -> None:
    """Raise ValueError unless all tasks have as many classes and samples as they should, and no sample twice."""
    _need(min(tasks, shots, queries) >= 1 and ways >= 2, "a size is too small")
    for rows, per_class in ((support, shots), (query, queries)):
        _need(rows.dtype == np.int64 and rows.shape == (tasks, ways * per_class), "an array has not the size it should")
        _need(rows.min() >= 0 and rows.max() < len(labels), "a row number is outside of the samples")
        # Class by class, as they are drawn.
        by_class = labels[rows].reshape(tasks, ways, per_class)
        _need((by_class == by_class[:, :, :1]).all(), "a task has not as many samples of each class as it should")
    classes = np.sort(labels[support[:, ::shots]], axis=1)
    _need((np.diff(classes, axis=1) > 0).all(), "a task has a class twice")
    _need((labels[query[:, ::queries]] == labels[support[:, ::shots]]).all(), "support and query have other classes")
    drawn = np.sort(np.concatenate([support, query], axis=1), axis=1)
    _need((np.diff(drawn, axis=1) > 0).all(), "a task has a sample twice, such as in support and query")


def labels_hash(y: Any) -> str:
    """SHA-256 of labels in their order."""
    names, labels = check_labels(y, len(y))
    digest = hashlib.sha256(json.dumps([str(name) for name in names]).encode())
    digest.update(np.ascontiguousarray(labels, dtype=np.int64).tobytes())
    return digest.hexdigest()


def _hash_of_tasks(about: str, arrays: dict[str, np.ndarray]) -> str:
    digest = hashlib.sha256(about.encode())
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].shape} {arrays[name].dtype}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
