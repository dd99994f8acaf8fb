"""Figures 3 and 8 to 10: learned cost, plan and lenders of a task, and how much flatter plans are across domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hotshot.classifiers import HOTClassifier
from hotshot.evaluation.tables import Number, Table, interval
from hotshot.formatting import readable
from hotshot.paper.experiments.cross_domain import NEARER, other_bases
from hotshot.paper.experiments.known_weights import correlation
from hotshot.paper.figures import heatmap, plans, ranking, sample_weights
from hotshot.paper.findings import Findings, claim
from hotshot.paper.setting import Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Tasks over which lenders are counted; the first is drawn.
MOST_TASKS = 20
# Base classes named for each novel class.
TOP = 5


def run_cost(setting: Setting) -> Findings:
    """Learned cost C_bn (eq. 9) of the first one-shot task, and how closely the weights follow it."""
    model = setting.fitted_hot()
    cost = model.learned_cost_
    rows = []
    for label, own in zip(model.classes_, setting.ways * cost.T, strict=True):
        ends = Number(float(own.min())), Number(float(own.max()))
        rows.append((str(label), str(model.base_names_[own.argmin()]), *ends))
    table = Table(
        f"Learned cost times {setting.ways}, the first {setting.ways}-way-1-shot task of {setting.features.name}",
        ("novel class", "base class of least cost", "least cost", "largest cost"),
        tuple(rows),
        ("Cosine distances are between 0 and 2; the cost of the transport is their mean under the plan.",),
    )
    logs = np.log(np.maximum(model.transfer_weights_.T, 1e-30))
    follows = [correlation(-cost[:, [n]], logs[:, [n]]) for n in range(setting.ways)]
    smaller = claim(
        "The smaller the cost of a base class, the larger its weight.",
        {"correlation of the logarithm of the weights with the negative cost": interval(np.array(follows))},
    )
    figure = _heatmap(cost, cost, model, "learned cost", f"Learned cost of a task, {setting.features.title}")
    return Findings((), (table,), {"cost": figure}, {"correlation": follows}, (smaller,))


def run_plan(setting: Setting) -> Findings:
    """Transfer weights of the first one-shot task, and how many lend over some tasks, in-domain and across domains."""
    number = min(setting.tasks, MOST_TASKS)
    own = f"{setting.features.name}, in-domain"
    banks = {own: setting.features.base, **other_bases(setting)[0]}
    models = {name: [setting.fitted_hot(i, base) for i in range(number)] for name, base in banks.items()}
    lenders = {
        name: np.array([effective_number(model.transfer_weights_).mean() for model in each])
        for name, each in models.items()
    }
    table = Table(
        f"How many base classes lend, {number} {setting.ways}-way-1-shot tasks of {setting.features.name}",
        ("base classes from", "number of base classes", "effective number of lenders", "largest weight in %"),
        tuple(
            (
                name,
                Number(len(banks[name].names), places=0),
                interval(lenders[name]),
                interval(np.array([100 * model.transfer_weights_.max() for model in each])),
            )
            for name, each in models.items()
        ),
        ("The effective number is the exponential of the entropy of the weights, mean over the novel classes.",),
    )
    first = {name: each[0] for name, each in models.items()}
    model, title = first[own], setting.features.title
    weights = model.transfer_weights_.T
    figures = {"plan": _heatmap(weights, -weights, model, "transfer weight", f"Transfer weights of a task, {title}")}
    if len(models) > 1:
        figures["plan-across-domains"] = plans(
            {name: (each.transfer_weights_[0], [*map(readable, each.base_names_)]) for name, each in first.items()},
            label="transfer weight",
            title=f"Transfer weights to “{readable(model.classes_[0])}” by base classes used, {title}",
        )
    shares = {name: 100 * lenders[name] / len(banks[name].names) for name in banks}
    inside = NEARER if NEARER in banks else own
    claims = []
    for name in [name for name in banks if name not in (own, inside)]:
        more = interval(shares[name] - shares[inside], signed=True)
        text = f"Base classes of {name} lend more equally than those of {inside}."
        claims.append(claim(text, {"effective number of lenders, in % of the base classes": more}))
    largest = int(model.transfer_weights_[0].argmax())
    words = (
        f"{model.classes_[0]} borrows most from {model.base_names_[largest]}: "
        f"{100 * model.transfer_weights_[0, largest]:.0f}%. Equal weights would be "
        f"{100 / len(model.base_names_):.1f}%."
    )
    return Findings((words,), (table,), figures, claims=tuple(claims))


def run_nearest(setting: Setting) -> Findings:
    """The five largest lenders to each novel class of the first one-shot task; a figure of the first."""
    loans = setting.fitted_hot().explain().loans
    rows = []
    for loan in loans:
        shown = [f"{name} {100 * weight:.0f}%" for name, weight in loan.lenders[:TOP]]
        # Cells are empty where there are fewer lenders.
        rows.append((str(loan.label), *shown, *[""] * (TOP - len(shown))))
    table = Table(
        f"Base classes that lend most, the first {setting.ways}-way-1-shot task of {setting.features.name}",
        ("novel class", *(f"{rank + 1}." for rank in range(TOP))),
        tuple(rows),
    )
    first = loans[0]
    names, values = zip(*first.lenders[:TOP], strict=True)
    figure = ranking(
        [readable(name) for name in names],
        [100 * value for value in values],
        label="share of the borrowed mean in %",
        title=f"Base classes that lend most to “{readable(first.label)}”, {setting.features.title}",
    )
    return Findings((first.in_words(TOP).replace("`", ""),), (table,), {"nearest": figure})


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
        {f"for {readable(label)}": row for label, row in zip(classes[:2], weights[:2], strict=True)},
        label="weight",
        title=f"Low-level weights of the samples of “{readable(name)}”, {setting.features.title}",
    )
    table = Table(
        f"Low-level weights within {name}, {weights.shape[1]} samples",
        ("novel class", "effective number of samples", "largest weight / equal weight"),
        tuple(
            (str(label), Number(float(number)), Number(float(row.max() * weights.shape[1])))
            for label, number, row in zip(classes, effective_number(weights), weights, strict=True)
        ),
    )
    alike = float(np.corrcoef(weights[:2])[0, 1])
    words = (
        f"For {classes[0]} and {classes[1]}, the weights of the samples of {name} have a correlation of {alike:.2f}."
    )
    return Findings((words,), (table,), {"sample-weights": figure}, {"weights": weights.tolist()})


def _heatmap(values: np.ndarray, costs: np.ndarray, model: HOTClassifier, label: str, title: str) -> Figure:
    """Values (B, N), with base classes grouped by the novel class that they cost least, the cheapest first."""
    nearest = costs.argmin(axis=1)
    order = np.lexsort((costs.min(axis=1), nearest))
    rows, columns = ([readable(name) for name in names] for names in (model.base_names_[order], model.classes_))
    return heatmap(values[order], rows, columns, label=label, title=title)


def effective_number(weights: np.ndarray) -> np.ndarray:
    """The exponential of the entropy of each row: the number of equal weights with the same entropy."""
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.exp(-(weights * logs).sum(axis=1))
