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

from hotshot.cli import options
from hotshot.cli.terminal import Console, Watching, print_notes, to_rich, waiting
from hotshot.errors import ParameterError

if TYPE_CHECKING:
    from hotshot.evaluation import Evaluation


def _setting_names() -> Iterable[str]:
    from hotshot.evaluation.tasks import SETTINGS

    return SETTINGS


def evaluate(
    base: options.Base = None,
    novel: options.Novel = None,
    bank: options.Bank = None,
    methods: Annotated[
        str,
        typer.Option(
            help="Comma-separated methods: hot, free-lunch, ot-cosine, ot-euclidean, ot-cosine-weighted, "
            "ot-euclidean-weighted, ot-mean-cosine, logistic, logistic-raw, centroid, centroid-cl2n, cosine, ridge, "
            "svm, matching, logistic-tuned, lda, plda, softmax-calibration, free-lunch-tuned, pt-map, bd-cspn, "
            "laplacian-shot, alpha-tim; NAME=FILE.json for H-OT with the parameters in a file (see tune); "
            "NAME=FILE.py:CLASS for your own code, which is run.",
            autocompletion=options.several_of(options.method_names),
        ),
    ] = "hot,plda,logistic,centroid-cl2n",
    setting: Annotated[
        str,
        typer.Option(
            help="Evaluation setting: closed, generalised (queries of base classes too) or open (queries of unknown "
            "classes too).",
            autocompletion=options.one_of(_setting_names),
        ),
    ] = "closed",
    ways: Annotated[
        str | None, options.ways_option(f"{options.WAYS} Default: 5, or all classes in the generalised setting.")
    ] = None,
    shots: options.Shots = "1,5",
    queries: options.AnyQueries = "15",
    tasks: Annotated[
        int | None, options.number("Tasks per number of shots. Default: 1,000, or 30 in the generalised setting.")
    ] = None,
    seed: options.Seed = 0,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Classify the queries of each task jointly, with the methods that can; needed by pt-map, bd-cspn, "
            "laplacian-shot and alpha-tim.",
        ),
    ] = False,
    jobs: options.Jobs = -1,
    scheduler: options.Scheduler = None,
    out: Annotated[
        Path | None,
        typer.Option(help=f"Folder for the run. {options.RESUME} Default: runs/HASH, with a hash of the request."),
    ] = None,
    reference: options.Reference = None,
    threshold: options.Threshold = 0.5,
    as_json: options.Json = False,
) -> None:
    """Compare the accuracy of methods on the same tasks. Interrupted runs resume."""
    with waiting("starting"):
        from hotshot import evaluation
        from hotshot.classifiers.named import resolve_methods
        from hotshot.evaluation.data import load_data
        from hotshot.evaluation.journal import JOURNAL, REQUEST
        from hotshot.evaluation.results import RESULTS
        from hotshot.evaluation.tables import detail_table, unsolved
        from hotshot.evaluation.tasks import CLOSED, GENERALISED, check_setting, check_shots
        from hotshot.files import read_features
    chosen_setting = check_setting(setting)
    named, console = parse_methods(methods), Console(stderr=as_json)
    for name in (REQUEST, JOURNAL, RESULTS) if out is not None else ():
        options.refuse_overwriting(Path(out or "", name), base, novel, *named.values())
    size: dict[str, Any] = {"ways": ways, "shots": check_shots(shots.split(",")), "queries": queries, "tasks": tasks}
    with waiting("reading the features"):
        if novel is not None and base is None and bank is None:
            classes, (X, y) = None, read_features(novel)
        else:
            classes, (X, y) = load_data(base, novel, bank)
    estimators = resolve_methods(named, classes)
    with Watching(console, out) as watching:

        def by_request(request: dict[str, Any]) -> Path:
            digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
            watching.out = Path("runs") / digest[:12]
            return watching.out

        results = evaluation.evaluate(
            estimators,
            X,
            y,
            base=classes,
            setting=setting,
            **size,
            seed=seed,
            reference=reference,
            batch=batch,
            n_jobs=jobs,
            scheduler=scheduler,
            out=out or by_request,
            watch=watching,
            about={"source": source_of(base, novel, bank)},
        )
    # In the generalised setting methods choose on a part of the bank; the run folder records the choices.
    settings = {} if chosen_setting is GENERALISED else chosen_settings(estimators)
    if as_json:
        print_notes(console, watching.notes)
        print(json.dumps({"run": str(watching.out), "chosen": settings, "results": results.rows(threshold)}, indent=2))
        return
    if watching.known:
        console.print(f"{watching.known} tasks were already in {watching.out}.", markup=False)
    print_accuracies(console, results)
    if chosen_setting is CLOSED:
        console.print()
        console.print(to_rich(detail_table(results, threshold)))
        console.print()
    for name, values in settings.items():
        listed = ", ".join(f"{key}={value}" for key, value in values.items())
        console.print(f"{name} chose {listed} on held-out base classes.", markup=False)
    print_notes(console, [*watching.notes, *unsolved(results)])
    console.print(f"Run folder: {watching.out}", markup=False)


def print_accuracies(console: Console, results: Evaluation) -> None:
    """Print one table per number of shots, and their notes."""
    from hotshot.evaluation.tables import result_table

    tables = [result_table(results, shots) for shots in results.shots]
    for table in tables:
        console.print(to_rich(table))
        console.print()
    for note in dict.fromkeys(note for table in tables for note in table.notes):
        console.print(note, markup=False)


def chosen_settings(methods: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The settings that each method chose on the base classes, if any."""
    from hotshot.classifiers.classifier import FewShotClassifier

    choices = {name: method.choice() for name, method in methods.items() if isinstance(method, FewShotClassifier)}
    return {name: choice.settings for name, choice in choices.items() if choice.trials}


def source_of(base: Path | None, novel: Path | None, bank: str | None) -> dict[str, Any]:
    """Where the data of a run are, and its command line, as the run folder records them."""
    from hotshot.files.atomic import real

    paths = {name: None if path is None else str(real(path)) for name, path in (("base", base), ("novel", novel))}
    return {**paths, "bank": bank, "command": shlex.join(["hotshot", *sys.argv[1:]])}


def parse_methods(methods: str) -> dict[str, str]:
    """`a,b,name=file.json,file.py:Name` as a dict of table names to methods."""
    from hotshot.classifiers.named import table_name

    by_name: dict[str, str] = {}
    for part in methods.split(","):
        name, equals, value = part.strip().partition("=")
        name, value = name if equals else table_name(name), value if equals else name
        if not name or name in by_name or (equals and not value):
            raise ParameterError(f"--methods must be different comma-separated names, got {methods!r}.")
        by_name[name] = value
    return by_name
