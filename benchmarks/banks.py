"""Time and memory to build, load and use banks of many classes, by number of classes.

Banks have classes of 100 samples with 768 post-ReLU features in single precision. They are built in one pass over
batches of mixed classes, as a shuffled data loader yields them. Building and use run in separate processes. No other
program is compared: times depend on the machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.shared import Seed, features, in_new_process, show, size_on_disk, timed
from hotshot import BaseClasses, HOTClassifier
from hotshot.evaluation.tables import Cell, Table

PER_CLASS, WIDTH = 100, 768
# Classes whose samples arrive mixed with each other.
MIXED = 50
WAYS, SHOTS, QUERIES = 5, 5, 15


def main(sizes: str = "1000,3000,10000", seed: Seed = 0) -> None:
    built: list[tuple[Cell, ...]] = []
    used: list[tuple[Cell, ...]] = []
    for n in map(int, sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            bank, small = f"{folder}/all.bank", f"{folder}/statistics.bank"
            seconds, peak = in_new_process(build, bank, n, seed)
            in_new_process(save_statistics, bank, small)
            on_disk, statistics = (size_on_disk(Path(place)) / 1e9 for place in (bank, small))
            features_gb = n * PER_CLASS * WIDTH * 4 / 1e9
            built.append(
                (f"{n:,}", f"{features_gb:.2f}", f"{seconds:.1f}", _gb(peak), f"{on_disk:.2f}", f"{statistics:.3f}")
            )
            for label, place, cost in (
                ("hierarchical", bank, "hierarchical"),
                ("mean-cosine", bank, "mean-cosine"),
                ("mean-cosine, statistics only", small, "mean-cosine"),
            ):
                (times, accuracies), peak = in_new_process(use, place, n, seed, cost)
                shares = ", ".join(f"{share:.2f}" for share in accuracies)
                used.append((f"{n:,}", label, *(f"{time:.2f}" for time in times), _gb(peak), shares))
    columns = ("classes", "features GB", "build s", "peak GB", "on disk GB", "statistics only GB")
    title = f"built in one pass over batches, {PER_CLASS} samples per class, {WIDTH} features"
    show(Table(title, columns, tuple(built)))
    columns = ("classes", "cost", "load s", "first fit s", "second fit s", "peak GB", "accuracy (two tasks)")
    show(Table(f"{WAYS}-way-{SHOTS}-shot on the loaded bank", columns, tuple(used)))


def _gb(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.2f}"


def batches(n_classes: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All classes, in batches of mixed classes."""
    for first in range(0, n_classes, MIXED):
        count = min(MIXED, n_classes - first)
        X = features(np.empty((count * PER_CLASS, WIDTH), dtype=np.float32), PER_CLASS, seed, first)
        y = np.repeat(np.arange(first, first + count), PER_CLASS)
        order = np.random.default_rng([seed, first]).permutation(len(y))
        yield X[order], np.char.add("class ", y[order].astype(str))


def build(folder: str, n_classes: int, seed: int) -> float:
    """Build a bank; returns the seconds."""
    return timed(lambda: BaseClasses.from_batches(batches(n_classes, seed), folder))[1]


def save_statistics(folder: str, out: str) -> None:
    BaseClasses.load(folder).save(out, samples=False, covariance="diagonal")


def use(folder: str, n_classes: int, seed: int, cost: str) -> tuple[list[float], list[float]]:
    """Load a bank, fit two tasks and predict; returns the seconds of loading and fits, and the accuracies."""
    base, seconds = timed(lambda: BaseClasses.load(folder))
    times, accuracies = [seconds], []
    for first in (n_classes, n_classes + WAYS):
        X = np.empty((WAYS * (SHOTS + QUERIES), WIDTH), dtype=np.float32)
        X = features(X, SHOTS + QUERIES, seed, first)
        y = np.repeat(np.arange(WAYS), SHOTS + QUERIES)
        support = np.arange(len(y)) % (SHOTS + QUERIES) < SHOTS
        model, seconds = timed(lambda X=X, y=y, s=support: HOTClassifier(base, cost=cost).fit(X[s], y[s]))
        times.append(seconds)
        accuracies.append(float((model.predict(X[~support]) == y[~support]).mean()))
    return times, accuracies
