"""Appendix figure: within one base class, every sample matters differently to every novel sample."""

from __future__ import annotations

import numpy as np

from hotshot.evaluation.tables import Number, Table
from hotshot.paper.experiments.experiment import Experiment
from hotshot.paper.experiments.findings import Findings
from hotshot.paper.experiments.plan import perplexity
from hotshot.paper.experiments.setting import Setting
from hotshot.paper.experiments.tasks import low_level_plans
from hotshot.paper.figures import sample_weights


def run(setting: Setting) -> Findings:
    """Low-level weights of the samples of the largest lender, for two novel classes of the first one-shot task."""
    task, plans, transfer = low_level_plans(setting)
    lender = int(transfer[:, 0].argmax())
    classes = np.unique(task.support_labels)
    # Columns of a plan sum to 1/N; weights sum to 1.
    weights = setting.ways * plans[lender].T
    name = str(setting.features.base.names[lender])
    figure = sample_weights(
        {str(label): row for label, row in zip(classes[:2], weights[:2], strict=True)},
        label=f"weight of the samples of {name}",
    )
    effective = perplexity(weights)
    table = Table(
        f"Low-level weights within {name}, {weights.shape[1]} samples",
        ("novel class", "as many as equal samples", "largest over equal weight"),
        tuple(
            (str(label), Number(float(count)), Number(float(row.max() * weights.shape[1])))
            for label, count, row in zip(classes, effective, weights, strict=True)
        ),
    )
    alike = float(np.corrcoef(weights[:2])[0, 1])
    words = (
        f"{classes[0]} and {classes[1]} weigh the samples of {name} differently: the correlation of their weights is "
        f"{alike:.2f}."
    )
    return Findings((words,), (table,), {"sample-weights": figure}, {"weights": weights.tolist()})


EXPERIMENT = Experiment("sample-weights", "Low-level weights within a base class", "Figure 9 (appendix)", run)
