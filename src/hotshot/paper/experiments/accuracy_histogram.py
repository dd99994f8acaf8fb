"""Figure 4 of the appendix: how many tasks end at which accuracy, and how many end badly."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from hotshot.evaluation import mean_interval, paired_difference
from hotshot.evaluation.tables import Number, Table, percent
from hotshot.paper.figures import histogram
from hotshot.paper.findings import Experiment, Findings, claim
from hotshot.paper.setting import Setting

EDGES = np.arange(0, 101, 10)
# Below it the paper calls a task badly classified.
THRESHOLD = 0.6
METHODS = {"hot": "H-OT", "free-lunch": "Free-Lunch"}


def run(setting: Setting) -> Findings:
    """Tasks by accuracy for both methods, and the difference in how many are below 60%."""
    found = setting.evaluate(tuple(METHODS))
    accuracies = {label: found[name, 1].accuracies for name, label in METHODS.items()}
    # Accuracies are ratios of integers: what lies on an edge must not fall below it by an error of rounding.
    percents = {label: np.round(100 * own, 9) for label, own in accuracies.items()}
    counts = {label: np.histogram(own, EDGES)[0] for label, own in percents.items()}
    below = {label: (own < THRESHOLD).astype(float) for label, own in accuracies.items()}
    hot, free_lunch = below.values()
    fewer = paired_difference(free_lunch, hot)
    what = f"{setting.ways}-way-1-shot, {setting.tasks} tasks of {setting.features.name}"
    tables = (
        Table(
            f"Tasks by accuracy in %, {what}",
            ("accuracy", *counts),
            tuple(
                (f"{low} to {high}", *(Number(float(own[i]), places=0) for own in counts.values()))
                for i, (low, high) in enumerate(pairwise(EDGES))
            ),
            ("A range holds its lower end; the last one holds both.",),
        ),
        Table(
            f"Tasks below {100 * THRESHOLD:.0f}%, in % of all, {what}",
            ("method", "share of tasks", "it minus H-OT, paired"),
            tuple(
                (label, percent(mean_interval(own)), None if own is hot else percent(fewer, signed=True))
                for label, own in below.items()
            ),
        ),
    )
    shares = [f"{100 * own.mean():.1f}% of the tasks of {label}" for label, own in below.items()]
    sentence = f"{' and '.join(shares)} are below {100 * THRESHOLD:.0f}%."
    text = f"H-OT leaves fewer tasks below {100 * THRESHOLD:.0f}% than Free-Lunch."
    title = setting.features.title
    figure = histogram(percents, edges=EDGES, x_label="accuracy of a task in %", label="tasks", title=title)
    return Findings(
        (sentence,), tables, {"histogram": figure}, claims=(claim(text, {"": percent(fewer, signed=True)}),)
    )


HISTOGRAM = Experiment("histogram", "Tasks by accuracy", "Figure 4 (appendix)", run)
