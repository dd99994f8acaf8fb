"""Exported models and compact banks: agreement, speed, size and accuracy.

Three tables: the differences between an ONNX graph and its model, and their times on one thread; the sizes of models,
graphs and banks on disk; and the accuracy with a compact bank minus the accuracy with the samples, on the same tasks of
the embedded banks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import onnxruntime
import typer

from benchmarks.shared import Tasks, evaluated, show, size_on_disk, timed
from hotshot import BaseClasses, HOTClassifier
from hotshot.arrays import one_thread
from hotshot.bank.embedded import BANK_NAMES, load_bank
from hotshot.classifiers.export import export_model
from hotshot.classifiers.hot import save_compact
from hotshot.evaluation.tables import Cell, Number, Table, interval
from hotshot.evaluation.tasks import Episodes
from hotshot.formatting import readable_size

WIDTH, PER_CLASS, REPEATS = 768, 20, 5
Row = tuple[Cell, ...]


def main(tasks: Tasks = 2000, vectors: Annotated[int, typer.Option(help="Samples to predict.")] = 100_000) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        sizes, agreement = zip(*(compare_graph(name, folder, vectors) for name in BANK_NAMES), strict=True)
        losses = [row for name in BANK_NAMES for row in compare_banks(name, folder, tasks)]
    columns = ("bank", "probability difference", "score difference", "model s", "graph s", "ratio")
    title = f"ONNX graph and model, {vectors:,} samples, one thread; relative score differences above 1"
    show(Table(title, columns, agreement))
    show(Table("size on disk", ("bank", "model", "ONNX", "bank", "compact bank"), sizes))
    columns = ("bank", "shots", "samples", "compact", "paired difference, 95%")
    show(Table(f"accuracy over {tasks:,} tasks", columns, tuple(losses)))


def compare_graph(name: str, folder: Path, n_vectors: int) -> tuple[Row, Row]:
    """Sizes of a model and its exports, and how graph and model agree and compare in time."""
    bank = load_bank(name)
    task = Episodes(bank.y_novel, ways=bank.ways, shots=5, queries=1, seed=0)[0]
    model = HOTClassifier(bank.base).fit(bank.X_novel[task.support], task.support_labels)
    files = {suffix: folder / f"{name}.{suffix}" for suffix in ("model", "onnx", "bank", "compact")}
    model.save(files["model"])
    export_model(model, files["onnx"])
    bank.base.save(files["bank"], spaces=[model._space(model.settings())])
    save_compact(bank.base, files["compact"])

    rng = np.random.default_rng(0)
    X = np.resize(bank.X_novel, (n_vectors, bank.X_novel.shape[1]))
    X = np.abs(X * rng.normal(1, 0.1, size=X.shape)).astype(np.float32) * np.sign(X)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(files["onnx"]), options)
    (probabilities, score), theirs = _quickest(lambda: session.run(["probabilities", "outlier_score"], {"features": X}))
    with one_thread():
        (expected, expected_score), ours = _quickest(lambda: (model.predict_proba(X), model.outlier_score(X)))
    off = np.abs(score - expected_score) / np.maximum(1, np.abs(expected_score))
    differences = f"{np.abs(probabilities - expected).max():.1e}", f"{off.max():.1e}"
    return (
        (name, *(readable_size(size_on_disk(path)) for path in files.values())),
        (name, *differences, f"{ours:.2f}", f"{theirs:.2f}", f"{ours / theirs:.1f}"),
    )


def _quickest(run: Callable[[], Any]) -> tuple[Any, float]:
    """The result and the seconds of the quickest of several runs."""
    return min((timed(run) for _ in range(REPEATS)), key=lambda pair: pair[1])


def compare_banks(name: str, folder: Path, tasks: int) -> list[Row]:
    """Accuracy with the samples of a bank and with its compact form, on the same tasks."""
    bank, small = load_bank(name), BaseClasses.load(folder / f"{name}.compact")
    methods = {"samples": HOTClassifier(bank.base), "compact": HOTClassifier(small)}
    found = evaluated(methods, (bank.base, bank.X_novel, bank.y_novel), tasks, ways=bank.ways, seed=1)
    rows: list[Row] = []
    for shots in found.shots:
        samples, compact = (found[method, shots].accuracies for method in methods)
        gain = interval(100 * (compact - samples))
        means = (f"{100 * accuracies.mean():.2f}" for accuracies in (samples, compact))
        rows.append((name, str(shots), *means, Number(gain.mean, gain.half_width, signed=True, places=3)))
    return rows
