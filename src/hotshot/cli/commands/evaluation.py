"""`demo`, `evaluate` and `tune`: their flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotshot.base.embedded import BANK_NAMES
from hotshot.cli.demo import DEMO_METHODS, run_demo
from hotshot.cli.evaluate import run_evaluate
from hotshot.cli.options import Bank, Base, Jobs, Json, Novel, Queries, Scheduler, Seed, Shots, Ways
from hotshot.cli.tune import run_tune
from hotshot.estimators import METHOD_NAMES


def demo(
    bank: Annotated[str, typer.Option(help=f"Embedded bank: {', '.join(BANK_NAMES)}.")] = "banking77",
    methods: Annotated[
        str, typer.Option(help="Methods to compare, by name; the first is compared to the others.")
    ] = ",".join(DEMO_METHODS),
    ways: Annotated[
        int | None, typer.Option(help="Classes per task; 5, or 20 of omniglot, by default.")
    ] = None,
    shots: Shots = "1,5",
    queries: Queries = 15,
    tasks: Annotated[
        int | None, typer.Option(help="Tasks for each number of shots; 50 of 5 ways, 12 of 20 by default.")
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare H-OT with its baselines on real features that come with hotshot, and explain one prediction."""
    run_demo(bank, methods.split(","), ways, shots, queries, tasks, seed, json)


def evaluate(
    base: Base = None,
    novel: Novel = None,
    bank: Bank = None,
    methods: Annotated[
        str,
        typer.Option(
            help=f"Methods with commas: {', '.join(METHOD_NAMES)}; or NAME=FILE.json with parameters from tune."
        ),
    ] = "hot,free-lunch,logistic,centroid-cl2n",
    ways: Ways = 5,
    shots: Shots = "1,5",
    queries: Queries = 15,
    tasks: Annotated[int, typer.Option(help="Tasks for each number of shots.")] = 10_000,
    seed: Seed = 0,
    jobs: Jobs = -1,
    scheduler: Scheduler = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run folder; the same command goes on with it. Default: a folder of its own in runs."
        ),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="Method the others are compared to; the first by default.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="Count tasks with an accuracy below this.")] = 0.5,
    save_tasks: Annotated[
        Path | None, typer.Option(help="Freeze the tasks to this file, to share them.")
    ] = None,
    load_tasks: Annotated[
        Path | None, typer.Option(help="Use the tasks frozen in this file; it decides ways, shots and so on.")
    ] = None,
    json: Json = False,
) -> None:
    """Accuracy of methods on thousands of tasks, paired, on all cores; interrupted runs go on where they stopped."""
    run_evaluate(
        base=base,
        novel=novel,
        bank=bank,
        methods=methods,
        ways=ways,
        shots=shots,
        queries=queries,
        tasks=tasks,
        seed=seed,
        jobs=jobs,
        scheduler=scheduler,
        out=out,
        reference=reference,
        threshold=threshold,
        save_tasks=save_tasks,
        load_tasks=load_tasks,
        as_json=json,
    )


def tune(
    base: Base = None,
    val: Annotated[
        Path | None,
        typer.Option(help="Features of validation classes, neither base nor novel."),
    ] = None,
    bank: Bank = None,
    grid: Annotated[
        list[str] | None, typer.Option(help="Values of a parameter, such as epsilon=0.01,0.02; repeat it.")
    ] = None,
    search: Annotated[str, typer.Option(help="grid, or random combinations.")] = "grid",
    candidates: Annotated[
        int | None, typer.Option(help="How many combinations a random search tries.")
    ] = None,
    ways: Ways = 5,
    shots: Shots = "1,5",
    queries: Queries = 15,
    tasks: Annotated[int, typer.Option(help="Tasks that the last candidates see.")] = 1000,
    seed: Seed = 0,
    jobs: Jobs = -1,
    scheduler: Scheduler = None,
    out: Annotated[Path, typer.Option(help="File for the best parameters.")] = Path("tuned.json"),
    run: Annotated[
        Path | None, typer.Option(help="Run folder, so that an interrupted search can go on.")
    ] = None,
    json: Json = False,
) -> None:
    """Choose parameters of H-OT on validation classes; weak candidates stop early."""
    run_tune(
        base=base,
        val=val,
        bank=bank,
        grid=grid or [],
        search=search,
        candidates=candidates,
        ways=ways,
        shots=shots,
        queries=queries,
        tasks=tasks,
        seed=seed,
        jobs=jobs,
        scheduler=scheduler,
        out=out,
        run=run,
        as_json=json,
    )
