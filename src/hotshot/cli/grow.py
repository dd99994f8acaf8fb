"""`hotshot add`, `hotshot remove` and `hotshot undo`: change a model; the result equals a fresh fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import inputs, models
from hotshot.cli.fit import print_summary
from hotshot.cli.terminal import Console, print_notes
from hotshot.errors import ParameterError


def add(
    model: models.Model,
    support: Annotated[
        Path,
        typer.Argument(
            help="Labelled samples of new or old classes; the folder of a class of images; - for standard input.",
            show_default=False,
        ),
    ],
    text: models.Text = None,
    label: models.Label = None,
    id_: models.Id = None,
    strict: models.Strict = False,
    encoder: models.Encoder = None,
    device: inputs.Device = "cpu",
    json: inputs.Json = False,
) -> None:
    """Add new classes to a model, or samples to its classes, old or new."""
    from hotshot.inputs import InputClassifier
    from hotshot.inputs.rows import Columns

    # The model is replaced as a whole.
    inputs.refuse_overwriting(model, support)
    console = Console(stderr=True)
    with (
        models.InputProgress(console, "encoding") as progress,
        InputClassifier.change(model, device=device, encoder=encoder) as found,
    ):
        found.strict = strict
        found.add(support, columns=Columns(text, label, id_), watch=progress.watch)
    print_notes(console, progress.notes)
    print_summary(found, model, json)


def remove(
    model: models.Model,
    classes: Annotated[
        list[str] | None, typer.Argument(help="Names of the new classes to remove.", show_default=False)
    ] = None,
    sample: Annotated[
        list[str] | None, typer.Option(help="Id or text of a sample of a new class to remove; may be repeated.")
    ] = None,
    json: inputs.Json = False,
) -> None:
    """Remove new classes, or single samples of them, from a model."""
    from hotshot.inputs import InputClassifier

    if not (classes or sample):
        raise ParameterError("Nothing to remove: name new classes, or samples with --sample.")
    console = Console(stderr=True)
    with models.InputProgress(console, "removing") as progress, InputClassifier.change(model) as found:
        found.remove(classes or [], samples=sample or [])
    print_notes(console, progress.notes)
    print_summary(found, model, json)


def undo(model: models.Model, json: inputs.Json = False) -> None:
    """Undo the last add or remove."""
    from hotshot.inputs import InputClassifier

    print_summary(InputClassifier.undo(model), model, json)
