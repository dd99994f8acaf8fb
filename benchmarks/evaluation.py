"""Time of hotshot's evaluation and of a plain implementation of the paper (benchmarks/reference.py), on the same tasks.

Features are synthetic, post-ReLU and in single precision: 64 base classes of 600 samples in 640 dimensions, and 20
novel classes. Tasks are 5-way with 15 queries per class, the same for hotshot and the reference. The bank is prepared
before the measurement. The reference runs in one process and uses one thread or all cores, whichever is faster; hotshot
runs in one process per core, and its time is the wall time of `evaluate`, with the start of the processes.
"""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np
from joblib.externals.loky import get_reusable_executor
from threadpoolctl import threadpool_limits

from benchmarks import reference
from benchmarks.shared import Data, Seed, say, show, synthetic, timed
from hotshot import HOTClassifier, evaluate, parameter_set
from hotshot.evaluation.tables import Cell, Table, interval, percent
from hotshot.evaluation.tasks import Episodes

CORES = os.cpu_count() or 1
WAYS, QUERIES = 5, 15
# Tasks of the reference by number of shots, and those of each model of hotshot.
REFERENCE_TASKS, TASKS = {1: 3, 5: 2}, {"default": 2000, "all axes": 400, "authors' set": 40}
SOLVERS = {"plain": reference.sinkhorn, "Sinkhorn loop rearranged for NumPy": reference.arranged_sinkhorn}
# Seconds, and the accuracy of each task.
Timing = tuple[float, np.ndarray]


def main(seed: Seed = 0) -> None:
    data = synthetic(64, 600, 640, seed)
    base, X, y = data
    settings: dict[str, Any] = {"default": {}, "all axes": {"n_components": None}}
    settings["authors' set"] = parameter_set("authors")
    models = {name: HOTClassifier(base, **values) for name, values in settings.items()}
    statistics = reference.base_statistics(base.samples, base.counts)
    task = _episodes(y, 1, seed)[0]
    for model in models.values():
        model.fit(X[task.support], task.support_labels)
    say(
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()} with {CORES} CPUs, seed "
        f"{seed}. B={len(base.names)}, J={base.counts[0]}, V={base.n_features}; the default keeps "
        f"{models['default'].coef_.shape[1]} axes."
    )
    for shots, n_reference in REFERENCE_TASKS.items():
        rows: list[tuple[Cell, ...]] = []
        theirs = dict.fromkeys(SOLVERS, np.inf)
        for solver in SOLVERS:
            for threads in sorted({1, CORES}):
                timing = time_reference(solver, statistics, data, shots, n_reference, seed, threads)
                rows.append((f"reference, {solver}, {threads} threads", *_cells(timing), None, None))
                theirs[solver] = min(theirs[solver], _per_task(timing))
        for name, model in models.items():
            timing = time_hotshot(model, data, shots, TASKS[name], seed)
            ratios = (f"{seconds / _per_task(timing):,.1f}" for seconds in theirs.values())
            rows.append((f"hotshot, {name}", *_cells(timing), *ratios))
        both = evaluate(
            {name: HOTClassifier(base, **settings[name]) for name in ("default", "all axes")},
            X, y, ways=WAYS, shots=shots, queries=QUERIES, tasks=TASKS["all axes"], seed=seed,
        )  # fmt: skip
        gap = percent(both.difference("all axes", shots), signed=True)
        say(f"Default minus all axes, {TASKS['all axes']} tasks: {gap} points of accuracy, paired.")
        columns = ("method", "tasks", "ms per task", "accuracy %, 95%", "times quicker", "than the rearranged loop")
        show(Table(f"{WAYS}-way-{shots}-shot", columns, tuple(rows)))


def time_hotshot(model: Any, data: Data, shots: int, tasks: int, seed: int) -> Timing:
    """Wall time of `evaluate`, with the start of new worker processes."""
    get_reusable_executor().shutdown(wait=True)
    _, X, y = data
    options = {"ways": WAYS, "shots": shots, "queries": QUERIES, "tasks": tasks, "seed": seed}
    found, seconds = timed(lambda: evaluate({"it": model}, X, y, **options))
    return seconds, found["it", shots].accuracies


def time_reference(solver: str, statistics: Any, data: Data, shots: int, tasks: int, seed: int, threads: int) -> Timing:
    """Time of the plain implementation."""
    _, X, y = data
    rng, drawn = np.random.default_rng(seed), list(_episodes(y, shots, seed).take(tasks))

    def accuracy(task: Any) -> float:
        support, queries = (X[task.support], task.support_labels), X[task.query]
        labels = reference.hierarchical_transport(statistics, *support, queries, rng, SOLVERS[solver])
        return float(np.mean(labels == task.query_labels))

    with threadpool_limits(threads):
        accuracies, seconds = timed(lambda: [accuracy(task) for task in drawn])
    return seconds, np.array(accuracies)


def _episodes(y: np.ndarray, shots: int, seed: int) -> Episodes:
    return Episodes(y, ways=WAYS, shots=shots, queries=QUERIES, seed=seed)


def _per_task(timing: Timing) -> float:
    return timing[0] / len(timing[1])


def _cells(timing: Timing) -> tuple[Cell, ...]:
    return str(len(timing[1])), f"{1e3 * _per_task(timing):,.2f}", interval(100 * timing[1])
