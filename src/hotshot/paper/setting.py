"""What experiments are run on, and the one way in which they evaluate: paired, resumable, shared between them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import array_hash
from hotshot.bank import BaseClasses
from hotshot.classifiers import HOTClassifier, named_method
from hotshot.evaluation import Evaluation, MethodResult, evaluate
from hotshot.evaluation.journal import estimator_to_json
from hotshot.evaluation.runner import Watcher
from hotshot.evaluation.tasks import Episodes, Task, labels_hash

EVALUATIONS = "evaluations"
# Slow methods are evaluated on an eighth of the tasks, but on so many at least.
ONE_IN, LEAST_TASKS = 8, 100


@dataclass(frozen=True)
class FeatureSet:
    """Base classes, and features (samples, V) and labels (samples,) of the novel classes, from one extractor.

    `name` is that of the dataset; for those of the paper, its published numbers are shown too. `backbone` is the name
    of the extractor, such as "WRN28+RTloss", empty if unknown.
    """

    name: str
    base: BaseClasses
    X: np.ndarray
    y: np.ndarray
    backbone: str = ""

    @property
    def title(self) -> str:
        """Dataset and backbone."""
        return ", ".join(filter(None, (self.name, self.backbone)))


@dataclass(frozen=True)
class Setting:
    """Data and size of a reproduction of the paper.

    `others` are further datasets, or the same one with other backbones, for experiments that need several. `tuned` are
    parameters of H-OT chosen on validation classes, for one more row in the tables of accuracies. `out` is a folder of
    evaluations, which experiments share. All else is as in ``evaluate``.
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

    @property
    def few_tasks(self) -> int:
        """Number of tasks for slow methods."""
        return min(self.tasks, max(LEAST_TASKS, self.tasks // ONE_IN))

    def few_note(self, which: str, more: str = "") -> list[str]:
        """A note of a table on the methods that ran on fewer tasks, if these are fewer."""
        return [f"{which} ran on the first {self.few_tasks} tasks only{more}."] * (self.few_tasks < self.tasks)

    def one_shot_accuracy(self, tasks: int | None = None) -> str:
        """Title of a table of accuracies at one shot, on all tasks or on so many."""
        return f"{self.ways}-way-1-shot accuracy in %, {tasks or self.tasks} tasks of {self.features.name}"

    def first_task(self) -> str:
        """What a table of the first one-shot task is of."""
        return f"the first {self.ways}-way-1-shot task of {self.features.name}"

    def evaluate(
        self,
        methods: Mapping[str, Any] | Sequence[str],
        *,
        shots: Sequence[int] = (1,),
        features: FeatureSet | None = None,
        tasks: int | None = None,
    ) -> Evaluation:
        """Evaluate methods, by name or estimators by name, on the same tasks; the first is the reference.

        Each method is evaluated in its own folder, which experiments share. Another dataset or number of tasks may
        take the place of those of the setting.
        """
        features = self.features if features is None else features
        tasks = self.tasks if tasks is None else tasks
        named = methods if isinstance(methods, Mapping) else {name: name for name in methods}
        size: dict[str, Any] = {"ways": self.ways, "queries": self.queries, "tasks": tasks, "seed": self.seed}
        results: list[MethodResult] = []
        for k in shots:
            for name, method in named.items():
                estimator = named_method(method, features.base) if isinstance(method, str) else method
                out = self._folder(name, estimator, k, size, features)
                options: dict[str, Any] = {"n_jobs": self.n_jobs, "out": out, "watch": self.watch}
                results += evaluate({name: estimator}, features.X, features.y, shots=k, **size, **options).results
        return Evaluation(tuple(results), self.ways, tasks, next(iter(named)))

    def task(self, index: int = 0) -> Task:
        """The one-shot task of that number: rows and labels of support and queries."""
        return Episodes(self.features.y, ways=self.ways, shots=1, queries=self.queries, seed=self.seed)[index]

    def fitted_hot(self, index: int = 0, base: BaseClasses | None = None) -> HOTClassifier:
        """H-OT fitted to the one-shot task of that number, with the base classes of the dataset or with others."""
        task = self.task(index)
        model = HOTClassifier(self.features.base if base is None else base)
        return model.fit(self.features.X[task.support], task.support_labels)

    def _folder(self, name: str, estimator: Any, shots: int, size: dict[str, Any], features: FeatureSet) -> Path | None:
        """Where an evaluation is kept, by all that determines it."""
        if self.out is None:
            return None
        request = {"methods": {name: estimator_to_json(estimator)}, "shots": shots, **size}
        key = json.dumps([request, [array_hash(features.X), labels_hash(features.y)]])
        return self.out / EVALUATIONS / hashlib.sha256(key.encode()).hexdigest()[:16]
