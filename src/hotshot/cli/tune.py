"""`hotshot tune`: parameters of H-OT, chosen on validation classes and written to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli import inputs
from hotshot.cli.terminal import Console, Watching, print_notes, to_rich, waiting
from hotshot.errors import ParameterError

if TYPE_CHECKING:
    from hotshot.evaluation import Tuning
    from hotshot.evaluation.tables import Table

SHOWN = 15


def tune(
    base: inputs.Base = None,
    val: Annotated[
        Path | None, typer.Option(help="Features of the validation classes: neither base nor novel classes.")
    ] = None,
    bank: inputs.Bank = None,
    grid: Annotated[
        list[str] | None, typer.Option(help="Values of a parameter, such as epsilon=0.01,0.02. Repeatable.")
    ] = None,
    search: Annotated[str, typer.Option(help="Search strategy: grid or random.")] = "grid",
    candidates: Annotated[int | None, inputs.number("Number of combinations in a random search.")] = None,
    ways: Annotated[str, inputs.ways_option(inputs.WAYS)] = "5",
    shots: inputs.Shots = "1,5",
    queries: inputs.AnyQueries = "15",
    tasks: Annotated[int, inputs.number("Tasks for the final candidates; early rounds use fewer.")] = 1000,
    seed: inputs.Seed = 0,
    jobs: inputs.Jobs = -1,
    scheduler: inputs.Scheduler = None,
    out: Annotated[Path, typer.Option(help="File for the best parameters.")] = Path("tuned.json"),
    run: Annotated[Path | None, typer.Option(help=f"Folder for the run. {inputs.RESUME}")] = None,
    as_json: inputs.Json = False,
) -> None:
    """Tune parameters of H-OT on validation classes. Weak candidates stop early."""
    from hotshot import evaluation
    from hotshot.evaluation.tasks import check_shots
    from hotshot.files.atomic import check_writable

    wanted = check_shots(shots.split(","))
    chosen = parse_grid(grid) if grid else None
    inputs.refuse_overwriting(out, base, val)
    check_writable(out)
    with waiting("reading the features"):
        classes, X, y = inputs.load_data(base, val, bank, "--val")
    console = Console(stderr=as_json)
    with Watching(console, None, run) as watching:
        size: dict[str, Any] = {"ways": ways, "shots": wanted, "queries": queries, "tasks": tasks, "seed": seed}
        where: dict[str, Any] = {"n_jobs": jobs, "scheduler": scheduler, "out": run, "watch": watching}
        found = evaluation.tune(classes, X, y, grid=chosen, search=search, n_candidates=candidates, **size, **where)
    found.save(out)
    print_notes(console, watching.notes)
    if as_json:
        document = {"parameters": str(out), "significant": found.is_significant, "candidates": _rows(found)}
        print(json.dumps(document, indent=2))
        return
    table = candidate_table(found)
    console.print(to_rich(table))
    for note in table.notes:
        console.print(note, markup=False)
    console.print(
        "The accuracy of the best candidate is optimistic: measure it on novel classes, then fit a model with\n"
        f"  hotshot evaluate --base FILE --novel FILE --methods hot,tuned={out}\n"
        f"  hotshot fit --base FILE --support FILE --settings {out}",
        markup=False,
    )


def _rows(found: Tuning) -> list[dict[str, Any]]:
    """All candidates, for JSON; accuracies are shares, and a single task has no interval."""
    from hotshot.evaluation.results import finite

    return [
        {
            "parameters": candidate.parameters,
            "tasks": candidate.accuracy.n,
            "accuracy": candidate.accuracy.mean,
            "accuracy_half_width": finite(candidate.accuracy.half_width),
            "minus_defaults": candidate.gain.mean,
            "minus_defaults_half_width": finite(candidate.gain.half_width),
        }
        for candidate in found.candidates
    ]


def candidate_table(found: Tuning) -> Table:
    """The best candidates, with their numbers of tasks and paired gains over the defaults."""
    from hotshot.evaluation.tables import Entry, Table, percent
    from hotshot.evaluation.tuning import DEFAULT

    best = found.candidates[:SHOWN]
    rows = tuple(
        (c.name, Entry(str(c.accuracy.n), c.accuracy.n), percent(c.accuracy), percent(c.gain, signed=True))
        for c in best
    )
    level = found.best.name != DEFAULT and not found.is_significant
    notes = ("gain: points over the defaults, paired. Intervals: 95%, over tasks.",
             *(["No significant difference from the default."] if level else []))  # fmt: skip
    columns = ("parameters", "tasks", "accuracy %", "gain")
    return Table(f"best {len(best)} of {len(found.candidates)} candidates", columns, rows, notes)


def parse_grid(grid: list[str]) -> dict[str, list[Any]]:
    """`epsilon=0.01,0.02` as a dict of parameters to values; values are JSON or text."""
    chosen: dict[str, list[Any]] = {}
    for part in grid:
        name, equals, values = part.partition("=")
        if not equals or not name or not values:
            raise ParameterError(f"--grid must be like epsilon=0.01,0.02, got {part!r}.")
        chosen[name.strip()] = [_value(value.strip()) for value in values.split(",")]
    return chosen


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
