"""Time and memory to build, load and use banks of many classes, by number of classes.

    python -m benchmarks.banks

Banks have B = 1,000, 3,000 and 10,000 classes of 100 samples with 768 post-ReLU features in single precision. They are
built in one pass over batches of mixed classes, as a shuffled data loader yields them. Building and use run in separate
processes. Memory is the proportional set size, which includes mapped pages of files. No other program is compared:
times depend on the machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.memory import watched
from benchmarks.synthetic import console, features, make_table
from hotshot import BaseClasses, HOTClassifier

SIZES = (1_000, 3_000, 10_000)
PER_CLASS, WIDTH = 100, 768
# Classes whose samples arrive mixed with each other.
MIXED = 50
WAYS, SHOTS, QUERIES = 5, 5, 15


def batches(n_classes: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All classes, in batches of mixed classes."""
    for first in range(0, n_classes, MIXED):
        count = min(MIXED, n_classes - first)
        X = features(np.empty((count * PER_CLASS, WIDTH), dtype=np.float32), PER_CLASS, WIDTH, seed, first)
        y = np.repeat(np.arange(first, first + count), PER_CLASS)
        order = np.random.default_rng([seed, first]).permutation(len(y))
        yield X[order], np.char.add("class ", y[order].astype(str))


def build(folder: str, n_classes: int, seed: int) -> None:
    print("imports", time.time())
    BaseClasses.from_batches(batches(n_classes, seed), folder)
    print("build", time.time())


def save_statistics(folder: str, out: str) -> None:
    print("imports", time.time())
    BaseClasses.load(folder).save(out, samples=False, covariance="diagonal")
    print("save", time.time())


def use(folder: str, n_classes: int, seed: int, cost: str) -> None:
    """Load the bank, fit two tasks and predict; print the time at the end of each phase."""
    print("imports", time.time())
    base = BaseClasses.load(folder)
    print("load", time.time())
    for number in ("first", "second"):
        X = np.empty((WAYS * (SHOTS + QUERIES), WIDTH), dtype=np.float32)
        X = features(X, SHOTS + QUERIES, WIDTH, seed, first=n_classes + (number == "second") * WAYS)
        y = np.repeat(np.arange(WAYS), SHOTS + QUERIES)
        support = np.arange(len(y)) % (SHOTS + QUERIES) < SHOTS
        print(f"features of {number} task", time.time())
        model = HOTClassifier(base, cost=cost).fit(X[support], y[support])
        print(f"fit of {number} task", time.time())
        right = (model.predict(X[~support]) == y[~support]).mean()
        print(f"accuracy of {number} task is {right:.2f}; predict", time.time())


def durations(samples: list[tuple[float, int]], ends: dict[str, float]) -> tuple[dict[str, float], float]:
    """Seconds of each phase, and the peak memory in GB."""
    starts = [samples[0][0], *ends.values()]
    seconds = {name: end - start for (name, end), start in zip(ends.items(), starts, strict=False)}
    return seconds, max(size for _, size in samples) / 1e9


def folder_size(folder: str) -> float:
    return sum(file.stat().st_size for file in Path(folder).iterdir()) / 1e9


def main() -> None:
    """Print one row for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of classes, separated by commas")
    parser.add_argument("--seed", type=int, default=0, help="seed of the features (default: 0)")
    options = parser.parse_args()
    built = make_table(
        f"built in one pass over batches, {PER_CLASS} samples per class, {WIDTH} features",
        "classes", "features GB", "build s", "peak GB", "on disk GB", "statistics only GB",
    )  # fmt: skip
    used = make_table(
        f"{WAYS}-way-{SHOTS}-shot on the loaded bank", "classes", "cost", "load s", "first fit s", "second fit s",
        "peak GB", "accuracy (two tasks)",
    )  # fmt: skip
    for n_classes in map(int, options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            bank, small = f"{folder}/all.bank", f"{folder}/statistics.bank"
            seconds, peak = durations(*watched(f"build({bank!r}, {n_classes}, {options.seed})", "banks"))
            watched(f"save_statistics({bank!r}, {small!r})", "banks")
            size = n_classes * PER_CLASS * WIDTH * 4 / 1e9
            built.add_row(
                f"{n_classes:,}", f"{size:.2f}", f"{seconds['build']:.1f}", f"{peak:.2f}",
                f"{folder_size(bank):.2f}", f"{folder_size(small):.3f}",
            )  # fmt: skip
            for label, path, cost in (
                ("hierarchical", bank, "hierarchical"),
                ("mean-cosine", bank, "mean-cosine"),
                ("mean-cosine, statistics only", small, "mean-cosine"),
            ):
                call = f"use({path!r}, {n_classes}, {options.seed}, {cost!r})"
                seconds, peak = durations(*watched(call, "banks"))
                accuracies = [name.split(" is ")[1][:4] for name in seconds if name.startswith("accuracy")]
                used.add_row(
                    f"{n_classes:,}", label, f"{seconds['load']:.2f}", f"{seconds['fit of first task']:.2f}",
                    f"{seconds['fit of second task']:.2f}", f"{peak:.2f}", ", ".join(accuracies),
                )  # fmt: skip
    console.print(built)
    console.print(used)


if __name__ == "__main__":
    main()
