"""Exported models and compact banks: agreement, speed, size and accuracy.

    python -m benchmarks.export [--tasks 2000] [--vectors 100000] [--classes 10000]

Four tables: the differences between an ONNX graph and its model, and their times on one thread; the sizes of models,
graphs and banks on disk; the accuracy with a compact bank minus the accuracy with the samples, on the same tasks of the
embedded banks; and the size of a compact bank of many classes with 768 synthetic features, with the axes that hold 98%
of the variance and with all.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from benchmarks.synthetic import console, features, make_table
from hotshot import BaseClasses, HOTClassifier, evaluate
from hotshot.arrays import one_thread
from hotshot.base import Space
from hotshot.base.embedded import BANK_NAMES, load_bank
from hotshot.base.low_rank import LOW_RANK
from hotshot.errors import HotshotWarning
from hotshot.estimators.compacting import save_compact
from hotshot.estimators.export import export_model
from hotshot.evaluation.tasks import Episodes
from hotshot.formatting import readable_size, with_interval
from hotshot.intervals import mean_interval

WIDTH, PER_CLASS, REPEATS = 768, 20, 5


def size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def quickest(run: Callable[[], Any]) -> float:
    """Seconds of the quickest of several runs."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def compare_graph(name: str, folder: Path, n_vectors: int, agreement: Any, sizes: Any) -> None:
    bank = load_bank(name)
    task = Episodes(bank.y_novel, ways=bank.ways, shots=5, queries=1, seed=0)[0]
    model = HOTClassifier(bank.base).fit(bank.X_novel[task.support], task.support_labels)
    files = {suffix: folder / f"{name}.{suffix}" for suffix in ("model", "onnx", "bank", "compact")}
    model.save(files["model"])
    export_model(model, files["onnx"])
    bank.base.save(files["bank"], spaces=[model._space(model.settings())])
    save_compact(bank.base, files["compact"])
    sizes.add_row(name, *(readable_size(size(path)) for path in files.values()))

    rng = np.random.default_rng(0)
    X = np.resize(bank.X_novel, (n_vectors, bank.X_novel.shape[1]))
    X = np.abs(X * rng.normal(1, 0.1, size=X.shape)).astype(np.float32) * np.sign(X)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(files["onnx"]), options)
    found, score = session.run(["probabilities", "outlier_score"], {"features": X})
    with one_thread():
        expected, expected_score = model.predict_proba(X), model.outlier_score(X)
        ours = quickest(lambda: (model.predict_proba(X), model.outlier_score(X)))
    theirs = quickest(lambda: session.run(None, {"features": X}))
    off = np.abs(score - expected_score) / np.maximum(1, np.abs(expected_score))
    agreement.add_row(
        name, f"{np.abs(found - expected).max():.1e}", f"{off.max():.1e}", f"{ours:.2f}", f"{theirs:.2f}",
        f"{ours / theirs:.1f}",
    )  # fmt: skip


def compare_banks(name: str, folder: Path, tasks: int, table: Any) -> None:
    bank, small = load_bank(name), BaseClasses.load(folder / f"{name}.compact")
    methods = {"samples": HOTClassifier(bank.base), "compact": HOTClassifier(small)}
    found = evaluate(methods, bank.X_novel, bank.y_novel, ways=bank.ways, tasks=tasks, seed=1)
    for shots in found.shots:
        gains = mean_interval(found["compact", shots].accuracies - found["samples", shots].accuracies)
        table.add_row(
            name,
            str(shots),
            *(f"{100 * found[method, shots].accuracy.mean:.2f}" for method in methods),
            with_interval(100 * gains.mean, 100 * gains.half_width, signed=True, places=3),
        )


def many_classes(n_classes: int, folder: Path, table: Any) -> None:
    X = features(np.empty((n_classes * PER_CLASS, WIDTH), dtype=np.float32), PER_CLASS, WIDTH, seed=0)
    base = BaseClasses.from_samples(X, np.char.add("class ", np.repeat(np.arange(n_classes), PER_CLASS).astype(str)))
    for share in (Space.n_components, None):
        base.save(
            folder / "many.bank", samples=False, covariance=LOW_RANK, overwrite=True,
            spaces=[Space(power=0.5, n_components=share)],
        )  # fmt: skip
        (prepared,) = BaseClasses.load(folder / "many.bank")._stored.values()
        whole, axes = readable_size(size(folder / "many.bank")), prepared.means.shape[1]
        table.add_row(f"{n_classes:,}", str(WIDTH), str(axes), whole)


def main() -> None:
    """Print the four tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000, help="tasks per bank and number of shots")
    parser.add_argument("--vectors", type=int, default=100_000, help="samples to predict")
    parser.add_argument("--classes", type=int, default=10_000, help="classes of the large bank")
    options = parser.parse_args()
    agreement = make_table(
        f"ONNX graph and model, {options.vectors:,} samples, one thread; relative score differences above 1", "bank",
        "probability difference", "score difference", "model s", "graph s", "ratio",
    )  # fmt: skip
    sizes = make_table("size on disk", "bank", "model", "ONNX", "bank", "compact bank")
    losses = make_table(
        f"accuracy over {options.tasks:,} tasks", "bank", "shots", "samples", "compact", "paired difference, 95%"
    )
    many = make_table("compact bank of many classes", "classes", "features", "axes", "on disk")
    warnings.simplefilter("ignore", HotshotWarning)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in BANK_NAMES:
            compare_graph(name, folder, options.vectors, agreement, sizes)
            compare_banks(name, folder, options.tasks, losses)
        many_classes(options.classes, folder, many)
    for table in (agreement, sizes, losses, many):
        console.print(table)


if __name__ == "__main__":
    main()
