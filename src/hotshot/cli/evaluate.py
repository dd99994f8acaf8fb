"""`hotshot evaluate`: accuracies of methods on the same tasks, in a run folder from which a run can resume."""

from __future__ import annotations

import hashlib
import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli import inputs
from hotshot.cli.terminal import Console, Watching, print_notes, to_rich, waiting
from hotshot.errors import ParameterError

if TYPE_CHECKING:
    from hotshot.bank import BaseClasses
    from hotshot.evaluation import Evaluation


def _setting_names() -> Iterable[str]:
    from hotshot.evaluation.tasks import SETTINGS

    return SETTINGS


def evaluate(
    base: inputs.Base = None,
    novel: inputs.Novel = None,
    bank: inputs.Bank = None,
    methods: Annotated[
        str,
        typer.Option(
            help="Comma-separated methods: hot, free-lunch, ot-cosine, ot-euclidean, ot-cosine-weighted, "
            "ot-euclidean-weighted, ot-mean-cosine, logistic, logistic-raw, centroid, centroid-cl2n, cosine, ridge, "
            "svm, matching, logistic-tuned, lda, plda, softmax-calibration, free-lunch-tuned, pt-map, bd-cspn, "
            "laplacian-shot, alpha-tim; NAME=FILE.json for H-OT with the parameters in a file (see tune); "
            "NAME=FILE.py:CLASS for your own code, which is run.",
            autocompletion=inputs.several_of(inputs.method_names),
        ),
    ] = "hot,plda,logistic,centroid-cl2n",
    setting: Annotated[
        str,
        typer.Option(
            help="Evaluation setting: closed, generalised (queries of base classes too) or open (queries of unknown "
            "classes too).",
            autocompletion=inputs.one_of(_setting_names),
        ),
    ] = "closed",
    ways: Annotated[
        str | None, inputs.ways_option(f"{inputs.WAYS} Default: 5, or all classes in the generalised setting.")
    ] = None,
    shots: inputs.Shots = "1,5",
    queries: inputs.AnyQueries = "15",
    tasks: Annotated[
        int | None, inputs.number("Tasks per number of shots. Default: 1,000, or 30 in the generalised setting.")
    ] = None,
    seed: inputs.Seed = 0,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Classify the queries of each task jointly, with the methods that can; needed by pt-map, bd-cspn, "
            "laplacian-shot and alpha-tim.",
        ),
    ] = False,
    jobs: inputs.Jobs = -1,
    scheduler: inputs.Scheduler = None,
    out: Annotated[
        Path | None,
        typer.Option(help=f"Folder for the run. {inputs.RESUME} Default: runs/HASH, with a hash of the request."),
    ] = None,
    reference: inputs.Reference = None,
    threshold: inputs.Threshold = 0.5,
    as_json: inputs.Json = False,
) -> None:
    """Compare the accuracy of methods on the same tasks. Interrupted runs resume."""
    from hotshot import evaluation
    from hotshot.classifiers.named import joint_methods, resolve_methods, with_one_by_one
    from hotshot.evaluation.journal import JOURNAL, REQUEST
    from hotshot.evaluation.results import check_reference
    from hotshot.evaluation.stored import RESULTS
    from hotshot.evaluation.tables import detail_table, unsolved
    from hotshot.evaluation.tasks import CLOSED, GENERALISED, check_setting, check_shots
    from hotshot.files import read_features

    asked = check_setting(setting)
    tasks = asked.tasks if tasks is None else tasks
    wanted = check_shots(shots.split(","))
    named = parse_methods(methods)
    for name in (REQUEST, JOURNAL, RESULTS) if out is not None else ():
        inputs.refuse_overwriting(Path(out or "", name), base, novel, *named.values())
    with waiting("reading the features"):
        classes: BaseClasses | None = None
        if novel is not None and base is None and bank is None:
            X, y = read_features(novel)
        else:
            classes, X, y = inputs.load_data(base, novel, bank)
    chosen = resolve_methods(named, classes)
    all_methods = with_one_by_one(chosen, check_reference(reference, chosen), joint_methods(chosen, batch))
    console = Console(stderr=as_json)
    own_ways = asked.ways if ways is None else ways
    size: dict[str, Any] = {"ways": own_ways, "shots": wanted, "queries": queries, "tasks": tasks, "seed": seed}
    total = tasks * len(wanted) * len(all_methods)
    with Watching(console, total, out) as watching:

        def by_request(request: dict[str, Any]) -> Path:
            digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
            watching.out = Path("runs") / digest[:12]
            return watching.out

        where: dict[str, Any] = {"n_jobs": jobs, "scheduler": scheduler, "out": out or by_request, "watch": watching}
        about = {"source": source_of(base, novel, bank)}
        found = evaluation.evaluate(
            chosen,
            X,
            y,
            base=classes,
            setting=asked.name,
            **size,
            reference=reference,
            batch=batch,
            about=about,
            **where,
        )
    # In the generalised setting methods choose on a part of the bank; the run folder records the choices.
    settings = {} if asked is GENERALISED else chosen_settings(chosen)
    if as_json:
        print_notes(console, watching.notes)
        print(json.dumps({"run": str(watching.out), "chosen": settings, "results": found.rows(threshold)}, indent=2))
        return
    if watching.known:
        console.print(f"{watching.known} tasks were already in {watching.out}.", markup=False)
    print_accuracies(console, found)
    if asked is CLOSED:
        console.print()
        console.print(to_rich(detail_table(found, threshold)))
        console.print()
    for name, values in settings.items():
        listed = ", ".join(f"{key}={value}" for key, value in values.items())
        console.print(f"{name} chose {listed} on held-out base classes.", markup=False)
    print_notes(console, [*watching.notes, *unsolved(found)])
    console.print(f"Run folder: {watching.out}", markup=False)


def print_accuracies(console: Console, found: Evaluation) -> None:
    """Print one table per number of shots, and their notes."""
    from hotshot.evaluation.tables import accuracy_table, measure_table

    table_of = measure_table if found.setting.compared else accuracy_table
    tables = [table_of(found, shots) for shots in found.shots]
    for table in tables:
        console.print(to_rich(table))
        console.print()
    for note in dict.fromkeys(note for table in tables for note in table.notes):
        console.print(note, markup=False)


def chosen_settings(methods: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings that each method chose on the base classes, if any."""
    from hotshot.classifiers.classifier import FewShotClassifier

    found = {name: own.choice() for name, own in methods.items() if isinstance(own, FewShotClassifier)}
    return {name: choice.settings for name, choice in found.items() if choice.trials}


def source_of(base: Path | None, novel: Path | None, bank: str | None) -> dict[str, Any]:
    """Where the data of a run are, and its command line, as the run folder records them."""
    from hotshot.files.atomic import real

    paths = {"base": base, "novel": novel}
    return {
        **{name: None if path is None else str(real(path)) for name, path in paths.items()},
        "bank": bank,
        "command": shlex.join(["hotshot", *sys.argv[1:]]),
    }


def parse_methods(methods: str) -> dict[str, str]:
    """`a,b,name=file.json,file.py:Name` as a dict of table names to methods."""
    from hotshot.classifiers.named import table_name

    chosen: dict[str, str] = {}
    for part in methods.split(","):
        name, equals, value = part.strip().partition("=")
        name, value = name if equals else table_name(name), value if equals else name
        if not name or name in chosen or (equals and not value):
            raise ParameterError(f"--methods must be different comma-separated names, got {methods!r}.")
        chosen[name] = value
    return chosen
