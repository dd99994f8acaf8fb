"""Appendix table: how many base classes may lend to a support sample."""

from __future__ import annotations

from typing import Any

from hotshot.estimators import FreeLunchClassifier, HOTClassifier
from hotshot.evaluation import MethodResult
from hotshot.evaluation.tables import Cell, Table, percent
from hotshot.method.hierarchy import FREE_LUNCH_NEIGHBOURS
from hotshot.paper.experiments.claims import claim
from hotshot.paper.experiments.comparison import bar, few_tasks, gap
from hotshot.paper.experiments.experiment import Experiment
from hotshot.paper.experiments.findings import Findings
from hotshot.paper.experiments.published import published_retrieved
from hotshot.paper.experiments.setting import Setting
from hotshot.paper.figures import lines

NUMBERS: tuple[int | None, ...] = (1, 2, 5, 10, None)
METHODS = {"free-lunch": "Free-Lunch", "ot-euclidean": "High-level OT, Euclidean", "hot": "H-OT"}


def run(setting: Setting) -> Findings:
    """Accuracy of each method with the nearest 1, 2, 5, 10 and all base classes."""
    base = setting.features.base
    numbers = [k for k in NUMBERS if k is None or k < len(base.names)]
    found = {(name, k): _measured(setting, name, k) for name in METHODS for k in numbers}
    rows: list[tuple[Cell, ...]] = []
    for name, label in METHODS.items():
        rows.append((label, *(percent(found[name, k].accuracy) for k in numbers)))
        rows.append((f"{label}, in the paper (CUB)", *(published_retrieved(name, k) for k in numbers)))
    heads = ["all" if k is None else str(k) for k in numbers]
    notes = []
    if few_tasks(setting) < setting.tasks:
        notes.append(f"Free-Lunch, but for its published 2: the first {few_tasks(setting)} tasks only.")
    table = Table(
        f"{setting.ways}-way-1-shot accuracy in %, {setting.tasks} tasks of {setting.features.name}",
        ("method", *(head if head == "all" else f"nearest {head}" for head in heads)),
        tuple(rows),
        tuple(notes),
    )
    figure = lines(
        list(range(len(numbers))),
        {label: [bar(found[name, k]) for k in numbers] for name, label in METHODS.items()},
        x_names=heads,
        x_label="base classes that lend",
        label="accuracy in %",
    )
    claims = [
        claim(
            "H-OT and the high-level transport gain where all base classes lend instead of the nearest one.",
            {METHODS[name]: gap(found[name, None], found[name, 1]) for name in ("hot", "ot-euclidean")},
        )
    ]
    if FREE_LUNCH_NEIGHBOURS in numbers:
        lost = gap(found["free-lunch", FREE_LUNCH_NEIGHBOURS], found["free-lunch", None])
        claims.append(
            claim("Free-Lunch loses where all base classes lend instead of the nearest two.", {"": lost})
        )
    return Findings((), (table,), {"retrieved": figure}, claims=tuple(claims))


def _measured(setting: Setting, name: str, k: int | None) -> MethodResult:
    """One cell; where it is the method as it comes, the evaluation is the one of the other experiments."""
    base = setting.features.base
    method: Any = name
    tasks = None
    if name == "free-lunch" and k != FREE_LUNCH_NEIGHBOURS:
        method = FreeLunchClassifier(base, k=k or len(base.names), random_state=0)
        tasks = few_tasks(setting)
    elif name != "free-lunch" and k is not None:
        method = HOTClassifier(base, n_retrieved=k, cost="hierarchical" if name == "hot" else "euclidean")
    label = name if method == name else f"{name}, nearest {k or 'all'}"
    return setting.evaluate({label: method}, tasks=tasks)[label, 1]


EXPERIMENT = Experiment("retrieved", "Number of base classes that lend", "Table 6 (appendix)", run)
