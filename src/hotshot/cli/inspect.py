"""`hotshot inspect`: contents and problems of feature files, and advice for each method; or what a model holds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from hotshot.cli import options
from hotshot.cli.terminal import Console, Watching, print_table, reading, waiting
from hotshot.formatting import count, shortened

if TYPE_CHECKING:
    from hotshot.classifiers.held_out import Choice
    from hotshot.evaluation.inspection import Inspection
    from hotshot.files import FeatureSource

FAULTY = 1
# Larger files are only read in batches, and no settings are chosen on them; the files of a bank are mapped.
MOST_BYTES = 2**30
STYLES = {"fault": "bold red", "warning": "yellow", "note": "cyan"}
STYLES |= {"refused": "bold red", "with care": "yellow", "fine": "green"}


def inspect(
    file: Annotated[Path, typer.Argument(help="Feature file of any format, FILE:PART, a bank, or a model.")],
    novel: Annotated[
        Path | None,
        typer.Argument(help="Features of the novel classes, if FILE holds the base classes.", show_default=False),
    ] = None,
    settings: Annotated[
        bool, typer.Option(help="Show the settings that H-OT chooses on the base classes; needs NOVEL or a bank.")
    ] = True,
    json: options.Json = False,
) -> None:
    """Inspect feature files: contents, problems, and advice for each method; or a model.

    Exit code 0 without faults, 1 with a fault, 2 if a file cannot be read.
    """
    with waiting("starting"):
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
        inspection = inspect_sources([part for path in paths for part in open_parts(path)], begin)
    wants_choice = settings and inspection.ok and (novel is not None or is_bank(file))
    choice = settings_of(file, console) if wants_choice else None
    if json:
        chosen = {} if choice is None else {"settings": choice.to_json()}
        print(dumps({**document(inspection), **chosen}, indent=2, allow_nan=False))
    else:
        show(inspection, console)
        if choice is not None:
            console.print()
            print_table(console, choice_table(choice))
    if not inspection.ok:
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
    from hotshot.evaluation.data import load_base, open_samples
    from hotshot.files.samples import SeveralPartsError

    try:
        source = open_samples(base)
    except SeveralPartsError:
        return None
    if source.path.stat().st_size > MOST_BYTES:
        return None
    classes = load_base(base)
    if not classes.can_hold_out:
        return None
    with Watching(console):
        return HOTClassifier(classes).choice()


def open_parts(path: Path) -> list[tuple[str, FeatureSource]]:
    """The file, or each of its parts if it has several, base classes first, with their names."""
    from hotshot.evaluation.data import open_samples
    from hotshot.files.samples import SeveralPartsError

    try:
        return [(str(path), open_samples(path))]
    except SeveralPartsError as error:
        parts = sorted(error.parts, key=lambda part: part.lower() not in ("base", "train"))
    return [(f"{path}:{part}", open_samples(path, part)) for part in parts]


def show(inspection: Inspection, console: Console) -> None:
    """Print the verdict, the facts, the findings and the advice."""
    from hotshot.evaluation.inspection import facts
    from hotshot.evaluation.tables import Entry, Table

    files, several = inspection.files, len(inspection.files) > 1
    names = {file.name: shortened(Path(file.name).name, keep="end") for file in files}
    worst = inspection.findings[0].severity if inspection.findings else "note"
    console.print(Text(inspection.verdict, style="bold green" if worst == "note" else STYLES[worst]))
    console.print()
    columns = [facts(file) for file in files]
    heads = [f"{file.role}: {names[file.name]}" if several else names[file.name] for file in files]
    rows = tuple((fact, *(column[fact] for column in columns)) for fact in columns[0])
    print_table(console, Table("", ("", *heads), rows))
    findings = []
    for finding in inspection.findings:
        # What a finding is about, if there are several files.
        about = names.get(finding.file) if len(files) > 2 else finding.role if several else None
        sentence = finding.sentence if about in (None, "both") else f"{about}: {finding.sentence}"
        findings.append((Entry(finding.severity, kind=finding.severity), sentence))
    if findings:
        console.print()
        print_table(console, Table("Findings", ("", "what"), tuple(findings)), STYLES)

    def all_or(methods: Sequence[str]) -> str:
        return "every method" if len(inspection.advice) == 1 else ", ".join(methods)

    advice = [
        (Entry(own.verdict, kind=own.verdict), f"{all_or(own.methods)}: {own.sentence}") for own in inspection.advice
    ]
    title = "Advice" if several else "Advice, as base classes or as novel classes"
    console.print()
    print_table(console, Table(title, ("", "methods"), tuple(advice)), STYLES)
