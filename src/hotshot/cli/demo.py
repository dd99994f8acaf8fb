"""`hotshot demo`: the main job on an embedded bank, a table of accuracies, and one prediction in words."""

import json
from typing import Annotated, Any

import numpy as np
import typer
from rich.markdown import Markdown

from hotshot import evaluation
from hotshot.base.embedded import BANK_NAMES, EmbeddedBank, load_bank
from hotshot.cli.evaluate import method_names, print_accuracies
from hotshot.cli.inputs import AnyQueries, Json, Seed, Shots, number, one_of, several_of, ways_option
from hotshot.cli.terminal import Console, Watching, print_notes
from hotshot.estimators import METHOD_NAMES, HOTClassifier
from hotshot.evaluation.tasks import Episodes, Task, check_shots

METHODS = "hot,free-lunch,logistic,centroid-cl2n,centroid,cosine,matching"
MOST_LOANS = 5


def demo(
    bank: Annotated[
        str, typer.Option(help=f"Embedded bank: {', '.join(BANK_NAMES)}.", autocompletion=one_of(BANK_NAMES))
    ] = "banking77",
    methods: Annotated[
        str,
        typer.Option(
            help="Methods to compare, by name; the first is compared to the others.",
            autocompletion=several_of(METHOD_NAMES),
        ),
    ] = METHODS,
    ways: Annotated[str | None, ways_option("Classes per task; 5, or 20 of omniglot, by default.")] = None,
    shots: Shots = "1,5",
    queries: AnyQueries = "15",
    tasks: Annotated[int | None, number("Tasks for each number of shots; 50 of 5 ways, 12 of 20 by default.")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Compare H-OT with its baselines on features that come with hotshot; explain a prediction."""
    wanted, chosen = check_shots(shots.split(",")), method_names(methods)
    data = load_bank(bank)
    size: dict[str, Any] = {"ways": data.ways if ways is None else ways, "queries": queries, "seed": seed}
    first = Episodes(data.y_novel, shots=1, **size)[0]
    # Larger tasks take longer and tell more.
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
    """Loans of a one-shot task and the reason of its first prediction."""
    model = HOTClassifier(bank.base).fit(bank.X_novel[task.support], task.support_labels)
    explanation = model.explain(bank.X_novel[task.query[:1]])
    more = len(task.support) - MOST_LOANS
    lines = [
        "**Why? The first one-shot task, explained.**",
        *(f"- {loan.in_words(3)}" for loan in explanation.loans[:MOST_LOANS]),
        *([f"- … and {more} classes more."] if more > 0 else []),
        "",
        f"{explanation.reasons[0].in_words()} Its true class is `{task.query_labels[0]}`.",
    ]
    return "\n".join(lines)
