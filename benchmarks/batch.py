"""The queries of a task classified jointly: H-OT in a batch against H-OT one by one and transductive rivals.

    python -m benchmarks.batch DATA [--sets banking77] [--tasks 500] [--queries dirichlet:2,balanced] [--methods hot]

DATA is the folder described in `benchmarks.accuracy`. Tasks are 5-way with 15 queries per class, and of Omniglot 20-way
with 4. Queries are a scenario, or several separated by commas:

    balanced        as many of each class
    dirichlet:2     classes in proportions from a Dirichlet distribution of 2; of 0.2, and of any other number
    few:10          10 queries in total; 1, 5 and any other number
    one-class       all queries of one class of the task
    strangers       those of dirichlet:2, and half as many of classes that the task does not have

Differences of the calibration error have 95% intervals by bootstrap over chunks of 20 tasks, the same for both methods.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.accuracy import Data, banking77, miniimagenet, omniglot
from hotshot.cli.terminal import Watching
from hotshot.errors import ScaleWarning
from hotshot.estimators.named import joint_methods, resolve_methods, with_one_by_one
from hotshot.evaluation.chunks import chunks_of
from hotshot.evaluation.open_tasks import OpenEpisodes
from hotshot.evaluation.results import Evaluation, check_reference, summarise
from hotshot.evaluation.runner import collect, make_runners
from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.evaluation.tasks import CLOSED, Episodes, OpenTask, Task

SCENARIOS = "dirichlet:2,balanced,dirichlet:0.2,few:1,few:5,few:10,one-class,strangers"
METHODS = "hot,pt-map,bd-cspn,laplacian-shot,alpha-tim,centroid-cl2n"
SHOTS = (1, 5)
RESAMPLES = 1000

Thinning = Callable[[Task, np.random.Generator], Task]


@dataclass(frozen=True)
class ThinnedEpisodes:
    """The tasks of other episodes with some of their queries; task i depends on the seed and on i only."""

    drawn: Episodes
    thin: Thinning

    def __getattr__(self, name: str) -> Any:
        # Before it is restored in another process, nothing is known.
        if name.startswith("__") or "drawn" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self.drawn, name)

    def __getitem__(self, index: int) -> Task:
        return self.thin(self.drawn[index], np.random.default_rng([self.drawn.seed, index, 4]))

    def trials(self) -> list[Task]:
        """The first task, to try a method on."""
        return [self[0]]


def few_of(task: Task, rng: np.random.Generator, total: int) -> Task:
    """Some queries, of random classes."""
    kept = rng.choice(len(task.query), total, replace=False)
    return replace(task, query=task.query[kept], query_labels=task.query_labels[kept])


def one_class_of(task: Task, rng: np.random.Generator) -> Task:
    """The queries of one class."""
    kept = task.query_labels == rng.choice(np.unique(task.query_labels))
    return replace(task, query=task.query[kept], query_labels=task.query_labels[kept])


def third_of_strangers(task: Task, rng: np.random.Generator) -> Task:
    """Half as many queries of other classes as of those of the task."""
    assert isinstance(task, OpenTask)
    kept = rng.permutation(len(task.others))[: len(task.query) // 2]
    return replace(task, others=task.others[kept], other_labels=task.other_labels[kept])


def episodes_of(scenario: str, y: np.ndarray, ways: int, per_class: int, shots: int, seed: int) -> Any:
    """The tasks of a scenario."""
    draw = partial(Episodes, y, ways=ways, shots=shots, seed=seed)
    name, _, number = scenario.partition(":")
    if name == "dirichlet":
        return draw(queries=f"{scenario}:{per_class}")
    if name == "few":
        return ThinnedEpisodes(draw(queries=per_class), partial(few_of, total=int(number)))
    if name == "one-class":
        most = int(np.unique(y, return_counts=True)[1].min()) - max(SHOTS)
        return ThinnedEpisodes(draw(queries=min(most, per_class * ways)), one_class_of)
    if name == "strangers":
        own = OpenEpisodes(y, ways=ways, shots=shots, seed=seed, queries=f"dirichlet:2:{per_class}")
        return ThinnedEpisodes(own, third_of_strangers)
    if name != "balanced":
        raise SystemExit(f"queries must be of {SCENARIOS}, got {scenario!r}.")
    return draw(queries=per_class)


@dataclass(frozen=True)
class Calibration:
    """Count, confidence and number correct in each bin of confidence (chunks, bins, 3), by method and shots."""

    bins: dict[tuple[str, int], np.ndarray]

    def difference(self, one: str, other: str, shots: int) -> Number:
        """Calibration error of one method minus that of another, in points."""
        both = self.bins[one, shots], self.bins[other, shots]
        rng = np.random.default_rng(0)
        drawn = rng.integers(len(both[0]), size=(RESAMPLES, len(both[0])))
        point, *again = [
            100 * np.subtract(*(_calibration_error(bins[some]) for bins in both))
            for some in (np.arange(len(both[0])), *drawn)
        ]
        low, high = np.quantile(again, [0.025, 0.975])
        return Number(point, (high - low) / 2, signed=True)


def _calibration_error(bins: np.ndarray) -> float:
    count, confidence, correct = bins.sum(axis=0).T
    return float(np.sum(np.abs(confidence - correct)) / np.sum(count))


def run(
    name: str, scenario: str, data: Data, options: argparse.Namespace, console: Console
) -> tuple[Evaluation, Calibration]:
    base, X, y = data
    ways, per_class = (20, 4) if name == "omniglot" else (5, 15)
    chosen = resolve_methods(options.methods.split(","), base)
    reference, jointly = check_reference(None, chosen), joint_methods(chosen, batch=True)
    methods = with_one_by_one(chosen, reference, jointly)
    episodes = {k: episodes_of(scenario, y, ways, per_class, k, options.seed) for k in SHOTS}
    chunks = [chunk for k in SHOTS for chunk in chunks_of(methods, k, 0, options.tasks)]
    with Watching(console, len(SHOTS) * options.tasks * len(methods)) as watching, warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)
        runners = make_runners(methods, X, episodes, None, jointly)
        records = collect(runners, episodes, chunks, None, options.jobs, None, watching)
    names = np.unique(y)
    results = tuple(
        summarise(method, k, [r for r in records if (r.chunk.method, r.chunk.shots) == (method, k)], names)
        for k in SHOTS
        for method in methods
    )
    bins = {
        (method, k): np.array([r.bins for r in records if (r.chunk.method, r.chunk.shots) == (method, k) and r.bins])
        for method in methods
        for k in SHOTS
    }
    return Evaluation(results, ways, options.tasks, reference, CLOSED, jointly), Calibration(bins)


def batch_table(found: Evaluation, calibration: Calibration, title: str) -> Table:
    """Accuracy, paired difference to the reference and calibration error of each method, at each number of shots."""
    rows: list[tuple[Cell, ...]] = []
    for method in found.methods:
        cells: list[Cell] = [method, "jointly" if method in found.jointly else "one by one"]
        for shots in found.shots:
            own = found[method, shots]
            cells.append(percent(own.accuracy))
            is_reference = method == found.reference
            cells.append(None if is_reference else percent(found.difference(method, shots), signed=True))
            error = own.calibration_error
            cells.append(None if error is None else Number(100 * error))
            no_difference = is_reference or error is None
            cells.append(None if no_difference else calibration.difference(found.reference, method, shots))
        rows.append(tuple(cells))
    each = [
        (f"{k}-shot accuracy", f"{found.reference} minus it, {k}-shot", f"{k}-shot calibration error", "minus it")
        for k in found.shots
    ]
    return Table(title, ("method", "queries", *(column for own in each for column in own)), tuple(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with the features of banking77 and miniImageNet")
    parser.add_argument("--sets", default="banking77,omniglot,miniimagenet", help="sets, separated by commas")
    parser.add_argument("--queries", default=SCENARIOS, help=f"scenarios, separated by commas (default: {SCENARIOS})")
    parser.add_argument("--methods", default=METHODS, help=f"methods, the reference first (default: {METHODS})")
    parser.add_argument("--tasks", type=int, default=500, help="tasks per number of shots (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the tasks (default: 0)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one per core)")
    options = parser.parse_args()
    known: dict[str, Callable[[], Data]] = {
        "banking77": lambda: banking77(options.data),
        "omniglot": omniglot,
        "miniimagenet": lambda: miniimagenet(options.data),
    }
    console = Console(width=180)
    for name in options.sets.split(","):
        data = known[name]()
        for scenario in options.queries.split(","):
            found, calibration = run(name, scenario, data, options, console)
            title = f"{name}, {found.ways}-way, {scenario}, {found.tasks} tasks, seed {options.seed}"
            table = batch_table(found, calibration, title)
            console.print(table.title, style="bold")
            console.print(table.to_markdown(), markup=False, soft_wrap=True, highlight=False)
    console.print("In percent, with 95% intervals over tasks; differences are paired task by task.", markup=False)


if __name__ == "__main__":
    main()
