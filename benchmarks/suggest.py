"""Accuracy against number of labels: `suggest`, random choice, and three usual strategies of active learning.

The seed also draws the split of banking77. A task has 5 novel classes (20 of Omniglot) with one labelled sample each, a
pool of 30 unlabelled samples per class (9), and 15 other samples per class to test on (10). With the pool `dirichlet`
the classes have unequal shares of the pool, from a Dirichlet distribution of 2. Labels are bought as many at a time as
there are classes, and `HOTClassifier` is fitted to all labelled samples after each label (of Omniglot, after every
fourth). All strategies have the same tasks and classifier.

- margin: the smallest difference between the two largest probabilities.
- k-means: the samples closest to the centres of as many clusters of the unlabelled samples as labels are bought.
- typicality: the densest sample of each of the largest clusters without a label; there are as many clusters as labels
  after the purchase (TypiClust: Hacohen, Dekel, Weinshall, ICML 2022).

The share of labels is the number of labels with which a strategy reaches the accuracy of random choice, over that of
random choice. Intervals are 95%, of the mean difference over tasks, or by bootstrap over tasks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import typer
from joblib import Parallel, delayed
from sklearn.cluster import KMeans

from benchmarks.shared import SETS, Data, DataFolder, Jobs, Seed, Sets, Tasks, load, show
from hotshot import HOTClassifier
from hotshot.arrays import one_thread
from hotshot.evaluation.tables import Cell, Entry, Number, Table, interval

RANDOM = "random"
# Neighbours in the definition of typicality, and samples of the bootstrap.
NEIGHBOURS, RESAMPLES = 20, 1000


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


SETTINGS, USUAL = {"omniglot": Setting(20, 9, 10, 3, 4)}, Setting(5, 30, 15, 5, 1)


@dataclass
class Labelling:
    """A fitted model with its labelled samples, and the rest of the pool."""

    model: HOTClassifier
    rows: np.ndarray
    X: np.ndarray
    pool: np.ndarray
    rng: np.random.Generator


def curve(data: Data, setting: Setting, unequal: bool, strategy: str, seed: int, index: int) -> list[float]:
    """Accuracy of task `index`, which depends on it and the seed alone, after each step."""
    base, X, y = data
    rng = np.random.default_rng([seed, index])
    classes = rng.choice(np.unique(y), setting.ways, replace=False)
    shares = rng.dirichlet(np.full(setting.ways, 2.0)) if unequal else np.full(setting.ways, 1 / setting.ways)
    members = [rng.permutation(np.flatnonzero(y == name)) for name in classes]
    # Half as many in all as in balanced pools of Omniglot, whose classes have no further samples.
    total = setting.ways * setting.pool * (0.5 if unequal and setting.ways > USUAL.ways else 1)
    tests = slice(1, 1 + setting.queries)
    labelled = np.array([rows[0] for rows in members])
    queries = np.concatenate([rows[tests] for rows in members])
    pool = [rows[tests.stop :][: round(share * total)] for rows, share in zip(members, shares, strict=True)]
    unlabelled = rng.permutation(np.concatenate(pool))
    accuracies: list[float] = []
    task: Labelling | None = None
    with one_thread(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
        for number in setting.bought:
            if task is not None:
                place = (number - setting.step) % setting.ways
                if place == 0:
                    chosen = unlabelled[STRATEGIES[strategy](task, setting.ways)]
                    assert len(np.unique(chosen)) == setting.ways
                labelled = np.concatenate([labelled, chosen[place : place + setting.step]])
                unlabelled = np.setdiff1d(unlabelled, labelled, assume_unique=True)
            model = HOTClassifier(base).fit(X[labelled], y[labelled])
            accuracies.append(model.score(X[queries], y[queries]))
            task = Labelling(model, labelled, X, unlabelled, rng)
    return accuracies


def suggested(task: Labelling, n: int) -> np.ndarray:
    return task.model.suggest(task.X[task.pool], n).rows


def at_random(task: Labelling, n: int) -> np.ndarray:
    return task.rng.choice(len(task.pool), n, replace=False)


def smallest_margin(task: Labelling, n: int) -> np.ndarray:
    largest = np.sort(task.model.predict_proba(task.X[task.pool]), axis=1)
    return np.argsort(largest[:, -1] - largest[:, -2], kind="stable")[:n]


def k_means(task: Labelling, n: int) -> np.ndarray:
    samples = task.model.transform_(task.X[task.pool]).astype(np.float64)
    chosen: list[int] = []
    for distances in _clusters(samples, n, task.rng).transform(samples).T:
        distances[chosen] = np.inf
        chosen.append(int(distances.argmin()))
    return np.array(chosen)


def most_typical(task: Labelling, n: int) -> np.ndarray:
    samples = task.model.transform_(task.X[np.concatenate([task.pool, task.rows])]).astype(np.float64)
    is_free = np.arange(len(samples)) < len(task.pool)
    clusters = _clusters(samples, len(task.rows) + n, task.rng).labels_
    covered, sizes = np.bincount(clusters, ~is_free), np.bincount(clusters)
    order = sorted(np.unique(clusters[is_free]), key=lambda c: (covered[c], -sizes[c]))
    chosen: list[int] = []
    while len(chosen) < n:
        for cluster in order:
            free = np.flatnonzero((clusters == cluster) & is_free)
            if not len(free) or len(chosen) == n:
                continue
            distances = np.sort(np.linalg.norm(samples[free][:, None] - samples[clusters == cluster], axis=2), axis=1)
            best = free[np.mean(distances[:, 1 : NEIGHBOURS + 1], axis=1).argmin() if distances.shape[1] > 1 else 0]
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
    jobs: Jobs = -1,
) -> None:
    for name in sets.split(","):
        setting, loaded = SETTINGS.get(name, USUAL), load(name, data, seed)
        for pool in pools.split(","):
            curves = {
                strategy: np.array(
                    Parallel(jobs)(
                        delayed(curve)(loaded, setting, pool == "dirichlet", strategy, seed, i) for i in range(tasks)
                    )
                )
                for strategy in dict.fromkeys([RANDOM, *strategies.split(",")])
            }
            title = f"{name}, {pool} pool, seed {seed}, {tasks} tasks"
            ends = setting.ways // setting.step * np.arange(setting.purchases + 1)
            heads = [f"{number} bought" for number in setting.bought[ends]]
            means = [(method, *(Number(100 * x) for x in c.mean(axis=0)[ends])) for method, c in curves.items()]
            show(Table(f"{title}: accuracy, %", ("strategy", *heads), tuple(means)))
            of_random, rows, shares = curves.pop(RANDOM), [], []
            for method, values in curves.items():
                gaps = 100 * (values - of_random)[:, ends[1:]].T
                rows.append((method, *(interval(gap, signed=True) for gap in gaps)))
                shares.append((method, *label_shares(setting, values, of_random, ends[1:])))
            show(Table(f"{title}: difference to random choice, points", ("strategy", *heads[1:]), tuple(rows)))
            show(Table(f"{title}: share of the labels of random choice", ("strategy", *heads[1:]), tuple(shares)))


def label_shares(setting: Setting, values: np.ndarray, of_random: np.ndarray, ends: np.ndarray) -> list[Cell]:
    """Labels with which a strategy reaches random choice after each of its purchases, as shares of its labels."""

    def shares(some: np.ndarray) -> np.ndarray:
        rising, wanted = np.maximum.accumulate(values[some].mean(axis=0)), of_random[some].mean(axis=0)[ends]
        needed = np.interp(wanted, rising, setting.bought)
        return np.where(wanted <= rising[-1], needed, np.inf) / setting.bought[ends]

    tasks = len(values)
    drawn = np.random.default_rng(0).integers(tasks, size=(RESAMPLES, tasks))
    low, high = np.quantile([shares(some) for some in drawn], [0.025, 0.975], axis=0, method="nearest")
    texts = (
        [f"{x:.2f}" if np.isfinite(x) else "never" for x in cells]
        for cells in zip(shares(np.arange(tasks)), low, high, strict=True)
    )
    return [Entry(f"{point} ({least} to {most})", 0.0) for point, least, most in texts]
