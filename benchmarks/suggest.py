"""Accuracy against number of labels: `suggest`, random choice, and three usual strategies of active learning.

The seed also draws the split of banking77. A task has 5 novel classes (20
of Omniglot) with one labelled sample each, a pool of 30 unlabelled samples per class (9), and 15 other samples per
class to test on (10). With the pool `dirichlet` the classes have unequal shares of the pool, from a Dirichlet
distribution of 2. Labels are bought as many at a time as there are classes. `HOTClassifier` is fitted to all labelled
samples after each label (of Omniglot, after every fourth). All strategies have the same tasks, classifier and space of
features.

- margin: the smallest difference between the two largest probabilities.
- k-means: the samples closest to the centres of as many clusters of the unlabelled samples as labels are bought.
- typicality: the densest sample of each of the largest clusters without a label; there are as many clusters as labels
  after the purchase (TypiClust: Hacohen, Dekel, Weinshall, ICML 2022).

The share of labels is the number of labels with which a strategy reaches the accuracy of random choice, over that of
random choice: once of the labels that were bought, and once with the first sample of each class, which none of them
chose. Intervals are 95%, of the mean difference over tasks, or by bootstrap over tasks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import typer
from sklearn.cluster import KMeans

from benchmarks.shared import SETS, Data, DataFolder, Seed, Sets, Tasks, load, show
from hotshot import HOTClassifier
from hotshot.arrays import cast, one_thread, slices
from hotshot.evaluation.tables import Cell, Entry, Number, Table, interval
from hotshot.method.fit import fit_tasks
from hotshot.method.heads.problem import softmax

RANDOM = "random"
# Neighbours in the definition of typicality.
NEIGHBOURS = 20
RESAMPLES = 1000
TASKS_AT_ONCE = 20


@dataclass(frozen=True)
class Setting:
    """Classes per task, samples per class of pool and test, number of purchases, and labels bought in one step."""

    ways: int
    pool: int
    queries: int
    purchases: int
    step: int

    @property
    def bought(self) -> np.ndarray:
        """Number of labels that were bought at each step."""
        return np.arange(0, self.ways * self.purchases + 1, self.step)


SETTINGS = {"omniglot": Setting(20, 9, 10, 3, 4)}
USUAL = Setting(5, 30, 15, 5, 1)


class Features:
    """Novel samples, as they are and in the space of the bank, and the classifier of a set."""

    def __init__(self, data: Data) -> None:
        base, X, y = data
        self.estimator = HOTClassifier(base)
        self.base, self.method = self.estimator.parts()
        self.X = cast(X, base.dtype)
        self.placed = self.base.transform(self.X)
        self.names, self.y = np.unique(y, return_inverse=True)
        self.confidence = self.estimator.confidence()

    def fit(self, rows: list[np.ndarray], labels: list[np.ndarray], ways: int) -> list[np.ndarray]:
        """Weights of the head of each task, with the intercepts last."""
        found: list[np.ndarray] = []
        for some in slices(len(rows), TASKS_AT_ONCE):
            support = self.placed[np.stack(rows[some])]
            fitted = fit_tasks(self.base, support, np.stack(labels[some]), self.method, n_classes=ways)
            found.extend(fitted.theta)
        return found

    def logits(self, theta: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Logits (rows, ways) of these samples."""
        return self.placed[rows] @ theta[:, :-1].T + theta[:, -1]


@dataclass
class Labelling:
    """A task while its labels are bought: rows of labelled samples, of the pool and of the test, with their classes."""

    features: Features
    rows: np.ndarray
    labels: np.ndarray
    pool: np.ndarray
    pool_labels: np.ndarray
    queries: np.ndarray
    query_labels: np.ndarray
    rng: np.random.Generator
    theta: np.ndarray = field(default_factory=lambda: np.empty(0))

    def probabilities(self) -> np.ndarray:
        """Calibrated probabilities of the pool."""
        features, temperature = self.features, 1.0
        if features.confidence is not None:
            support, labels = features.placed[self.rows][None], self.labels[None]
            temperature = float(features.confidence.temperatures_of(features.base, support, labels)[0])
        return softmax(features.logits(self.theta, self.pool).astype(np.float64) / temperature)[0]

    def accuracy(self) -> float:
        """Share of the test samples that are classified correctly."""
        return float(np.mean(self.features.logits(self.theta, self.queries).argmax(axis=1) == self.query_labels))

    def buy(self, chosen: np.ndarray) -> None:
        """Move these samples of the pool to the labelled ones."""
        assert len(np.unique(chosen)) == len(chosen)
        self.rows = np.concatenate([self.rows, self.pool[chosen]])
        self.labels = np.concatenate([self.labels, self.pool_labels[chosen]])
        self.pool, self.pool_labels = (np.delete(x, chosen) for x in (self.pool, self.pool_labels))


def draw(features: Features, setting: Setting, unequal: bool, seed: int, index: int) -> Labelling:
    """Task `index`, which depends on it and the seed alone."""
    rng = np.random.default_rng([seed, index])
    classes = rng.choice(len(features.names), setting.ways, replace=False)
    shares = rng.dirichlet(np.full(setting.ways, 2.0)) if unequal else np.full(setting.ways, 1 / setting.ways)
    rows = [rng.permutation(np.flatnonzero(features.y == c)) for c in classes]
    tests = slice(1, 1 + setting.queries)
    # Half as many in all as in balanced pools of Omniglot, whose classes have no further samples.
    total = setting.ways * setting.pool * (0.5 if unequal and setting.ways > USUAL.ways else 1)
    pools = [own[tests.stop :][: round(share * total)] for own, share in zip(rows, shares, strict=True)]
    pool_labels = np.repeat(np.arange(setting.ways), [len(own) for own in pools])
    order = rng.permutation(len(pool_labels))
    return Labelling(
        features,
        rows=np.array([own[0] for own in rows]),
        labels=np.arange(setting.ways),
        pool=np.concatenate(pools)[order],
        pool_labels=pool_labels[order],
        queries=np.concatenate([own[tests] for own in rows]),
        query_labels=np.repeat(np.arange(setting.ways), setting.queries),
        rng=rng,
    )


def suggested(task: Labelling, n: int) -> np.ndarray:
    X, estimator = task.features.X, HOTClassifier(task.features.estimator.base)
    return estimator.fit(X[task.rows], task.labels).suggest(X[task.pool], n).rows


def at_random(task: Labelling, n: int) -> np.ndarray:
    return task.rng.choice(len(task.pool), n, replace=False)


def smallest_margin(task: Labelling, n: int) -> np.ndarray:
    largest = np.sort(task.probabilities(), axis=1)
    return np.argsort(largest[:, -1] - largest[:, -2], kind="stable")[:n]


def k_means(task: Labelling, n: int) -> np.ndarray:
    samples = task.features.placed[task.pool].astype(np.float64)
    distances = _clusters(samples, n, task.rng).transform(samples)
    chosen: list[int] = []
    for own in distances.T:
        own[chosen] = np.inf
        chosen.append(int(own.argmin()))
    return np.array(chosen)


def most_typical(task: Labelling, n: int) -> np.ndarray:
    samples = task.features.placed[np.concatenate([task.pool, task.rows])].astype(np.float64)
    is_free = np.arange(len(samples)) < len(task.pool)
    clusters = _clusters(samples, len(task.rows) + n, task.rng).labels_
    covered, sizes = np.bincount(clusters, ~is_free), np.bincount(clusters)
    order = sorted(np.unique(clusters[is_free]), key=lambda c: (covered[c], -sizes[c]))
    chosen: list[int] = []
    while len(chosen) < n:
        for cluster in order:
            own = np.flatnonzero((clusters == cluster) & is_free)
            if not len(own) or len(chosen) == n:
                continue
            members = samples[clusters == cluster]
            distances = np.sort(np.linalg.norm(samples[own][:, None] - members, axis=2), axis=1)
            best = own[np.mean(distances[:, 1 : NEIGHBOURS + 1], axis=1).argmin()] if len(members) > 1 else own[0]
            chosen.append(int(best))
            is_free[best] = False
    return np.array(chosen)


def _clusters(samples: np.ndarray, n: int, rng: np.random.Generator) -> KMeans:
    return KMeans(n, n_init=3, random_state=int(rng.integers(2**31))).fit(samples)


STRATEGIES: dict[str, Callable[[Labelling, int], np.ndarray]] = {
    RANDOM: at_random,
    "suggest": suggested,
    "margin": smallest_margin,
    "k-means": k_means,
    "typicality": most_typical,
}


def main(
    data: DataFolder,
    sets: Sets = SETS,
    pools: Annotated[str, typer.Option(help="balanced, dirichlet or both.")] = "balanced,dirichlet",
    strategies: Annotated[str, typer.Option(help="Strategies, separated by commas.")] = ",".join(STRATEGIES),
    tasks: Tasks = 300,
    seed: Seed = 0,
) -> None:
    warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
    for name in sets.split(","):
        setting = SETTINGS.get(name, USUAL)
        with one_thread():
            features = Features(load(name, data, seed))
            for pool in pools.split(","):
                curves = {
                    strategy: run(features, setting, pool == "dirichlet", strategy, tasks, seed)
                    for strategy in dict.fromkeys([RANDOM, *strategies.split(",")])
                }
                for table in tables(curves, setting, f"{name}, {pool} pool, seed {seed}, {tasks} tasks"):
                    show(table)


def run(features: Features, setting: Setting, unequal: bool, strategy: str, n_tasks: int, seed: int) -> np.ndarray:
    """Accuracies (tasks, steps + 1) of a strategy."""
    tasks = [draw(features, setting, unequal, seed, i) for i in range(n_tasks)]
    chosen: list[np.ndarray] = []
    curve = []
    for number in setting.bought:
        if number:
            place = (number - setting.step) % setting.ways
            if place == 0:
                # Rows of all samples, which do not change as the pool shrinks.
                chosen = [task.pool[STRATEGIES[strategy](task, setting.ways)] for task in tasks]
            for task, rows in zip(tasks, chosen, strict=True):
                task.buy(np.flatnonzero(np.isin(task.pool, rows[place : place + setting.step])))
        heads = features.fit([task.rows for task in tasks], [task.labels for task in tasks], setting.ways)
        for task, theta in zip(tasks, heads, strict=True):
            task.theta = theta
        curve.append([task.accuracy() for task in tasks])
    return np.array(curve).T


def needed_share(setting: Setting, curve: np.ndarray, of_random: np.ndarray, first: int) -> np.ndarray:
    """Labels with which a curve reaches random choice after each of its purchases, as shares of its labels.

    ``first`` labels count for both. The share is infinite if the accuracy is never reached.
    """
    rising = np.maximum.accumulate(curve)
    ends = setting.ways // setting.step * np.arange(1, setting.purchases + 1)
    needed = np.interp(of_random[ends], rising, setting.bought)
    return np.where(of_random[ends] <= rising[-1], needed + first, np.inf) / (setting.bought[ends] + first)


def tables(curves: dict[str, np.ndarray], setting: Setting, title: str) -> list[Table]:
    """Accuracies, differences to random choice, and shares of labels."""
    ends = setting.ways // setting.step * np.arange(setting.purchases + 1)
    heads = [f"{number} bought" for number in setting.bought[ends]]
    of_random, rivals = curves[RANDOM], {name: curve for name, curve in curves.items() if name != RANDOM}
    tasks = len(of_random)
    drawn = [np.arange(tasks), *np.random.default_rng(0).integers(tasks, size=(RESAMPLES, tasks))]

    def shares(curve: np.ndarray, first: int) -> list[Cell]:
        point, *again = [
            needed_share(setting, curve[some].mean(axis=0), of_random[some].mean(axis=0), first) for some in drawn
        ]
        low, high = np.quantile(again, [0.025, 0.975], axis=0, method="nearest")
        return [Entry(f"{_share(x)} ({_share(a)} to {_share(b)})", x) for x, a, b in zip(point, low, high, strict=True)]

    made: dict[str, dict[str, list[Cell]]] = {
        "accuracy, %": {name: [Number(100 * x) for x in curve.mean(axis=0)[ends]] for name, curve in curves.items()},
        "difference to random choice, points": {
            name: [interval(gaps, signed=True) for gaps in 100 * (curve - of_random)[:, ends[1:]].T]
            for name, curve in rivals.items()
        },
        "share of the labels that random choice bought": {name: shares(curve, 0) for name, curve in rivals.items()},
        "the same with the first samples": {name: shares(curve, setting.ways) for name, curve in rivals.items()},
    }
    return [
        Table(
            f"{title}: {what}",
            ("strategy", *(heads if "accuracy" in what else heads[1:])),
            tuple((name, *cells) for name, cells in rows.items()),
        )
        for what, rows in made.items()
    ]


def _share(value: float) -> str:
    return f"{value:.2f}" if np.isfinite(value) else "never"
