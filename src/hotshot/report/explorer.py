"""The data of the task explorer: what a method did in the worst, the middle and the best tasks of a run, and why."""

import json
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix
from threadpoolctl import threadpool_limits

from hotshot.arrays import array_hash
from hotshot.bank import BaseClasses
from hotshot.classifiers import METHOD_NAMES, FreeLunchClassifier, HOTClassifier
from hotshot.classifiers.calibrated import CalibratedClassifier
from hotshot.classifiers.explanation import Explanation, Reason, explain_model
from hotshot.errors import HotshotError, HotshotWarning, InputError
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.evaluation.journal import estimator_to_json
from hotshot.evaluation.stored import StoredRun, load_run
from hotshot.evaluation.tasks import Episodes, Task, labels_hash
from hotshot.report.sources import Options
from hotshot.transport.costs import cosine

KINDS: dict[str, type[CalibratedClassifier]] = {
    f"{kind.__module__}.{kind.__qualname__}": kind for kind in (HOTClassifier, FreeLunchClassifier)
}
# Base classes named for a class; samples and base classes named on each side of a wrong query; wrong queries of a task;
# support samples named as most similar to a query.
TOP_LENDERS, TOP_REASONS, MOST_WRONG, NEAREST = 8, 4, 40, 3


def explorer_or_reason(make: Callable[[], dict[str, Any]], most: int) -> dict[str, Any] | str:
    """What `make` makes, or a sentence on why there is none: the data are gone, or no task was asked for."""
    try:
        return make() if most else "No tasks were requested."
    except HotshotError as error:
        return str(error)


def run_explorer(run: StoredRun, options: Options) -> dict[str, Any]:
    """Tasks of a run, by its first method that borrows from base classes; raises where the data are not at hand."""
    name = _method_to_explore(run.request)
    source = options.source(run.about)
    base, samples = options.load(source)
    X, y = samples
    _check_novel(run.request, X, y)
    estimator = _restored_method(run.request["methods"][name], base, name)
    episodes = {k: _drawn(y, run.request, k) for k in run.evaluation.shots}
    made = make_explorer(name, estimator, X, episodes, options.tasks, run.evaluation)
    return {**made, "data": source.name, "inputs": options.inputs.add(samples, made["settings"])}


def reproduction_explorer(folder: Path, about: dict[str, Any], options: Options) -> dict[str, Any]:
    """Tasks of a reproduction: those of its evaluations of H-OT where there are any, else the first ones."""
    if not {"ways", "queries", "seed"} <= set(about):
        raise InputError("The folder does not record which tasks were drawn.")
    source = options.source(about)
    base, samples = options.load(source)
    X, y = samples
    evaluation = _gathered(folder, about, base, X, y)
    episodes = {k: _drawn(y, about, k) for k in (evaluation.shots if evaluation else [1])}
    made = make_explorer("hot", HOTClassifier(base), X, episodes, options.tasks, evaluation)
    return {**made, "data": source.name, "inputs": options.inputs.add(samples, made["settings"])}


def make_explorer(
    name: str,
    estimator: CalibratedClassifier,
    X: np.ndarray,
    episodes: Mapping[int | str, Episodes],
    most: int,
    evaluation: Evaluation | None = None,
) -> dict[str, Any]:
    """The data of the task explorer, as JSON, of a method on tasks by number of shots.

    With results of the method on these tasks, they are the worst, the middle and the best ones, else the first.
    """
    assert estimator.base is not None
    settings = []
    for shots, tasks in episodes.items():
        groups = dict.fromkeys(range(most), "")
        results: dict[str, MethodResult] = {}
        if evaluation is not None:
            results = {result.method: result for result in evaluation.results if result.shots == shots}
            groups = select_tasks(results[name].accuracies, most)
        explored = explore(estimator, X, tasks, groups)
        for task in explored:
            task["group"] = groups[task["index"]]
            task["accuracy"] = task["right"] / task["asked"]
            if evaluation is not None:
                task["recorded"] = float(results[name].accuracies[task["index"]])
                task["methods"] = [_accuracy(results.get(method), task["index"]) for method in evaluation.methods]
        settings.append({"shots": shots, "tasks": explored})
    return {
        "method": name,
        "methods": [name] if evaluation is None else evaluation.methods,
        "total": None if evaluation is None else evaluation.tasks,
        "classes": [str(label) for label in next(iter(episodes.values())).names],
        "base": [str(label) for label in estimator.base.names],
        "settings": settings,
    }


def _accuracy(result: MethodResult | None, index: int) -> float | None:
    """Of a method in a task; None where it was not evaluated on it."""
    if result is None or index >= len(result.accuracies):
        return None
    return _rounded(result.accuracies[index])


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
    tasks = {k: len(result.accuracies) for (method, k), result in results.items() if method == "hot"}
    if not tasks:
        return None
    most = max(tasks.values())
    shots = sorted((k for k in tasks if tasks[k] == most), key=str)
    named = tuple(results[m, k] for m in METHOD_NAMES for k in shots if (m, k) in results)
    return Evaluation(named, about["ways"], most, "hot")


def _method_to_explore(request: dict[str, Any]) -> str:
    """The first method of a run that borrows from base classes and classified the queries of a task one by one."""
    borrowing = [
        name
        for name, described in request["methods"].items()
        if described.get("class") in KINDS and described.get("parameters", {}).get("base") is not None
    ]
    for name in borrowing:
        if name not in request.get("batch", []):
            return str(name)
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
        parameters = {**given, **{key: value for key, value in chosen.items() if given[key] == "auto"}}
        estimator = KINDS[described["class"]](**{**parameters, "base": base})
        estimator._validate_params()
        restored = {"class": described["class"], "parameters": parameters, "chosen": {}}
        if estimator_to_json(estimator) != json.loads(json.dumps(restored)):
            raise ValueError("its description differs")
    except (TypeError, ValueError, LookupError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise InputError(f"The parameters of {name} cannot be restored from the run ({reason}).") from None
    return estimator


def explore(
    estimator: CalibratedClassifier, X: np.ndarray, episodes: Episodes, indices: Iterable[int]
) -> list[dict[str, Any]]:
    """What a method with base classes, fitted anew, did in each of some tasks, as JSON.

    `episodes` draws rows of X (samples, V), and `indices` are those of the tasks. In the result novel classes are
    numbers in `episodes.names`, base classes numbers in `estimator.base.names`, and samples go by their row in X.
    """
    assert estimator.base is not None
    X = X.astype(estimator.base.dtype, copy=False)
    return [_explore_task(clone(estimator), X, episodes, index) for index in indices]


def _explore_task(model: CalibratedClassifier, X: np.ndarray, episodes: Episodes, index: int) -> dict[str, Any]:
    task = episodes[index]
    with warnings.catch_warnings(), threadpool_limits(1):
        for category in (ConvergenceWarning, HotshotWarning):
            warnings.simplefilter("ignore", category)
        model.fit(X[task.support], task.support_labels)
        probabilities = model.predict_proba(X[task.query])
    classes = model.classes_
    truth, chosen = np.searchsorted(classes, task.query_labels), probabilities.argmax(axis=1)
    wrong = np.flatnonzero(chosen != truth)
    # The most confident mistakes first.
    wrong = wrong[np.argsort(-probabilities[wrong, chosen[wrong]], kind="stable")]
    shown = wrong[:MOST_WRONG]
    explanation = explain_model(model, X[task.query[shown]] if len(shown) else None, rivals=truth[shown])
    support, queries = (model.transform_(X[rows]).astype(np.float64) for rows in (task.support, task.query))
    places = _places(model, np.concatenate([support, queries])).tolist()
    targets = np.searchsorted(classes, task.support_labels)
    similarity = 1 - cosine(queries, support)
    nearest = np.argsort(-similarity, axis=1, kind="stable")[:, :NEAREST]
    base = {name: b for b, name in enumerate(model.base_names_)}
    return {
        "index": int(index),
        "right": int(np.sum(chosen == truth)),
        "asked": len(truth),
        "names": np.searchsorted(episodes.names, classes).tolist(),
        "classes": _classes(model, task, explanation, confusion_matrix(truth, chosen, labels=range(len(classes)))),
        "support": [
            [*place, *numbers]
            for place, *numbers in zip(places[: len(targets)], targets.tolist(), task.support.tolist(), strict=True)
        ],
        "queries": [
            [*place, *numbers]
            for place, *numbers in zip(
                places[len(targets) :], truth.tolist(), chosen.tolist(), task.query.tolist(), strict=True
            )
        ],
        "nearest": [
            [(int(s), round(float(own[s]), 2)) for s in best] for own, best in zip(similarity, nearest, strict=True)
        ],
        "wrong": [
            {"query": int(i), **_why(reason, task.support, base)}
            for i, reason in zip(shown, explanation.reasons, strict=True)
        ],
        "n_wrong": len(wrong),
    }


def _classes(
    model: CalibratedClassifier, task: Task, explanation: Explanation, confusion: np.ndarray
) -> list[dict[str, Any]]:
    """What each class had from its support and its lenders, and how its queries went: right classes are in rows."""
    classes = []
    for c, (label, counts) in enumerate(zip(model.classes_, confusion, strict=True)):
        # The mean over the support samples where each has its own transfer weights.
        weights = model.transfer_weights_[model.target_labels_ == label].mean(axis=0)
        order = np.argsort(-weights, kind="stable")
        order = order[weights[order] > 0]
        own_share = np.mean([loan.own_share for loan in explanation.loans if loan.label == label])
        classes.append(
            {
                "rows": task.support[task.support_labels == label].tolist(),
                "own_share": _rounded(own_share),
                "lenders": [[int(b), _rounded(weights[b])] for b in order[:TOP_LENDERS]],
                "others": len(order[TOP_LENDERS:]),
                "others_share": _rounded(weights[order[TOP_LENDERS:]].sum()),
                "asked": int(counts.sum()),
                "right": int(counts[c]),
                "taken_for": [
                    [int(o), int(counts[o])] for o in np.argsort(-counts, kind="stable") if counts[o] and o != c
                ],
            }
        )
    return classes


def _why(reason: Reason, rows: np.ndarray, base: dict[Any, int]) -> dict[str, Any]:
    """What the gap between the class chosen and the right one is made of, and what gives most to either side of it."""
    examples = [[int(rows[e.index]), _rounded(e.similarity), _rounded(e.contribution)] for e in reason.examples]
    lenders = [
        [base[x.name], _rounded(x.weight), _rounded(x.rival_weight), _rounded(x.contribution)] for x in reason.lenders
    ]
    why: dict[str, Any] = {
        "chosen_probability": _rounded(reason.probability),
        "right_probability": _rounded(reason.rival_probability),
        "parts": [_rounded(part) for part in (reason.gap, reason.own, reason.lent, reason.rest)],
    }
    for side, step in (("for_chosen", 1), ("for_right", -1)):
        why[side] = {
            kind: [each for each in all_of[::step] if step * each[-1] > 0][:TOP_REASONS]
            for kind, all_of in (("examples", examples), ("lenders", lenders))
        }
    return why


def _rounded(share: Any) -> float:
    return round(float(share), 4)


def _places(model: CalibratedClassifier, features: np.ndarray) -> np.ndarray:
    """Places in [0, 1] x [0, 1] of samples (n, V).

    The plane is that of the two principal axes of the logits, in which classes that the model confuses overlap. Two
    classes have one such axis only; the other is then the principal axis of the features across it.
    """
    directions = model.coef_ - model.coef_.mean(axis=0)
    places = PCA(2, svd_solver="full").fit_transform(features @ directions.T)
    if len(model.classes_) == 2:
        along = directions[0] / (np.linalg.norm(directions[0]) or 1.0)
        across = features - np.outer(features @ along, along)
        places[:, 1:] = PCA(1, svd_solver="full").fit_transform(across)
    low, high = places.min(axis=0), places.max(axis=0)
    return ((places - low) / np.where(high > low, high - low, 1)).round(3)
