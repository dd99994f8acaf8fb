"""`hotshot evaluate` and `hotshot tune`: accuracies on the same tasks, of methods or of parameters of H-OT."""

from __future__ import annotations

import shlex
import sys
from json import loads
from pathlib import Path
from typing import Annotated, Any

from hotshot.cli import options
from hotshot.cli.options import number, option
from hotshot.cli.terminal import Console, Watching, print_json, print_notes, print_table, to_rich, waiting
from hotshot.errors import ParameterError


def evaluate(
    base: options.Base = None,
    novel: options.Novel = None,
    bank: options.Bank = None,
    methods: Annotated[
        str,
        option(
            "Comma-separated methods: hot, free-lunch, ot-cosine, ot-euclidean, ot-cosine-weighted, "
            "ot-euclidean-weighted, ot-mean-cosine, logistic, logistic-raw, centroid, centroid-cl2n, cosine, ridge, "
            "svm, matching, logistic-tuned, lda, plda, softmax-calibration, free-lunch-tuned, pt-map, bd-cspn, "
            "laplacian-shot, alpha-tim; NAME=FILE.json for H-OT with the parameters in a file (see tune); "
            "NAME=FILE.py:CLASS for your own code, which is run.",
            names=options.METHOD_NAMES,
        ),
    ] = "hot,plda,logistic,centroid-cl2n",
    setting: Annotated[
        str,
        option(
            "Evaluation setting: closed, generalised (queries of base classes too) or open (queries of unknown classes "
            "too).",
            names=("evaluation.tasks", "SETTINGS"),
        ),
    ] = "closed",
    ways: options.WaysOrAll = None,
    shots: options.Shots = "1,5",
    queries: options.AnyQueries = "15",
    tasks: Annotated[
        int | None, number("Tasks per number of shots. Default: 1,000, or 30 in the generalised setting.")
    ] = None,
    seed: options.Seed = 0,
    batch: Annotated[
        bool,
        option(
            "Classify the queries of each task jointly, with the methods that can; needed by pt-map, bd-cspn, "
            "laplacian-shot and alpha-tim.",
            "--batch",
        ),
    ] = False,
    jobs: options.Jobs = -1,
    scheduler: options.Scheduler = None,
    out: Annotated[
        Path | None, option(f"Folder for the run. {options.RESUME} Default: runs/HASH, with a hash of the request.")
    ] = None,
    reference: options.Reference = None,
    threshold: options.Threshold = 0.5,
    json: options.Json = False,
) -> None:
    """Compare the accuracy of methods on the same tasks. Interrupted runs resume."""
    with waiting("starting"):
        from hotshot import evaluation
        from hotshot.classifiers.named import resolve_methods
        from hotshot.evaluation.data import load_data
        from hotshot.evaluation.journal import JOURNAL, REQUEST, folder_of
        from hotshot.evaluation.results import RESULTS
        from hotshot.evaluation.tables import detail_table, result_table, unsolved
        from hotshot.evaluation.tasks import CLOSED, GENERALISED, check_setting
        from hotshot.files import read_features
    rules, named = check_setting(setting), parse_methods(methods)
    for name in (REQUEST, JOURNAL, RESULTS) if out is not None else ():
        options.refuse_overwriting(Path(out or "", name), base, novel, *named.values())
    with waiting("reading the features"):
        if novel is not None and base is None and bank is None:
            classes, (X, y) = None, read_features(novel)
        else:
            classes, (X, y) = load_data(base, novel, bank)
    estimators, console = resolve_methods(named, classes), Console(stderr=json)
    with Watching(console, out) as watching:

        def by_request(request: dict[str, Any]) -> Path:
            watching.out = folder_of(request)
            return watching.out

        results = evaluation.evaluate(
            estimators, X, y, base=classes, setting=setting, ways=ways, shots=shots, queries=queries, tasks=tasks,
            seed=seed, reference=reference, batch=batch, n_jobs=jobs, scheduler=scheduler, out=out or by_request,
            watch=watching, about={"source": source_of(base, novel, bank)},
        )  # fmt: skip
    # In the generalised setting methods choose on a part of the bank; the run folder records the choices.
    settings = {} if rules is GENERALISED else chosen_settings(estimators)
    if json:
        print_notes(console, watching.notes)
        print_json({"run": str(watching.out), "chosen": settings, "results": results.rows(threshold)})
        return
    if watching.known:
        console.print(f"{watching.known} tasks were already in {watching.out}.", markup=False)
    tables = [result_table(results, shots) for shots in results.shots]
    for table in tables:
        console.print(to_rich(table), "", sep="\n")
    for note in dict.fromkeys(note for table in tables for note in table.notes):
        console.print(note, markup=False)
    if rules is CLOSED:
        console.print("", to_rich(detail_table(results, threshold)), "", sep="\n")
    for name, values in settings.items():
        listed = ", ".join(f"{key}={value}" for key, value in values.items())
        console.print(f"{name} chose {listed} on held-out base classes.", markup=False)
    print_notes(console, [*watching.notes, *unsolved(results)])
    console.print(f"Run folder: {watching.out}", markup=False)


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
