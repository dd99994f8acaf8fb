"""Commands and their flags."""

from __future__ import annotations

from typing import Annotated

import typer

from hotshot import __version__
from hotshot.banks import BANK_NAMES
from hotshot.cli.demo import DEMO_METHODS, run_demo

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


@app.command()
def demo(
    bank: Annotated[str, typer.Option(help=f"Embedded bank: {', '.join(BANK_NAMES)}.")] = "banking77",
    methods: Annotated[
        str, typer.Option(help="Methods to compare, by name; the first is compared to the others.")
    ] = ",".join(DEMO_METHODS),
    ways: Annotated[int, typer.Option(help="Classes per task.")] = 5,
    shots: Annotated[str, typer.Option(help="Support samples per class, several in turn.")] = "1,5",
    queries: Annotated[int, typer.Option(help="Query samples per class.")] = 15,
    tasks: Annotated[int, typer.Option(help="Tasks for each number of shots.")] = 50,
    seed: Annotated[int, typer.Option(help="Seed of the tasks.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")] = False,
) -> None:
    """Compare H-OT with its baselines on real features that come with hotshot, and explain one prediction."""
    run_demo(bank, methods.split(","), ways, shots, queries, tasks, seed, json)
