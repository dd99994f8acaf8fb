"""Single tasks in detail: which base classes lent to which class, which queries went wrong, and why."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix
from threadpoolctl import threadpool_limits

from hotshot.classifiers.calibrated import CalibratedClassifier
from hotshot.classifiers.explanation import Explanation, Reason, explain_model
from hotshot.errors import HotshotWarning
from hotshot.evaluation.tasks import Episodes, Task
from hotshot.transport.costs import cosine

# Base classes named for a class, samples and base classes named on each side of a wrong query, wrong queries of a task.
TOP_LENDERS, TOP_REASONS, MOST_WRONG = 8, 4, 40
# Support samples named as most similar to a query.
NEAREST = 3


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
    truth = np.searchsorted(classes, task.query_labels)
    chosen = probabilities.argmax(axis=1)
    confusion = confusion_matrix(truth, chosen, labels=range(len(classes)))
    wrong = np.flatnonzero(chosen != truth)
    # The most confident mistakes first.
    wrong = wrong[np.argsort(-probabilities[wrong, chosen[wrong]], kind="stable")]
    shown = wrong[:MOST_WRONG]
    explanation = explain_model(model, X[task.query[shown]] if len(shown) else None, rivals=truth[shown])
    features = model.transform_(X[np.concatenate([task.support, task.query])]).astype(np.float64)
    support, queries = _project(model, features, len(task.support))
    return {
        "index": int(index),
        "right": int(np.sum(chosen == truth)),
        "asked": len(truth),
        "names": np.searchsorted(episodes.names, classes).tolist(),
        "classes": [*_classes(model, task, explanation, confusion)],
        "support": [
            [*place, int(np.searchsorted(classes, label)), int(row)]
            for place, label, row in zip(support.tolist(), task.support_labels, task.support, strict=True)
        ],
        "queries": [
            [*place, int(truth[i]), int(chosen[i]), int(task.query[i])] for i, place in enumerate(queries.tolist())
        ],
        "nearest": _nearest(*np.split(features, [len(task.support)])),
        "wrong": [
            {
                "query": int(i),
                "chosen_probability": _rounded(reason.probability),
                "right_probability": _rounded(reason.rival_probability),
                **_why(reason, task.support, {name: b for b, name in enumerate(model.base_names_)}),
            }
            for i, reason in zip(shown, explanation.reasons, strict=True)
        ],
        "n_wrong": len(wrong),
    }


def _classes(
    model: CalibratedClassifier, task: Task, explanation: Explanation, confusion: np.ndarray
) -> Iterator[dict[str, Any]]:
    """What each class had from its support and its lenders, and how its queries went: right classes are in rows."""
    for c, (label, counts) in enumerate(zip(model.classes_, confusion, strict=True)):
        # The mean over the support samples where each has its own transfer weights.
        weights = model.transfer_weights_[model.target_labels_ == label].mean(axis=0)
        order = np.argsort(-weights, kind="stable")
        order = order[weights[order] > 0]
        yield {
            "rows": task.support[task.support_labels == label].tolist(),
            "own_share": _rounded(np.mean([loan.own_share for loan in explanation.loans if loan.label == label])),
            "lenders": [[int(b), _rounded(weights[b])] for b in order[:TOP_LENDERS]],
            "others": len(order[TOP_LENDERS:]),
            "others_share": _rounded(weights[order[TOP_LENDERS:]].sum()),
            "asked": int(counts.sum()),
            "right": int(counts[c]),
            "taken_for": [[int(o), int(counts[o])] for o in np.argsort(-counts, kind="stable") if counts[o] and o != c],
        }


def _why(reason: Reason, rows: np.ndarray, numbers: dict[Any, int]) -> dict[str, Any]:
    """What the gap between the class chosen and the right one is made of, and what gives most to either side of it."""
    examples = [[int(rows[e.index]), _rounded(e.similarity), _rounded(e.contribution)] for e in reason.examples]
    lenders = [
        [numbers[x.name], _rounded(x.weight), _rounded(x.rival_weight), _rounded(x.contribution)]
        for x in reason.lenders
    ]
    return {
        "parts": [_rounded(part) for part in (reason.gap, reason.own, reason.lent, reason.rest)],
        **{
            side: {
                "examples": [x for x in examples[::step] if step * x[-1] > 0][:TOP_REASONS],
                "lenders": [x for x in lenders[::step] if step * x[-1] > 0][:TOP_REASONS],
            }
            for side, step in (("for_chosen", 1), ("for_right", -1))
        },
    }


def _rounded(share: Any) -> float:
    return round(float(share), 4)


def _nearest(support: np.ndarray, queries: np.ndarray) -> list[list[tuple[int, float]]]:
    """For each query the support samples most similar to it: their numbers in the task, and cosines."""
    similarity = 1 - cosine(queries, support)
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :NEAREST]
    return [[(int(s), round(float(own[s]), 2)) for s in best] for own, best in zip(similarity, order, strict=True)]


def _project(model: CalibratedClassifier, features: np.ndarray, n_support: int) -> tuple[np.ndarray, np.ndarray]:
    """Places in [0, 1] x [0, 1] of support (S, 2) and queries (Q, 2), whose features (S + Q, V) follow each other.

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
    places = ((places - low) / np.where(high > low, high - low, 1)).round(3)
    return places[:n_support], places[n_support:]
