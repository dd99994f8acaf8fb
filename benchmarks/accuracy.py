"""Accuracy of H-OT and the baselines on real features, paired over the same tasks.

    python -m benchmarks.accuracy DATA [--tasks 1000] [--methods hot,logistic,centroid-cl2n,free-lunch]

DATA is a folder with `banking77/features.npz` (sentence embeddings: `X`, `y`; 47 classes become base classes, 30
novel, shuffled with seed 0) and `miniimagenet/features.npz` (`base` and `val` of shape (classes, samples, V), stored
as (value * `scale`)**2; the validation classes are the novel ones). A plain loop over the estimators.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from hotshot import BaseClasses, named_method
from hotshot.episodes import Episodes
from hotshot.errors import ScaleWarning
from hotshot.evaluation import mean_interval, paired_difference


def banking77(folder: Path) -> tuple[BaseClasses, np.ndarray, np.ndarray]:
    with np.load(folder / "banking77" / "features.npz", allow_pickle=False) as file:
        X, y = file["X"], file["y"]
    intents = np.random.default_rng(0).permutation(np.unique(y))
    is_base = np.isin(y, intents[:47])
    return BaseClasses.from_samples(X[is_base], y[is_base]), X[~is_base], y[~is_base]


def miniimagenet(folder: Path) -> tuple[BaseClasses, np.ndarray, np.ndarray]:
    with np.load(folder / "miniimagenet" / "features.npz", allow_pickle=False) as file:
        parts = [(file[part].astype(np.float32) * file["scale"]) ** 2 for part in ("base", "val")]
        names = [file["base_names"], file["val_names"]]
    (X_base, y_base), (X, y) = (
        (part.reshape(-1, part.shape[2]), np.repeat(name, part.shape[1]))
        for part, name in zip(parts, names, strict=True)
    )
    return BaseClasses.from_samples(X_base, y_base), X, y


def accuracies(method: str, base: BaseClasses, X: np.ndarray, y: np.ndarray, tasks: list) -> np.ndarray:
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)
        scores = []
        for task in tasks:
            model = named_method(method, base).fit(X[task.support], task.support_labels)
            scores.append(np.mean(model.predict(X[task.query]) == task.query_labels))
    return np.array(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--methods", default="hot,logistic,centroid-cl2n,free-lunch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    methods = options.methods.split(",")
    console = Console(width=110)
    for load in (banking77, miniimagenet):
        base, X, y = load(options.data)
        for shots in (1, 5):
            episodes = Episodes(y, ways=5, shots=shots, seed=options.seed)
            chunks = [
                [episodes[i] for i in part]
                for part in np.array_split(np.arange(options.tasks), 2 * options.jobs)
            ]
            table = Table(
                title=f"{load.__name__}, 5-way-{shots}-shot, {options.tasks} tasks, seed {options.seed}"
            )
            for column in ("method", "accuracy %, 95%", f"{methods[0]} minus it, paired", "seconds a task"):
                table.add_column(column)
            reference = None
            for method in methods:
                start = time.perf_counter()
                work = (delayed(accuracies)(method, base, X, y, chunk) for chunk in chunks)
                scores = 100 * np.concatenate(Parallel(n_jobs=options.jobs)(work))
                seconds = (time.perf_counter() - start) * options.jobs / options.tasks
                reference = scores if reference is None else reference
                own, difference = mean_interval(scores), paired_difference(reference, scores)
                table.add_row(
                    method,
                    f"{own.mean:.2f} ±{own.half_width:.2f}",
                    f"{difference.mean:+.2f} ±{difference.half_width:.2f}",
                    f"{seconds:.3f}",
                )
            console.print(table)


if __name__ == "__main__":
    main()
