"""`hotshot tune`: parameters of H-OT, chosen on validation classes and written to a file."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Annotated, Any

from hotshot.cli import options
from hotshot.cli.options import number, option
from hotshot.cli.terminal import Console, Watching, print_json, print_notes, print_table, waiting
from hotshot.errors import ParameterError


def tune(
    base: options.Base = None,
    val: Annotated[Path | None, option("Features of the validation classes: neither base nor novel classes.")] = None,
    bank: options.Bank = None,
    grid: Annotated[list[str] | None, option("Values of a parameter, such as epsilon=0.01,0.02. Repeatable.")] = None,
    search: Annotated[str, option("Search strategy: grid or random.")] = "grid",
    candidates: Annotated[int | None, number("Number of combinations in a random search.")] = None,
    ways: options.Ways = "5",
    shots: options.Shots = "1,5",
    queries: options.AnyQueries = "15",
    tasks: Annotated[int, number("Tasks for the final candidates; early rounds use fewer.")] = 1000,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    scheduler: options.Scheduler = None,
    out: Annotated[Path, option("File for the best parameters.")] = Path("tuned.json"),
    run: Annotated[Path | None, option(f"Folder for the run. {options.RESUME}")] = None,
    json: options.Json = False,
) -> None:
    """Tune parameters of H-OT on validation classes. Weak candidates stop early."""
    with waiting("starting"):
        from hotshot import evaluation
        from hotshot.evaluation.data import load_data
        from hotshot.files.atomic import check_writable
    values = parse_grid(grid) if grid else None
    options.refuse_overwriting(out, base, val)
    check_writable(out)
    with waiting("reading the features"):
        classes, (X, y) = load_data(base, val, bank, "--val")
    console = Console(stderr=json)
    with Watching(console, run, several=True) as watching:
        tuning = evaluation.tune(
            classes, X, y, grid=values, search=search, n_candidates=candidates, ways=ways, shots=shots, queries=queries,
            tasks=tasks, seed=seed, n_jobs=jobs, scheduler=scheduler, out=run, watch=watching,
        )  # fmt: skip
    tuning.save(out)
    print_notes(console, watching.notes)
    if json:
        print_json({"parameters": str(out), "significant": tuning.is_significant, "candidates": tuning.rows()})
        return
    print_table(console, tuning.table())
    console.print(
        "The accuracy of the best candidate is optimistic: measure it on novel classes, then fit a model with\n"
        f"  hotshot evaluate --base FILE --novel FILE --methods hot,tuned={out}\n"
        f"  hotshot fit --base FILE --support FILE --settings {out}",
        markup=False,
    )


def parse_grid(grid: list[str]) -> dict[str, list[Any]]:
    """`epsilon=0.01,0.02` as a dict of parameters to values; values are JSON or text."""
    by_name: dict[str, list[Any]] = {}
    for part in grid:
        name, _, values = part.partition("=")
        if not name or not values:
            raise ParameterError(f"--grid must be like epsilon=0.01,0.02, got {part!r}.")
        by_name[name.strip()] = [_value(value.strip()) for value in values.split(",")]
    return by_name


def _value(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return text
