"""`hotshot inspect`: contents and problems of feature files; or what a model holds."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from hotshot.cli import options
from hotshot.cli.options import argument, option
from hotshot.cli.terminal import STYLES, Bar, Console, Watching, print_json, print_table, waiting
from hotshot.formatting import count, shortened

if TYPE_CHECKING:
    from hotshot.classifiers.held_out import Choice
    from hotshot.evaluation.inspection import Inspection

FAULTY = 1
# Larger files are only read in batches, and no settings are chosen on them; the files of a bank are mapped.
MOST_BYTES = 2**30


def inspect(
    file: Annotated[Path, argument("Feature file of any format, FILE:PART, a bank, or a model.")],
    novel: Annotated[Path | None, argument("Features of the novel classes, if FILE holds the base classes.")] = None,
    settings: Annotated[
        bool, option("Show the settings that H-OT chooses on the base classes; needs NOVEL or a bank.")
    ] = True,
    json: options.Json = False,
) -> None:
    """Inspect feature files: contents and problems; or a model.

    Exit code 0 without faults, 1 with a fault, 2 if a file cannot be read.
    """
    with waiting("starting"):
        from hotshot.bank import is_bank
        from hotshot.bank.converting import open_parts
        from hotshot.evaluation.inspection import document, inspect_sources
        from hotshot.evaluation.tables import choice_table
        from hotshot.inputs.saving import INPUTS
    if (file / INPUTS).exists():
        _inspect_model(file, json)
        return
    console = Console(stderr=json)
    base, others = open_parts(file), [] if novel is None else open_parts(novel)
    with Bar(console, "samples") as progress:

        def watch(name: str) -> Callable[..., None]:
            return partial(progress.count, f"reading {shortened(Path(name).name)}")

        inspection = inspect_sources([*base, *others], watch)
    wants_choice = settings and inspection.ok and len(base) == 1 and (is_bank(file) or novel is not None)
    choice = _settings_of(file, console) if wants_choice else None
    if json:
        print_json({**document(inspection), **({} if choice is None else {"settings": asdict(choice)})})
    else:
        _show(inspection, console)
        if choice is not None:
            console.print()
            print_table(console, choice_table(choice))
    if not inspection.ok:
        sys.exit(FAULTY)


def _inspect_model(folder: Path, json: bool) -> None:
    from hotshot.inputs import InputClassifier

    model = InputClassifier.load(folder)
    if json:
        print_json({"encoder": model.encoder, "classes": model.contents()})
        return
    console = Console()
    console.print(Text(repr(model), style="bold"), soft_wrap=True)
    for name, samples in model.contents().items():
        listed = "".join(f"\n    {x}" for x in samples) if isinstance(samples, list) else f" {count(samples, 'sample')}"
        console.say(f"  {name}:{listed}")


def _settings_of(path: Path, console: Console) -> Choice | None:
    """Settings that `HOTClassifier` chooses on these base classes; None if it cannot, or if the file is too large."""
    from hotshot.classifiers import HOTClassifier
    from hotshot.evaluation.data import load_base
    from hotshot.files.opening import split_part

    if split_part(path, None)[0].stat().st_size > MOST_BYTES:
        return None
    base = load_base(path)
    if not base.can_hold_out:
        return None
    with Watching(console):
        return HOTClassifier(base).choice()


def _show(inspection: Inspection, console: Console) -> None:
    from hotshot.evaluation.inspection import facts
    from hotshot.evaluation.tables import Entry, Table

    files, several = inspection.files, len(inspection.files) > 1
    names = {file.name: shortened(Path(file.name).name, keep="end") for file in files}
    style = STYLES[inspection.findings[0].severity] if inspection.findings else "bold green"
    console.print(Text(inspection.verdict, style=style))
    columns = [facts(file) for file in files]
    heads = [f"{file.role}: {names[file.name]}" if several else names[file.name] for file in files]
    findings = []
    for finding in inspection.findings:
        # What a finding is about, if there are several files.
        about = names.get(finding.file) if len(files) > 2 else finding.role if several else None
        sentence = finding.sentence if about in (None, "both") else f"{about}: {finding.sentence}"
        findings.append((Entry(finding.severity, kind=finding.severity), sentence))
    rows = tuple((fact, *(column[fact] for column in columns)) for fact in columns[0])
    console.print()
    print_table(console, Table("", ("", *heads), rows))
    if findings:
        console.print()
        print_table(console, Table("Findings", ("", "what"), tuple(findings)))
