"""Accuracy of H-OT and the baselines on real features, paired over the same tasks.

    python -m benchmarks.accuracy DATA [--features miniimagenet] [--tasks 1000] [--methods all] [--out FOLDER]

DATA is a folder with `banking77/features.npz` (sentence embeddings: `X`, `y`; 47 classes become base classes, 30
novel, shuffled with seed 0) and `miniimagenet/features.npz` (`base` and `val` of shape (classes, samples, V), stored
as (value * `scale`)**2; the validation classes are the novel ones).
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from rich.console import Console

from hotshot import BaseClasses, evaluate
from hotshot.cli.terminal import Watching, to_rich
from hotshot.errors import ScaleWarning
from hotshot.estimators import METHOD_NAMES
from hotshot.evaluation.tables import accuracy_table, detail_table, unsolved


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


LOADERS = {"banking77": banking77, "miniimagenet": miniimagenet}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--features", default="banking77,miniimagenet", help="which of the two")
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--methods", default="hot,logistic,centroid-cl2n,free-lunch", help="names, or all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path, help="folder for the runs, so that they can be continued")
    options = parser.parse_args()
    methods = METHOD_NAMES if options.methods == "all" else options.methods.split(",")
    console = Console(width=110)
    for name in options.features.split(","):
        base, X, y = LOADERS[name](options.data)
        total = 2 * options.tasks * len(methods)
        with Watching(console, total) as watching, warnings.catch_warnings():
            warnings.simplefilter("ignore", ScaleWarning)
            found = evaluate(
                methods,
                X,
                y,
                base=base,
                tasks=options.tasks,
                seed=options.seed,
                n_jobs=options.jobs,
                out=options.out and options.out / name,
                watch=watching,
            )
        console.print(f"{name}, seed {options.seed}", style="bold")
        for table in [*(accuracy_table(found, k) for k in found.shots), detail_table(found, threshold=0.5)]:
            console.print(to_rich(table))
        for line in unsolved(found):
            console.print(line, markup=False)


if __name__ == "__main__":
    main()
