"""`hotshot evaluate`: methods on the same tasks, into a run folder that can be continued."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
import warnings
from pathlib import Path
from typing import Any

from rich.console import Console

from hotshot.cli.data import load_data, numbers
from hotshot.cli.progress import Watching
from hotshot.cli.tables import accuracy_tables, detail_table, scale_notes, troubles
from hotshot.errors import InterruptedRunError, ParameterError, ScaleWarning
from hotshot.evaluation import evaluate
from hotshot.evaluation.tasks import freeze_tasks


def run_evaluate(
    *,
    base: Path | None,
    novel: Path | None,
    bank: str | None,
    methods: str,
    ways: int,
    shots: str,
    queries: int,
    tasks: int,
    seed: int,
    jobs: int,
    scheduler: str | None,
    out: Path | None,
    reference: str | None,
    threshold: float,
    save_tasks: Path | None,
    load_tasks: Path | None,
    as_json: bool,
) -> None:
    """Evaluate, print; the exit code is 0 where all tasks are done."""
    if not 0 <= threshold <= 1:
        raise ParameterError(f"--threshold must be between 0 and 1, got {threshold}.")
    if save_tasks is not None and load_tasks is not None:
        raise ParameterError("Pass either --save-tasks or --load-tasks, not both.")
    wanted = numbers(shots)
    chosen = method_names(methods)
    bank_base, X, y = load_data(base, novel, bank)
    console = Console(stderr=as_json)
    if save_tasks is not None:
        digest = freeze_tasks(save_tasks, y, tasks=tasks, ways=ways, shots=wanted, queries=queries, seed=seed)
        console.print(f"Tasks written to {save_tasks}, hash {digest[:16]}.", markup=False)
        load_tasks = save_tasks
    request = {
        "data": [str(path and path.resolve()) for path in (base, novel, load_tasks)] + [bank],
        "numbers": [ways, wanted, queries, tasks, seed],
        "methods": chosen,
    }
    out = out or Path("runs") / hashlib.sha256(json.dumps(request).encode()).hexdigest()[:12]
    # A file of tasks that was made elsewhere knows their number, we do not yet.
    total = None if load_tasks is not None and save_tasks is None else tasks * len(wanted) * len(chosen)
    with Watching(console, total) as watching, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ScaleWarning)
        try:
            found = evaluate(
                chosen,
                X,
                y,
                base=bank_base,
                ways=ways,
                shots=wanted,
                queries=queries,
                tasks=tasks,
                seed=seed,
                frozen=load_tasks,
                reference=reference,
                n_jobs=jobs,
                scheduler=scheduler,
                out=out,
                watch=watching,
                about={"source": source_of(base, novel, bank, load_tasks)},
            )
        except KeyboardInterrupt:
            raise InterruptedRunError(
                f"Interrupted: {watching.done} finished tasks are in {out}; the same command goes on from there."
            ) from None
    if as_json:
        print(json.dumps({"run": str(out), "results": found.rows(threshold)}, indent=2))
        return
    if watching.known:
        console.print(f"{watching.known} tasks were in {out} already.", markup=False)
    for table in accuracy_tables(found):
        console.print(table)
    console.print(detail_table(found, threshold))
    for line in [*scale_notes(caught), *troubles(found)]:
        console.print(f"Note: {line}", markup=False, style="yellow")
    console.print(f"Run folder: {out}", markup=False)


def source_of(base: Path | None, novel: Path | None, bank: str | None, tasks: Path | None) -> dict[str, Any]:
    """Where the data of a run were, and the command that started it, for whoever looks at the run later."""
    paths = {"base": base, "novel": novel, "tasks": tasks}
    return {
        **{name: None if path is None else str(path.resolve()) for name, path in paths.items()},
        "bank": bank,
        "command": shlex.join(["hotshot", *sys.argv[1:]]),
    }


def method_names(methods: str) -> dict[str, Any]:
    """`a,b,name=file.json` as a dict of table names to methods."""
    chosen: dict[str, Any] = {}
    for part in methods.split(","):
        name, _, value = part.strip().partition("=")
        if not name or name in chosen:
            raise ParameterError(f"--methods must be different names with commas, got {methods!r}.")
        chosen[name] = value or name
    return chosen
