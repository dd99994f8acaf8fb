"""How a method is run on many tasks: batched where it is one of ours with base classes, task by task elsewhere.

A plan holds all that depends on the data alone: the prepared bank, the novel samples in its space. It is made once
and sent to the workers, so it carries no more than its method needs.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from hotshot.base import BaseClasses, PreparedBase
from hotshot.errors import HotshotError, InputError, ParameterError, ScaleWarning
from hotshot.estimators import METHOD_NAMES, METHODS_WITHOUT_BASE, named_method
from hotshot.estimators.calibrated import CalibratedClassifier, head_seed
from hotshot.evaluation.tasks import Task
from hotshot.method.fit import Method, fit_tasks
from hotshot.method.heads.objective import softmax
from hotshot.method.hierarchy import HIERARCHICAL
from hotshot.transport.solution import count_statuses

# Entries of the dense covariances of the tasks that are fitted together.
BATCH_ENTRIES = 2**25


@dataclass(frozen=True)
class Predictions:
    """What a method says of the queries of some tasks.

    Attributes
    ----------
    correct : boolean array (tasks, queries)
    confidence : array (tasks, queries) or None
        Probability of the class predicted, where the method gives probabilities.
    statuses : dict of int to int
        How many transport problems ended in each `Status`.
    stopped_early : int
        Heads that stopped before their minimum.
    """

    correct: np.ndarray
    confidence: np.ndarray | None
    statuses: dict[int, int]
    stopped_early: int = 0


@dataclass(frozen=True)
class BatchedPlan:
    """A calibrated classifier, fitted to many tasks at once by the functions that the estimator calls with one."""

    base: PreparedBase
    novel: np.ndarray
    method: Method
    random_state: int | None

    def run(self, tasks: Sequence[Task], seeds: Sequence[int]) -> Predictions:
        """Fit and predict; the numbers of a task do not depend on how many workers there are."""
        ways = len(np.unique(tasks[0].support_labels))
        targets = ways if self.method.per == "class" else len(tasks[0].support)
        width = self.novel.shape[1]
        size = max(1, BATCH_ENTRIES // (targets * width**2)) if self.method.head != "sampled" else 1
        parts = [
            self._run_batch(tasks[start : start + size], seeds[start : start + size], ways)
            for start in range(0, len(tasks), size)
        ]
        counts: dict[int, int] = {}
        for part in parts:
            for status, count in part.statuses.items():
                counts[status] = counts.get(status, 0) + count
        return Predictions(
            np.concatenate([part.correct for part in parts]),
            np.concatenate([part.confidence for part in parts if part.confidence is not None]),
            counts,
            sum(part.stopped_early for part in parts),
        )

    def _run_batch(self, tasks: Sequence[Task], seeds: Sequence[int], ways: int) -> Predictions:
        # Classes in sorted order, as the estimator has them.
        labels, queries = [], []
        for task in tasks:
            classes, own = np.unique(task.support_labels, return_inverse=True)
            labels.append(own)
            queries.append(np.searchsorted(classes, task.query_labels))
        if self.random_state is not None:
            seeds = [head_seed(self.random_state)] * len(tasks)
        fitted = fit_tasks(
            self.base,
            self.novel[np.stack([task.support for task in tasks])],
            np.stack(labels),
            self.method,
            n_classes=ways,
            seeds=seeds,
        )
        logits = fitted.decision(self.novel[np.stack([task.query for task in tasks])])
        probabilities = softmax(logits.astype(np.float64))[0]
        transfer = fitted.transfer
        statuses = [np.ravel(s) for s in (transfer.low_status, transfer.high_status) if s is not None]
        return Predictions(
            np.argmax(logits, axis=2) == np.stack(queries),
            np.max(probabilities, axis=2),
            {int(s): n for s, n in count_statuses(np.concatenate(statuses)).items()} if statuses else {},
            int(np.sum(~fitted.converged)),
        )


@dataclass(frozen=True)
class EstimatorPlan:
    """Any scikit-learn classifier, cloned, fitted and asked task by task."""

    estimator: Any
    novel: np.ndarray

    def run(self, tasks: Sequence[Task], seeds: Sequence[int]) -> Predictions:
        """Fit and predict each task; parameters called random_state that are None are seeded by the task."""
        correct, confidence = [], []
        stopped_early = 0
        for task, seed in zip(tasks, seeds, strict=True):
            model = _seeded(clone(self.estimator), seed)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", ConvergenceWarning)
                warnings.simplefilter("ignore", ScaleWarning)
                model.fit(self.novel[task.support], task.support_labels)
            stopped_early += any(issubclass(w.category, ConvergenceWarning) for w in caught)
            queries = self.novel[task.query]
            predicted = model.predict(queries)
            correct.append(predicted == task.query_labels)
            if hasattr(model, "predict_proba"):
                place = np.searchsorted(model.classes_, predicted)
                confidence.append(model.predict_proba(queries)[np.arange(len(queries)), place])
        return Predictions(np.stack(correct), np.stack(confidence) if confidence else None, {}, stopped_early)


Plan = BatchedPlan | EstimatorPlan
# A prepared bank and the novel samples in its space.
Transformed = tuple[PreparedBase, np.ndarray]


def resolve_methods(methods: Any, base: BaseClasses | None) -> dict[str, Any]:
    """Estimators by the name they have in tables, from names, estimators, or a dict of either."""
    if isinstance(methods, str):
        methods = [methods]
    if not isinstance(methods, dict):
        # Ensembles can be iterated over, but are one estimator.
        listed = [methods] if hasattr(methods, "fit") or not hasattr(methods, "__iter__") else list(methods)
        names = [m if isinstance(m, str) else type(m).__name__ for m in listed]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ParameterError(
                f"methods has {twice[0]!r} more than once: pass a dict of names to estimators."
            )
        methods = dict(zip(names, listed, strict=True))
    if not methods:
        raise ParameterError(f"methods is empty: name at least one of {', '.join(METHOD_NAMES)}.")
    resolved = {}
    for name, method in methods.items():
        if isinstance(method, str):
            if base is None and method not in METHODS_WITHOUT_BASE:
                named_method(method, base)
                raise ParameterError(f"Method '{name}' needs base classes: pass base.")
            method = named_method(method, base)
        if isinstance(method, type):
            raise ParameterError(
                f"Method '{name}' must be an instance, got the class itself: write {method.__name__}()."
            )
        if not (hasattr(method, "fit") and hasattr(method, "predict") and hasattr(method, "get_params")):
            raise ParameterError(
                f"Method '{name}' must be a method's name or a scikit-learn classifier, got {type(method).__name__}."
            )
        if str(name) in resolved:
            raise ParameterError(f"methods has {str(name)!r} more than once: give each its own name.")
        resolved[str(name)] = method
    return resolved


def make_plan(
    name: str,
    estimator: Any,
    X: np.ndarray,
    trials: Sequence[Task],
    seed: int,
    transformed: list[Transformed],
) -> Plan:
    """The plan of one method, tried on some tasks so that what cannot work fails now and in one sentence.

    `transformed` keeps the novel samples in each space for the plans that follow.
    """
    if isinstance(getattr(estimator, "random_state", None), np.random.RandomState):
        raise ParameterError(f"random_state of method '{name}' must be an integer or None to be repeatable.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for trial in trials:
                model = _seeded(clone(estimator), seed).fit(X[trial.support], trial.support_labels)
                model.predict(X[trial.query])
    except HotshotError as error:
        raise type(error)(f"Method '{name}': {error}") from None
    except (ValueError, TypeError) as error:
        raise InputError(
            f"Method '{name}' cannot be fitted to a task: {' '.join(str(error).split())}"
        ) from None
    if not isinstance(estimator, CalibratedClassifier) or estimator.base is None:
        return EstimatorPlan(estimator, X)
    X = X.astype(estimator.base.dtype, copy=False)
    base, method = estimator.parts(X)
    novel = next((samples for bank, samples in transformed if bank is base), None)
    if novel is None:
        novel = base.transform(X, "X_novel")
        transformed.append((base, novel))
    if method.cost != HIERARCHICAL:
        # Factored covariances keep their own hold on the samples.
        base = replace(base, buckets=())
    return BatchedPlan(base, novel, method, estimator.random_state)


def _seeded(estimator: Any, seed: int) -> Any:
    missing = {
        name: seed
        for name, value in estimator.get_params(deep=True).items()
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    }
    return estimator.set_params(**missing) if missing else estimator
