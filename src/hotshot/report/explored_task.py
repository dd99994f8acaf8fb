"""Single tasks looked into: which base classes lent to which class, which queries went wrong, and on what evidence."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from hotshot.errors import HotshotWarning
from hotshot.estimators.classifier import CalibratedClassifier
from hotshot.estimators.explanation import Explanation, Reason
from hotshot.evaluation.tasks import Episodes, FrozenEpisodes, Task

# Base classes named for a class, base classes named on each side of a wrong query, wrong queries of a task.
TOP_LENDERS, TOP_EVIDENCE, MOST_WRONG = 8, 4, 40
AnyEpisodes = Episodes | FrozenEpisodes


def explore(
    estimator: CalibratedClassifier, X: np.ndarray, episodes: AnyEpisodes, indices: Iterable[int]
) -> list[dict[str, Any]]:
    """What a method with base classes, fitted anew, did in each of some tasks, as JSON.

    `episodes` draws rows of X (samples, V), and `indices` are those of the tasks. In the result novel classes are
    numbers in `episodes.names`, base classes numbers in `estimator.base.names`, and samples go by their row in X.
    """
    base = estimator.base
    assert base is not None
    X = X.astype(base.dtype, copy=False)
    return [_explore_task(clone(estimator), X, episodes, index) for index in indices]


def _explore_task(model: CalibratedClassifier, X: np.ndarray, episodes: AnyEpisodes, index: int) -> dict[str, Any]:
    task = episodes[index]
    with warnings.catch_warnings(), threadpool_limits(1):
        for category in (ConvergenceWarning, HotshotWarning):
            warnings.simplefilter("ignore", category)
        model.fit(X[task.support], task.support_labels)
        explanation = model.explain(X[task.query])
        probabilities = model.predict_proba(X[task.query])
    classes = model.classes_
    truth = np.searchsorted(classes, task.query_labels)
    chosen = np.searchsorted(classes, [reason.label for reason in explanation.reasons])
    # (classes, B): the mean over the support samples where each has its own transfer weights.
    weights = np.stack([model.transfer_weights_[model.target_labels_ == c].mean(axis=0) for c in classes])
    wrong = np.flatnonzero(chosen != truth)
    # The most confident mistakes first.
    wrong = wrong[np.argsort(-probabilities[wrong, chosen[wrong]], kind="stable")]
    support, queries = _project(model, X[task.support], X[task.query])
    return {
        "index": int(index),
        "right": int(np.sum(chosen == truth)),
        "asked": len(truth),
        "names": np.searchsorted(episodes.names, classes).tolist(),
        "classes": [_class_of(c, model, task, explanation, weights, truth, chosen) for c in range(len(classes))],
        "support": [
            [*place, int(np.searchsorted(classes, label)), int(row)]
            for place, label, row in zip(support.tolist(), task.support_labels, task.support, strict=True)
        ],
        "queries": [
            [*place, int(truth[i]), int(chosen[i]), int(task.query[i])] for i, place in enumerate(queries.tolist())
        ],
        "wrong": [
            {
                "query": int(i),
                "chosen_probability": _rounded(probabilities[i, chosen[i]]),
                "right_probability": _rounded(probabilities[i, truth[i]]),
                **_evidence(explanation.reasons[i], weights[chosen[i]], weights[truth[i]], model.base_names_),
            }
            for i in wrong[:MOST_WRONG].tolist()
        ],
        "n_wrong": len(wrong),
    }


def _class_of(
    c: int,
    model: CalibratedClassifier,
    task: Task,
    explanation: Explanation,
    weights: np.ndarray,
    truth: np.ndarray,
    chosen: np.ndarray,
) -> dict[str, Any]:
    label = model.classes_[c]
    order = np.argsort(-weights[c], kind="stable")
    order = order[weights[c][order] > 0]
    own = [loan.own_share for loan in explanation.loans if loan.label == label]
    taken = np.bincount(chosen[(truth == c) & (chosen != c)], minlength=len(model.classes_))
    return {
        "rows": task.support[task.support_labels == label].tolist(),
        "own_share": _rounded(np.mean(own)),
        "lenders": [[int(b), _rounded(weights[c, b])] for b in order[:TOP_LENDERS]],
        "others": len(order[TOP_LENDERS:]),
        "others_share": _rounded(weights[c, order[TOP_LENDERS:]].sum()),
        "asked": int(np.sum(truth == c)),
        "right": int(np.sum((truth == c) & (chosen == c))),
        "taken_for": [[int(o), int(taken[o])] for o in np.argsort(-taken, kind="stable") if taken[o]],
    }


def _evidence(reason: Reason, chosen: np.ndarray, right: np.ndarray, names: np.ndarray) -> dict[str, list[list[float]]]:
    """Base classes by their evidence for the class chosen over the right one, as `Reason` has it over the rival."""
    similar = {lender.name: lender.similarity for lender in reason.lenders}
    similarity = np.array([similar.get(name, 0.0) for name in names])
    evidence = (chosen - right) * similarity
    order = np.argsort(-evidence, kind="stable")

    def row(b: int) -> list[float]:
        return [int(b), _rounded(chosen[b]), _rounded(right[b]), round(float(similarity[b]), 3)]

    return {
        "for_chosen": [row(b) for b in order[:TOP_EVIDENCE] if evidence[b] > 0],
        "for_right": [row(b) for b in order[::-1][:TOP_EVIDENCE] if evidence[b] < 0],
    }


def _rounded(share: Any) -> float:
    return round(float(share), 4)


def _project(model: CalibratedClassifier, support: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places in [0, 1] x [0, 1] of support (S, 2) and queries (Q, 2).

    The plane is that of the two principal axes of the logits, in which classes that the model confuses overlap. Two
    classes have one such axis only; the other is then the principal axis of the features across it.
    """
    features = model.transform_(np.concatenate([support, queries])).astype(np.float64)
    directions = model.coef_ - model.coef_.mean(axis=0)
    places = PCA(2, svd_solver="full").fit_transform(features @ directions.T)
    if len(model.classes_) == 2:
        along = directions[0] / (np.linalg.norm(directions[0]) or 1.0)
        across = features - np.outer(features @ along, along)
        places[:, 1:] = PCA(1, svd_solver="full").fit_transform(across)
    low, high = places.min(axis=0), places.max(axis=0)
    places = ((places - low) / np.where(high > low, high - low, 1)).round(3)
    return places[: len(support)], places[len(support) :]
