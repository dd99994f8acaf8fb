"""Tasks: N-way-K-shot draws from labelled samples, each given by a seed and its index alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.errors import InputError, ParameterError
from hotshot.features import check_labels


@dataclass(frozen=True)
class Task:
    """Row numbers of the support (N * K,) and query (N * Q,) samples, class by class, and their labels."""

    support: np.ndarray
    support_labels: np.ndarray
    query: np.ndarray
    query_labels: np.ndarray


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
        for name, value, least in (("ways", ways, 2), ("shots", shots, 1), ("queries", queries, 1)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
                raise ParameterError(f"{name} must be an integer of at least {least}, got {value!r}.")
        self.names, labels = check_labels(y, len(y))
        self.members = [np.flatnonzero(labels == c) for c in range(len(self.names))]
        if ways > len(self.names):
            raise InputError(
                f"{ways}-way tasks need {ways} classes, got {len(self.names)}: "
                "ask for fewer ways or pass more classes."
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
