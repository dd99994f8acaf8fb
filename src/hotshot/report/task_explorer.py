"""The data of the task explorer: the worst, the middle and the best tasks of a run."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import array_hash
from hotshot.bank import BaseClasses
from hotshot.classifiers import METHOD_NAMES, FreeLunchClassifier, HOTClassifier
from hotshot.classifiers.calibrated import CalibratedClassifier
from hotshot.errors import HotshotError, InputError
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.evaluation.journal import estimator_to_json
from hotshot.evaluation.stored import StoredRun, load_run
from hotshot.evaluation.tasks import Episodes, labels_hash
from hotshot.report.explored_task import explore
from hotshot.report.sources import Options, Source, read_source

KINDS: dict[str, type[CalibratedClassifier]] = {
    f"{kind.__module__}.{kind.__qualname__}": kind for kind in (HOTClassifier, FreeLunchClassifier)
}


def explorer_or_reason(make: Callable[[], dict[str, Any]], most: int) -> tuple[dict[str, Any] | None, str]:
    """What `make` makes, or None and a sentence on why there is none: the data are gone, or no task was asked for."""
    if not most:
        return None, "No tasks were requested."
    try:
        return make(), ""
    except HotshotError as error:
        return None, str(error)


def run_explorer(run: StoredRun, source: Source, options: Options) -> dict[str, Any]:
    """Tasks of a run, by its first method that borrows from base classes; raises where the data are not at hand."""
    name = _method_to_explore(run.request)
    base, X, y, kept = read_source(source, options.read)
    _check_novel(run.request, X, y)
    estimator = _restored_method(run.request["methods"][name], base, name)
    episodes = {k: _drawn(y, run.request, k) for k in run.evaluation.shots}
    found = make_explorer(name, estimator, X, episodes, options.tasks, run.evaluation, source.name)
    return {**found, "inputs": options.inputs.add(kept, found["settings"])}


def reproduction_explorer(folder: Path, about: dict[str, Any], source: Source, options: Options) -> dict[str, Any]:
    """Tasks of a reproduction: those of its evaluations of H-OT where there are any, else the first ones."""
    if not {"ways", "queries", "seed"} <= set(about):
        raise InputError("The folder does not record which tasks were drawn.")
    base, X, y, kept = read_source(source, options.read)
    found = _gathered(folder, about, base, X, y)
    shots = found.shots if found is not None else [1]
    episodes = {k: _drawn(y, about, k) for k in shots}
    made = make_explorer("hot", HOTClassifier(base), X, episodes, options.tasks, found, source.name)
    return {**made, "inputs": options.inputs.add(kept, made["settings"])}


def make_explorer(
    name: str,
    estimator: CalibratedClassifier,
    X: np.ndarray,
    episodes: Mapping[int | str, Episodes],
    most: int,
    found: Evaluation | None = None,
    data: str = "",
) -> dict[str, Any]:
    """The data of the task explorer, as JSON, of a method on tasks by number of shots.

    With results of the method on these tasks, they are the worst, the middle and the best ones, else the first.
    """
    assert estimator.base is not None
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
        "classes": [str(label) for label in next(iter(episodes.values())).names],
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
    groups = {"worst": order[:outer], "median": order[start : start + inner], "best": order[len(order) - outer :]}
    return {int(index): group for group, indices in groups.items() for index in indices}


def _accuracy(found: Evaluation, method: str, shots: int | str, index: int) -> float | None:
    """Of a method in a task; None where it was not evaluated on it."""
    for result in found.results:
        if (result.method, result.shots) == (method, shots) and index < len(result.accuracies):
            return round(float(result.accuracies[index]), 4)
    return None


def _drawn(y: np.ndarray, numbers: dict[str, Any], shots: int | str) -> Episodes:
    return Episodes(y, ways=numbers["ways"], shots=shots, queries=numbers["queries"], seed=numbers["seed"])


def _gathered(
    folder: Path, about: dict[str, Any], base: BaseClasses, X: np.ndarray, y: np.ndarray
) -> Evaluation | None:
    """Named methods at the numbers of shots at which H-OT was evaluated on most tasks of these samples."""
    results: dict[tuple[str, int | str], MethodResult] = {}
    for path in sorted(folder.glob("evaluations/*")):
        try:
            run = load_run(path)
            _check_novel(run.request, X, y)
        except HotshotError:
            # Interrupted, or on another dataset.
            continue
        if any(run.request.get(key) != about[key] for key in ("ways", "queries", "seed")):
            continue
        for result in run.evaluation.results:
            known = results.get((result.method, result.shots))
            more = known is None or len(result.accuracies) > len(known.accuracies)
            # Across domains a method has its usual name and other base classes.
            if more and _has_base(run.request["methods"][result.method], base):
                results[result.method, result.shots] = result
    own = {k: len(result.accuracies) for (method, k), result in results.items() if method == "hot"}
    if not own:
        return None
    most = max(own.values())
    shots = sorted((k for k, tasks in own.items() if tasks == most), key=str)
    kept = tuple(results[m, k] for m in METHOD_NAMES for k in shots if (m, k) in results)
    return Evaluation(kept, about["ways"], most, "hot")


def _method_to_explore(request: dict[str, Any]) -> str:
    """The first method of a run that borrows from base classes and classified the queries of a task one by one."""
    borrowing = [
        name
        for name, described in request["methods"].items()
        if described.get("class") in KINDS and described.get("parameters", {}).get("base") is not None
    ]
    alone = [name for name in borrowing if name not in request.get("batch", [])]
    if alone:
        return str(alone[0])
    if borrowing:
        raise InputError("It shows queries that are classified one by one, and here they were classified jointly.")
    raise InputError("None of its methods borrows from base classes, so there is no transport to show.")


def _check_novel(request: dict[str, Any], X: np.ndarray, y: np.ndarray) -> None:
    """Raise unless these are the novel samples of the run."""
    if request["data"] != {"X_novel": array_hash(X), "y_novel": labels_hash(y)}:
        raise InputError("The novel samples are not those of the run (their hash differs): pass the file of the run.")


def _has_base(described: dict[str, Any], base: BaseClasses) -> bool:
    """Whether a described method had these base classes, or none."""
    own = described.get("parameters", {}).get("base")
    return own is None or str(own).endswith(base.fingerprint)


def _restored_method(described: dict[str, Any], base: BaseClasses, name: str) -> CalibratedClassifier:
    """The estimator that `estimator_to_json` described, with the base classes it had."""
    if not _has_base(described, base):
        raise InputError("The base classes are not those of the run (their hash differs): pass the file of the run.")
    try:
        # As they were chosen then, which another machine need not repeat.
        given, chosen = described["parameters"], described["chosen"]
        parameters = {**given, **{name: value for name, value in chosen.items() if given[name] == "auto"}}
        estimator = KINDS[described["class"]](**{**parameters, "base": base})
        estimator._validate_params()
        restored = {"class": described["class"], "parameters": parameters, "chosen": {}}
        if estimator_to_json(estimator) != json.loads(json.dumps(restored)):
            raise ValueError("its description differs")
    except (TypeError, ValueError, LookupError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"The parameters of {name} cannot be restored from the run ({reason}).") from None
    return estimator
