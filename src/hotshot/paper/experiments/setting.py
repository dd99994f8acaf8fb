"""What experiments are run on, and the one way in which they evaluate: paired, resumable, shared between them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import array_hash
from hotshot.base import BaseClasses
from hotshot.estimators import named_method
from hotshot.evaluation import Evaluation, MethodResult, evaluate
from hotshot.evaluation.runner import Watcher, estimator_to_json
from hotshot.evaluation.tasks import Episodes, Task, labels_hash

EVALUATIONS = "evaluations"


@dataclass(frozen=True)
class FeatureSet:
    """Base classes, and samples of novel classes from the same extractor.

    Attributes
    ----------
    name : str
        Of the dataset; figures of the paper are shown beside those of its own datasets.
    base : BaseClasses
    X, y : arrays (samples, V) and (samples,)
        Of the novel classes.
    backbone : str
        The extractor, in the paper's words such as "WRN28+RTloss"; empty where nobody said.
    """

    name: str
    base: BaseClasses
    X: np.ndarray
    y: np.ndarray
    backbone: str = ""


@dataclass(frozen=True)
class Setting:
    """Data and size of a reproduction.

    Attributes
    ----------
    features : FeatureSet
        What most experiments look at.
    others : tuple of FeatureSet
        Other datasets, or other backbones of the same one.
    ways, queries, tasks, seed, n_jobs
        As in `evaluate`.
    tuned : dict or None
        Parameters of `HOTClassifier` chosen on validation classes, for one more row of the accuracies.
    out : path or None
        Folder of the evaluations; the same evaluation is never done twice in it.
    watch
        As in `evaluate`, for a progress bar.
    """

    features: FeatureSet
    others: tuple[FeatureSet, ...] = ()
    ways: int = 5
    queries: int = 15
    tasks: int = 2000
    seed: int = 0
    n_jobs: int = -1
    tuned: dict[str, Any] | None = None
    out: Path | None = None
    watch: Watcher | None = None

    def evaluate(
        self,
        methods: Mapping[str, Any] | Sequence[str],
        *,
        shots: Sequence[int] = (1,),
        features: FeatureSet | None = None,
        tasks: int | None = None,
    ) -> Evaluation:
        """Methods on the same tasks, the first being the reference.

        Methods go by the names they have on the command line, or as a dict of names to estimators. Each is evaluated in
        a folder of its own, so that experiments that ask for the same share it.
        """
        features = features or self.features
        named = methods if isinstance(methods, Mapping) else {name: name for name in methods}
        results: list[MethodResult] = []
        for k in shots:
            for name, method in named.items():
                estimator = named_method(method, features.base) if isinstance(method, str) else method
                request: dict[str, Any] = {
                    "methods": {name: estimator}, "shots": k, "ways": self.ways,
                    "queries": self.queries, "tasks": tasks or self.tasks, "seed": self.seed,
                }  # fmt: skip
                found = evaluate(
                    X_novel=features.X,
                    y_novel=features.y,
                    n_jobs=self.n_jobs,
                    out=self._folder(request, features),
                    watch=self.watch,
                    **request,
                )
                results += found.results
        return Evaluation(tuple(results), self.ways, tasks or self.tasks, next(iter(named)))

    def task(self, index: int = 0, shots: int = 1, features: FeatureSet | None = None) -> Task:
        """One of the tasks that methods are evaluated on."""
        y = (features or self.features).y
        return Episodes(y, ways=self.ways, shots=shots, queries=self.queries, seed=self.seed)[index]

    def _folder(self, request: dict[str, Any], features: FeatureSet) -> Path | None:
        if self.out is None:
            return None
        methods = {name: estimator_to_json(estimator) for name, estimator in request["methods"].items()}
        data = [array_hash(features.X), labels_hash(features.y)]
        key = json.dumps([{**request, "methods": methods}, data])
        return self.out / EVALUATIONS / hashlib.sha256(key.encode()).hexdigest()[:16]
