"""Time of hotshot's evaluation and of a plain implementation of the paper (benchmarks/reference.py), on the same tasks.

Features are synthetic, post-ReLU and in single precision: 64 base classes of 600 samples in 640 dimensions, and 20
novel classes. Tasks are 5-way with 15 queries per class, the same for hotshot and the reference. The bank is prepared
before the measurement. The reference runs in one process and uses one thread or all cores, whichever is faster; hotshot
runs in one process per core, and its time is the wall time of `evaluate`, with the start of the processes.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from joblib.externals.loky import get_reusable_executor
from threadpoolctl import threadpool_limits

from benchmarks import reference
from benchmarks.shared import Data, Seed, say, show, synthetic, timed
from hotshot import FreeLunchClassifier, HOTClassifier, evaluate, parameter_set
from hotshot.evaluation.tables import Cell, Table, interval, percent
from hotshot.evaluation.tasks import Episodes

CORES = os.cpu_count() or 1
WAYS, QUERIES = 5, 15
# With the default, with all axes and with sampled heads; of the reference, by number of shots.
TASKS, REFERENCE_TASKS = (2000, 400, 40), {1: 3, 5: 2}
ARRANGED = "H-OT, Sinkhorn loop rearranged for NumPy"
PROCEDURES: dict[str, Callable[..., np.ndarray]] = {
    "H-OT": reference.hierarchical_transport,
    ARRANGED: partial(reference.hierarchical_transport, solver=reference.arranged_sinkhorn),
    "Free-Lunch": reference.free_lunch,
}
# Seconds, and the accuracy of each task.
Timing = tuple[float, np.ndarray]


def main(seed: Seed = 0) -> None:
    data = synthetic(64, 600, 640, seed)
    base, X, y = data
    default, all_axes, sampled = TASKS
    models: dict[str, tuple[Any, int, str]] = {
        "H-OT, default": (HOTClassifier(base), default, "H-OT"),
        "H-OT, all axes": (HOTClassifier(base, n_components=None), all_axes, "H-OT"),
        "H-OT, authors' set": (HOTClassifier(base, **parameter_set("authors")), sampled, "H-OT"),
        "Free-Lunch": (FreeLunchClassifier(base, random_state=0), sampled, "Free-Lunch"),
    }
    statistics, seconds = timed(lambda: reference.base_statistics(base.samples, base.counts))
    task = _episodes(y, 1, seed)[0]
    preparation = [f"reference {seconds:.1f}"]
    for name, (model, _, _) in models.items():
        seconds = timed(lambda model=model: model.fit(X[task.support], task.support_labels))[1]
        preparation.append(f"{name} {seconds:.1f}")
    say(
        f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()} with {CORES} CPUs, seed "
        f"{seed}. B={len(base.names)}, J={base.counts[0]}, V={base.n_features}; the default keeps "
        f"{models['H-OT, default'][0].coef_.shape[1]} axes. Seconds to prepare the bank: {'; '.join(preparation)}."
    )
    for shots, n_reference in REFERENCE_TASKS.items():
        rows: list[tuple[Cell, ...]] = []
        theirs: dict[str, float] = {}
        for family, procedure in PROCEDURES.items():
            for threads in sorted({1, CORES}):
                timing = time_reference(procedure, statistics, data, shots, n_reference, seed, threads)
                rows.append((f"reference {family}, {threads} threads", *_cells(timing)))
                theirs[family] = min(theirs.get(family, np.inf), _per_task(timing))
        for name, (model, n_tasks, family) in models.items():
            timing = time_hotshot(model, data, shots, n_tasks, seed)
            rivals = {"H-OT": ["H-OT", ARRANGED], "Free-Lunch": ["Free-Lunch"]}[family]
            ratios = [f"{theirs[rival] / _per_task(timing):,.1f}" for rival in rivals]
            rows.append((f"hotshot {name}", *_cells(timing), *ratios, *[None] * (2 - len(ratios))))
        methods = {"default": HOTClassifier(base), "all axes": HOTClassifier(base, n_components=None)}
        both = evaluate(methods, X, y, ways=WAYS, shots=shots, queries=QUERIES, tasks=all_axes, seed=seed)
        gap = percent(both.difference("all axes", shots), signed=True)
        say(f"Default minus all axes, {all_axes} tasks: {gap} points of accuracy, paired.")
        width = max(map(len, rows))
        columns = ("method", "tasks", "ms per task", "accuracy %, 95%", "times quicker", "than the rearranged loop")
        show(Table(f"{WAYS}-way-{shots}-shot", columns, tuple((*row, *[None] * (width - len(row))) for row in rows)))


def time_hotshot(model: Any, data: Data, shots: int, tasks: int, seed: int) -> Timing:
    """Wall time of `evaluate`, with the start of new worker processes."""
    get_reusable_executor().shutdown(wait=True)
    _, X, y = data
    options = {"ways": WAYS, "shots": shots, "queries": QUERIES, "tasks": tasks, "seed": seed}
    found, seconds = timed(lambda: evaluate({"it": model}, X, y, **options))
    return seconds, found["it", shots].accuracies


def time_reference(
    procedure: Callable[..., np.ndarray], base: Any, data: Data, shots: int, tasks: int, seed: int, threads: int
) -> Timing:
    """Time of the plain implementation."""
    _, X, y = data
    rng, drawn = np.random.default_rng(seed), list(_episodes(y, shots, seed).take(tasks))

    def run() -> np.ndarray:
        answers = ((procedure(base, X[t.support], t.support_labels, X[t.query], rng), t) for t in drawn)
        return np.array([np.mean(labels == task.query_labels) for labels, task in answers])

    with threadpool_limits(threads):
        accuracies, seconds = timed(run)
    return seconds, accuracies


def _episodes(y: np.ndarray, shots: int, seed: int) -> Episodes:
    return Episodes(y, ways=WAYS, shots=shots, queries=QUERIES, seed=seed)


def _per_task(timing: Timing) -> float:
    return timing[0] / len(timing[1])


def _cells(timing: Timing) -> tuple[Cell, ...]:
    return str(len(timing[1])), f"{1e3 * _per_task(timing):,.2f}", interval(100 * timing[1])
