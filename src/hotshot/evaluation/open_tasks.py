"""Tasks whose queries go beyond the classes of the support: base classes beside them, or classes nobody has named."""

from typing import Any

import numpy as np

from hotshot.bank import BaseClasses
from hotshot.classifiers.classifier import check_names
from hotshot.errors import InputError, ParameterError
from hotshot.evaluation.tasks import QUERIES, Episodes, OpenTask, check_queries, draw_size, size_bounds

# Of every so many samples of a base class one is a base query.
ONE_OF = 5


def split_base(base: BaseClasses, seed: int) -> tuple[BaseClasses, np.ndarray, np.ndarray]:
    """A bank without a fifth of the samples of each class, and those samples (n, V) with their labels (n,).

    Classes with fewer than 5 samples give none.
    """
    if base.samples is None:
        raise ParameterError("setting='generalised' needs a bank with samples: save it with samples=True.")
    rng = np.random.default_rng([seed, 0, 3])
    ends = np.cumsum(base.counts)
    away = np.zeros(len(base.samples), dtype=bool)
    for end, count in zip(ends, base.counts, strict=True):
        away[end - 1 - rng.permutation(count)[: count // ONE_OF]] = True
    if not away.any():
        raise InputError(
            f"No base class has {ONE_OF} samples, a fifth of which would be base queries: pass classes with more."
        )
    labels = base.names[base.labels]
    rest = BaseClasses.from_samples(base.samples[~away], labels[~away], about=base.about)
    return rest, base.samples[away], labels[away]


class JointEpisodes(Episodes):
    """Tasks with queries of new classes and of base classes; task i depends on (seed, i) only.

    Parameters
    ----------
    y : array (samples,)
        Labels of the novel samples.
    y_base : array (base samples,)
        Labels of the samples that are base queries; their rows come after those of the novel samples.
    ways : int, str or None
        New classes of a task; None is all.
    shots : int or str
        Support samples of each.
    queries : int
        Queries of each class, new or old, at most.
    seed : int
    """

    def __init__(
        self, y: Any, y_base: np.ndarray, *, ways: int | str | None, shots: int | str, queries: Any, seed: int
    ) -> None:
        most = check_queries(queries)
        if not isinstance(most, int):
            raise ParameterError(f"queries must be a number in the generalised setting, got {queries!r:.60}.")
        ways = len(np.unique(y)) if ways is None else ways
        super().__init__(y, ways=ways, shots=shots, queries=1, seed=seed)
        self.queries = self.most = most
        self.base_names, labels = np.unique(y_base, return_inverse=True)
        self.base_members = [len(y) + np.flatnonzero(labels == c) for c in range(len(self.base_names))]

    def __getitem__(self, index: int) -> OpenTask:
        rng = np.random.default_rng([self.seed, index])
        classes = rng.choice(len(self.names), draw_size(rng, self.ways)[0], replace=False)
        shots = draw_size(rng, self.shots, len(classes))
        drawn = [rng.permutation(self.members[c])[: k + self.most] for c, k in zip(classes, shots, strict=True)]
        queries = [rows[k:] for rows, k in zip(drawn, shots, strict=True)]
        others = [rng.permutation(rows)[: self.most] for rows in self.base_members]
        return OpenTask(
            support=np.concatenate([rows[:k] for rows, k in zip(drawn, shots, strict=True)]),
            support_labels=np.repeat(self.names[classes], shots),
            query=np.concatenate(queries),
            query_labels=np.repeat(self.names[classes], [len(rows) for rows in queries]),
            others=np.concatenate(others),
            other_labels=np.repeat(self.base_names, [len(rows) for rows in others]),
        )


class OpenEpisodes(Episodes):
    """The tasks of `Episodes`, each with as many queries of classes that it does not have.

    The classes of these are drawn for every task, as many as it has where there are so many. A class gives as many
    queries as one of the task has, as far as it has samples.
    """

    def __init__(
        self, y: Any, *, ways: int | str, shots: int | str, queries: int | str = QUERIES, seed: int = 0
    ) -> None:
        super().__init__(y, ways=ways, shots=shots, queries=queries, seed=seed)
        most = size_bounds(self.ways)[1]
        if most >= len(self.names):
            raise InputError(
                f"{most}-way tasks in the open setting need more than {most} classes, for queries of other classes, "
                f"got {len(self.names)}: ask for fewer ways or pass more classes."
            )

    def __getitem__(self, index: int) -> OpenTask:
        task = super().__getitem__(index)
        rng = np.random.default_rng([self.seed, index, 2])
        own, sizes = np.unique(task.query_labels, return_counts=True)
        classes = np.searchsorted(self.names, np.unique(task.support_labels))
        strangers = rng.permutation(np.setdiff1d(np.arange(len(self.names)), classes))
        wanted = np.bincount(np.arange(len(own)) % len(strangers), sizes).astype(int)
        rows = [
            rng.permutation(self.members[c])[:number]
            for c, number in zip(strangers[: len(wanted)], wanted, strict=True)
        ]
        labels = np.repeat(self.names[strangers[: len(wanted)]], [len(some) for some in rows])
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
