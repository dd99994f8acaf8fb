"""Figures 3, 5, 6 and 8 to 10: costs, plans, lenders and generated features of single one-shot tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.classifiers import FreeLunchClassifier, HOTClassifier
from hotshot.evaluation import mean_interval
from hotshot.evaluation.tables import Number, Table, interval, percent
from hotshot.formatting import readable
from hotshot.method.heads.sampled import generate_features
from hotshot.method.low_level import class_plan
from hotshot.paper import figures
from hotshot.paper.cross_domain import NEARER, other_bases
from hotshot.paper.findings import Findings, claim
from hotshot.paper.known_weights import correlation
from hotshot.paper.setting import FittedTask, Setting

# Tasks over which lenders are counted and features generated; the first is drawn.
MOST_TASKS = 20
# Base classes named for each novel class, and features generated for each.
TOP, PER_CLASS = 5, 100


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
    title = f"Learned cost of a task, {setting.features.title}"
    figure = figures.heatmap(*_grouped(cost, cost, model), label="learned cost", title=title)
    return Findings([], [table], {"cost": figure}, {"correlation": follows}, [smaller])


def run_plan(setting: Setting) -> Findings:
    """Transfer weights of the first one-shot task, and how many lend over some tasks, in-domain and across domains."""
    number, title = min(setting.tasks, MOST_TASKS), setting.features.title
    own = f"{setting.features.name}, in-domain"
    banks = {own: setting.features.base, **other_bases(setting)[0]}
    models = {name: [setting.fitted_hot(i, base) for i in range(number)] for name, base in banks.items()}
    rows, shares = [], {}
    for name, fitted in models.items():
        lenders = np.array([effective_number(model.transfer_weights_).mean() for model in fitted])
        largest = np.array([100 * model.transfer_weights_.max() for model in fitted])
        n_base = len(banks[name].names)
        shares[name] = 100 * lenders / n_base
        rows.append((name, Number(n_base, places=0), interval(lenders), interval(largest)))
    table = Table(
        f"How many base classes lend, {number} {setting.ways}-way-1-shot tasks of {setting.features.name}",
        ("base classes from", "number of base classes", "effective number of lenders", "largest weight in %"),
        tuple(rows),
        ("The effective number is the exponential of the entropy of the weights, mean over the novel classes.",),
    )
    model = models[own][0]
    weights = model.transfer_weights_.T
    drawn = {
        "plan": figures.heatmap(
            *_grouped(weights, -weights, model), label="transfer weight", title=f"Transfer weights of a task, {title}"
        )
    }
    if len(models) > 1:
        drawn["plan-across-domains"] = figures.plans(
            {name: (first.transfer_weights_[0], _readable(first.base_names_)) for name, (first, *_) in models.items()},
            label="transfer weight",
            title=f"Transfer weights to “{readable(model.classes_[0])}” by base classes used, {title}",
        )
    inside = NEARER if NEARER in banks else own
    claims = []
    for name in [name for name in banks if name not in (own, inside)]:
        more = interval(shares[name] - shares[inside], signed=True)
        text = f"Base classes of {name} lend more equally than those of {inside}."
        claims.append(claim(text, {"effective number of lenders, in % of the base classes": more}))
    most = int(weights[:, 0].argmax())
    words = (
        f"{model.classes_[0]} borrows most from {model.base_names_[most]}: {100 * weights[most, 0]:.0f}%. "
        f"Equal weights would be {100 / len(weights):.1f}%."
    )
    return Findings([words], [table], drawn, claims=claims)


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
    figure = figures.ranking(
        _readable(names),
        [100 * value for value in values],
        label="share of the borrowed mean in %",
        title=f"Base classes that lend most to “{readable(first.label)}”, {setting.features.title}",
    )
    return Findings([first.in_words(TOP).replace("`", "")], [table], {"nearest": figure})


def run_samples(setting: Setting) -> Findings:
    """Low-level weights of the samples of the largest lender, for two novel classes of the first one-shot task."""
    base = setting.features.base
    model = HOTClassifier(base)
    found = setting.fit_task(model)
    largest = int(found.fitted.transfer.weights[0][:, 0].argmax())
    classes = np.unique(found.task.support_labels)
    # Columns of a plan sum to 1/N; weights sum to 1.
    plan = class_plan(found.prepared, found.support[None], largest, model.parts()[1].epsilon)
    weights = setting.ways * plan[0].T
    name = str(base.names[largest])
    figure = figures.sample_weights(
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
    return Findings([words], [table], {"sample-weights": figure}, {"weights": weights.tolist()})


@dataclass(frozen=True)
class Generated:
    """A task in the space of a method, features generated there with their labels from 0, and the accuracy."""

    task: FittedTask
    features: np.ndarray
    labels: np.ndarray
    accuracy: float


def run_generated(setting: Setting) -> Findings:
    """Features drawn from the calibrated Gaussians: those of the first one-shot task in two dimensions, and how far
    the classes lie apart over some tasks.
    """
    from sklearn.manifold import TSNE
    from sklearn.metrics import silhouette_score

    number = min(setting.tasks, MOST_TASKS)
    rows, apart, panels = [], {}, {}
    for name, kind in (("Free-Lunch", FreeLunchClassifier), ("H-OT", HOTClassifier)):
        tasks = [generate(setting, kind(setting.features.base), index) for index in range(number)]
        apart[name] = np.array([silhouette_score(own.features, own.labels) for own in tasks])
        accuracy = percent(mean_interval(np.array([own.accuracy for own in tasks])))
        rows.append((name, interval(apart[name]), accuracy))
        first, support = tasks[0], tasks[0].task.support
        tsne = TSNE(random_state=setting.seed, init="pca", perplexity=30)
        places = tsne.fit_transform(np.concatenate([support, first.features]))
        panels[name] = {
            "support": places[: len(support)],
            "support_labels": first.task.labels,
            "generated": places[len(support) :],
            "generated_labels": first.labels,
        }
    table = Table(
        f"Generated features, {number} {setting.ways}-way-1-shot tasks of {setting.features.name}",
        ("method", "silhouette", "accuracy in %"),
        tuple(rows),
        (
            "The silhouette, from -1 to 1, measures how well generated classes are separated. Each method generates in "
            "its own space, and separated classes need not be correct.",
        ),
    )
    farther = claim(
        "Features generated by H-OT are more discriminative than those of Free-Lunch.",
        {"silhouette": interval(apart["H-OT"] - apart["Free-Lunch"], signed=True)},
    )
    names = _readable(np.unique(setting.task().support_labels))
    figure = figures.embedding(panels, names, title=f"Generated features of a task by t-SNE, {setting.features.title}")
    return Findings([], [table], {"tsne": figure}, claims=[farther])


def generate(setting: Setting, model: HOTClassifier | FreeLunchClassifier, index: int) -> Generated:
    """Fit a method to a one-shot task and draw features from its Gaussians."""
    found = setting.fit_task(model, index)
    gaussians = found.fitted.gaussians
    features = generate_features(
        np.asarray(gaussians.means[0]),
        # Without alpha, which the factor adds.
        np.asarray(gaussians.mixed_covariances(found.prepared)[0]),
        np.full(setting.ways, PER_CLASS),
        np.random.default_rng(setting.seed),
        gaussians.alpha_factor,
    )
    queries = setting.features.X[found.task.query].astype(setting.features.base.dtype, copy=False)
    chosen = np.argmax(found.fitted.decision(found.prepared.transform(queries)[None])[0], axis=1)
    classes = np.unique(found.task.support_labels)
    labels = np.repeat(np.asarray(gaussians.labels[0]), PER_CLASS)
    return Generated(found, features, labels, float(np.mean(classes[chosen] == found.task.query_labels)))


def effective_number(weights: np.ndarray) -> np.ndarray:
    """The exponential of the entropy of each row: the number of equal weights with the same entropy."""
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.exp(-(weights * logs).sum(axis=1))


def _grouped(values: np.ndarray, costs: np.ndarray, model: HOTClassifier) -> tuple[np.ndarray, list[str], list[str]]:
    """Values (B, N) and names, base classes grouped by the novel class that they cost least, the cheapest first."""
    order = np.lexsort((costs.min(axis=1), costs.argmin(axis=1)))
    return values[order], _readable(model.base_names_[order]), _readable(model.classes_)


def _readable(names: Iterable[Any]) -> list[str]:
    return [readable(name) for name in names]
