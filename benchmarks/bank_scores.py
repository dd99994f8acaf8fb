"""Score of a bank on samples without labels against the true gain of H-OT over nearest centroids.

    python -m benchmarks.bank_scores DATA [--tasks 400] [--sets banking77-0,miniimagenet]

DATA is the folder described in `benchmarks.accuracy`. Banks are subsets of the base classes of each set: all, the half
and quarter most and least like the novel classes, random ones, few samples of each class. The pool is the novel
samples; of Omniglot, those of 100 characters. The set `tfidf-0` has other features of the texts of banking77. Printed
for each pair are the score, the mean distance from the pool to the nearest base mean, and the true gain with its 95%
interval over tasks; then the rank correlation of both with the true gain, over all pairs, and the worst result of
`for_pool` against nearest centroids with the same bank. Omniglot has a quarter of the
tasks, of 20 ways.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from scipy.stats import spearmanr
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.accuracy import Data, banking77, miniimagenet, omniglot
from hotshot import BaseClasses, CentroidClassifier, HOTClassifier, evaluate
from hotshot.errors import HotshotWarning
from hotshot.estimators.bank_score import BankScore
from hotshot.evaluation.results import Estimate, Evaluation, paired_difference
from hotshot.evaluation.tables import Cell, Number, Table
from hotshot.transport.costs import cosine

OMNIGLOT_NOVEL, OMNIGLOT_WAYS = 100, 20
HOT, FALLBACK, CENTROIDS = "hot", "hot for the pool", "centroid-cl2n"


@dataclass(frozen=True)
class Pair:
    """A bank, and the novel samples that are its pool and that tasks are drawn from."""

    name: str
    base: BaseClasses
    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Result:
    """The score of a pair and the accuracies of the methods."""

    pair: Pair
    score: BankScore
    found: Evaluation

    def gain(self, method: str, shots: int) -> Estimate:
        """Accuracy of a method minus that of nearest centroids, in points."""
        both = (100 * self.found[name, shots].accuracies for name in (method, CENTROIDS))
        return paired_difference(*both)


def subset(base: BaseClasses, classes: np.ndarray, most: int | None = None) -> BaseClasses:
    """A bank of some of the classes, with at most so many samples of each."""
    assert base.samples is not None
    rows = np.isin(base.labels, classes)
    names = base.names[base.labels[rows]]
    return BaseClasses.from_samples(base.samples[rows], names, max_samples=most, about=base.about)


def by_likeness(base: BaseClasses, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Base classes, the one most like the novel classes first, by the mean cosine between centred means."""
    novel = np.stack([X[y == name].mean(axis=0) for name in np.unique(y)])
    return np.argsort(cosine(base.means - base.centre(1.0), novel - base.centre(1.0)).mean(axis=1), kind="stable")


def pairs_of(name: str, data: Data, seed: int) -> Iterator[Pair]:
    base, X, y = data
    order, rng, n = by_likeness(base, X, y), np.random.default_rng(seed), len(base.names)
    banks = {
        "all classes": base,
        "most like half": subset(base, order[: n // 2]),
        "least like half": subset(base, order[n // 2 :]),
        "most like quarter": subset(base, order[: n // 4]),
        "least like quarter": subset(base, order[-(n // 4) :]),
        **{f"{k} random classes": subset(base, rng.choice(n, k, replace=False)) for k in (5, 10, 20)},
        "5 samples a class": subset(base, order, 5),
    }
    yield from (Pair(f"{name}, {which}", bank, X, y) for which, bank in banks.items())


def tfidf(folder: Path, seed: int) -> Data:
    """TF-IDF of the texts of banking77, reduced to 128 axes, with the classes of ``banking77``."""
    rows = []
    for part in ("train.csv", "test.csv"):
        with open(folder / "banking77" / part, encoding="utf-8") as file:
            rows += list(csv.DictReader(file))
    y = np.array([row["category"] for row in rows])
    counts = TfidfVectorizer(sublinear_tf=True, min_df=3).fit_transform([row["text"] for row in rows])
    X = TruncatedSVD(128, random_state=0).fit_transform(counts).astype(np.float32)
    names = np.random.default_rng(seed).permutation(np.unique(y))
    kept = np.concatenate([np.flatnonzero(y == name)[:100] for name in names])
    X, y = X[kept], y[kept]
    is_base = np.isin(y, names[:47])
    return BaseClasses.from_samples(X[is_base], y[is_base]), X[~is_base], y[~is_base]


def small_omniglot() -> Data:
    base, X, y = omniglot()
    some = np.isin(y, np.random.default_rng(0).choice(np.unique(y), OMNIGLOT_NOVEL, replace=False))
    return base, X[some], y[some]


def run(pair: Pair, tasks: int, jobs: int) -> Result:
    model = HOTClassifier(pair.base)
    score = model.score_bank(pair.X)
    methods = {
        HOT: model,
        FALLBACK: HOTClassifier(pair.base, **score.settings),
        CENTROIDS: CentroidClassifier(pair.base),
    }
    if not score.settings:
        del methods[FALLBACK]
    is_omniglot = pair.name.startswith("omniglot")
    ways, tasks = (OMNIGLOT_WAYS, tasks // 4) if is_omniglot else (5, tasks)
    found = evaluate(methods, pair.X, pair.y, ways=ways, shots=(1, 5), tasks=tasks, seed=0, n_jobs=jobs)
    return Result(pair, score, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the features of banking77 and miniImageNet")
    parser.add_argument("--sets", default="banking77-0,miniimagenet,omniglot,tfidf-0", help="sets")
    parser.add_argument("--tasks", type=int, default=400, help="tasks per number of shots (default: 400)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    options = parser.parse_args()
    sets: dict[str, Callable[[], Data]] = {
        **{f"banking77-{seed}": lambda seed=seed: banking77(options.data, seed) for seed in range(5)},
        **{f"tfidf-{seed}": lambda seed=seed: tfidf(options.data, seed) for seed in range(5)},
        "miniimagenet": lambda: miniimagenet(options.data),
        "omniglot": small_omniglot,
    }
    console, begin, results = Console(width=150), time.perf_counter(), []
    warnings.simplefilter("ignore", HotshotWarning)
    for seed, name in enumerate(options.sets.split(",")):
        for pair in pairs_of(name, sets[name](), seed):
            results.append(run(pair, options.tasks, options.jobs))
            console.print(f"{time.perf_counter() - begin:5.0f} s  {pair.name}: {results[-1].score!r}", markup=False)
    print(table(results).to_markdown())
    for sentence in summary(results):
        print(sentence)


def table(results: list[Result]) -> Table:
    columns = ("bank", "score", "held out", "distance", "gain, 1 shot", "5 shots", "for the pool, 1 shot", "5 shots")
    rows = []
    for result in results:
        cells: list[Cell] = [
            result.pair.name,
            Number(result.score.points, result.score.gains[0].half_width, signed=True),
        ]
        cells += ["yes" if result.score.held_out else "no", Number(result.score.distance)]
        gains = [result.gain(method, k) for method in (HOT, kept(result)) for k in (1, 5)]
        cells += [Number(gain.mean, gain.half_width, signed=True) for gain in gains]
        rows.append(tuple(cells))
    return Table("Scores of banks", columns, tuple(rows))


def kept(result: Result) -> str:
    """The method that ``for_pool`` uses."""
    return FALLBACK if result.score.settings else HOT


def summary(results: list[Result]) -> Iterator[str]:
    for shots in (1, 5):
        true = [result.gain(HOT, shots).mean for result in results]
        by_score = spearmanr([result.score.points for result in results], true)[0]
        by_distance = spearmanr([-result.score.distance for result in results], true)[0]
        yield (
            f"{shots}-shot, {len(results)} pairs: rank correlation with the true gain {by_score:.2f} by the score, "
            f"{by_distance:.2f} by the distance."
        )
        gains = [result.gain(kept(result), shots) for result in results]
        worst = min(range(len(gains)), key=lambda i: gains[i].mean)
        yield (
            f"for_pool minus nearest centroids: mean {np.mean([gain.mean for gain in gains]):+.2f}, worst "
            f"{gains[worst].mean:+.2f} ± {gains[worst].half_width:.2f} ({results[worst].pair.name}); "
            f"HOTClassifier: mean {np.mean(true):+.2f}, worst {min(true):+.2f}."
        )


if __name__ == "__main__":
    main()
