"""Accuracy with settings chosen on the base classes ("auto") minus accuracy with fixed settings.

    python -m benchmarks.chosen_settings DATA [--sets miniimagenet] [--tasks 1000] [--base FILE --novel FILE]

The fixed settings are the constants of an earlier version, and all settings that differ from the chosen ones in one
value. They are compared on the novel classes, which "auto" never sees. The best of many settings looks better than it
is, because it was selected on these tasks. Sets are those of `benchmarks.accuracy`.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.accuracy import OMNIGLOT_SHARE, add_data_options, sets_of
from hotshot import HOTClassifier, evaluate
from hotshot.cli.terminal import Watching, to_rich
from hotshot.estimators import CentroidClassifier
from hotshot.evaluation.results import Evaluation
from hotshot.evaluation.tables import Number, Table, choice_table
from hotshot.intervals import class_interval, mean_interval

OLD: dict[str, Any] = {"mean_rule": "mix", "epsilon": 0.02, "n_generated": 300, "support_weight": 20.0}


def neighbours(base: Any, chosen: dict[str, Any]) -> dict[str, HOTClassifier]:
    """Classifiers that differ from the chosen settings in one value."""
    found = {}
    for name, values in HOTClassifier._choices.items():
        if name == "power" and base.power("auto") == 1:
            continue
        for value in values:
            if value != chosen[name]:
                found[f"{name}={value}"] = HOTClassifier(base, **{**chosen, name: value})
    return found


def gain(found: Evaluation, method: str, shots: int) -> tuple[Number, Number]:
    """Accuracy of "auto" minus that of a method, with intervals over classes and over tasks."""
    gains = found["auto", shots].accuracies - found[method, shots].accuracies
    over_classes, over_tasks = class_interval(gains, found["auto", shots].classes), mean_interval(gains)
    return tuple(Number(100 * e.mean, 100 * e.half_width, signed=True) for e in (over_classes, over_tasks))  # type: ignore


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_data_options(parser, tasks=1000, seed=1)
    options = parser.parse_args()
    console = Console(width=130)
    for name, load in sets_of(options).items():
        base, X, y = load()
        begin = time.perf_counter()
        choice = HOTClassifier(base).choice()
        console.print(f"{name}: settings chosen in {time.perf_counter() - begin:.1f} s", style="bold")
        console.print(to_rich(choice_table(choice)))
        console.print(*choice_table(choice).notes, markup=False)
        methods = {
            "auto": HOTClassifier(base),
            "old constants": HOTClassifier(base, **OLD, power=base.power("auto")),
            **neighbours(base, choice.settings),
            **{f"centroid-cl2n, power {p:g}": CentroidClassifier(base, power=p) for p in {base.power("auto"), 1.0}},
        }
        ways, tasks = (20, options.tasks // OMNIGLOT_SHARE) if name == "omniglot" else (5, options.tasks)
        with Watching(console, 2 * tasks * len(methods)) as watching:
            found = evaluate(
                methods, X, y, ways=ways, tasks=tasks, seed=options.seed, n_jobs=options.jobs, watch=watching
            )
        rows = [(m, *(cell for k in found.shots for cell in (_mean(found, m, k), *gain(found, m, k)))) for m in methods]
        columns = ["method"]
        for k in found.shots:
            columns += [f"{k}-shot", "auto - method, 95% over classes", "over tasks"]
        console.print(to_rich(Table(f"{name}, {ways}-way, {tasks} tasks", tuple(columns), tuple(rows))))


def _mean(found: Evaluation, method: str, shots: int) -> Number:
    return Number(100 * float(np.mean(found[method, shots].accuracies)))


if __name__ == "__main__":
    main()
