"""`hotshot add` and `hotshot remove`: change the new classes of a model; the result equals a fresh fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import inputs, models
from hotshot.cli.fit import print_summary
from hotshot.cli.terminal import Console, print_notes


def add(
    model: models.Model,
    support: Annotated[
        Path, typer.Argument(help="Labelled samples of new classes; - for standard input.", show_default=False)
    ],
    text: models.Text = None,
    label: models.Label = None,
    id_: models.Id = None,
    strict: models.Strict = False,
    encoder: models.Encoder = None,
    device: inputs.Device = "cpu",
    json: inputs.Json = False,
) -> None:
    """Add new classes to a model, or samples to its new classes."""
    from hotshot.inputs.rows import Columns

    # The model is replaced as a whole.
    inputs.refuse_overwriting(model, support)
    console, found = Console(stderr=True), models.load(model, device, encoder)
    found.strict = strict
    with models.InputProgress(console, "encoding") as progress:
        found.add(support, columns=Columns(text, label, id_), watch=progress.watch)
        found.save(model, overwrite=True)
    print_notes(console, progress.notes)
    print_summary(found, model, json)


def remove(
    model: models.Model,
    classes: Annotated[list[str], typer.Argument(help="Names of the new classes to remove.", show_default=False)],
    json: inputs.Json = False,
) -> None:
    """Remove new classes from a model."""
    console, found = Console(stderr=True), models.load(model, "cpu")
    with models.InputProgress(console, "removing") as progress:
        found.remove(classes)
        found.save(model, overwrite=True)
    print_notes(console, progress.notes)
    print_summary(found, model, json)
