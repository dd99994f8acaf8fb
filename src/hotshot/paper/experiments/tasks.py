"""One task looked at closely: the model that is fitted to it, and its low-level plans."""

from __future__ import annotations

import numpy as np

from hotshot.base import BaseClasses
from hotshot.estimators import HOTClassifier
from hotshot.evaluation.tasks import Task
from hotshot.method.fit import fit_tasks
from hotshot.paper.experiments.setting import Setting


def fitted(setting: Setting, base: BaseClasses | None = None, index: int = 0) -> HOTClassifier:
    """H-OT fitted to a one-shot task, with base classes of its own dataset or with those given."""
    task = setting.task(index)
    model = HOTClassifier(setting.features.base if base is None else base)
    return model.fit(setting.features.X[task.support], task.support_labels)


def low_level_plans(setting: Setting) -> tuple[Task, list[np.ndarray], np.ndarray]:
    """The first one-shot task, M^b (J_b, N) of every base class, and the transfer weights (B, N)."""
    task = setting.task()
    base = setting.features.base
    X = setting.features.X[task.support].astype(base.dtype, copy=False)
    prepared, method = HOTClassifier(base).parts()
    labels = np.unique(task.support_labels, return_inverse=True)[1]
    found = fit_tasks(
        prepared,
        prepared.transform(X)[None],
        labels[None],
        method,
        n_classes=setting.ways,
        keep_low_plans=True,
    )
    # Rows beyond the samples of a class are padding.
    low = zip(found.transfer.low_plans or [], base.counts, strict=True)
    return task, [np.asarray(plan[0, :count]) for plan, count in low], np.asarray(found.transfer.weights[0])
