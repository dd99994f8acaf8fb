"""The queries of a task classified jointly: H-OT in a batch against H-OT one by one and transductive rivals.

Tasks are 5-way with 15 queries per class, and of Omniglot 20-way with 4. Scenarios of the queries are:

- balanced: as many of each class
- dirichlet:2: classes in proportions from a Dirichlet distribution of 2; of 0.2, and of any other number
- few:10: 10 queries in total; 1, 5 and any other number
- one-class: all queries of one class of the task
- strangers: those of dirichlet:2, and half as many of classes that the task does not have

Numbers are in percent with 95% intervals over tasks, differences are paired. Differences of the calibration error have
intervals by bootstrap over chunks of 20 tasks, the same for both methods.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.shared import SETS, Data, DataFolder, Jobs, Methods, Seed, Sets, Tasks, console, load, show, ways_of
from hotshot.classifiers.named import joint_methods, resolve_methods, with_one_by_one
from hotshot.cli.terminal import Watching
from hotshot.evaluation.chunks import chunks_of
from hotshot.evaluation.open_tasks import OpenEpisodes
from hotshot.evaluation.results import Evaluation, check_reference, summarise
from hotshot.evaluation.runner import collect, make_runners
from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.evaluation.tasks import CLOSED, Episodes, OpenTask, Task

SCENARIOS = "dirichlet:2,balanced,dirichlet:0.2,few:1,few:5,few:10,one-class,strangers"
SHOTS = (1, 5)
RESAMPLES = 1000
# Count, confidence and number correct in each bin of confidence (chunks, bins, 3), by method and shots.
Bins = dict[tuple[str, int], np.ndarray]


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
        loaded, ways = load(name, data), ways_of(name)
        for scenario in queries.split(","):
            draw = partial(episodes_of, scenario, loaded[2], ways, 4 if ways == 20 else 15, seed=seed)
            found, bins = run({k: draw(shots=k) for k in SHOTS}, loaded, methods.split(","), tasks, jobs)
            show(batch_table(found, bins, f"{name}, {ways}-way, {scenario}, {tasks} tasks, seed {seed}"))


@dataclass(frozen=True)
class ThinnedEpisodes:
    """The tasks of other episodes with some of their queries; task i depends on the seed and on i only."""

    drawn: Episodes
    thin: Callable[[Task, np.random.Generator], Task]

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
        tasks = OpenEpisodes(y, ways=ways, shots=shots, seed=seed, queries=f"dirichlet:2:{per_class}")
        return ThinnedEpisodes(tasks, third_of_strangers)
    if name != "balanced":
        raise SystemExit(f"queries must be of {SCENARIOS}, got {scenario!r}.")
    return draw(queries=per_class)


def run(episodes: dict[int, Any], data: Data, names: list[str], tasks: int, jobs: int) -> tuple[Evaluation, Bins]:
    """What `evaluate` does, on tasks that it does not draw."""
    base, X, y = data
    chosen = resolve_methods(names, base)
    reference, jointly = check_reference(None, chosen), joint_methods(chosen, batch=True)
    methods = with_one_by_one(chosen, reference, jointly)
    chunks = [chunk for k in SHOTS for chunk in chunks_of(methods, k, 0, tasks)]
    with Watching(console) as watching:
        runners = make_runners(methods, X, episodes, None, jointly)
        records = collect(runners, episodes, chunks, None, jobs, None, watching)
    results, bins = [], {}
    for shots in SHOTS:
        for method in methods:
            some = [record for record in records if (record.chunk.method, record.chunk.shots) == (method, shots)]
            results.append(summarise(method, shots, some, np.unique(y)))
            bins[method, shots] = np.array([record.bins for record in some if record.bins])
    ways = episodes[SHOTS[0]].ways
    return Evaluation(tuple(results), ways, tasks, reference, CLOSED, jointly), bins


def batch_table(found: Evaluation, bins: Bins, title: str) -> Table:
    """Accuracy, paired difference to the reference and calibration error of each method, at each number of shots."""
    rows: list[tuple[Cell, ...]] = []
    for method in found.methods:
        cells: list[Cell] = [method, "jointly" if method in found.jointly else "one by one"]
        for shots in found.shots:
            is_reference, error = method == found.reference, found[method, shots].calibration_error
            both = bins[found.reference, shots], bins[method, shots]
            cells += [
                percent(found[method, shots].accuracy),
                None if is_reference else percent(found.difference(method, shots), signed=True),
                None if error is None else Number(100 * error),
                None if is_reference or error is None else calibration_difference(*both),
            ]
        rows.append(tuple(cells))
    each = [
        (f"{k}-shot accuracy", f"{found.reference} minus it, {k}-shot", f"{k}-shot calibration error", "minus it")
        for k in found.shots
    ]
    return Table(title, ("method", "queries", *(column for columns in each for column in columns)), tuple(rows))


def calibration_difference(one: np.ndarray, other: np.ndarray) -> Number:
    """Calibration error of one method minus that of another, in points, from the bins of both."""
    drawn = np.random.default_rng(0).integers(len(one), size=(RESAMPLES, len(one)))
    point, *again = [
        100 * (_calibration_error(one[some]) - _calibration_error(other[some]))
        for some in (np.arange(len(one)), *drawn)
    ]
    low, high = np.quantile(again, [0.025, 0.975])
    return Number(point, (high - low) / 2, signed=True)


def _calibration_error(bins: np.ndarray) -> float:
    count, confidence, correct = bins.sum(axis=0).T
    return float(np.sum(np.abs(confidence - correct)) / np.sum(count))
