"""The data of the task explorer: the worst, the middling and the best tasks of a run, taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.base import BaseClasses
from hotshot.checks import check_features
from hotshot.errors import HotshotError, InputError
from hotshot.estimators import METHOD_NAMES, HOTClassifier
from hotshot.estimators.classifier import CalibratedClassifier
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.evaluation.stored import StoredRun, load_run
from hotshot.evaluation.tasks import Episodes, FrozenEpisodes, load_tasks
from hotshot.report.choice import choose_tasks
from hotshot.report.exploring import explore
from hotshot.report.refitting import check_novel, lent_by, method_to_explore, restore
from hotshot.report.sources import Reader, Source, read_source

AnyEpisodes = Episodes | FrozenEpisodes


def run_explorer(run: StoredRun, source: Source, read: Reader, most: int) -> dict[str, Any]:
    """Tasks of a run, by its first method that borrows from base classes; raises where the data are not at hand."""
    name = method_to_explore(run.request)
    base, X, y = read_source(source, read)
    X, y = check_features(X, "X_novel"), np.asarray(y)
    check_novel(run.request, X, y)
    estimator = restore(run.request["methods"][name], base, name)
    return make_explorer(name, estimator, X, _episodes(run, source, y), most, run.evaluation, source.name)


def reproduction_explorer(
    folder: Path, about: dict[str, Any], source: Source, read: Reader, most: int
) -> dict[str, Any]:
    """Tasks of a reproduction: those of its evaluations of H-OT where there are any, else the first ones."""
    base, X, y = read_source(source, read)
    X, y = check_features(X, "X_novel"), np.asarray(y)
    estimator = HOTClassifier(base)
    found = _gathered(folder, about, base, X, y)
    shots = found.shots if found is not None else [1]
    episodes: dict[int, AnyEpisodes] = {
        k: Episodes(y, ways=about["ways"], shots=k, queries=about["queries"], seed=about["seed"])
        for k in shots
    }
    return make_explorer("hot", estimator, X, episodes, most, found, source.name)


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
            chosen = choose_tasks(found[name, shots].accuracies, most)
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


def _accuracy(found: Evaluation, method: str, shots: int, index: int) -> float | None:
    """Of a method in a task; None where it was not evaluated on it."""
    for result in found.results:
        if (result.method, result.shots) == (method, shots) and index < len(result.accuracies):
            return round(float(result.accuracies[index]), 4)
    return None


def _episodes(run: StoredRun, source: Source, y: np.ndarray) -> dict[int, AnyEpisodes]:
    request = run.request
    if "frozen" not in request:
        return {
            k: Episodes(y, ways=request["ways"], shots=k, queries=request["queries"], seed=request["seed"])
            for k in run.evaluation.shots
        }
    if source.tasks is None:
        raise InputError("The folder does not say where its frozen tasks are.")
    kept, digest = load_tasks(source.tasks, y)
    if digest != request["frozen"]:
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
            if more and lent_by(run.request["methods"][result.method], base):
                results[result.method, result.shots] = result
    own = {k: len(result.accuracies) for (method, k), result in results.items() if method == "hot"}
    if not own:
        return None
    most = max(own.values())
    shots = sorted(k for k, tasks in own.items() if tasks == most)
    kept = tuple(results[m, k] for m in METHOD_NAMES for k in shots if (m, k) in results)
    return Evaluation(kept, about["ways"], most, "hot")
