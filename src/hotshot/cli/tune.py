"""`hotshot tune`: parameters of H-OT chosen on validation classes and written to a file."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from hotshot import evaluation
from hotshot.cli.inputs import AnyQueries, Bank, Base, Jobs, Json, Scheduler, Seed, Shots, Ways, load_data, number
from hotshot.cli.terminal import Console, Watching, print_notes, to_rich, waiting
from hotshot.errors import ParameterError
from hotshot.evaluation import Tuning
from hotshot.evaluation.results import finite
from hotshot.evaluation.tables import Entry, Table, percent
from hotshot.evaluation.tasks import check_shots
from hotshot.evaluation.tuning import DEFAULT
from hotshot.files.atomic import check_writable

SHOWN = 15


def tune(
    base: Base = None,
    val: Annotated[Path | None, typer.Option(help="Features of validation classes, neither base nor novel.")] = None,
    bank: Bank = None,
    grid: Annotated[
        list[str] | None, typer.Option(help="Values of a parameter, such as epsilon=0.01,0.02; repeat it.")
    ] = None,
    search: Annotated[str, typer.Option(help="grid, or random combinations.")] = "grid",
    candidates: Annotated[int | None, number("How many combinations a random search tries.")] = None,
    ways: Ways = "5",
    shots: Shots = "1,5",
    queries: AnyQueries = "15",
    tasks: Annotated[int, number("Tasks that the last candidates see.")] = 1000,
    seed: Seed = 0,
    jobs: Jobs = -1,
    scheduler: Scheduler = None,
    out: Annotated[Path, typer.Option(help="File for the best parameters.")] = Path("tuned.json"),
    run: Annotated[Path | None, typer.Option(help="Run folder, to resume an interrupted search from.")] = None,
    as_json: Json = False,
) -> None:
    """Choose parameters of H-OT on validation classes; weak candidates stop early."""
    wanted = check_shots(shots.split(","))
    chosen = parse_grid(grid) if grid else None
    check_writable(out)
    with waiting("reading the features"):
        classes, X, y = load_data(base, val, bank, "--val")
    console = Console(stderr=as_json)
    with Watching(console, None, run) as watching:
        size: dict[str, Any] = {"ways": ways, "shots": wanted, "queries": queries, "tasks": tasks, "seed": seed}
        where: dict[str, Any] = {"n_jobs": jobs, "scheduler": scheduler, "out": run, "watch": watching}
        found = evaluation.tune(classes, X, y, grid=chosen, search=search, n_candidates=candidates, **size, **where)
    found.save(out)
    print_notes(console, watching.notes)
    if as_json:
        told = {"parameters": str(out), "significant": found.is_significant, "candidates": _rows(found)}
        print(json.dumps(told, indent=2))
        return
    table = candidate_table(found)
    console.print(to_rich(table))
    for note in table.notes:
        console.print(note, markup=False)
    console.print(
        "The best of many on the same tasks looks better than it is: report it on other classes, with\n"
        f"  hotshot evaluate --base FILE --novel FILE --methods hot,tuned={out}",
        markup=False,
    )


def _rows(found: Tuning) -> list[dict[str, Any]]:
    """Every candidate for a program, accuracies as shares; after a single task there is no interval."""
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
    """The best candidates, with the tasks they saw and their paired gain over the defaults."""
    best = found.candidates[:SHOWN]
    rows = tuple(
        (c.name, Entry(str(c.accuracy.n), c.accuracy.n), percent(c.accuracy), percent(c.gain, signed=True))
        for c in best
    )
    level = found.best.name != DEFAULT and not found.is_significant
    notes = ("gain: over the defaults in points, paired. Intervals are 95% over tasks.",
             *(["No significant difference from the default."] if level else []))  # fmt: skip
    columns = ("parameters", "tasks", "accuracy %", "gain")
    return Table(f"best {len(best)} of {len(found.candidates)} candidates", columns, rows, notes)


def parse_grid(grid: list[str]) -> dict[str, list[Any]]:
    """`epsilon=0.01,0.02` as a dict of parameters to values; numbers, true, false and null are read as such."""
    chosen: dict[str, list[Any]] = {}
    for part in grid:
        name, equals, values = part.partition("=")
        if not equals or not name or not values:
            raise ParameterError(f"--grid must look like epsilon=0.01,0.02, got {part!r}.")
        chosen[name.strip()] = [_value(value.strip()) for value in values.split(",")]
    return chosen


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
