"""Flags that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotshot.base.embedded import BANK_NAMES

Base = Annotated[Path | None, typer.Option(help="Features of the base classes, in a file of any format, or a bank.")]
Novel = Annotated[Path | None, typer.Option(help="Features of the novel classes, in a file of any format.")]
Bank = Annotated[str | None, typer.Option(help=f"Embedded bank instead of files: {', '.join(BANK_NAMES)}.")]
Ways = Annotated[int, typer.Option(help="Classes per task.")]
Shots = Annotated[str, typer.Option(help="Support samples per class, several in turn.")]
Queries = Annotated[int, typer.Option(help="Query samples per class.")]
Seed = Annotated[int, typer.Option(help="Seed of the tasks.")]
Jobs = Annotated[int, typer.Option(help="Processes; -1 is one per core.")]
Scheduler = Annotated[str | None, typer.Option(help="Dask scheduler to compute on, such as tcp://host:8786.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Reference = Annotated[str | None, typer.Option(help="Method the others are compared to; the first by default.")]
Threshold = Annotated[float, typer.Option(help="Count tasks with an accuracy below this.")]
