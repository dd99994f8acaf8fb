"""What is measured in tasks beyond a closed set of classes, and which methods can be asked."""

import warnings
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.base import clone

from hotshot.bank import BaseClasses
from hotshot.errors import InputError, OpenWorldWarning, ParameterError
from hotshot.evaluation.tasks import GENERALISED, OPEN, OpenTask

# Share of the own queries that may be rejected, for those of other classes to be found.
REJECT = 0.05

# Measures of a task from a fitted model, all samples, the task, and the predictions for its queries and the others.
Measure = Callable[[Any, np.ndarray, OpenTask, np.ndarray], dict[str, float]]


def joint_measures(model: Any, X: np.ndarray, task: OpenTask, answers: np.ndarray) -> dict[str, float]:
    """Accuracy on base and on novel classes, each the mean over its classes, and their harmonic mean.

    If the model has scores, also what the accuracy on base classes would be alone, one by one and with new classes left
    out of the answers, and what is lost to them.
    """
    n_own = len(task.query)
    novel = accuracy_over_classes(answers[:n_own] == task.query_labels, task.query_labels)
    base = accuracy_over_classes(answers[n_own:] == task.other_labels, task.other_labels)
    found = {"base_accuracy": base, "novel_accuracy": novel, "harmonic_mean": harmonic_mean(base, novel)}
    scores = class_scores(model, X[task.others])
    if scores is not None:
        is_base = ~np.isin(model.classes_, task.support_labels)
        of_base = model.classes_[is_base][scores[:, is_base].argmax(axis=1)]
        alone = accuracy_over_classes(of_base == task.other_labels, task.other_labels)
        found.update(base_alone=alone, base_loss=alone - base)
    return found


def open_measures(model: Any, X: np.ndarray, task: OpenTask, answers: np.ndarray) -> dict[str, float]:
    """How well the outlier score separates queries of other classes, and what is rejected at 5% false alarms."""
    n_own, rows = len(task.query), X[np.concatenate([task.query, task.others])]
    scores = np.asarray(model.outlier_score(rows), dtype=np.float64)
    if scores.shape != (len(rows),) or np.isnan(scores).any():
        raise InputError(
            f"outlier_score must return one number per sample, got shape {scores.shape} with "
            f"{np.isnan(scores).sum()} NaN: return one number per sample, without NaN."
        )
    found = {"auroc": auroc(scores[:n_own], scores[n_own:])}
    rejected = _rejected(model, rows)
    if rejected is not None:
        found.update(false_alarms=float(rejected[:n_own].mean()), found=float(rejected[n_own:].mean()))
    return found


MEASURES: dict[str, Measure] = {GENERALISED.name: joint_measures, OPEN.name: open_measures}


def accuracy_over_classes(right: np.ndarray, labels: np.ndarray) -> float:
    """Share of the answers (n,) that are right in each class, and the mean of these shares.

    Examples
    --------
    >>> accuracy_over_classes(np.array([True, True, True, False]), np.array(["a", "a", "a", "b"]))
    0.5
    """
    own = np.unique(labels, return_inverse=True)[1]
    return float(np.mean(np.bincount(own, right) / np.bincount(own)))


def harmonic_mean(one: float, other: float) -> float:
    """2ab / (a + b): 0 where one of them is."""
    return 2 * one * other / (one + other) if one + other else 0.0


def auroc(own: np.ndarray, others: np.ndarray) -> float:
    """The chance that a score of `others` (m,) is above one of `own` (n,); a tie counts half.

    Examples
    --------
    >>> auroc(np.array([0.0, 1.0]), np.array([2.0, 3.0])), auroc(np.zeros(2), np.zeros(3))
    (1.0, 0.5)
    """
    ranks = rankdata(np.concatenate([own, others]))[len(own) :]
    return float((ranks.mean() - (len(others) + 1) / 2) / len(own))


def class_scores(model: Any, X: np.ndarray) -> np.ndarray | None:
    """Scores (samples, classes) by which a model chooses; None if it has none."""
    for name in ("decision_function", "predict_proba"):
        if hasattr(model, name):
            scores = np.asarray(getattr(model, name)(X))
            scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
            if scores.shape == (len(X), len(model.classes_)):
                return scores
    return None


def _rejected(model: Any, X: np.ndarray) -> np.ndarray | None:
    """Which samples a model rejects (samples,); None where it cannot."""
    if not {"reject", "unknown"} <= signature(model.predict).parameters.keys():
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OpenWorldWarning)
            answers = model.predict(X, reject=REJECT, unknown=None)
    except ParameterError:
        # It has too few base classes to learn from.
        return None
    return np.array([answer is None for answer in answers])


def bank_of(estimators: Mapping[str, Any], base: BaseClasses | None) -> BaseClasses:
    """The bank that all methods share, whose classes they are to answer too; raise where one of them cannot."""
    banks = {} if base is None else {base.fingerprint: base}
    for name, estimator in estimators.items():
        parameters = estimator.get_params(deep=False)
        if not {"base", "include_base"} <= parameters.keys():
            raise ParameterError(
                f"Method '{name}' cannot answer base classes too: setting='generalised' needs methods with the "
                "parameters base and include_base, such as hot, lda or centroid-cl2n."
            )
        own = parameters["base"]
        if not isinstance(own, BaseClasses):
            raise ParameterError(
                f"Method '{name}' has no base classes to answer in setting='generalised': pass base to it."
            )
        banks[own.fingerprint] = own
    if len(banks) > 1:
        raise ParameterError(
            f"setting='generalised' needs one bank for all methods, got {len(banks)}: pass the same base to all."
        )
    return next(iter(banks.values()))


def beside_base(estimators: Mapping[str, Any], rest: BaseClasses) -> dict[str, Any]:
    """The methods with the rest of their bank, whose classes they answer too."""
    return {name: clone(own).set_params(base=rest, include_base=True) for name, own in estimators.items()}


def check_outlier_scores(estimators: Mapping[str, Any]) -> None:
    """Raise where a method has no score for outliers."""
    for name, estimator in estimators.items():
        if not hasattr(estimator, "outlier_score"):
            raise ParameterError(
                f"Method '{name}' has no outlier_score: setting='open' needs methods with one, such as hot, lda or "
                "centroid-cl2n."
            )
