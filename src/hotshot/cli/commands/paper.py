"""`reproduce` and `report`: their flags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli.options import Bank, Base, Jobs, Json, Novel, Queries, Seed


def reproduce(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Experiments by name; see --list.", metavar="[experiment]...")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="The whole paper.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="Name the experiments and stop.")] = False,
    base: Base = None,
    novel: Novel = None,
    val: Annotated[
        Path | None, typer.Option(help="Features of validation classes, to tune H-OT on for one more row.")
    ] = None,
    bank: Bank = None,
    name: Annotated[
        str | None, typer.Option(help="Of the dataset, such as miniImageNet, for the figures of the paper.")
    ] = None,
    backbone: Annotated[str, typer.Option(help="Of the features, such as WRN28+RTloss.")] = "",
    other: Annotated[
        list[str] | None,
        typer.Option(
            help="Another dataset or backbone, NAME=BASE,NOVEL or NAME=BASE,NOVEL,BACKBONE; several times."
        ),
    ] = None,
    ways: Annotated[
        int | None, typer.Option(help="Classes per task; 5, or those of the bank, by default.")
    ] = None,
    queries: Queries = 15,
    tasks: Annotated[
        int | None,
        typer.Option(help="Tasks of an evaluation; 2000 by default, or 200 of banking77 and 40 of omniglot."),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    out: Annotated[
        Path, typer.Option(help="Folder for tables and figures; the same command goes on with it.")
    ] = Path("reproduction"),
    json: Json = False,
) -> None:
    """Make tables and figures of the paper from your own features, beside the published ones."""
    # matplotlib and all that draws are slow to import, and nothing else needs them.
    from hotshot.cli.reproduce import Sources, run_list, run_reproduce
    from hotshot.paper.experiments import EXPERIMENTS

    if list_all:
        run_list()
        return
    run_reproduce(
        list(EXPERIMENTS) if every else experiments or [],
        Sources(base, novel, val, bank, name, backbone, tuple(other or ())),
        {"ways": ways, "queries": queries, "seed": seed, "n_jobs": jobs},
        tasks=tasks,
        out=out,
        as_json=json,
    )


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Folders of evaluate or reproduce.", metavar="run...", show_default=False),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("report.html"),
    base: Base = None,
    novel: Novel = None,
    bank: Bank = None,
    reference: Annotated[
        str | None, typer.Option(help="Method the others are compared to; the first by default.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="Count tasks with an accuracy below this.")] = 0.5,
    tasks: Annotated[
        int, typer.Option(help="Tasks to look into, for each number of shots; 0 for none.")
    ] = 24,
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    json: Json = False,
) -> None:
    """Make one self-contained page of runs; name the features where they have moved since."""
    from hotshot.cli.report import run_report

    run_report(
        runs=runs,
        out=out,
        base=base,
        novel=novel,
        bank=bank,
        reference=reference,
        threshold=threshold,
        tasks=tasks,
        title=title,
        as_json=json,
    )
