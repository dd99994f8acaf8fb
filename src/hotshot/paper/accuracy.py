"""Tables 1, 2 and 4, Figure 4 of the appendix: accuracy of H-OT and other classifiers by dataset, backbone and task."""

from itertools import pairwise
from typing import Any

import numpy as np

from hotshot.classifiers import HOTClassifier
from hotshot.evaluation import MethodResult, mean_interval, paired_difference
from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.formatting import shots_in_words
from hotshot.paper.figures import grouped_bars, histogram
from hotshot.paper.findings import Findings, claim, gap, leads, paired, standing
from hotshot.paper.published import SHOTS, published, published_dataset, published_systems
from hotshot.paper.setting import FeatureSet, Setting, hot_as_published

AUTHORS, TUNED = "hot, authors' set", "hot, tuned"
# By the names of the command line, with what they stand for among the paper's systems.
METHODS = {
    "hot": "H-OT",
    AUTHORS: "H-OT, authors' parameters",
    "free-lunch": "Free-Lunch",
    "logistic-raw": "logistic regression (as RFS)",
    "ridge": "ridge (as R2D2)",
    "svm": "linear SVM (as MetaOpt)",
    "centroid": "nearest centroid (as ProtoNet)",
    "matching": "soft nearest neighbour (as MatchNet)",
    "cosine": "cosine to the mean (as Baseline++)",
    "logistic": "logistic regression after the power transform",
    "centroid-cl2n": "nearest centroid after centring and unit norm",
}
# These take up to a second a task.
SLOW = {(AUTHORS, 1), (AUTHORS, 5), ("free-lunch", 5)}
HEADS = {k: shots_in_words(k) for k in SHOTS}
BACKBONE_COLUMNS = (
    "backbone", "width", "Free-Lunch", "H-OT", "H-OT minus Free-Lunch, paired", "Free-Lunch in the paper",
    "H-OT in the paper",
)  # fmt: skip
BOTH = ("hot", "free-lunch")
# Of the histogram, in percent, and the accuracy below which the paper calls a task badly classified.
EDGES, THRESHOLD = np.arange(0, 101, 10), 0.6
Results = dict[tuple[str, int], MethodResult]


def run_accuracy(setting: Setting) -> Findings:
    """A table and two figures for each feature set."""
    sets = (setting.features, *setting.others)
    parts = []
    for number, features in enumerate(sets, 1):
        where = f" on {features.title}" if len(sets) > 1 else ""
        parts.append(_accuracy_on(setting, features, where, "" if number == 1 else f"-{number}"))
    return Findings(
        [sentence for part in parts for sentence in part.sentences],
        [table for part in parts for table in part.tables],
        {name: figure for part in parts for name, figure in part.figures.items()},
        claims=[claim for part in parts for claim in part.claims],
    )


def _accuracy_on(setting: Setting, features: FeatureSet, where: str, suffix: str) -> Findings:
    estimators: dict[str, Any] = {AUTHORS: hot_as_published(features, head="bound")}
    labels = METHODS
    if setting.tuned is not None:
        estimators[TUNED] = HOTClassifier(features.base, **setting.tuned)
        labels = {"hot": METHODS["hot"], TUNED: "H-OT tuned on validation classes", **METHODS}
    results: Results = {}
    for name in labels:
        for k in SHOTS:
            tasks = setting.few_tasks if (name, k) in SLOW else None
            method = {name: estimators.get(name, name)}
            results[name, k] = setting.evaluate(method, shots=(k,), features=features, tasks=tasks)[name, k]
    accuracies = {key: percent(result.accuracy) for key, result in results.items()}
    ahead = {(name, k): gap(results["hot", k], results[name, k]) for name, k in results if name != "hot"}
    others = {name: label.partition(" (")[0] for name, label in labels.items() if name != "hot"}
    sentences, claims = [], []
    for k, head in HEADS.items():
        differences = {label: paired(results["hot", k], results[name, k]) for name, label in others.items()}
        sentences.append(f"{features.title}, {head}: {standing(differences)}")
        rivals = {label: ahead[name, k] for name, label in others.items() if name not in (AUTHORS, TUNED, "free-lunch")}
        authors, at = gap(results[AUTHORS, k], results["free-lunch", k]), f"at {head}{where}"
        claims += [
            claim(f"H-OT is ahead of Free-Lunch {at}.", {"": ahead["free-lunch", k]}),
            claim(f"With the authors' parameters, H-OT is ahead of Free-Lunch {at}.", {"": authors}),
            claim(f"H-OT is ahead of every other classifier {at}.", rivals),
        ]
    rows: list[tuple[Cell, ...]] = []
    for name, label in labels.items():
        cells = [cell for k in SHOTS for cell in (accuracies[name, k], ahead.get((name, k)))]
        rows.append((label, *cells, features.backbone or "as given", "measured"))
    for system in published_systems(features.name):
        one, five = (system.accuracies[k] for k in SHOTS)
        rows.append((system.name, one, None, five, None, system.backbone, f"published, by {system.source}"))
    columns = [column for head in HEADS.values() for column in (head, f"lead of H-OT, {head}, paired")]
    title = f"{setting.ways}-way accuracy in %, {setting.tasks} tasks of {features.title}"
    table = Table(title, ("method", *columns, "features", "source"), tuple(rows), _notes(setting, features))
    order = sorted(labels, key=lambda name: -results[name, SHOTS[0]].accuracy.mean)
    figures = {
        f"accuracy{suffix}": grouped_bars(
            [labels[name] for name in order],
            {head: [accuracies[name, k] for name in order] for k, head in HEADS.items()},
            label="accuracy in %",
            title=f"Accuracy by method, {features.title}",
        ),
        f"accuracy-differences{suffix}": leads(
            {labels[name]: [ahead[name, k] for k in SHOTS] for name in others},
            [*HEADS.values()],
            "method",
            features.title,
        ),
    }
    return Findings(sentences, [table], figures, claims=claims)


def _notes(setting: Setting, features: FeatureSet) -> tuple[str, ...]:
    notes = [
        "With the authors' parameters, the closed-form bound of the expected loss replaces 750 generated features per "
        "class.",
        *setting.few_note("Slow methods", ": authors' parameters, Free-Lunch at 5 shots"),
    ]
    if published_systems(features.name):
        notes.append(
            "The published systems used other features and other 5-way tasks: differences to them cannot be paired."
        )
    if published_dataset(features.name) == "CIFAR-FS":
        notes.append("For Free-Lunch on WRN28+RTloss at 1 shot, Table 3 of the paper prints 74.94 ± 0.64 instead.")
    return tuple(notes)


def run_backbones(setting: Setting) -> Findings:
    """Accuracy of both methods on every feature set of the main dataset, and how far H-OT is ahead."""
    dataset, *others = (published_dataset(each.name) or each.name for each in (setting.features, *setting.others))
    same = [each for each, name in zip(setting.others, others, strict=True) if name == dataset]
    rows: list[tuple[Cell, ...]] = []
    differences = {}
    for number, features in enumerate((setting.features, *same), 1):
        label = features.backbone or (f"feature set {number}" if same else "as given")
        results = setting.evaluate(BOTH, features=features)
        hot, free_lunch = (results[name, 1] for name in BOTH)
        differences[label] = gap(hot, free_lunch)
        # The paper compares backbones on one dataset alone.
        in_paper = [
            published(4, features.backbone, name) if dataset == "miniImageNet" else None for name in reversed(BOTH)
        ]
        width = Number(features.base.n_features, places=0)
        rows.append((label, width, percent(free_lunch.accuracy), percent(hot.accuracy), differences[label], *in_paper))
    alone = f"Only one backbone was given: --other adds features of {setting.features.name} from other backbones."
    return Findings(
        [] if same else [alone],
        [Table(setting.one_shot_accuracy(), BACKBONE_COLUMNS, tuple(rows))],
        claims=[claim("H-OT is ahead of Free-Lunch with every backbone.", differences)],
    )


def run_histogram(setting: Setting) -> Findings:
    """Tasks by accuracy for both methods, and the difference in how many are below 60%."""
    results = setting.evaluate(BOTH)
    accuracies = {METHODS[name]: results[name, 1].accuracies for name in BOTH}
    # Accuracies are ratios of integers: what lies on an edge must not fall below it by an error of rounding.
    percents = {label: np.round(100 * own, 9) for label, own in accuracies.items()}
    counts = [np.histogram(own, EDGES)[0] for own in percents.values()]
    below = {label: (own < THRESHOLD).astype(float) for label, own in accuracies.items()}
    hot, free_lunch = below.values()
    fewer = percent(paired_difference(free_lunch, hot), signed=True)
    what = f"{setting.ways}-way-1-shot, {setting.tasks} tasks of {setting.features.name}"
    limit = f"{100 * THRESHOLD:.0f}%"
    by_accuracy = Table(
        f"Tasks by accuracy in %, {what}",
        ("accuracy", *accuracies),
        tuple(
            (f"{low} to {high}", *(Number(float(number), places=0) for number in numbers))
            for (low, high), *numbers in zip(pairwise(EDGES), *counts, strict=True)
        ),
        ("A range includes its lower end; the last includes both ends.",),
    )
    share = Table(
        f"Tasks below {limit}, in % of all, {what}",
        ("method", "share of tasks", "method minus H-OT, paired"),
        tuple((label, percent(mean_interval(own)), None if own is hot else fewer) for label, own in below.items()),
    )
    shares = [f"{100 * own.mean():.1f}% of the tasks of {label}" for label, own in below.items()]
    title = f"Tasks by accuracy, {setting.features.title}"
    figure = histogram(percents, edges=EDGES, x_label="accuracy of a task in %", label="number of tasks", title=title)
    return Findings(
        [f"{' and '.join(shares)} are below {limit}."],
        [by_accuracy, share],
        {"histogram": figure},
        claims=[claim(f"H-OT leaves fewer tasks below {limit} than Free-Lunch.", {"": fewer})],
    )
