"""`hotshot add`, `hotshot remove` and `hotshot undo`: change a model; the result equals a fresh fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import options
from hotshot.cli.fit import print_summary
from hotshot.cli.terminal import Console, InputProgress, print_notes, waiting
from hotshot.errors import ParameterError


def add(
    model: options.Model,
    support: Annotated[
        Path,
        typer.Argument(
            help="Labelled samples of new or old classes; the folder of a class of images; - for standard input.",
            show_default=False,
        ),
    ],
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    strict: options.Strict = False,
    encoder: options.Encoder = None,
    device: options.Device = "cpu",
    json: options.Json = False,
) -> None:
    """Add new classes to a model, or samples to its classes, old or new."""
    # The model is replaced as a whole.
    options.refuse_overwriting(model, support)
    with waiting("starting"):
        from hotshot.inputs import Columns, InputClassifier
    console = Console(stderr=True)
    with (
        InputProgress(console, "encoding") as progress,
        InputClassifier.change(model, device=device, encoder=encoder) as changed,
    ):
        changed.strict = strict
        changed.add(support, columns=Columns(text, label, id_), watch=progress.watch)
    print_notes(console, progress.notes)
    print_summary(changed, model, json)


def remove(
    model: options.Model,
    classes: Annotated[
        list[str] | None, typer.Argument(help="Names of the new classes to remove.", show_default=False)
    ] = None,
    sample: Annotated[
        list[str] | None, typer.Option(help="Id or text of a sample of a new class to remove; may be repeated.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Remove new classes, or single samples of them, from a model."""
    if not (classes or sample):
        raise ParameterError("Nothing to remove: name new classes, or samples with --sample.")
    with waiting("starting"):
        from hotshot.inputs import InputClassifier
    console = Console(stderr=True)
    with InputProgress(console, "removing") as progress, InputClassifier.change(model) as changed:
        changed.remove(classes or [], samples=sample or [])
    print_notes(console, progress.notes)
    print_summary(changed, model, json)


def undo(model: options.Model, json: options.Json = False) -> None:
    """Undo the last add or remove."""
    from hotshot.inputs import InputClassifier

    print_summary(InputClassifier.undo(model), model, json)
