"""Who lends to a novel sample: its nearest base classes (Figure 3), and the samples within the largest (Figure 9)."""

from __future__ import annotations

import numpy as np

from hotshot.estimators import HOTClassifier
from hotshot.evaluation.tables import Number, Table
from hotshot.paper.experiments.cost_and_plan import effective_number
from hotshot.paper.figures import ranking, sample_weights
from hotshot.paper.findings import Experiment, Findings
from hotshot.paper.setting import Setting

TOP = 5


def run_nearest(setting: Setting) -> Findings:
    """The five largest lenders to each novel class of the first one-shot task; a figure of the first."""
    loans = setting.fitted_hot().explain().loans
    table = Table(
        f"Base classes that lend most, first {setting.ways}-way-1-shot task of {setting.features.name}",
        ("novel class", *(f"{rank + 1}." for rank in range(TOP))),
        tuple((str(loan.label), *_largest(loan.lenders)) for loan in loans),
    )
    first = loans[0]
    names, values = zip(*first.lenders[:TOP], strict=True)
    figure = ranking(
        names,
        [100 * value for value in values],
        label=f"lends to {first.label}, % of its borrowed mean",
        title=setting.features.title,
    )
    return Findings((first.in_words(TOP).replace("`", ""),), (table,), {"nearest": figure})


def _largest(lenders: tuple[tuple[object, float], ...]) -> list[str]:
    """The cells of the largest lenders, empty where there are fewer."""
    cells = [f"{name} {100 * weight:.0f}%" for name, weight in lenders[:TOP]]
    return cells + [""] * (TOP - len(cells))


def run_sample_weights(setting: Setting) -> Findings:
    """Low-level weights of the samples of the largest lender, for two novel classes of the first one-shot task."""
    base = setting.features.base
    found = setting.fit_task(HOTClassifier(base), keep_low_plans=True)
    transfer = found.fitted.transfer
    largest = int(transfer.weights[0][:, 0].argmax())
    classes = np.unique(found.task.support_labels)
    # Rows beyond the samples of a class are padding. Columns of a plan sum to 1/N; weights sum to 1.
    plan = transfer.low_plans[largest][0, : base.counts[largest]]  # type: ignore[index]
    weights = setting.ways * np.asarray(plan).T
    name = str(base.names[largest])
    figure = sample_weights(
        {str(label): row for label, row in zip(classes[:2], weights[:2], strict=True)},
        label=f"weight of the samples of {name}",
        title=setting.features.title,
    )
    table = Table(
        f"Low-level weights within {name}, {weights.shape[1]} samples",
        ("novel class", "effective number of samples", "largest over equal weight"),
        tuple(
            (str(label), Number(float(number)), Number(float(row.max() * weights.shape[1])))
            for label, number, row in zip(classes, effective_number(weights), weights, strict=True)
        ),
    )
    alike = float(np.corrcoef(weights[:2])[0, 1])
    words = (
        f"{classes[0]} and {classes[1]} weigh the samples of {name} differently: the correlation of their weights is "
        f"{alike:.2f}."
    )
    return Findings((words,), (table,), {"sample-weights": figure}, {"weights": weights.tolist()})


NEAREST = Experiment("nearest", "Nearest base classes of a novel sample", "Figure 3", run_nearest)
SAMPLE_WEIGHTS = Experiment(
    "sample-weights", "Low-level weights within a base class", "Figure 9 (appendix)", run_sample_weights
)
