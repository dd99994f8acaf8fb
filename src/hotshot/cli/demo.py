"""`hotshot demo`: the main job on an embedded bank, a table of accuracies, and one prediction in words."""

from __future__ import annotations

import json
import warnings

import numpy as np
from rich.console import Console
from rich.markdown import Markdown

from hotshot.base.embedded import EmbeddedBank, load_bank
from hotshot.cli.data import numbers
from hotshot.cli.progress import Watching
from hotshot.cli.tables import accuracy_tables, scale_notes
from hotshot.errors import ScaleWarning
from hotshot.estimators import HOTClassifier
from hotshot.evaluation import evaluate
from hotshot.evaluation.tasks import Episodes

DEMO_METHODS = ("hot", "free-lunch", "logistic", "centroid-cl2n", "centroid", "cosine", "matching")
MOST_LOANS = 5


def run_demo(
    bank_name: str,
    methods: list[str],
    ways: int | None,
    shots: str,
    queries: int,
    tasks: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Evaluate, print, explain."""
    wanted = numbers(shots)
    bank = load_bank(bank_name)
    ways = bank.ways if ways is None else ways
    # Larger tasks take longer and tell more.
    tasks = max(10, 250 // max(ways, 1)) if tasks is None else tasks
    console = Console(stderr=as_json)
    if not as_json:
        console.print(f"[bold]{bank.about}[/bold]")
        console.print(
            f"{len(bank.base.names)} base classes, {len(np.unique(bank.y_novel))} novel classes, "
            f"{bank.base.n_features} features.\n"
        )
    total = tasks * len(wanted) * len(methods)
    with Watching(console, total) as watching, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ScaleWarning)
        found = evaluate(
            methods,
            bank.X_novel,
            bank.y_novel,
            base=bank.base,
            ways=ways,
            shots=wanted,
            queries=queries,
            tasks=tasks,
            seed=seed,
            watch=watching,
        )
    if as_json:
        request = {"bank": bank_name, "ways": ways, "queries": queries, "tasks": tasks, "seed": seed}
        print(json.dumps({"request": request, "results": found.rows()}, indent=2))
        return
    for table in accuracy_tables(found):
        console.print(table)
    for line in scale_notes(caught):
        console.print(f"Note: {line}", markup=False, style="yellow")
    console.print(Markdown(_explained(bank, ways, queries, seed)))


def _explained(bank: EmbeddedBank, ways: int, queries: int, seed: int) -> str:
    """Loans of the first one-shot task and the reason of its first prediction."""
    task = Episodes(bank.y_novel, ways=ways, shots=1, queries=queries, seed=seed)[0]
    model = HOTClassifier(bank.base).fit(bank.X_novel[task.support], task.support_labels)
    explanation = model.explain(bank.X_novel[task.query[:1]])
    lines = [
        "**Why? The first one-shot task, explained.**",
        *(f"- {loan.in_words(3)}" for loan in explanation.loans[:MOST_LOANS]),
        *([f"- … and {ways - MOST_LOANS} classes more."] if ways > MOST_LOANS else []),
        "",
        f"{explanation.reasons[0].in_words()} Its true class is `{task.query_labels[0]}`.",
    ]
    return "\n".join(lines)
