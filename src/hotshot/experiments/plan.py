"""Appendix figures: the transport plan of a task, and how much flatter it is across domains."""

from __future__ import annotations

import numpy as np

from hotshot.experiments.experiment import Experiment
from hotshot.experiments.findings import Findings, Number, Table
from hotshot.experiments.setting import Setting
from hotshot.experiments.tasks import fitted
from hotshot.figures import heatmap, plans


def run(setting: Setting) -> Findings:
    """Transfer weights of the first one-shot task, from the base classes of every feature set of the same width."""
    width = setting.features.base.n_features
    sources = [setting.features, *(other for other in setting.others if other.base.n_features == width)]
    models = {_named(source.name, i): fitted(setting, source) for i, source in enumerate(sources)}
    own = next(iter(models.values()))
    figures = {
        "plan": heatmap(
            own.transfer_weights_.T, [str(b) for b in own.base_names_], [str(c) for c in own.classes_],
            label="transfer weight",
        )
    }  # fmt: skip
    if len(models) > 1:
        figures["plan-across-domains"] = plans(
            {name: model.transfer_weights_[0] for name, model in models.items()},
            {name: [str(b) for b in model.base_names_] for name, model in models.items()},
            label=f"transfer weight to {own.classes_[0]}",
        )
    table = Table(
        f"How many base classes lend, first {setting.ways}-way-1-shot task of {setting.features.name}",
        ("base classes of", "base classes", "as many as equal lenders", "largest weight in %"),
        tuple(
            (
                name,
                str(len(model.base_names_)),
                Number(float(np.mean(perplexity(model.transfer_weights_)))),
                Number(100 * float(model.transfer_weights_.max())),
            )
            for name, model in models.items()
        ),
        ("The exponential of the entropy of the weights, mean over the novel classes.",),
    )
    lender = int(own.transfer_weights_[0].argmax())
    words = (
        f"{own.classes_[0]} borrows most from {own.base_names_[lender]}, "
        f"{100 * own.transfer_weights_[0, lender]:.0f}% where equal weights would be {100 / len(own.base_names_):.1f}%."
    )
    return Findings((words,), (table,), figures)


def perplexity(weights: np.ndarray) -> np.ndarray:
    """Exp of the entropy of each row: as many equal weights are as uncertain."""
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.exp(-(weights * logs).sum(axis=1))


def _named(name: str, index: int) -> str:
    return f"{name}, in-domain" if index == 0 else f"{name}, cross-domain"


EXPERIMENT = Experiment("plan", "Transport plan of a task", "Figures 8 and 10 (appendix)", run)
