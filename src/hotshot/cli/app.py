"""All commands in one."""

from __future__ import annotations

from typing import Annotated

import typer

from hotshot import __version__
from hotshot.cli.commands.evaluation import demo, evaluate, tune
from hotshot.cli.commands.files import convert
from hotshot.cli.commands.images import extract, train
from hotshot.cli.commands.paper import report, reproduce
from hotshot.cli.inspect import inspect

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


for command in (demo, evaluate, tune, inspect, convert, train, extract, reproduce, report):
    app.command()(command)
