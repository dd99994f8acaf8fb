"""Accuracy against a number: of base classes that lend (Table 6), and of generated features (Figure 2)."""

from typing import Any

from hotshot.classifiers import FreeLunchClassifier, HOTClassifier
from hotshot.evaluation import MethodResult
from hotshot.evaluation.tables import Cell, Table, percent
from hotshot.method.hierarchy import FREE_LUNCH_NEIGHBOURS
from hotshot.paper.figures import lines
from hotshot.paper.findings import Findings, claim, gap
from hotshot.paper.published import ROW_NAMES, published
from hotshot.paper.setting import Setting

LENDING = ("free-lunch", "ot-euclidean", "hot")
# So many of the nearest base classes lend, None being all of them.
LENDERS = (1, 2, 5, 10, None)
# Of generated features per class.
NUMBERS = (10, 50, 100, 250, 750)
# With so many, the paper has H-OT where Free-Lunch is with the most.
FEW = 50


def run_retrieved(setting: Setting) -> Findings:
    """Accuracy of each method with the nearest 1, 2, 5, 10 and all base classes."""
    numbers = [k for k in LENDERS if k is None or k < len(setting.features.base.names)]
    heads = ["all" if k is None else str(k) for k in numbers]
    found = {(name, k): _with_lenders(setting, name, k) for name in LENDING for k in numbers}
    accuracies = {name: [percent(found[name, k].accuracy) for k in numbers] for name in LENDING}
    rows: list[tuple[Cell, ...]] = []
    for name in LENDING:
        label = ROW_NAMES[name]
        rows.append((label, *accuracies[name]))
        rows.append((f"{label}, in the paper (CUB)", *(published(6, name, head) for head in heads)))
    note = f"Free-Lunch with other than 2 base classes ran on the first {setting.few_tasks} tasks only."
    table = Table(
        setting.one_shot_accuracy(),
        ("method", *(head if head == "all" else f"nearest {head}" for head in heads)),
        tuple(rows),
        (note,) if setting.few_tasks < setting.tasks else (),
    )
    figure = lines(
        list(range(len(numbers))),
        {ROW_NAMES[name]: own for name, own in accuracies.items()},
        x_names=heads,
        x_label="number of base classes that lend",
        label="accuracy in %",
        title=f"Accuracy by number of lending base classes, {setting.features.title}",
    )
    gained = {ROW_NAMES[name]: gap(found[name, None], found[name, 1]) for name in ("hot", "ot-euclidean")}
    text = "H-OT and the high-level transport gain if all base classes lend instead of the nearest one."
    claims = [claim(text, gained)]
    if FREE_LUNCH_NEIGHBOURS in numbers:
        lost = gap(found["free-lunch", FREE_LUNCH_NEIGHBOURS], found["free-lunch", None])
        text = "Free-Lunch loses if all base classes lend instead of the nearest two."
        claims.append(claim(text, {"": lost}))
    return Findings((), (table,), {"retrieved": figure}, claims=tuple(claims))


def _with_lenders(setting: Setting, name: str, k: int | None) -> MethodResult:
    """One cell; where it is the method as it comes, the evaluation is the one of the other experiments."""
    base = setting.features.base
    method: Any = name
    tasks = None
    if name == "free-lunch" and k != FREE_LUNCH_NEIGHBOURS:
        method = FreeLunchClassifier(base, k=len(base.names) if k is None else k, random_state=0)
        tasks = setting.few_tasks
    elif name != "free-lunch" and k is not None:
        method = HOTClassifier(base, n_retrieved=k, cost="hierarchical" if name == "hot" else "euclidean")
    label = name if method == name else f"{name}, nearest {'all' if k is None else k}"
    return setting.evaluate({label: method}, tasks=tasks)[label, 1]


def run_generated(setting: Setting) -> Findings:
    """H-OT and Free-Lunch with heads trained on so many generated features per class, and without generating any."""
    base = setting.features.base
    # Each point fits a logistic regression to generated features, task by task.
    tasks = setting.few_tasks
    kinds = {"H-OT": HOTClassifier, "Free-Lunch": FreeLunchClassifier}
    methods: dict[str, Any] = {}
    for label, kind in kinds.items():
        for n in NUMBERS:
            methods[f"{label}, {n}"] = kind(base, head="sampled", n_generated=n, random_state=0)
        # The virtual features of the closed form weigh as much as the most that are drawn.
        methods[f"{label}, closed form"] = kind(base, head="bound", n_generated=NUMBERS[-1])
    found = setting.evaluate(methods, tasks=tasks)
    series = {label: [found[f"{label}, {n}", 1] for n in NUMBERS] for label in kinds}
    limits = {label: found[f"{label}, closed form", 1] for label in kinds}
    note = f"{NUMBERS[-1]} is the paper's number; the closed form bounds the loss on infinitely many, weighted alike."
    table = Table(
        setting.one_shot_accuracy(tasks),
        ("method", *(f"{n} features" for n in NUMBERS), "closed form"),
        tuple((label, *(percent(each.accuracy) for each in (*series[label], limits[label]))) for label in kinds),
        (note,),
    )
    figure = lines(
        list(NUMBERS),
        {label: [percent(result.accuracy) for result in results] for label, results in series.items()},
        x_label="generated features per class",
        label="accuracy in %",
        limits={f"{label}, closed form": percent(limit.accuracy).mean for label, limit in limits.items()},
        log=True,
        title=f"Accuracy by number of generated features, {setting.features.title}",
    )
    leads = lines(
        list(NUMBERS),
        {"H-OT minus Free-Lunch": [gap(*pair) for pair in zip(*series.values(), strict=True)]},
        x_label="generated features per class",
        label="paired difference in points, 95%",
        limits={"no difference": 0.0},
        log=True,
        title=f"Lead of H-OT over Free-Lunch, {setting.features.title}",
    )
    gaps = [f"{label} {gap(limits[label], series[label][-1])}" for label in kinds]
    hot, free_lunch = series.values()
    claims = (
        claim(
            f"{NUMBERS[-1]} generated features are better than {NUMBERS[0]}, for both methods.",
            {label: gap(results[-1], results[0]) for label, results in series.items()},
        ),
        claim(
            "H-OT is ahead of Free-Lunch with the same number of generated features.",
            {str(n): gap(*pair) for n, *pair in zip(NUMBERS, hot, free_lunch, strict=True)},
        ),
        claim(
            f"H-OT with {FEW} generated features is ahead of Free-Lunch with {NUMBERS[-1]}.",
            {"": gap(hot[NUMBERS.index(FEW)], free_lunch[-1])},
        ),
    )
    words = f"Closed form minus {NUMBERS[-1]} generated features, in points: {'; '.join(gaps)}."
    return Findings((words,), (table,), {"generated": figure, "generated-differences": leads}, claims=claims)
