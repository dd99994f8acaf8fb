"""`hotshot evaluate`: methods on the same tasks, into a run folder from which an interrupted run resumes."""

import hashlib
import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hotshot import evaluation
from hotshot.base import BaseClasses
from hotshot.cli import inputs
from hotshot.cli.terminal import Console, Watching, print_notes, to_rich, waiting
from hotshot.errors import ParameterError
from hotshot.estimators import METHOD_NAMES
from hotshot.estimators.classifier import FewShotClassifier
from hotshot.estimators.named import is_own, resolve_methods, table_name
from hotshot.evaluation import Evaluation
from hotshot.evaluation.identity import identity
from hotshot.evaluation.tables import accuracy_table, detail_table, measure_table, unsolved
from hotshot.evaluation.tasks import CLOSED, GENERALISED, SETTINGS, check_setting, check_shots, freeze_tasks
from hotshot.files import read_features
from hotshot.files.atomic import real


def evaluate(
    base: inputs.Base = None,
    novel: inputs.Novel = None,
    bank: inputs.Bank = None,
    methods: Annotated[
        str,
        typer.Option(
            help=f"Methods with commas: {', '.join(METHOD_NAMES)}; NAME=FILE.json with parameters from tune; or "
            "NAME=FILE.py:CLASS of your own, which is run.",
            autocompletion=inputs.several_of(METHOD_NAMES),
        ),
    ] = "hot,plda,logistic,centroid-cl2n",
    setting: Annotated[
        str,
        typer.Option(
            help=f"What is asked: {', '.join(SETTINGS)}. Generalised has queries of base classes too, open has queries "
            "of no class.",
            autocompletion=inputs.one_of(SETTINGS),
        ),
    ] = CLOSED.name,
    ways: inputs.Ways = None,
    shots: inputs.Shots = "1,5",
    queries: inputs.AnyQueries = "15",
    tasks: Annotated[
        int | None, inputs.number("Tasks for each number of shots. Default: 1,000, 30 in the generalised setting.")
    ] = None,
    seed: inputs.Seed = 0,
    jobs: inputs.Jobs = -1,
    scheduler: inputs.Scheduler = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run folder; rerun the command to resume. Default: a folder in runs, named after the request."
        ),
    ] = None,
    reference: inputs.Reference = None,
    threshold: inputs.Threshold = 0.5,
    save_tasks: Annotated[Path | None, typer.Option(help="Save the tasks to this file, to share them.")] = None,
    load_tasks: Annotated[
        Path | None, typer.Option(help="Use the tasks saved in this file; it decides ways, shots, queries and tasks.")
    ] = None,
    as_json: inputs.Json = False,
) -> None:
    """Accuracy of methods, paired on the same tasks. Interrupted runs resume."""
    if save_tasks is not None and load_tasks is not None:
        raise ParameterError("Pass either --save-tasks or --load-tasks, not both.")
    asked = check_setting(setting)
    if asked is not CLOSED and (save_tasks is not None or load_tasks is not None):
        raise ParameterError("--save-tasks and --load-tasks are for the closed setting: leave them out.")
    tasks = asked.tasks if tasks is None else tasks
    wanted = check_shots(shots.split(","))
    named = method_names(methods)
    with waiting("reading the features"):
        classes: BaseClasses | None = None
        if novel is not None and base is None and bank is None:
            X, y = read_features(novel)
        else:
            classes, X, y = inputs.load_data(base, novel, bank)
    chosen = resolve_methods(named, classes)
    console = Console(stderr=as_json)
    own_ways = asked.ways if ways is None else ways
    size: dict[str, Any] = {"ways": own_ways, "shots": wanted, "queries": queries, "tasks": tasks, "seed": seed}
    # A file of tasks that was made elsewhere knows their number, we do not yet.
    total = None if load_tasks is not None else tasks * len(wanted) * len(chosen)
    if save_tasks is not None:
        digest = freeze_tasks(save_tasks, y, **size)
        console.print(f"Tasks written to {save_tasks}, hash {digest[:16]}.", markup=False)
        load_tasks = save_tasks
    if out is None:
        request = {
            "data": [str(path and real(path)) for path in (base, novel, load_tasks)] + [bank],
            "numbers": [own_ways, wanted, queries, tasks, seed],
            "methods": {k: _with_code(own, chosen[k]) if is_own(own) else own for k, own in named.items()},
            **({} if asked is CLOSED else {"setting": asked.name}),
        }
        out = Path("runs") / hashlib.sha256(json.dumps(request).encode()).hexdigest()[:12]
    with Watching(console, total, out) as watching:
        where: dict[str, Any] = {"n_jobs": jobs, "scheduler": scheduler, "out": out, "watch": watching}
        about = {"source": source_of(base, novel, bank, load_tasks)}
        found = evaluation.evaluate(
            chosen,
            X,
            y,
            base=classes,
            setting=asked.name,
            **size,
            frozen=load_tasks,
            reference=reference,
            about=about,
            **where,
        )
    # In the generalised setting methods choose on a part of the bank, and the run folder says what.
    settings = {} if asked is GENERALISED else chosen_settings(chosen)
    if as_json:
        print_notes(console, watching.notes)
        print(json.dumps({"run": str(out), "chosen": settings, "results": found.rows(threshold)}, indent=2))
        return
    if watching.known:
        console.print(f"{watching.known} tasks were in {out} already.", markup=False)
    print_accuracies(console, found)
    if asked is CLOSED:
        console.print()
        console.print(to_rich(detail_table(found, threshold)))
        console.print()
    for sentence in settings_in_words(settings):
        console.print(sentence, markup=False)
    print_notes(console, [*watching.notes, *unsolved(found)])
    console.print(f"Run folder: {out}", markup=False)


def print_accuracies(console: Console, found: Evaluation) -> None:
    """One table for each number of shots, and what their intervals hold for."""
    table_of = measure_table if found.setting.compared else accuracy_table
    tables = [table_of(found, shots) for shots in found.shots]
    for table in tables:
        console.print(to_rich(table))
        console.print()
    for note in dict.fromkeys(note for table in tables for note in table.notes):
        console.print(note, markup=False)


def chosen_settings(methods: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What each method chose on the base classes; methods that had nothing to choose are left out."""
    found = {name: own.choice() for name, own in methods.items() if isinstance(own, FewShotClassifier)}
    return {name: choice.settings for name, choice in found.items() if choice.trials}


def settings_in_words(settings: dict[str, dict[str, Any]]) -> list[str]:
    """A sentence for each method that chose settings."""
    return [
        f"{name} chose {', '.join(f'{key}={value}' for key, value in own.items())} on held-out base classes."
        for name, own in settings.items()
    ]


def source_of(base: Path | None, novel: Path | None, bank: str | None, tasks: Path | None) -> dict[str, Any]:
    """Where the data of a run were, and the command that started it, for whoever looks at the run later."""
    paths = {"base": base, "novel": novel, "tasks": tasks}
    return {
        **{name: None if path is None else str(real(path)) for name, path in paths.items()},
        "bank": bank,
        "command": shlex.join(["hotshot", *sys.argv[1:]]),
    }


def _with_code(name: str, method: Any) -> str:
    """A method of the user's own by its name and what its code is, so that a changed one has another folder."""
    try:
        return f"{name} {identity(method)}"
    except Exception:  # What has no identity is refused, in words, where the run begins.
        return name


def method_names(methods: str) -> dict[str, str]:
    """`a,b,name=file.json,file.py:Name` as a dict of table names to methods."""
    chosen: dict[str, str] = {}
    for part in methods.split(","):
        name, equals, value = part.strip().partition("=")
        name, value = name if equals else table_name(name), value if equals else name
        if not name or name in chosen or (equals and not value):
            raise ParameterError(f"--methods must be different names with commas, got {methods!r}.")
        chosen[name] = value
    return chosen
