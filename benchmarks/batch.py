"""The queries of a task classified jointly: H-OT in a batch against H-OT one by one and transductive rivals.

Tasks are 5-way with 15 queries per class, and of Omniglot 20-way with 4. Scenarios of the queries are:

- balanced: as many of each class
- dirichlet:2: classes in proportions from a Dirichlet distribution of 2; of 0.2, and of any other number
- few:10: 10 queries in total; 1, 5 and any other number
- one-class: all queries of one class of the task
- strangers: those of dirichlet:2, and half as many of classes that the task does not have

Numbers are in percent, differences are paired. Their intervals are 95% over tasks; those of differences of the
calibration error are by bootstrap over tasks, the same for both methods.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

import numpy as np
import typer
from joblib import Parallel, delayed

from benchmarks.shared import SETS, DataFolder, Jobs, Methods, Seed, Sets, Tasks, load, show, ways_of
from hotshot.arrays import one_thread
from hotshot.classifiers.named import joint_methods, resolve_methods, with_one_by_one
from hotshot.evaluation.methods import Answers, EstimatorRunner, confidence_bins
from hotshot.evaluation.tables import Cell, Number, Table, interval
from hotshot.evaluation.tasks import Episodes, OpenEpisodes, OpenTask, Task

SCENARIOS = "dirichlet:2,balanced,dirichlet:0.2,few:1,few:5,few:10,one-class,strangers"
SHOTS, RESAMPLES = (1, 5), 1000


def main(
    data: DataFolder,
    sets: Sets = SETS,
    queries: Annotated[str, typer.Option(help="Scenarios, separated by commas.")] = SCENARIOS,
    methods: Methods = "hot,pt-map,bd-cspn,laplacian-shot,alpha-tim,centroid-cl2n",
    tasks: Tasks = 500,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    for name in sets.split(","):
        base, X, y = load(name, data)
        chosen = resolve_methods(methods.split(","), base)
        reference, jointly = next(iter(chosen)), joint_methods(chosen, batch=True)
        compared = with_one_by_one(chosen, reference, jointly)
        for scenario in queries.split(","):
            rows: dict[str, list[Cell]] = {method: [method] for method in compared}
            for shots in SHOTS:
                draw = partial(task_of, scenario, y, ways_of(name), shots, seed)
                for method, estimator in compared.items():
                    run = delayed(partial(answers, EstimatorRunner(estimator, X, batch=method in jointly)))
                    results = Parallel(jobs)(run(draw(i)) for i in range(tasks))
                    accuracies, bins = (np.array(part) for part in zip(*results, strict=True))
                    if method == reference:
                        of_reference = accuracies, bins
                    cells: list[Cell] = [interval(100 * accuracies), Number(100 * calibration_error(bins))]
                    if method != reference:
                        cells.append(interval(100 * (of_reference[0] - accuracies), signed=True))
                        cells.append(calibration_difference(of_reference[1], bins))
                    rows[method] += cells + [None] * (4 - len(cells))
            heads = ("accuracy", "calibration error", f"{reference} minus it", "the same, calibration")
            columns = ("method", *(f"{shots}-shot {head}" for shots in SHOTS for head in heads))
            title = f"{name}, {scenario}, {tasks} tasks, seed {seed}; jointly: {', '.join(jointly)}"
            show(Table(title, columns, tuple(map(tuple, rows.values()))))


def task_of(scenario: str, y: np.ndarray, ways: int, shots: int, seed: int, index: int) -> Task:
    """Task `index` of a scenario, which depends on it and on the seed only."""
    name, _, number = scenario.partition(":")
    per_class, rng = 4 if ways == 20 else 15, np.random.default_rng([seed, index, 4])
    draw = partial(Episodes, y, ways=ways, shots=shots, seed=seed)
    if name == "strangers":
        task = OpenEpisodes(y, ways=ways, shots=shots, seed=seed, queries=f"dirichlet:2:{per_class}")[index]
        assert isinstance(task, OpenTask)
        rows = np.concatenate([task.query, rng.permutation(task.others)[: len(task.query) // 2]])
        # They have a label of no class, and count for no number.
        labels = np.concatenate([task.query_labels, np.full(len(rows) - len(task.query), -1)])
        return Task(task.support, task.support_labels, rows, labels)
    if name == "one-class":
        most = int(np.unique(y, return_counts=True)[1].min()) - max(SHOTS)
        task = draw(queries=min(most, per_class * ways))[index]
        rows = np.flatnonzero(task.query_labels == rng.choice(np.unique(task.query_labels)))
    elif name == "few":
        task = draw(queries=per_class)[index]
        rows = rng.choice(len(task.query), int(number), replace=False)
    elif name in ("balanced", "dirichlet"):
        return draw(queries=per_class if name == "balanced" else f"{scenario}:{per_class}")[index]
    else:
        raise SystemExit(f"queries must be of {SCENARIOS}, got {scenario!r}.")
    return replace(task, query=task.query[rows], query_labels=task.query_labels[rows])


def answers(runner: EstimatorRunner, task: Task) -> tuple[float, np.ndarray]:
    """Accuracy on the queries of classes of the task, and (count, confidence, correct) in each bin of confidence."""
    with one_thread():
        ((answered,), _, _) = runner.run([task], [0])
    inside = np.isin(task.query_labels, task.support_labels)
    assert answered.confidence is not None
    right = answered.right[inside]
    return right.mean(), np.array(confidence_bins([Answers(right, answered.confidence[inside])]))


def calibration_error(bins: np.ndarray) -> float:
    """Expected calibration error from the bins of tasks (tasks, bins, 3)."""
    count, confidence, correct = bins.sum(axis=0).T
    return float(np.sum(np.abs(confidence - correct)) / np.sum(count))


def calibration_difference(one: np.ndarray, other: np.ndarray) -> Number:
    """Calibration error of one method minus that of another, in points."""
    drawn = np.random.default_rng(0).integers(len(one), size=(RESAMPLES, len(one)))
    gaps = [100 * (calibration_error(one[i]) - calibration_error(other[i])) for i in (np.arange(len(one)), *drawn)]
    low, high = np.quantile(gaps[1:], [0.025, 0.975])
    return Number(gaps[0], (high - low) / 2, signed=True)
