"""`hotshot inspect`: contents and problems of feature files, and advice for each method."""

from __future__ import annotations

import sys
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from hotshot.cli.inputs import Json, load_base, open_samples
from hotshot.cli.terminal import Console, Watching, reading, to_rich
from hotshot.formatting import count, shortened

if TYPE_CHECKING:
    from hotshot.classifiers.choosing import Choice
    from hotshot.evaluation.inspection import Finding, Inspection
    from hotshot.files import FeatureSource

FAULTY = 1
# Larger files are only read in batches, and no settings are chosen on them; the files of a bank are mapped.
MOST_BYTES = 2**30
COLOURS = {"fault": "bold red", "warning": "yellow", "note": "cyan"}
COLOURS |= {"refused": "bold red", "with care": "yellow", "fine": "green"}


def inspect(
    file: Annotated[Path, typer.Argument(help="Feature file of any format, FILE:PART, a bank, or a model.")],
    novel: Annotated[
        Path | None,
        typer.Argument(help="Features of the novel classes, if FILE holds the base classes.", show_default=False),
    ] = None,
    settings: Annotated[
        bool, typer.Option(help="Show the settings that H-OT chooses on the base classes; needs NOVEL or a bank.")
    ] = True,
    json: Json = False,
) -> None:
    """Inspect feature files: contents, problems, and advice for each method; or a model.

    Exit code 0 without faults, 1 with a fault, 2 if a file cannot be read.
    """
    from hotshot.bank import is_bank
    from hotshot.evaluation.inspection import document, inspect_sources
    from hotshot.evaluation.tables import choice_table
    from hotshot.inputs.classifier import INPUTS

    if (file / INPUTS).exists():
        inspect_model(file, json)
        return
    console = Console(stderr=json)
    paths = [file] if novel is None else [file, novel]
    with reading(console) as begin:
        found = inspect_sources([part for path in paths for part in open_parts(path)], begin)
    choice = settings_of(file, console) if settings and found.ok and (novel is not None or is_bank(file)) else None
    if json:
        chosen = {} if choice is None else {"settings": choice.to_json()}
        print(dumps({**document(found), **chosen}, indent=2, allow_nan=False))
    else:
        show(found, console)
        if choice is not None:
            console.print()
            console.print(to_rich(choice_table(choice)))
            for note in choice_table(choice).notes:
                console.print(note, markup=False)
    if not found.ok:
        sys.exit(FAULTY)


def inspect_model(folder: Path, json: bool) -> None:
    """Print the classes of a model: of new ones the samples, of old ones how many they have."""
    from hotshot.inputs import InputClassifier

    model = InputClassifier.load(folder)
    if json:
        print(dumps({"encoder": model.encoder, "classes": model.contents()}, indent=2, ensure_ascii=False))
        return
    console = Console()
    console.print(Text(repr(model), style="bold"), soft_wrap=True)
    for name, samples in model.contents().items():
        listed = "".join(f"\n    {x}" for x in samples) if isinstance(samples, list) else count(samples, "sample")
        console.print(f"  {name}: {listed}", markup=False, soft_wrap=True)


def settings_of(base: Path, console: Console) -> Choice | None:
    """Settings that `HOTClassifier` chooses on these base classes; None if it cannot, or if the file is too large."""
    from hotshot.classifiers import HOTClassifier
    from hotshot.files.source import SeveralPartsError

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
    """The file, or each of its parts if it has several, base classes first, with their names."""
    from hotshot.files import open_features
    from hotshot.files.source import SeveralPartsError

    try:
        return [(str(path), open_samples(path))]
    except SeveralPartsError as error:
        parts = sorted(error.parts, key=lambda part: part.lower() not in ("base", "train"))
    return [(f"{path}:{part}", open_features(path, part=part)) for part in parts]


def show(found: Inspection, console: Console) -> None:
    """Print the verdict, the facts, the findings and the advice."""
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
    table = _table(f"Advice{', as base classes or as novel classes' if alone else ''}")
    for advice in found.advice:
        methods = "every method" if len(found.advice) == 1 else ", ".join(advice.methods)
        table.add_row(Text(advice.verdict, COLOURS[advice.verdict]), Text(methods, style="bold"))
        table.add_row("", Text(advice.sentence))
    console.print(table)


def _facts(found: Inspection) -> Table:
    from hotshot.evaluation.inspection import facts

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
    """The file that a finding is about, if there are several."""
    from hotshot.evaluation.inspection import BOTH

    if len(found.files) > 2:
        return f"{shortened(Path(finding.file).name, keep='end')}: "
    return "" if finding.role in (None, BOTH) else f"{finding.role}: "
