"""`hotshot tune`: parameters of H-OT chosen on validation classes and written to a file."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console

from hotshot.cli.data import load_data, numbers
from hotshot.cli.progress import Watching
from hotshot.cli.tables import tuning_table
from hotshot.errors import InterruptedRunError, ParameterError, ScaleWarning
from hotshot.evaluation import tune

SHOWN = 15


def run_tune(
    *,
    base: Path | None,
    val: Path | None,
    bank: str | None,
    grid: list[str],
    search: str,
    candidates: int | None,
    ways: int,
    shots: str,
    queries: int,
    tasks: int,
    seed: int,
    jobs: int,
    scheduler: str | None,
    out: Path,
    run: Path | None,
    as_json: bool,
) -> None:
    """Search, print, write."""
    wanted = numbers(shots)
    chosen = parse_grid(grid) if grid else None
    bank_base, X, y = load_data(base, val, bank, "--val")
    console = Console(stderr=as_json)
    with Watching(console, total=None) as watching, warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)
        try:
            found = tune(
                bank_base,
                X,
                y,
                grid=chosen,
                search=search,
                n_candidates=candidates,
                ways=ways,
                shots=wanted,
                queries=queries,
                tasks=tasks,
                seed=seed,
                n_jobs=jobs,
                scheduler=scheduler,
                out=run,
                watch=watching,
            )
        except KeyboardInterrupt:
            kept = (
                f"{watching.done} finished tasks are in {run}"
                if run
                else "nothing was kept without --run FOLDER"
            )
            raise InterruptedRunError(f"Interrupted: {kept}; the same command goes on from there.") from None
    found.save(out)
    if as_json:
        rows = [
            {
                "parameters": c.parameters,
                "tasks": c.accuracy.n,
                "accuracy": 100 * c.accuracy.mean,
                "accuracy_half_width": 100 * c.accuracy.half_width,
                "minus_defaults": 100 * c.gain.mean,
                "minus_defaults_half_width": 100 * c.gain.half_width,
            }
            for c in found.candidates
        ]
        print(json.dumps({"parameters": str(out), "candidates": rows}, indent=2))
        return
    console.print(tuning_table(found, SHOWN))
    console.print(
        "The best of many on the same tasks looks better than it is: report it on other classes, with\n"
        f"  hotshot evaluate --base FILE --novel FILE --methods hot,tuned={out}",
        markup=False,
    )


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
