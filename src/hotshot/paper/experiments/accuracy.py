"""Tables 1, 2 and 4, Figure 4 of the appendix: accuracy of H-OT and other classifiers by dataset, backbone and task."""

from itertools import pairwise
from typing import Any

import numpy as np

from hotshot.estimators import HOTClassifier
from hotshot.evaluation import MethodResult, mean_interval, paired_difference
from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.formatting import shots_in_words
from hotshot.paper.figures import grouped_bars, histogram
from hotshot.paper.findings import Claim, Experiment, Findings, bar, claim, gap, leads, paired, standing
from hotshot.paper.published import SHOTS, published_backbone, published_dataset, published_systems
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
BACKBONE_COLUMNS = (
    "backbone", "width", "Free-Lunch", "H-OT", "H-OT minus Free-Lunch, paired", "Free-Lunch in the paper",
    "H-OT in the paper",
)  # fmt: skip
BOTH = ("hot", "free-lunch")
# Of the histogram, in percent, and the accuracy below which the paper calls a task badly classified.
EDGES, THRESHOLD = np.arange(0, 101, 10), 0.6
Results = dict[tuple[str, int], MethodResult]


def run_accuracy(setting: Setting) -> Findings:
    """A table and a figure for each feature set."""
    sentences, tables, figures = [], [], {}
    claims: list[Claim] = []
    names = methods(setting)
    sets = (setting.features, *setting.others)
    for number, features in enumerate(sets, 1):
        found = measure(setting, features)
        where = f" on {features.title}" if len(sets) > 1 else ""
        for k in SHOTS:
            shown = {name: label.partition(" (")[0] for name, label in names.items() if name != "hot"}
            differences = {label: paired(found["hot", k], found[name, k]) for name, label in shown.items()}
            sentences.append(f"{features.title}, {shots_in_words(k)}: {standing(differences)}")
            claims += _claims(found, k, where)
        tables.append(_table(setting, features, found))
        suffix = "" if number == 1 else f"-{number}"
        order = sorted(names, key=lambda name: -found[name, SHOTS[0]].accuracy.mean)
        figures[f"accuracy{suffix}"] = grouped_bars(
            [names[name] for name in order],
            {shots_in_words(k): [bar(found[name, k]) for name in order] for k in SHOTS},
            label="accuracy in %",
            title=f"Accuracy by method, {features.title}",
        )
        figures[f"accuracy-differences{suffix}"] = leads(
            {names[name]: [gap(found["hot", k], found[name, k]) for k in SHOTS] for name in names if name != "hot"},
            [shots_in_words(k) for k in SHOTS],
            "method",
            features.title,
        )
    return Findings(tuple(sentences), tuple(tables), figures, claims=tuple(claims))


def methods(setting: Setting) -> dict[str, str]:
    """What is measured, by the name of its evaluation, as tables have it."""
    tuned = {} if setting.tuned is None else {TUNED: "H-OT tuned on validation classes"}
    return {"hot": METHODS["hot"], **tuned, **METHODS}


def measure(setting: Setting, features: FeatureSet) -> Results:
    """Every method at 1 and 5 shots."""
    estimators: dict[str, Any] = {AUTHORS: hot_as_published(features, head="bound")}
    if setting.tuned is not None:
        estimators[TUNED] = HOTClassifier(features.base, **setting.tuned)
    found: Results = {}
    for name in methods(setting):
        for k in SHOTS:
            tasks = setting.few_tasks if (name, k) in SLOW else None
            method = {name: estimators.get(name, name)}
            found[name, k] = setting.evaluate(method, shots=(k,), features=features, tasks=tasks)[name, k]
    return found


def _table(setting: Setting, features: FeatureSet, found: Results) -> Table:
    columns, rows = ["method"], []
    for k in SHOTS:
        columns += [shots_in_words(k), f"lead of H-OT, {shots_in_words(k)}, paired"]
    columns += ["features", "source"]
    for name, label in methods(setting).items():
        row: list[Cell] = [label]
        for k in SHOTS:
            difference = None if name == "hot" else gap(found["hot", k], found[name, k])
            row += [percent(found[name, k].accuracy), difference]
        rows.append((*row, features.backbone or "as given", "measured"))
    for system in published_systems(features.name):
        row = [system.name]
        for k in SHOTS:
            row += [system.accuracies[k], None]
        rows.append((*row, system.backbone, f"published, by {system.source}"))
    title = f"{setting.ways}-way accuracy in %, {setting.tasks} tasks of {features.title}"
    return Table(title, tuple(columns), tuple(rows), _notes(setting, features))


def _notes(setting: Setting, features: FeatureSet) -> tuple[str, ...]:
    notes = [
        "With the authors' parameters, the closed-form bound of the expected loss replaces 750 generated features per "
        "class."
    ]
    if setting.few_tasks < setting.tasks:
        notes.append(
            f"Slow methods ran on the first {setting.few_tasks} tasks only: authors' parameters, Free-Lunch at 5 shots."
        )
    if published_systems(features.name):
        notes.append(
            "The published systems used other features and other 5-way tasks: differences to them cannot be paired."
        )
    if published_dataset(features.name) == "CIFAR-FS":
        notes.append("For Free-Lunch on WRN28+RTloss at 1 shot, Table 3 of the paper prints 74.94 ± 0.64 instead.")
    return tuple(notes)


def _claims(found: Results, shots: int, where: str) -> tuple[Claim, ...]:
    where = f"at {shots_in_words(shots)}{where}"
    hot, authors, free_lunch = (found[name, shots] for name in ("hot", AUTHORS, "free-lunch"))
    others = {
        label.partition(" (")[0]: gap(hot, found[name, shots])
        for name, label in METHODS.items()
        if name not in ("hot", AUTHORS, "free-lunch")
    }
    return (
        claim(f"H-OT is ahead of Free-Lunch {where}.", {"": gap(hot, free_lunch)}),
        claim(f"With the authors' parameters, H-OT is ahead of Free-Lunch {where}.", {"": gap(authors, free_lunch)}),
        claim(f"H-OT is ahead of every other classifier {where}.", others),
    )


def run_backbones(setting: Setting) -> Findings:
    """Accuracy of both methods on every feature set of the main dataset, and how far H-OT is ahead."""
    own = setting.features
    dataset = published_dataset(own.name) or own.name
    same = (other for other in setting.others if (published_dataset(other.name) or other.name) == dataset)
    sets = (own, *same)
    # The paper compares backbones on this dataset alone.
    in_paper = dataset == "miniImageNet"
    rows: list[tuple[Cell, ...]] = []
    differences = {}
    for number, features in enumerate(sets, 1):
        label = features.backbone or ("as given" if len(sets) == 1 else f"feature set {number}")
        found = setting.evaluate(BOTH, features=features)
        hot, free_lunch = found["hot", 1], found["free-lunch", 1]
        differences[label] = gap(hot, free_lunch)
        published = [
            published_backbone(features.backbone, method) if in_paper else None for method in ("free-lunch", "hot")
        ]
        width = Number(features.base.n_features, places=0)
        accuracies = percent(free_lunch.accuracy), percent(hot.accuracy)
        rows.append((label, width, *accuracies, differences[label], *published))
    title = f"{setting.ways}-way-1-shot accuracy in %, {setting.tasks} tasks of {own.name}"
    alone = f"Only one backbone was given: --other adds features of {own.name} from other backbones."
    return Findings(
        (alone,) if len(sets) == 1 else (),
        (Table(title, BACKBONE_COLUMNS, tuple(rows)),),
        claims=(claim("H-OT is ahead of Free-Lunch with every backbone.", differences),),
    )


def run_histogram(setting: Setting) -> Findings:
    """Tasks by accuracy for both methods, and the difference in how many are below 60%."""
    found = setting.evaluate(BOTH)
    accuracies = {METHODS[name]: found[name, 1].accuracies for name in BOTH}
    # Accuracies are ratios of integers: what lies on an edge must not fall below it by an error of rounding.
    percents = {label: np.round(100 * own, 9) for label, own in accuracies.items()}
    counts = {label: np.histogram(own, EDGES)[0] for label, own in percents.items()}
    below = {label: (own < THRESHOLD).astype(float) for label, own in accuracies.items()}
    hot, free_lunch = below.values()
    fewer = percent(paired_difference(free_lunch, hot), signed=True)
    what = f"{setting.ways}-way-1-shot, {setting.tasks} tasks of {setting.features.name}"
    tables = (
        Table(
            f"Tasks by accuracy in %, {what}",
            ("accuracy", *counts),
            tuple(
                (f"{low} to {high}", *(Number(float(own[i]), places=0) for own in counts.values()))
                for i, (low, high) in enumerate(pairwise(EDGES))
            ),
            ("A range includes its lower end; the last includes both ends.",),
        ),
        Table(
            f"Tasks below {100 * THRESHOLD:.0f}%, in % of all, {what}",
            ("method", "share of tasks", "method minus H-OT, paired"),
            tuple((label, percent(mean_interval(own)), None if own is hot else fewer) for label, own in below.items()),
        ),
    )
    shares = [f"{100 * own.mean():.1f}% of the tasks of {label}" for label, own in below.items()]
    sentence = f"{' and '.join(shares)} are below {100 * THRESHOLD:.0f}%."
    text = f"H-OT leaves fewer tasks below {100 * THRESHOLD:.0f}% than Free-Lunch."
    title = f"Tasks by accuracy, {setting.features.title}"
    figure = histogram(percents, edges=EDGES, x_label="accuracy of a task in %", label="number of tasks", title=title)
    return Findings((sentence,), tables, {"histogram": figure}, claims=(claim(text, {"": fewer}),))


ACCURACY = Experiment("accuracy", "Accuracy on each dataset", "Tables 1 and 2", run_accuracy)
OTHERS = "features of the same dataset from other backbones"
BACKBONES = Experiment("backbones", "Backbones", "Table 4", run_backbones, OTHERS)
HISTOGRAM = Experiment("histogram", "Tasks by accuracy", "Figure 4 (appendix)", run_histogram)
