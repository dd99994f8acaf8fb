"""How accurate and how fast H-OT and other classifiers are: by dataset (Tables 1, 2), backbone (Table 4) and task
(Figure 4), and seconds per task (Table 5).
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from hotshot.classifiers import FreeLunchClassifier, HOTClassifier, parameter_set
from hotshot.evaluation import mean_interval, paired_difference
from hotshot.evaluation.tables import Cell, Number, Table, percent
from hotshot.formatting import shots_in_words
from hotshot.paper.figures import histogram
from hotshot.paper.findings import FAILS, HOLDS, UNDECIDED, Claim, Findings, claim, dots, gap
from hotshot.paper.published import POWERS, SHOTS, published, published_dataset, published_systems
from hotshot.paper.setting import FeatureSet, Setting

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
AUTHORS_NOTE = (
    "Authors' parameters: the closed-form bound of the expected loss replaces 750 generated features per class."
)
PUBLISHED_NOTE = "Published systems used other features and other 5-way tasks: differences to them cannot be paired."
HEADS = {k: shots_in_words(k) for k in SHOTS}
LEADS = {k: f"lead of H-OT, {head}, paired" for k, head in HEADS.items()}
BACKBONE_COLUMNS = (
    "backbone", "width", "Free-Lunch", "H-OT", "H-OT minus Free-Lunch, paired", "Free-Lunch in the paper",
    "H-OT in the paper",
)  # fmt: skip
BOTH = ("hot", "free-lunch")
# Of the histogram, in percent, and the accuracy below which the paper calls a task badly classified.
EDGES, THRESHOLD = np.arange(0, 101, 10), 0.6
FREE_LUNCH, HOT_AS_PUBLISHED, HOT = "Free-Lunch, as published", "H-OT, as published", "H-OT"
# Tasks that are timed: few of the slow methods.
FEW, MORE = 20, 200
# Times closer than this share decide nothing: so much they differ between two runs on a shared machine.
TOLERANCE = 0.2


def hot_as_published(features: FeatureSet, **changes: Any) -> HOTClassifier:
    """H-OT with the parameters of its authors' program, and the power that the paper took for the dataset.

    The power is 0.5 for datasets that the paper has not. Features with negative entries have no such power and stay
    as they are.
    """
    power = features.base.power("auto")
    if power != 1:
        power = POWERS.get(published_dataset(features.name) or "", power)
    return HOTClassifier(features.base, **parameter_set("authors", power=power, **changes))


# --- Tables 1 and 2


def run_accuracy(setting: Setting) -> Findings:
    """A table and two figures for each feature set."""
    tables, figures, claims = [], {}, []
    for number, features in enumerate((setting.features, *setting.others), 1):
        table, found = _accuracy_on(setting, features)
        tables.append(table)
        claims += found
        suffix = f"-{number}" * (number > 1)
        figures[f"accuracy{suffix}"] = dots(table, *HEADS.values())
        figures[f"accuracy-differences{suffix}"] = dots(table, *LEADS.values())
    return Findings([], tables, figures, claims)


def _accuracy_on(setting: Setting, features: FeatureSet) -> tuple[Table, list[Claim]]:
    labels, estimators = METHODS, {AUTHORS: hot_as_published(features, head="bound")}
    if setting.tuned is not None:
        labels = {"hot": METHODS["hot"], TUNED: "H-OT tuned on validation classes", **METHODS}
        estimators[TUNED] = HOTClassifier(features.base, **setting.tuned)
    results, ahead = {}, {}
    for name in labels:
        for k in SHOTS:
            tasks = setting.few_tasks if (name, k) in SLOW else None
            method = {name: estimators.get(name, name)}
            results[name, k] = setting.evaluate(method, shots=(k,), features=features, tasks=tasks)[name, k]
            if name != "hot":
                ahead[name, k] = gap(results["hot", k], results[name, k])

    claims, where = [], f" on {features.title}" * bool(setting.others)
    for k, head in HEADS.items():
        rivals = {
            label.partition(" (")[0]: ahead[name, k]
            for name, label in labels.items()
            if name not in ("hot", AUTHORS, TUNED, "free-lunch")
        }
        authors = gap(results[AUTHORS, k], results["free-lunch", k])
        claims += [
            claim(f"H-OT is ahead of Free-Lunch at {head}{where}.", ahead["free-lunch", k]),
            claim(f"With the authors' parameters, H-OT is ahead of Free-Lunch at {head}{where}.", authors),
            claim(f"H-OT is ahead of every other classifier at {head}{where}.", rivals),
        ]

    rows: list[tuple[Cell, ...]] = []
    for name, label in labels.items():
        cells = [cell for k in SHOTS for cell in (percent(results[name, k].accuracy), ahead.get((name, k)))]
        rows.append((label, *cells, features.backbone or "as given", "measured"))
    for system, backbone, source, (one, five) in published_systems(features.name):
        rows.append((system, one, None, five, None, backbone, f"published, by {source}"))
    columns = ("method", *(column for k in SHOTS for column in (HEADS[k], LEADS[k])), "features", "source")
    title = f"{setting.ways}-way accuracy in %, {setting.tasks} tasks of {features.title}"
    notes = (AUTHORS_NOTE, *setting.few_note("Slow methods", ": authors' parameters, Free-Lunch at 5 shots"))
    return Table(title, columns, tuple(rows), (*notes, *[PUBLISHED_NOTE] * (len(rows) > len(labels)))), claims


# --- Table 4


def run_backbones(setting: Setting) -> Findings:
    """Accuracy of both methods on every feature set of the main dataset, and how far H-OT is ahead."""
    dataset = published_dataset(setting.features.name) or setting.features.name
    same = [each for each in setting.others if (published_dataset(each.name) or each.name) == dataset]
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


# --- Figure 4


def run_histogram(setting: Setting) -> Findings:
    """Tasks by accuracy for both methods, and the difference in how many are below 60%."""
    results = setting.evaluate(BOTH)
    accuracies = {METHODS[name]: results[name, 1].accuracies for name in BOTH}
    # Accuracies are ratios of integers: what lies on an edge must not fall below it by an error of rounding.
    percents = {label: np.round(100 * values, 9) for label, values in accuracies.items()}
    counts = [np.histogram(values, EDGES)[0] for values in percents.values()]
    hot, free_lunch = ((values < THRESHOLD).astype(float) for values in accuracies.values())
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
        (
            (METHODS["hot"], percent(mean_interval(hot)), None),
            (METHODS["free-lunch"], percent(mean_interval(free_lunch)), fewer),
        ),
    )
    figure = histogram(percents, edges=EDGES, title=by_accuracy.title)
    below = claim(f"H-OT leaves fewer tasks below {limit} than Free-Lunch.", fewer)
    return Findings([], [by_accuracy, share], {"histogram": figure}, [below])


# --- Table 5


def run_speed(setting: Setting) -> Findings:
    """Milliseconds of one core per task, drawing it, fitting and predicting, beside the paper's."""
    base, dataset = setting.features.base, setting.features.name
    methods = {
        FREE_LUNCH: FreeLunchClassifier(base),
        HOT_AS_PUBLISHED: hot_as_published(setting.features),
        HOT: HOTClassifier(base),
    }
    columns = {FREE_LUNCH: "free-lunch", HOT_AS_PUBLISHED: "hot"}
    # One process, so that no other wants the same memory.
    alone = replace(setting, n_jobs=1)
    seconds, rows = {}, []
    for label, method in methods.items():
        # Names of their own, so that no evaluation is taken over from an experiment that ran on all cores.
        name = f"{label}, timed"
        results = alone.evaluate({name: method}, shots=SHOTS, tasks=min(setting.tasks, MORE if label == HOT else FEW))
        seconds[label] = {k: results[name, k].seconds_per_task for k in SHOTS}
        in_paper = [published(5, dataset, f"{columns[label]}, {k}") if label in columns else None for k in SHOTS]
        rows.append(
            (
                label,
                *(Number(1000 * seconds[label][k]) for k in SHOTS),
                *(each and Number(1000 * each.mean, published=True) for each in in_paper),
            )
        )
    table = Table(
        f"Milliseconds per {setting.ways}-way task on one core, {dataset}",
        ("method", *HEADS.values(), *(f"{head}, in the paper" for head in HEADS.values())),
        tuple(rows),
        (
            f"As published: 750 generated features per class; {min(setting.tasks, FEW)} tasks.",
            "The times of the paper are from a 3.7 GHz Pentium PC.",
        ),
    )
    claims = []
    for k, head in HEADS.items():
        ratio = seconds[HOT_AS_PUBLISHED][k] / seconds[FREE_LUNCH][k]
        verdict = UNDECIDED if abs(ratio - 1) < TOLERANCE else HOLDS if ratio > 1 else FAILS
        text = f"As published, H-OT takes longer than Free-Lunch at {head}."
        claims.append(Claim(text, verdict, f"{ratio:.2f} times as long"))
    return Findings([], [table], {}, claims)
