"""`hotshot demo`: accuracies of methods on an embedded bank, and one prediction explained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from hotshot.cli import options
from hotshot.cli.evaluate import parse_methods
from hotshot.cli.options import number, option
from hotshot.cli.terminal import Console, Watching, print_json, print_notes, print_table, waiting
from hotshot.formatting import count, whole_percentage

if TYPE_CHECKING:
    from hotshot.classifiers.explanation import Reason
    from hotshot.evaluation import Evaluation
    from hotshot.evaluation.tables import Cell, Table

METHODS = "hot,logistic,centroid-cl2n"
NAMED_LENDERS = 3


def demo(
    bank: Annotated[str, option(f"Embedded bank: {options.BANKS}.", names=options.BANK_NAMES)] = "banking77",
    methods: Annotated[
        str, option("Comma-separated methods; the others are compared with the first.", names=options.METHOD_NAMES)
    ] = METHODS,
    ways: options.WaysOrBanks = None,
    shots: options.Shots = "1,5",
    queries: options.AnyQueries = "15",
    tasks: Annotated[int | None, number("Tasks per number of shots. Default: 50 with 5 ways, 12 with 20.")] = None,
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Compare H-OT with baselines on an embedded bank, and explain one prediction."""
    with waiting("starting"):
        import numpy as np

        from hotshot import evaluation
        from hotshot.bank.embedded import SETTINGS, load_bank
        from hotshot.classifiers import HOTClassifier
        from hotshot.evaluation.tasks import Episodes
    data = load_bank(bank)
    settings: dict[str, Any] = {**SETTINGS, "power": data.base.power("auto")}
    hot = HOTClassifier(data.base, **settings)
    named = {name: hot if method == "hot" else method for name, method in parse_methods(methods).items()}
    size: dict[str, Any] = {"ways": data.ways if ways is None else ways, "queries": queries, "seed": seed}
    first = Episodes(data.y_novel, shots=1, **size)[0]
    # Fewer of the larger tasks, which take longer.
    size["tasks"] = max(10, 250 // len(first.support)) if tasks is None else tasks
    console = Console(stderr=json)
    if not json:
        console.print(f"[bold]{data.about}[/bold]")
        console.print(
            f"{len(data.base.names)} base classes, {len(np.unique(data.y_novel))} novel classes, "
            f"{data.base.n_features} features.\n"
        )
    with Watching(console) as watching:
        results = evaluation.evaluate(
            named, data.X_novel, data.y_novel, base=data.base, shots=shots, watch=watching, **size
        )
    if json:
        print_json({"request": {"bank": bank, **size}, "results": results.rows()})
        return
    print_table(console, _table(results))
    print_notes(console, watching.notes)
    hot.fit(data.X_novel[first.support], first.support_labels)
    console.print(*_explained(hot.explain(data.X_novel[first.query[:1]]).reasons[0], first.query_labels[0]), sep="\n")


def _explained(reason: Reason, truth: Any) -> list[str]:
    """One answer and its reasons in three lines."""
    both = ((reason.label, reason.probability), (reason.rival, reason.rival_probability))
    answers = " before ".join(f"`{name}` ({whole_percentage(share)})" for name, share in both)
    similar = ", ".join(f"{e.similarity:.2f} to that of `{e.label}`" for e in reason.examples)
    lenders = sorted(reason.lenders, key=lambda lender: -lender.weight)[:NAMED_LENDERS]
    lent = ", ".join(f"`{lender.name}` {whole_percentage(lender.weight)}" for lender in lenders)
    return [
        f"\nA query of class `{truth}` is answered {answers}.",
        f"Similarity to the examples: {similar}.",
        f"`{reason.label}` borrows most from {lent}.",
    ]


def _table(results: Evaluation) -> Table:
    """Accuracies of the methods, a column for each number of shots."""
    from hotshot.evaluation.tables import Table, percent

    columns = [f"{results.ways}-way-{shots}-shot" for shots in results.shots]
    rows: list[tuple[Cell, ...]] = [
        (method, *(percent(results[method, shots].accuracy_over_classes) for shots in results.shots))
        for method in results.methods
    ]
    of_classes = "Intervals are 95% over classes: they hold for new classes of the same kind."
    note = f"Means over {count(results.tasks, 'task')}. {of_classes if results.tasks > 1 else ''}".strip()
    return Table("Accuracy in %", ("method", *columns), tuple(rows), (note,))
