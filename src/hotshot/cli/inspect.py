"""`hotshot inspect`: what is in a feature file, what is wrong with it, and what follows for each method."""

import sys
from json import dumps
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from hotshot.base.classes import is_bank
from hotshot.cli.inputs import Json, load_base, open_samples
from hotshot.cli.terminal import Console, Watching, reading, to_rich
from hotshot.estimators import HOTClassifier
from hotshot.estimators.choosing import Choice
from hotshot.evaluation.inspection import Inspection, document, facts, inspect_sources
from hotshot.evaluation.inspection.problems import BOTH, Finding
from hotshot.evaluation.tables import choice_table
from hotshot.files import FeatureSource, open_features
from hotshot.files.source import SeveralPartsError
from hotshot.formatting import shortened

FAULTY = 1
# Larger files are looked at batch by batch and never read as a whole; the files of a bank are mapped.
MOST_BYTES = 2**30
COLOURS = {"fault": "bold red", "warning": "yellow", "note": "cyan"}
COLOURS |= {"refused": "bold red", "with care": "yellow", "fine": "green"}


def inspect(
    file: Annotated[
        Path, typer.Argument(help="A feature file of any format; FILE:PART is one of its parts.", show_default=False)
    ],
    novel: Annotated[
        Path | None, typer.Argument(help="Novel classes, where FILE holds the base classes.", show_default=False)
    ] = None,
    settings: Annotated[
        bool,
        typer.Option(
            help="Show which settings H-OT chooses on the base classes, where a second file or a bank is named."
        ),
    ] = True,
    json: Json = False,
) -> None:
    """What is in feature files, what is wrong with them, and what follows for each method.

    Exit code 0 where nothing stops or spoils a method, 1 where a fault does, 2 where a file cannot be read.
    """
    console = Console(stderr=json)
    paths = [file] if novel is None else [file, novel]
    with reading(console) as begin:
        found = inspect_sources([part for path in paths for part in open_parts(path)], begin)
    choice = settings_of(file, console) if settings and found.ok and (novel is not None or is_bank(file)) else None
    if json:
        told = {} if choice is None else {"settings": choice.to_json()}
        print(dumps({**document(found), **told}, indent=2, allow_nan=False))
    else:
        show(found, console)
        if choice is not None:
            console.print()
            console.print(to_rich(choice_table(choice)))
            for note in choice_table(choice).notes:
                console.print(note, markup=False)
    if not found.ok:
        sys.exit(FAULTY)


def settings_of(base: Path, console: Console) -> Choice | None:
    """What `HOTClassifier` chooses on these base classes; None where it cannot, or where they may not fit in memory."""
    try:
        source = open_samples(base)
    except SeveralPartsError:
        return None
    if source.path.stat().st_size > MOST_BYTES:
        return None
    classes = load_base(base)
    if not classes.can_hold_out:
        return None
    with Watching(console, None):
        return HOTClassifier(classes).choice()


def open_parts(path: Path) -> list[tuple[str, FeatureSource]]:
    """The file under its name, or each of its parts where it holds several, base classes first."""
    try:
        return [(str(path), open_samples(path))]
    except SeveralPartsError as error:
        parts = sorted(error.parts, key=lambda part: part.lower() not in ("base", "train"))
    return [(f"{path}:{part}", open_features(path, part=part)) for part in parts]


def show(found: Inspection, console: Console) -> None:
    """Print the verdict, the facts, the findings and what follows for the methods."""
    worst = found.findings[0].severity if found.findings else "note"
    verdict = Text(found.verdict, style="bold green" if worst == "note" else COLOURS[worst])
    console.print(verdict)
    console.print()
    console.print(_facts(found))
    if found.findings:
        table = _table("Findings")
        for finding in found.findings:
            table.add_row(
                Text(finding.severity, COLOURS[finding.severity]), Text(f"{_prefix(found, finding)}{finding.sentence}")
            )
        console.print(table)
    alone = len(found.files) == 1
    table = _table(f"What follows{', as base classes or as novel classes' if alone else ''}")
    for advice in found.advice:
        methods = "every method" if len(found.advice) == 1 else ", ".join(advice.methods)
        table.add_row(Text(advice.verdict, COLOURS[advice.verdict]), Text(methods, style="bold"))
        table.add_row("", Text(advice.sentence))
    console.print(table)


def _facts(found: Inspection) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=len(found.files) > 1)
    table.add_column("", style="dim", no_wrap=True)
    for file in found.files:
        table.add_column(Text(f"{file.role}: {shortened(Path(file.name).name, keep='end')}"), overflow="fold")
    columns = [facts(file) for file in found.files]
    for fact in columns[0]:
        table.add_row(fact, *(Text(column[fact]) for column in columns))
    return table


def _table(title: str) -> Table:
    table = Table(
        box=None, padding=(0, 2, 0, 0), show_header=False, title=f"\n{title}", title_justify="left", title_style="bold"
    )
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def _prefix(found: Inspection, finding: Finding) -> str:
    """Which of several files a finding is about."""
    if len(found.files) > 2:
        return f"{shortened(Path(finding.file).name, keep='end')}: "
    return "" if finding.role in (None, BOTH) else f"{finding.role}: "
