"""`hotshot demo`: accuracies of methods on an embedded bank, and one prediction explained."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli import inputs
from hotshot.cli.evaluate import parse_methods, print_accuracies
from hotshot.cli.terminal import Console, Watching, print_notes

if TYPE_CHECKING:
    from hotshot.base.embedded import EmbeddedBank
    from hotshot.evaluation.tasks import Task

METHODS = "hot,free-lunch,logistic,centroid-cl2n,centroid,cosine,matching"
MOST_LOANS = 5


def demo(
    bank: Annotated[
        str, typer.Option(help=f"Embedded bank: {inputs.BANKS}.", autocompletion=inputs.one_of(inputs.bank_names))
    ] = "banking77",
    methods: Annotated[
        str,
        typer.Option(
            help="Comma-separated methods; the others are compared with the first.",
            autocompletion=inputs.several_of(inputs.method_names),
        ),
    ] = METHODS,
    ways: Annotated[str | None, inputs.ways_option(f"{inputs.WAYS} Default: 5, or 20 for omniglot.")] = None,
    shots: inputs.Shots = "1,5",
    queries: inputs.AnyQueries = "15",
    tasks: Annotated[
        int | None, inputs.number("Tasks per number of shots. Default: 50 with 5 ways, 12 with 20.")
    ] = None,
    seed: inputs.Seed = 0,
    as_json: inputs.Json = False,
) -> None:
    """Compare H-OT with baselines on an embedded bank, and explain one prediction."""
    import numpy as np
    from rich.markdown import Markdown

    from hotshot import evaluation
    from hotshot.base.embedded import load_bank
    from hotshot.evaluation.tasks import Episodes, check_shots

    wanted, chosen = check_shots(shots.split(",")), parse_methods(methods)
    data = load_bank(bank)
    size: dict[str, Any] = {"ways": data.ways if ways is None else ways, "queries": queries, "seed": seed}
    first = Episodes(data.y_novel, shots=1, **size)[0]
    # Fewer of the larger tasks, which take longer.
    size["tasks"] = tasks = max(10, 250 // len(first.support)) if tasks is None else tasks
    console = Console(stderr=as_json)
    if not as_json:
        console.print(f"[bold]{data.about}[/bold]")
        console.print(
            f"{len(data.base.names)} base classes, {len(np.unique(data.y_novel))} novel classes, "
            f"{data.base.n_features} features.\n"
        )
    with Watching(console, tasks * len(wanted) * len(chosen)) as watching:
        found = evaluation.evaluate(
            chosen, data.X_novel, data.y_novel, base=data.base, shots=wanted, watch=watching, **size
        )
    if as_json:
        print(json.dumps({"request": {"bank": bank, **size}, "results": found.rows()}, indent=2))
        return
    print_accuracies(console, found)
    print_notes(console, watching.notes)
    console.print(Markdown(_explained(data, first)))


def _explained(bank: EmbeddedBank, task: Task) -> str:
    """Transfer weights of a one-shot task, and the reason of its first prediction."""
    from hotshot.estimators import HOTClassifier

    model = HOTClassifier(bank.base).fit(bank.X_novel[task.support], task.support_labels)
    explanation = model.explain(bank.X_novel[task.query[:1]])
    more = len(task.support) - MOST_LOANS
    lines = [
        "**Explanation of the first one-shot task**",
        *(f"- {loan.in_words(3)}" for loan in explanation.loans[:MOST_LOANS]),
        *([f"- … and {more} more classes."] if more > 0 else []),
        "",
        f"{explanation.reasons[0].in_words()} Its true class is `{task.query_labels[0]}`.",
    ]
    return "\n".join(lines)
