"""What lends, and how much: costs, plans, lenders and generated features of single one-shot tasks (Figures 3, 5, 6 and
8 to 10), and novel samples mixed from base means by weights that are known (Figure 7).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hotshot.bank import Space
from hotshot.classifiers import FreeLunchClassifier, HOTClassifier
from hotshot.evaluation import mean_interval
from hotshot.evaluation.tables import Number, Table, interval, percent
from hotshot.formatting import readable
from hotshot.method.heads.sampled import generate_features
from hotshot.method.hot import fit_tasks
from hotshot.method.transfer import class_plan
from hotshot.paper import figures
from hotshot.paper.cross_domain import NEARER, other_bases
from hotshot.paper.findings import Findings, claim
from hotshot.paper.setting import Setting
from hotshot.transport import pairwise_cost, solve

# Tasks over which lenders are counted and features generated, the first of which is drawn; and mixtures.
MOST_TASKS, MOST_MIXTURES = 20, 500
# Base classes named for each novel class, and features generated for each.
TOP, PER_CLASS = 5, 100
# Of the paper's mixtures: base classes, shape of the gamma distribution of the weights, strength of the entropy.
CLASSES, SHAPE, EPSILON = 20, 0.8, 0.01
# A strength that means the same on features of any scale: this share of the mean cost.
SHARE_OF_COST = 0.1
FREE_LUNCH, EQUAL = "Free-Lunch", "Equal weights"
OT_PUBLISHED = f"High-level OT, epsilon {EPSILON:g}"
SCALED_EPSILON = f"{SHARE_OF_COST:.0%} of the mean cost"
OT_SCALED = f"High-level OT, epsilon {SCALED_EPSILON}"


# --- cost and plan


def run_cost(setting: Setting) -> Findings:
    """Learned cost C_bn (eq. 9) of the first one-shot task, and how closely the weights follow it."""
    model = setting.fitted_hot()
    cost = model.learned_cost_
    table = Table(
        f"Learned cost times {setting.ways}, {setting.first_task()}",
        ("novel class", "base class of least cost", "least cost", "largest cost"),
        tuple(
            (str(label), str(model.base_names_[costs.argmin()]), Number(float(costs.min())), Number(float(costs.max())))
            for label, costs in zip(model.classes_, setting.ways * cost.T, strict=True)
        ),
        ("Cosine distances are between 0 and 2; the cost of the transport is their mean under the plan.",),
    )
    logs = np.log(np.maximum(model.transfer_weights_.T, 1e-30))
    follows = [correlation(-cost[:, [n]], logs[:, [n]]) for n in range(setting.ways)]
    smaller = claim(
        "The smaller the cost of a base class, the larger its weight.",
        {"correlation of the logarithm of the weights with the negative cost": interval(np.array(follows))},
    )
    figure = figures.heatmap(
        *_grouped(cost, cost, model), label="learned cost", title=f"Learned cost, {setting.first_task()}"
    )
    return Findings([], [table], {"cost": figure}, [smaller])


def run_plan(setting: Setting) -> Findings:
    """Transfer weights of the first one-shot task, and how many lend over some tasks, in-domain and across domains."""
    n_tasks = min(setting.tasks, MOST_TASKS)
    in_domain = f"{setting.features.name}, in-domain"
    banks = {in_domain: setting.features.base, **other_bases(setting)[0]}
    first, rows, shares = {}, [], {}
    for name, base in banks.items():
        models = [setting.fitted_hot(i, base) for i in range(n_tasks)]
        lenders = np.array([effective_number(model.transfer_weights_).mean() for model in models])
        largest = np.array([100 * model.transfer_weights_.max() for model in models])
        first[name], shares[name] = models[0], 100 * lenders / len(base.names)
        rows.append((name, Number(len(base.names), places=0), interval(lenders), interval(largest)))
    table = Table(
        f"How many base classes lend, {n_tasks} {setting.ways}-way-1-shot tasks of {setting.features.name}",
        ("base classes from", "number of base classes", "effective number of lenders", "largest weight in %"),
        tuple(rows),
        ("The effective number is the exponential of the entropy of the weights, mean over the novel classes.",),
    )
    model = first[in_domain]
    weights = model.transfer_weights_.T
    title = f"Transfer weights, {setting.first_task()}"
    drawn = {"plan": figures.heatmap(*_grouped(weights, -weights, model), label="transfer weight", title=title)}
    if len(first) > 1:
        drawn["plan-across-domains"] = figures.weight_panels(
            {name: -np.sort(-model.transfer_weights_[0]) for name, model in first.items()},
            label="transfer weight",
            x_label="base class, largest weight first",
            title=f"Transfer weights to “{readable(model.classes_[0])}” by base classes used",
        )
    inside = NEARER if NEARER in banks else in_domain
    claims = []
    for name in [name for name in banks if name not in (in_domain, inside)]:
        more = interval(shares[name] - shares[inside], signed=True)
        text = f"Base classes of {name} lend more equally than those of {inside}."
        claims.append(claim(text, {"effective number of lenders, in % of the base classes": more}))
    return Findings([], [table], drawn, claims)


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


# --- lenders and their samples


def run_nearest(setting: Setting) -> Findings:
    """The five largest lenders to each novel class of the first one-shot task; a figure of the first."""
    first, *_ = loans = setting.fitted_hot().explain().loans
    rows = []
    for loan in loans:
        shown = [f"{name} {100 * weight:.0f}%" for name, weight in loan.lenders[:TOP]]
        # Cells are empty where there are fewer lenders.
        rows.append((str(loan.label), *shown, *[""] * (TOP - len(shown))))
    columns = ("novel class", *(f"{rank + 1}." for rank in range(TOP)))
    table = Table(f"Base classes that lend most, {setting.first_task()}", columns, tuple(rows))
    names, values = zip(*first.lenders[:TOP], strict=True)
    figure = figures.grouped_bars(
        _readable(names),
        {"weight": [Number(100 * value) for value in values]},
        label="share of the borrowed mean in %",
        zero=True,
        title=f"Base classes that lend most to “{readable(first.label)}”",
    )
    return Findings([first.in_words(TOP).replace("`", "")], [table], {"nearest": figure})


def run_samples(setting: Setting) -> Findings:
    """Low-level weights of the samples of the largest lender, for two novel classes of the first one-shot task."""
    name, classes, weights = sample_weights(setting)
    order = np.argsort(-weights[0], kind="stable")
    figure = figures.weight_panels(
        {f"for {readable(label)}": row[order] for label, row in zip(classes[:2], weights[:2], strict=True)},
        label="weight",
        x_label="samples, in the order of the first panel",
        title=f"Low-level weights of the samples of “{readable(name)}”",
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
    return Findings([words], [table], {"sample-weights": figure})


def sample_weights(setting: Setting) -> tuple[str, np.ndarray, np.ndarray]:
    """The largest lender to the first novel class, the novel classes (N,), and the weights (N, J) of its samples."""
    features, task, model = setting.features, setting.task(), setting.fitted_hot()
    rows = task.support[np.argsort(task.support_labels)]
    prepared, method = model.parts()
    support = prepared.transform(features.X[rows].astype(features.base.dtype, copy=False))
    largest = int(model.transfer_weights_[0].argmax())
    # Columns of a plan sum to 1/N; weights sum to 1.
    weights = setting.ways * class_plan(prepared, support[None], largest, method.epsilon)[0].T
    return str(features.base.names[largest]), model.classes_, weights


# --- generated features


def run_generated(setting: Setting) -> Findings:
    """Features drawn from the calibrated Gaussians: those of the first one-shot task in two dimensions, and how far
    the classes lie apart over some tasks.
    """
    from sklearn.manifold import TSNE
    from sklearn.metrics import silhouette_score

    n_tasks = min(setting.tasks, MOST_TASKS)
    rows, apart, panels = [], {}, {}
    for name, kind in (("Free-Lunch", FreeLunchClassifier), ("H-OT", HOTClassifier)):
        tasks, accuracies = zip(
            *(generate(setting, kind(setting.features.base), index) for index in range(n_tasks)), strict=True
        )
        apart[name] = np.array([silhouette_score(task["generated"], task["generated_labels"]) for task in tasks])
        rows.append((name, interval(apart[name]), percent(mean_interval(np.array(accuracies)))))
        first, n_support = tasks[0], len(tasks[0]["support"])
        tsne = TSNE(random_state=setting.seed, init="pca", perplexity=30)
        places = tsne.fit_transform(np.concatenate([first["support"], first["generated"]]))
        panels[name] = {**first, "support": places[:n_support], "generated": places[n_support:]}
    table = Table(
        f"Generated features, {n_tasks} {setting.ways}-way-1-shot tasks of {setting.features.name}",
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
    figure = figures.embedding(panels, names, title=f"Generated features by t-SNE, {setting.first_task()}")
    return Findings([], [table], {"tsne": figure}, [farther])


def generate(
    setting: Setting, model: HOTClassifier | FreeLunchClassifier, index: int
) -> tuple[dict[str, np.ndarray], float]:
    """Fit a method to a one-shot task and draw features from its Gaussians, which an estimator does not keep.

    The points, as `figures.embedding` takes them, are in the space of the method; beside them, its accuracy.
    """
    task = setting.task(index)
    prepared, method = model.parts()
    support, queries = (
        prepared.transform(setting.features.X[rows].astype(setting.features.base.dtype, copy=False))
        for rows in (task.support, task.query)
    )
    classes, labels = np.unique(task.support_labels, return_inverse=True)
    fitted = fit_tasks(prepared, support[None], labels[None], method, n_classes=setting.ways, seeds=[setting.seed])
    gaussians = fitted.gaussians
    features = generate_features(
        np.asarray(gaussians.means[0]),
        # Without alpha, which the factor adds.
        np.asarray(gaussians.mixed_covariances(prepared)[0]),
        np.full(setting.ways, PER_CLASS),
        np.random.default_rng(setting.seed),
        gaussians.alpha_factor,
    )
    predicted = classes[np.argmax(fitted.decision(queries[None])[0], axis=1)]
    generated_labels = np.repeat(np.asarray(gaussians.labels[0]), PER_CLASS)
    points = {"support": support[np.argsort(labels)], "generated": features, "generated_labels": generated_labels}
    return points, float(np.mean(predicted == task.query_labels))


# --- known weights


def run_known_weights(setting: Setting) -> Findings:
    """How well each method recovers the weights, over many mixtures, and a picture of the first."""
    base = setting.features.base.prepare(Space(power=1.0, normalize=None, n_components=None))
    means = np.asarray(base.means, dtype=np.float64)
    rng = np.random.default_rng(setting.seed)
    mixtures = [draw_mixture(means, setting.ways, rng) for _ in range(min(setting.tasks, MOST_MIXTURES))]
    classes, truth, learned = mixtures[0]
    correlations, errors = (
        {name: np.array([score(true, by_method[name]) for _, true, by_method in mixtures]) for name in learned}
        for score in (correlation, total_error)
    )
    table = Table(
        f"Learned and true weights, {len(mixtures)} tasks of {setting.ways} mixtures of {len(classes)} base means of "
        f"{setting.features.name}",
        ("method", "correlation", "sum of absolute errors"),
        tuple(
            (name, None if name == EQUAL else interval(correlations[name]), interval(errors[name])) for name in errors
        ),
        ("The error is between 0 and 2. Means are of the raw features, without a power transform.",),
    )
    order = np.argsort(-truth[:, 0], kind="stable")
    shown = {"true weight": truth, FREE_LUNCH: learned[FREE_LUNCH], "high-level OT": learned[OT_SCALED]}
    figure = figures.grouped_bars(
        _readable(base.names[classes[order]]),
        {name: [Number(float(weight)) for weight in weights[order, 0]] for name, weights in shown.items()},
        label="weight",
        zero=True,
        title=f"True and learned weights of one mixture, {setting.features.title}",
    )
    claims = []
    for epsilon, name in (("as published", OT_PUBLISHED), (SCALED_EPSILON, OT_SCALED)):
        closer = {
            "correlation": interval(correlations[name] - correlations[FREE_LUNCH], signed=True),
            "reduction of the error": interval(errors[FREE_LUNCH] - errors[name], signed=True),
        }
        text = f"Weights of the high-level transport are closer to the truth than Free-Lunch's, epsilon {epsilon}."
        claims.append(claim(text, closer))
    return Findings([], [table], {"toy-weights": figure}, claims)


def draw_mixture(
    means: np.ndarray, ways: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Mix some base means (B, V) by gamma weights, and learn the weights from the mixtures.

    Returns the classes (b,) chosen, the true weights (b, N) and those learned (b, N) by each method.
    """
    classes = rng.choice(len(means), min(CLASSES, len(means)), replace=False)
    truth = rng.gamma(SHAPE, size=(len(classes), ways))
    truth /= truth.sum(axis=0)
    cost = pairwise_cost(means[classes], truth.T @ means[classes], "euclidean")
    scaled, published = (
        np.asarray(ways * solve(cost, epsilon=epsilon).raise_for_status().plan)
        for epsilon in (SHARE_OF_COST * float(cost.mean()), EPSILON)
    )
    nearest_two = (cost.argsort(axis=0).argsort(axis=0) < 2) / 2
    equal = np.full_like(truth, 1 / len(classes))
    return classes, truth, {OT_SCALED: scaled, OT_PUBLISHED: published, FREE_LUNCH: nearest_two, EQUAL: equal}


def correlation(truth: np.ndarray, learned: np.ndarray) -> float:
    """Mean correlation of the columns of two arrays (b, N); 0 where one does not vary."""
    a, b = (x - x.mean(axis=0) for x in (truth, learned))
    norms = np.linalg.norm(a, axis=0) * np.linalg.norm(b, axis=0)
    return float(np.mean(np.divide((a * b).sum(axis=0), norms, out=np.zeros(len(norms)), where=norms > 0)))


def total_error(truth: np.ndarray, learned: np.ndarray) -> float:
    """Mean sum of absolute differences of the columns of two arrays (b, N)."""
    return float(np.abs(truth - learned).sum(axis=0).mean())
