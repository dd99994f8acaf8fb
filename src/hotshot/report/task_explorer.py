"""The data of the task explorer: the worst, the middling and the best tasks of a run, looked into."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.base import BaseClasses
from hotshot.errors import HotshotError, InputError
from hotshot.estimators import METHOD_NAMES, HOTClassifier
from hotshot.estimators.classifier import CalibratedClassifier
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.evaluation.stored import StoredRun, load_run
from hotshot.evaluation.tasks import Episodes, FrozenEpisodes, load_tasks
from hotshot.report.explored_task import explore
from hotshot.report.sources import (
    Reader,
    Source,
    check_novel,
    has_base,
    method_to_explore,
    read_source,
    restored_method,
)

AnyEpisodes = Episodes | FrozenEpisodes


def explorer_or_reason(make: Callable[[], dict[str, Any]], most: int) -> tuple[dict[str, Any] | None, str]:
    """What `make` makes, or None and a sentence on why there is none: the data are gone, or no task was asked for."""
    if not most:
        return None, "No tasks were asked for."
    try:
        return make(), ""
    except HotshotError as error:
        return None, str(error)


def run_explorer(run: StoredRun, source: Source, read: Reader, most: int) -> dict[str, Any]:
    """Tasks of a run, by its first method that borrows from base classes; raises where the data are not at hand."""
    name = method_to_explore(run.request)
    base, X, y = read_source(source, read)
    check_novel(run.request, X, y)
    estimator = restored_method(run.request["methods"][name], base, name)
    return make_explorer(name, estimator, X, _episodes(run, source, y), most, run.evaluation, source.name)


def reproduction_explorer(
    folder: Path, about: dict[str, Any], source: Source, read: Reader, most: int
) -> dict[str, Any]:
    """Tasks of a reproduction: those of its evaluations of H-OT where there are any, else the first ones."""
    if not {"ways", "queries", "seed"} <= set(about):
        raise InputError("The folder does not say which tasks were drawn.")
    base, X, y = read_source(source, read)
    found = _gathered(folder, about, base, X, y)
    shots = found.shots if found is not None else [1]
    episodes = {k: _drawn(y, about, k) for k in shots}
    return make_explorer("hot", HOTClassifier(base), X, episodes, most, found, source.name)


def make_explorer(
    name: str,
    estimator: CalibratedClassifier,
    X: np.ndarray,
    episodes: Mapping[int, AnyEpisodes],
    most: int,
    found: Evaluation | None = None,
    data: str = "",
) -> dict[str, Any]:
    """The explorer as JSON.

    Parameters
    ----------
    name : str
        Of the method.
    estimator : HOTClassifier or FreeLunchClassifier
        The method, with base classes.
    X : array (samples, V)
        Of the novel classes.
    episodes : dict of shots to Episodes
    most : int
        Tasks for each number of shots.
    found : Evaluation, optional
        How this method and others did on these tasks. Without it the first tasks are taken.
    data : str
        What the samples are called.
    """
    assert estimator.base is not None
    first = next(iter(episodes.values()))
    settings = []
    for shots, tasks in episodes.items():
        chosen = dict.fromkeys(range(most), "")
        if found is not None:
            chosen = select_tasks(found[name, shots].accuracies, most)
        explored = explore(estimator, X, tasks, chosen)
        for task in explored:
            task["group"] = chosen[task["index"]]
            task["accuracy"] = task["right"] / task["asked"]
            if found is not None:
                task["recorded"] = float(found[name, shots].accuracies[task["index"]])
                task["methods"] = [_accuracy(found, other, shots, task["index"]) for other in found.methods]
        settings.append({"shots": shots, "tasks": explored})
    return {
        "method": name,
        "methods": [name] if found is None else found.methods,
        "total": None if found is None else found.tasks,
        "data": data,
        "ways": first.ways,
        "classes": [str(label) for label in first.names],
        "base": [str(label) for label in estimator.base.names],
        "settings": settings,
    }


def select_tasks(accuracies: np.ndarray, most: int) -> dict[int, str]:
    """Indices of at most so many tasks and which group each is of, from the worst to the best.

    Examples
    --------
    >>> select_tasks(np.array([0.9, 0.2, 0.5, 0.6, 0.4]), 3)
    {1: 'worst', 2: 'median', 0: 'best'}
    """
    order = np.argsort(accuracies, kind="stable")
    size = min(most, len(order))
    outer = size // 3
    inner = size - 2 * outer
    start = (len(order) - inner) // 2
    middle = order[start : start + inner]
    groups = {"worst": order[:outer], "median": middle, "best": order[len(order) - outer :]}
    return {int(index): group for group, indices in groups.items() for index in indices}


def _accuracy(found: Evaluation, method: str, shots: int, index: int) -> float | None:
    """Of a method in a task; None where it was not evaluated on it."""
    for result in found.results:
        if (result.method, result.shots) == (method, shots) and index < len(result.accuracies):
            return round(float(result.accuracies[index]), 4)
    return None


def _drawn(y: np.ndarray, numbers: dict[str, Any], shots: int) -> AnyEpisodes:
    return Episodes(y, ways=numbers["ways"], shots=shots, queries=numbers["queries"], seed=numbers["seed"])


def _episodes(run: StoredRun, source: Source, y: np.ndarray) -> dict[int, AnyEpisodes]:
    if "frozen" not in run.request:
        return {k: _drawn(y, run.request, k) for k in run.evaluation.shots}
    if source.tasks is None:
        raise InputError("The folder does not say where its frozen tasks are.")
    kept, digest = load_tasks(source.tasks, y)
    if digest != run.request["frozen"]:
        raise InputError(f"The tasks in {source.tasks} are not those of the run, by their hash.")
    return dict(kept)


def _gathered(
    folder: Path, about: dict[str, Any], base: BaseClasses, X: np.ndarray, y: np.ndarray
) -> Evaluation | None:
    """Named methods at the numbers of shots at which H-OT was evaluated on most tasks of these samples."""
    results: dict[tuple[str, int], MethodResult] = {}
    for path in sorted(folder.glob("evaluations/*")):
        try:
            run = load_run(path)
            check_novel(run.request, X, y)
        except HotshotError:
            # Interrupted, or on another dataset.
            continue
        if any(run.request.get(key) != about[key] for key in ("ways", "queries", "seed")):
            continue
        for result in run.evaluation.results:
            known = results.get((result.method, result.shots))
            more = known is None or len(result.accuracies) > len(known.accuracies)
            # Across domains a method has its usual name and other base classes.
            if more and has_base(run.request["methods"][result.method], base):
                results[result.method, result.shots] = result
    own = {k: len(result.accuracies) for (method, k), result in results.items() if method == "hot"}
    if not own:
        return None
    most = max(own.values())
    shots = sorted(k for k, tasks in own.items() if tasks == most)
    kept = tuple(results[m, k] for m in METHOD_NAMES for k in shots if (m, k) in results)
    return Evaluation(kept, about["ways"], most, "hot")
