"""Commands and their flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotshot import __version__
from hotshot.banks import BANK_NAMES
from hotshot.cli.bank import SUFFIX, run_make_bank
from hotshot.cli.convert import run_convert
from hotshot.cli.demo import DEMO_METHODS, run_demo
from hotshot.cli.evaluate import run_evaluate
from hotshot.cli.inspect import run_inspect
from hotshot.cli.tune import run_tune
from hotshot.errors import ParameterError
from hotshot.estimators import METHOD_NAMES

app = typer.Typer(
    help="Few-shot classification by hierarchical optimal transport.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hotshot {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Few-shot classification by hierarchical optimal transport."""


Base = Annotated[
    Path | None, typer.Option(help="Features of the base classes, in a file of any format, or a bank.")
]
Bank = Annotated[str | None, typer.Option(help=f"Embedded bank instead of files: {', '.join(BANK_NAMES)}.")]
Ways = Annotated[int, typer.Option(help="Classes per task.")]
Shots = Annotated[str, typer.Option(help="Support samples per class, several in turn.")]
Queries = Annotated[int, typer.Option(help="Query samples per class.")]
Seed = Annotated[int, typer.Option(help="Seed of the tasks.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 is one per core.")]
Scheduler = Annotated[str | None, typer.Option(help="Dask scheduler to compute on, such as tcp://host:8786.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]


@app.command()
def demo(
    bank: Annotated[str, typer.Option(help=f"Embedded bank: {', '.join(BANK_NAMES)}.")] = "banking77",
    methods: Annotated[
        str, typer.Option(help="Methods to compare, by name; the first is compared to the others.")
    ] = ",".join(DEMO_METHODS),
    ways: Ways = 5,
    shots: Shots = "1,5",
    queries: Queries = 15,
    tasks: Annotated[int, typer.Option(help="Tasks for each number of shots.")] = 50,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Compare H-OT with its baselines on real features that come with hotshot, and explain one prediction."""
    run_demo(bank, methods.split(","), ways, shots, queries, tasks, seed, json)


@app.command()
def evaluate(
    base: Base = None,
    novel: Annotated[
        Path | None, typer.Option(help="Features of the novel classes, in a file of any format.")
    ] = None,
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


@app.command()
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


@app.command()
def inspect(
    file: Annotated[
        Path,
        typer.Argument(
            help="A feature file of any format; FILE:PART is one of its parts.", show_default=False
        ),
    ],
    novel: Annotated[
        Path | None,
        typer.Argument(help="Novel classes, where FILE holds the base classes.", show_default=False),
    ] = None,
    json: Json = False,
) -> None:
    """Look at feature files before using them: what is in them, what is wrong, and what follows for each method.

    Exit code 0 where nothing stops or spoils a method, 1 where a fault does, 2 where a file cannot be read.
    """
    run_inspect(file, novel, json)


@app.command()
def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="A feature file of any format, FILE:PART, or a bank.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            help="Its suffix says the format: .safetensors, .npz, .npy, .parquet, .csv, .tsv, .mat, or .bank.",
            show_default=False,
        ),
    ],
    dtype: Annotated[
        str | None, typer.Option(help="float16, float32 or float64; as in IN by default.")
    ] = None,
    part: Annotated[str | None, typer.Option(help="Which part of a file with several.")] = None,
    labels: Annotated[
        Path | None, typer.Option(help="Labels of an .npy file, where they have another name.")
    ] = None,
    extractor: Annotated[
        str | None, typer.Option(help="What the features come from, for the header.")
    ] = None,
    transform: Annotated[str | None, typer.Option(help="What was done to them, for the header.")] = None,
    samples: Annotated[
        bool, typer.Option("--samples/--no-samples", help="Whether a bank keeps its samples.")
    ] = True,
    covariance: Annotated[
        str | None, typer.Option(help="What a bank without samples keeps: diagonal, pooled or dense.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite OUT.")] = False,
    json: Json = False,
) -> None:
    """Write features in another format, or as a bank, with where they come from in the header."""
    if out.suffix == SUFFIX:
        run_make_bank(
            source=source,
            out=out,
            dtype=dtype,
            part=part,
            labels=labels,
            extractor=extractor,
            transform=transform,
            samples=samples,
            covariance=covariance,
            force=force,
            as_json=json,
        )
        return
    if not samples or covariance is not None:
        raise ParameterError(f"--no-samples and --covariance are for banks: give OUT the suffix {SUFFIX}.")
    run_convert(
        source=source,
        out=out,
        dtype=dtype,
        part=part,
        labels=labels,
        extractor=extractor,
        transform=transform,
        force=force,
        as_json=json,
    )
