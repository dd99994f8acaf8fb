"""Accuracy with settings chosen on the base classes ("auto") minus accuracy with fixed settings.

The fixed settings are the constants of an earlier version, and all settings that differ from the chosen ones in one
value. They are compared on the novel classes, which "auto" never sees. The best of many settings looks better than it
is, because it was selected on these tasks. Sets are those of the benchmark `accuracy`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.accuracy import OMNIGLOT_SHARE, show_choice
from benchmarks.shared import SPLITS, DataFolder, Jobs, Seed, Sets, Tasks, evaluated, load, show, ways_of
from hotshot import HOTClassifier
from hotshot.classifiers import CentroidClassifier
from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.intervals import class_interval, mean_interval

OLD: dict[str, Any] = {"mean_rule": "mix", "epsilon": 0.02, "n_generated": 300, "support_weight": 20.0}


def main(
    data: DataFolder,
    sets: Sets = f"{SPLITS},miniimagenet,omniglot",
    tasks: Tasks = 1000,
    seed: Seed = 1,
    jobs: Jobs = -1,
) -> None:
    for name in sets.split(","):
        loaded = load(name, data)
        base, ways = loaded[0], ways_of(name)
        show_choice(name, loaded)
        methods = {
            "auto": HOTClassifier(base),
            "old constants": HOTClassifier(base, **OLD, power=base.power("auto")),
            **neighbours(base, HOTClassifier(base).choice().settings),
            **{f"centroid-cl2n, power {p:g}": CentroidClassifier(base, power=p) for p in {base.power("auto"), 1.0}},
        }
        n_tasks = tasks // OMNIGLOT_SHARE if name == "omniglot" else tasks
        found = evaluated(methods, loaded, n_tasks, ways=ways, seed=seed, n_jobs=jobs)
        rows = []
        for method in methods:
            cells: list[Cell] = [method]
            for shots in found.shots:
                auto, other = found["auto", shots], found[method, shots]
                gains = auto.accuracies - other.accuracies
                cells.append(Number(100 * float(np.mean(other.accuracies))))
                for interval in (class_interval(gains, auto.classes), mean_interval(gains)):
                    cells.append(percent(interval, signed=True))
            rows.append(tuple(cells))
        columns = [c for k in found.shots for c in (f"{k}-shot", "auto - method, 95% over classes", "over tasks")]
        show(Table(f"{name}, {ways}-way, {n_tasks} tasks", ("method", *columns), tuple(rows)))


def neighbours(base: Any, chosen: dict[str, Any]) -> dict[str, HOTClassifier]:
    """Classifiers that differ from the chosen settings in one value."""
    return {
        f"{name}={value}": HOTClassifier(base, **{**chosen, name: value})
        for name, values in HOTClassifier._choices.items()
        if name != "power" or base.power("auto") != 1
        for value in values
        if value != chosen[name]
    }
