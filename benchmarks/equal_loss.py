"""Harmonic mean of base and novel accuracy at equal losses of base accuracy: H-OT and its rivals.

    python -m benchmarks.equal_loss DATA [--sets miniimagenet] [--tasks 30] [--losses 1,2,3]

Tasks and methods are those of `benchmarks.open_world` in the generalised setting. Each method balances base and novel
classes in its own way, and one that gives up more base accuracy gets more novel accuracy. Here a constant is added to
the scores of the novel classes of each task, for every method the one with the highest harmonic mean among those that
cost at most so many points of base accuracy. It is chosen on the queries themselves, so these are upper limits.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.progress import track
from sklearn.base import clone

from benchmarks.open_world import METHODS, queries_of, sets_of
from hotshot.arrays import one_thread
from hotshot.errors import HotshotWarning
from hotshot.estimators.named import named_method
from hotshot.evaluation.measures import accuracy_over_classes, beside_base, class_scores, harmonic_mean
from hotshot.evaluation.open_tasks import JointEpisodes, joint_samples
from hotshot.evaluation.results import paired_difference
from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.evaluation.tasks import OpenTask

# Constants that are tried in each task.
SHIFTS = 400


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
    for own in (~is_novel, is_novel):
        best.append(scores[:, own].max(axis=1))
        right.append(model.classes_[own][scores[:, own].argmax(axis=1)] == labels)
    lead, novel = best[1] - best[0], np.arange(len(labels)) < len(task.query)

    def accuracies(shift: float) -> tuple[float, float]:
        correct = np.where(lead + shift > 0, right[1], right[0])
        return (
            accuracy_over_classes(correct[~novel], labels[~novel]),
            accuracy_over_classes(correct[novel], labels[novel]),
        )

    alone = accuracy_over_classes(right[0][~novel], labels[~novel])
    curve = np.array([accuracies(shift) for shift in np.quantile(-lead, np.linspace(0, 1, SHIFTS))])
    means = np.array([harmonic_mean(*pair) for pair in curve])
    base, new = accuracies(0.0)
    limited = [float(means[alone - curve[:, 0] <= loss / 100 + 1e-9].max(initial=0)) for loss in losses]
    return [harmonic_mean(base, new), *limited, alone - base]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the features of banking77 and miniImageNet")
    parser.add_argument("--sets", default="all", help="sets, separated by commas (default: all)")
    parser.add_argument("--methods", default=",".join(METHODS), help="methods, the reference first")
    parser.add_argument("--losses", default="1,2,3", help="points of base accuracy (default: 1,2,3)")
    parser.add_argument("--tasks", type=int, default=30, help="tasks per number of shots (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the tasks (default: 0)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    options = parser.parse_args()
    console, losses = Console(width=180), [float(loss) for loss in options.losses.split(",")]
    names = options.methods.split(",")
    for name, load in sets_of(options).items():
        base, X, y = load()
        rest, everything, y_base = joint_samples(base, X, y, options.seed)
        methods = beside_base({method: named_method(method, base) for method in names}, rest)
        for shots in (1, 5):
            episodes = JointEpisodes(y, y_base, ways=None, shots=shots, queries=queries_of(y), seed=options.seed)
            found = {
                method: np.array(
                    Parallel(options.jobs)(
                        delayed(best_harmonic_means)(own, everything, episodes[i], losses)
                        for i in track(range(options.tasks), method, console=console, transient=True)
                    )
                )
                for method, own in methods.items()
            }
            rows: list[tuple[Cell, ...]] = []
            for method, own in found.items():
                cells: list[Cell] = [method, Number(100 * own[:, -1].mean()), Number(100 * own[:, 0].mean())]
                for place in range(1, 1 + len(losses)):
                    difference = paired_difference(found[names[0]][:, place], own[:, place])
                    cells.append(Number(100 * own[:, place].mean()))
                    cells.append(None if method == names[0] else percent(difference, signed=True))
                rows.append(tuple(cells))
            each = [(f"at {loss:g} points", f"{names[0]} minus it, {loss:g}") for loss in losses]
            head = ("method", "own base loss", "own harmonic mean", *(text for pair in each for text in pair))
            title = f"{name}, {shots}-shot, {options.tasks} tasks, seed {options.seed}"
            console.print(title, style="bold")
            console.print(Table(title, head, tuple(rows)).to_markdown(), markup=False, soft_wrap=True, highlight=False)
    console.print("In percent and points; 95% intervals of paired differences are over tasks.", markup=False)


if __name__ == "__main__":
    main()
