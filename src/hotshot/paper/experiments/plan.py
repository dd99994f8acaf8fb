"""Appendix figures: the transport plan of a task, and how much flatter it is across domains."""

from __future__ import annotations

import numpy as np

from hotshot.base import BaseClasses
from hotshot.evaluation.tables import Number, Table, interval
from hotshot.paper.experiments.claims import claim
from hotshot.paper.experiments.domains import FARTHER, NEARER, fitting_others, halves
from hotshot.paper.experiments.experiment import Experiment
from hotshot.paper.experiments.findings import Findings
from hotshot.paper.experiments.setting import Setting
from hotshot.paper.experiments.tasks import fitted
from hotshot.paper.figures import heatmap, plans

# Tasks over which lenders are counted; the first is drawn.
MOST_TASKS = 20


def run(setting: Setting) -> Findings:
    """Transfer weights of the first one-shot task, and how many lend over some tasks, in-domain and across domains."""
    number = min(setting.tasks, MOST_TASKS)
    banks = _banks(setting)
    models = {name: [fitted(setting, base, i) for i in range(number)] for name, base in banks.items()}
    lenders = {
        name: np.array([perplexity(model.transfer_weights_).mean() for model in own])
        for name, own in models.items()
    }
    table = Table(
        f"How many base classes lend, {number} {setting.ways}-way-1-shot tasks of {setting.features.name}",
        ("base classes of", "base classes", "as many as equal lenders", "largest weight in %"),
        tuple(
            (
                name,
                Number(len(banks[name].names), places=0),
                interval(lenders[name]),
                interval(np.array([100 * model.transfer_weights_.max() for model in own])),
            )
            for name, own in models.items()
        ),
        ("The exponential of the entropy of the weights, mean over the novel classes.",),
    )
    own, first = next(iter(models)), {name: fits[0] for name, fits in models.items()}
    model = first[own]
    figures = {
        "plan": heatmap(
            model.transfer_weights_.T, [str(b) for b in model.base_names_], [str(c) for c in model.classes_],
            label="transfer weight",
        )
    }  # fmt: skip
    if len(models) > 1:
        figures["plan-across-domains"] = plans(
            {name: model.transfer_weights_[0] for name, model in first.items()},
            {name: [str(b) for b in model.base_names_] for name, model in first.items()},
            label=f"transfer weight to {model.classes_[0]}",
        )
    shares = {name: 100 * lenders[name] / len(banks[name].names) for name in banks}
    inside = NEARER if NEARER in banks else own
    claims = tuple(
        claim(
            f"Base classes of {name} lend more equally than those of {inside}.",
            {"equal lenders, in % of the base classes": interval(shares[name] - shares[inside], signed=True)},
        )
        for name in banks
        if name not in (own, inside)
    )
    lender = int(model.transfer_weights_[0].argmax())
    words = (
        f"{model.classes_[0]} borrows most from {model.base_names_[lender]}, "
        f"{100 * model.transfer_weights_[0, lender]:.0f}% where equal weights would be "
        f"{100 / len(model.base_names_):.1f}%."
    )
    return Findings((words,), (table,), figures, claims=claims)


def perplexity(weights: np.ndarray) -> np.ndarray:
    """Exp of the entropy of each row: as many equal weights are as uncertain."""
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.exp(-(weights * logs).sum(axis=1))


def _banks(setting: Setting) -> dict[str, BaseClasses]:
    """The dataset's own base classes first, then those of others; without others, the two halves of its own."""
    own = setting.features
    others = {f"{other.name}, cross-domain": other.base for other in fitting_others(setting)[0]}
    if not others and own.base.samples is not None and len(own.base.names) > 1:
        others = dict(zip((NEARER, FARTHER), halves(own), strict=True))
    return {f"{own.name}, in-domain": own.base, **others}


EXPERIMENT = Experiment("plan", "Transport plan of a task", "Figures 8 and 10 (appendix)", run)
