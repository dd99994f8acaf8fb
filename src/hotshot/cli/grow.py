"""`hotshot add` and `hotshot remove`: new classes and samples come and go, as if the model had been fitted so."""

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import inputs, raw
from hotshot.cli.fit import in_words, summary
from hotshot.cli.terminal import Console, print_notes
from hotshot.inputs.classifier import InputClassifier
from hotshot.inputs.rows import Columns


def add(
    model: raw.Model,
    support: Annotated[
        Path,
        typer.Argument(
            help="Samples of new classes, or more of known new ones; - is standard input.", show_default=False
        ),
    ],
    text: raw.Text = None,
    label: raw.Label = None,
    id_: raw.Id = None,
    encoder: raw.Encoder = None,
    device: raw.Device = "cpu",
    json: inputs.Json = False,
) -> None:
    """Add new classes, or samples of them, to a model."""
    console, found = Console(stderr=True), raw.load(model, device, encoder)
    with raw.Working(console, "encoding") as working:
        found.add(support, columns=Columns(text, label, id_), watch=working.watch)
        found.save(model, overwrite=True)
    print_notes(console, working.notes)
    _tell(found, model, json)


def remove(
    model: raw.Model,
    classes: Annotated[list[str], typer.Argument(help="Names of new classes.", show_default=False)],
    json: inputs.Json = False,
) -> None:
    """Remove new classes from a model."""
    console, found = Console(stderr=True), raw.load(model, "cpu")
    with raw.Working(console, "removing") as working:
        found.remove(classes)
        found.save(model, overwrite=True)
    print_notes(console, working.notes)
    _tell(found, model, json)


def _tell(found: InputClassifier, model: Path, json: bool) -> None:
    known = summary(found, model)
    if json:
        print(dumps(known, indent=2))
    else:
        Console().print(in_words(known), markup=False, soft_wrap=True)
