"""Harmonic mean of base and novel accuracy at equal losses of base accuracy: H-OT and its rivals.

Tasks and methods are those of the benchmark `open_world` in the generalised setting. Each method balances base and
novel classes in its own way, and one that gives up more base accuracy gets more novel accuracy. Here a constant is
added to the scores of the novel classes of each task, for every method the one with the highest harmonic mean among
those that cost at most so many points of base accuracy. It is chosen on the queries themselves, so these are upper
limits.
"""

from __future__ import annotations

import warnings
from typing import Annotated

import numpy as np
import typer
from joblib import Parallel, delayed
from rich.progress import track
from sklearn.base import clone

from benchmarks.open_world import METHODS, SETS, queries_of
from benchmarks.shared import DataFolder, Jobs, Methods, Seed, Sets, Tasks, console, load, show
from hotshot.arrays import one_thread
from hotshot.classifiers.named import named_method
from hotshot.errors import HotshotWarning
from hotshot.evaluation.measures import accuracy_over_classes, beside_base, class_scores, harmonic_mean
from hotshot.evaluation.open_tasks import JointEpisodes, joint_samples
from hotshot.evaluation.results import paired_difference
from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.evaluation.tasks import OpenTask

# Constants that are tried in each task.
SHIFTS = 400


def main(
    data: DataFolder,
    sets: Sets = SETS,
    methods: Methods = METHODS,
    losses: Annotated[str, typer.Option(help="Points of base accuracy, separated by commas.")] = "1,2,3",
    tasks: Tasks = 30,
    seed: Seed = 0,
    jobs: Jobs = -1,
) -> None:
    points, names = [float(loss) for loss in losses.split(",")], methods.split(",")
    heads = [text for loss in points for text in (f"at {loss:g} points", f"{names[0]} minus it, {loss:g}")]
    for name in sets.split(","):
        base, X, y = load(name, data, seed)
        rest, everything, y_base = joint_samples(base, X, y, seed)
        compared = beside_base({method: named_method(method, base) for method in names}, rest)
        for shots in (1, 5):
            episodes = JointEpisodes(y, y_base, ways=None, shots=shots, queries=queries_of(y), seed=seed)
            found = {
                method: np.array(
                    Parallel(jobs)(
                        delayed(best_harmonic_means)(estimator, everything, episodes[i], points)
                        for i in track(range(tasks), method, console=console, transient=True)
                    )
                )
                for method, estimator in compared.items()
            }
            rows: list[tuple[Cell, ...]] = []
            for method, values in found.items():
                cells: list[Cell] = [method, Number(100 * values[:, -1].mean()), Number(100 * values[:, 0].mean())]
                for of_reference, of_method in zip(found[names[0]].T[1:-1], values.T[1:-1], strict=True):
                    difference = percent(paired_difference(of_reference, of_method), signed=True)
                    cells += [Number(100 * of_method.mean()), None if method == names[0] else difference]
                rows.append(tuple(cells))
            title = f"{name}, {shots}-shot, {tasks} tasks, seed {seed}: percent and points, paired 95% over tasks"
            show(Table(title, ("method", "own base loss", "own harmonic mean", *heads), tuple(rows)))


def best_harmonic_means(estimator: object, X: np.ndarray, task: OpenTask, losses: list[float]) -> list[float]:
    """The harmonic mean as the method is, and the best one at each loss of base accuracy; then its own loss."""
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", HotshotWarning)
        model = clone(estimator).fit(X[task.support], task.support_labels)
        scores = class_scores(model, X[np.concatenate([task.query, task.others])])
    labels = np.concatenate([task.query_labels, task.other_labels])
    assert scores is not None
    is_novel = np.isin(model.classes_, task.support_labels)
    best, right = [], []
    for group in (~is_novel, is_novel):
        best.append(scores[:, group].max(axis=1))
        right.append(model.classes_[group][scores[:, group].argmax(axis=1)] == labels)
    lead, novel = best[1] - best[0], np.arange(len(labels)) < len(task.query)

    def accuracies(shift: float) -> tuple[float, float]:
        correct = np.where(lead + shift > 0, right[1], right[0])
        base, new = (accuracy_over_classes(correct[some], labels[some]) for some in (~novel, novel))
        return base, new

    alone = accuracy_over_classes(right[0][~novel], labels[~novel])
    curve = np.array([accuracies(shift) for shift in np.quantile(-lead, np.linspace(0, 1, SHIFTS))])
    means = np.array([harmonic_mean(*pair) for pair in curve])
    base, new = accuracies(0.0)
    limited = [float(means[alone - curve[:, 0] <= loss / 100 + 1e-9].max(initial=0)) for loss in losses]
    return [harmonic_mean(base, new), *limited, alone - base]
