"""`hotshot demo`: the main job on an embedded bank, a table of accuracies, and one prediction in words."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from threadpoolctl import threadpool_limits

from hotshot.banks import EmbeddedBank, load_bank
from hotshot.episodes import Episodes, Task
from hotshot.errors import ParameterError, ScaleWarning
from hotshot.estimators import HOTClassifier, named_method
from hotshot.evaluation import mean_interval, paired_difference

DEMO_METHODS = ("hot", "free-lunch", "logistic", "centroid-cl2n", "centroid", "cosine", "matching")


def run_demo(
    bank_name: str,
    methods: list[str],
    ways: int,
    shots: str,
    queries: int,
    tasks: int,
    seed: int,
    as_json: bool,
) -> None:
    """Evaluate, print, explain."""
    numbers = _numbers(shots)
    if tasks < 1:
        raise ParameterError(f"--tasks must be at least 1, got {tasks}.")
    bank = load_bank(bank_name)
    for method in methods:
        named_method(method, bank.base)
    console = Console(stderr=as_json)
    if not as_json:
        console.print(f"[bold]{bank.about}[/bold]")
        console.print(
            f"{len(bank.base.names)} base classes, {len(np.unique(bank.y_novel))} novel classes, "
            f"{bank.base.n_features} features.\n"
        )
    results: list[dict[str, Any]] = []
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn(), console=console, transient=True
    ) as progress:
        for k in numbers:
            episodes = Episodes(bank.y_novel, ways=ways, shots=k, queries=queries, seed=seed)
            reference = None
            for method in methods:
                label = f"{method}, {k} shot{'s' * (k > 1)}"
                drawn = progress.track(episodes.take(tasks), total=tasks, description=label)
                scores = 100 * _accuracies(method, bank, drawn)
                reference = scores if reference is None else reference
                results.append(_row(method, k, scores, reference))
    if as_json:
        request = {"bank": bank_name, "ways": ways, "queries": queries, "tasks": tasks, "seed": seed}
        print(json.dumps({"request": request, "results": results}, indent=2))
        return
    for k in numbers:
        rows = [row for row in results if row["shots"] == k]
        console.print(_table(f"{ways}-way-{k}-shot, {tasks} tasks", methods[0], rows))
    console.print(Markdown(_explained(bank, ways, queries, seed)))


def _numbers(shots: str) -> list[int]:
    try:
        return [int(k) for k in shots.split(",")]
    except ValueError:
        raise ParameterError(
            f"--shots must be whole numbers with commas, such as 1,5, got {shots!r}."
        ) from None


def _accuracies(method: str, bank: EmbeddedBank, tasks: Iterable[Task]) -> np.ndarray:
    scores = []
    # Problems this small gain nothing from threads, and lose much where the cores are busy.
    with warnings.catch_warnings(), threadpool_limits(1):
        # The published parameters of Free-Lunch are compared as they are, whatever the scale.
        warnings.simplefilter("ignore", ScaleWarning)
        for task in tasks:
            model = named_method(method, bank.base).fit(bank.X_novel[task.support], task.support_labels)
            scores.append(np.mean(model.predict(bank.X_novel[task.query]) == task.query_labels))
    return np.array(scores)


def _row(method: str, shots: int, scores: np.ndarray, reference: np.ndarray) -> dict[str, Any]:
    own, difference = mean_interval(scores), paired_difference(reference, scores)
    return {
        "method": method,
        "shots": shots,
        "accuracy": own.mean,
        "accuracy_half_width": own.half_width,
        "first_minus_this": difference.mean,
        "first_minus_this_half_width": difference.half_width,
    }


def _table(title: str, first: str, rows: list[dict[str, Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("method")
    table.add_column("accuracy in %, 95% interval", justify="right")
    table.add_column(f"{first} minus it, paired, 95%", justify="right")
    for row in rows:
        own = f"{row['accuracy']:.2f} ± {row['accuracy_half_width']:.2f}"
        difference = f"{row['first_minus_this']:+.2f} ± {row['first_minus_this_half_width']:.2f}"
        table.add_row(row["method"], own, "" if row["method"] == first else difference)
    return table


def _explained(bank: EmbeddedBank, ways: int, queries: int, seed: int) -> str:
    """Loans of the first one-shot task and the reason of its first prediction."""
    task = Episodes(bank.y_novel, ways=ways, shots=1, queries=queries, seed=seed)[0]
    model = HOTClassifier(bank.base).fit(bank.X_novel[task.support], task.support_labels)
    explanation = model.explain(bank.X_novel[task.query[:1]])
    lines = [
        "**Why? The first one-shot task, explained.**",
        *(f"- {loan.in_words(3)}" for loan in explanation.loans),
        "",
        f"{explanation.reasons[0].in_words()} Its true class is `{task.query_labels[0]}`.",
    ]
    return "\n".join(lines)
