"""`hotshot tune`: parameters of H-OT, chosen on validation classes and written to a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli import options
from hotshot.cli.terminal import Console, Watching, print_notes, print_table, waiting
from hotshot.errors import ParameterError

if TYPE_CHECKING:
    from hotshot.evaluation import Tuning
    from hotshot.evaluation.tables import Table

SHOWN = 15


def tune(
    base: options.Base = None,
    val: Annotated[
        Path | None, typer.Option(help="Features of the validation classes: neither base nor novel classes.")
    ] = None,
    bank: options.Bank = None,
    grid: Annotated[
        list[str] | None, typer.Option(help="Values of a parameter, such as epsilon=0.01,0.02. Repeatable.")
    ] = None,
    search: Annotated[str, typer.Option(help="Search strategy: grid or random.")] = "grid",
    candidates: Annotated[int | None, options.number("Number of combinations in a random search.")] = None,
    ways: Annotated[str, options.ways_option(options.WAYS)] = "5",
    shots: options.Shots = "1,5",
    queries: options.AnyQueries = "15",
    tasks: Annotated[int, options.number("Tasks for the final candidates; early rounds use fewer.")] = 1000,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    scheduler: options.Scheduler = None,
    out: Annotated[Path, typer.Option(help="File for the best parameters.")] = Path("tuned.json"),
    run: Annotated[Path | None, typer.Option(help=f"Folder for the run. {options.RESUME}")] = None,
    as_json: options.Json = False,
) -> None:
    """Tune parameters of H-OT on validation classes. Weak candidates stop early."""
    with waiting("starting"):
        from hotshot import evaluation
        from hotshot.evaluation.data import load_data
        from hotshot.evaluation.tasks import check_shots
        from hotshot.files.atomic import check_writable
    size: dict[str, Any] = {"ways": ways, "shots": check_shots(shots.split(",")), "queries": queries, "tasks": tasks}
    values = parse_grid(grid) if grid else None
    options.refuse_overwriting(out, base, val)
    check_writable(out)
    with waiting("reading the features"):
        classes, (X, y) = load_data(base, val, bank, "--val")
    console = Console(stderr=as_json)
    with Watching(console, run, several=True) as watching:
        tuning = evaluation.tune(
            classes,
            X,
            y,
            grid=values,
            search=search,
            n_candidates=candidates,
            **size,
            seed=seed,
            n_jobs=jobs,
            scheduler=scheduler,
            out=run,
            watch=watching,
        )
    tuning.save(out)
    print_notes(console, watching.notes)
    if as_json:
        rows = _rows(tuning)
        print(json.dumps({"parameters": str(out), "significant": tuning.is_significant, "candidates": rows}, indent=2))
        return
    print_table(console, candidate_table(tuning))
    console.print(
        "The accuracy of the best candidate is optimistic: measure it on novel classes, then fit a model with\n"
        f"  hotshot evaluate --base FILE --novel FILE --methods hot,tuned={out}\n"
        f"  hotshot fit --base FILE --support FILE --settings {out}",
        markup=False,
    )


def _rows(tuning: Tuning) -> list[dict[str, Any]]:
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
        for candidate in tuning.candidates
    ]


def candidate_table(tuning: Tuning) -> Table:
    """The best candidates, with their numbers of tasks and paired gains over the defaults."""
    from hotshot.evaluation.tables import Entry, Table, percent
    from hotshot.evaluation.tuning import DEFAULT

    best = tuning.candidates[:SHOWN]
    rows = tuple(
        (c.name, Entry(str(c.accuracy.n), c.accuracy.n), percent(c.accuracy), percent(c.gain, signed=True))
        for c in best
    )
    notes = ["gain: points over the defaults, paired. Intervals: 95%, over tasks."]
    if tuning.best.name != DEFAULT and not tuning.is_significant:
        notes.append("No significant difference from the default.")
    columns = ("parameters", "tasks", "accuracy %", "gain")
    return Table(f"best {len(best)} of {len(tuning.candidates)} candidates", columns, rows, tuple(notes))


def parse_grid(grid: list[str]) -> dict[str, list[Any]]:
    """`epsilon=0.01,0.02` as a dict of parameters to values; values are JSON or text."""
    by_name: dict[str, list[Any]] = {}
    for part in grid:
        name, equals, values = part.partition("=")
        if not equals or not name or not values:
            raise ParameterError(f"--grid must be like epsilon=0.01,0.02, got {part!r}.")
        by_name[name.strip()] = [_value(value.strip()) for value in values.split(",")]
    return by_name


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
