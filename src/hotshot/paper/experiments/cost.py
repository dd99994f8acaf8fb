"""Appendix figure: the learned cost of a task, beside the weights that follow from it."""

from __future__ import annotations

import numpy as np

from hotshot.evaluation.tables import Number, Table, interval
from hotshot.paper.experiments.claims import claim
from hotshot.paper.experiments.experiment import Experiment
from hotshot.paper.experiments.findings import Findings
from hotshot.paper.experiments.setting import Setting
from hotshot.paper.experiments.tasks import fitted
from hotshot.paper.experiments.toy_weights import correlation
from hotshot.paper.figures import heatmap


def run(setting: Setting) -> Findings:
    """Learned cost C_bn (eq. 9) of the first one-shot task, and how closely the weights follow it."""
    model = fitted(setting)
    cost = model.learned_cost_
    figure = heatmap(
        cost, [str(b) for b in model.base_names_], [str(c) for c in model.classes_], label="learned cost"
    )
    rows = tuple(
        (
            str(label),
            str(model.base_names_[column.argmin()]),
            Number(float(column.min())),
            Number(float(column.max())),
        )
        for label, column in zip(model.classes_, setting.ways * cost.T, strict=True)
    )
    table = Table(
        f"Learned cost times {setting.ways}, first {setting.ways}-way-1-shot task of {setting.features.name}",
        ("novel class", "base class of least cost", "least", "largest"),
        rows,
        ("Cosine distances are between 0 and 2; the cost of the transport is their mean under the plan.",),
    )
    logs = np.log(np.maximum(model.transfer_weights_.T, 1e-30))
    follows = [correlation(-cost[:, [n]], logs[:, [n]]) for n in range(setting.ways)]
    smaller = claim(
        "The smaller the cost of a base class, the larger its weight.",
        {"correlation of the logarithm of the weights with the negative cost": interval(np.array(follows))},
    )
    return Findings((), (table,), {"cost": figure}, {"correlation": follows}, (smaller,))


EXPERIMENT = Experiment("cost", "Learned cost of a task", "Figure 8 (appendix)", run)
