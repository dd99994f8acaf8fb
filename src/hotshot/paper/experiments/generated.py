"""Figure 2: accuracy against the number of generated features, and the limit that the expected loss is."""

from __future__ import annotations

from hotshot.estimators import FreeLunchClassifier, HOTClassifier
from hotshot.evaluation.tables import Table, percent
from hotshot.paper.experiments.claims import claim
from hotshot.paper.experiments.comparison import bar, few_tasks, gap
from hotshot.paper.experiments.experiment import Experiment
from hotshot.paper.experiments.findings import Findings
from hotshot.paper.experiments.setting import Setting
from hotshot.paper.figures import lines

NUMBERS = (10, 50, 100, 250, 750)
# With so many, the paper has H-OT where Free-Lunch is with the most.
FEW = 50


def run(setting: Setting) -> Findings:
    """H-OT and Free-Lunch with heads trained on so many generated features per class, and on their expectation."""
    base = setting.features.base
    # Each point fits a logistic regression to generated features, task by task.
    tasks = few_tasks(setting)
    kinds = {"H-OT": HOTClassifier(base), "Free-Lunch": FreeLunchClassifier(base)}
    # The virtual features of the expected loss weigh as much as the most that are drawn.
    methods = {
        f"{label}, {n or 'expected'}": type(kind)(
            base, head="sampled" if n else "expected", n_generated=n or NUMBERS[-1], random_state=0
        )
        for label, kind in kinds.items()
        for n in (*NUMBERS, None)
    }
    found = setting.evaluate(methods, tasks=tasks)
    series = {label: [found[f"{label}, {n}", 1] for n in NUMBERS] for label in kinds}
    limits = {label: found[f"{label}, expected", 1] for label in kinds}
    table = Table(
        f"{setting.ways}-way-1-shot accuracy in %, {tasks} tasks of {setting.features.name}",
        ("method", *(f"{n} features" for n in NUMBERS), "expected loss"),
        tuple(
            (label, *(percent(e.accuracy) for e in series[label]), percent(limits[label].accuracy))
            for label in kinds
        ),
        (
            f"{NUMBERS[-1]} is the paper's number; the expected loss is the limit of infinitely many of that weight.",
        ),
    )
    figure = lines(
        list(NUMBERS),
        {label: [bar(result) for result in points] for label, points in series.items()},
        x_label="generated features per class",
        label="accuracy in %",
        limits={f"{label}, expected": bar(e)[0] for label, e in limits.items()},
        log=True,
    )
    gaps = [f"{label} {gap(limits[label], series[label][-1])}" for label in kinds]
    hot, free_lunch = series.values()
    claims = (
        claim(
            f"{NUMBERS[-1]} generated features are better than {NUMBERS[0]}, for both methods.",
            {label: gap(points[-1], points[0]) for label, points in series.items()},
        ),
        claim(
            "H-OT is ahead of Free-Lunch with as many generated features.",
            {str(n): gap(*pair) for n, *pair in zip(NUMBERS, hot, free_lunch, strict=True)},
        ),
        claim(
            f"H-OT with {FEW} generated features is ahead of Free-Lunch with {NUMBERS[-1]}.",
            {"": gap(hot[NUMBERS.index(FEW)], free_lunch[-1])},
        ),
    )
    return Findings(
        (f"The expected loss against {NUMBERS[-1]} generated features, in points: {'; '.join(gaps)}.",),
        (table,),
        {"generated": figure},
        claims=claims,
    )


EXPERIMENT = Experiment("generated", "Number of generated features", "Figure 2", run)
