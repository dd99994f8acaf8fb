"""`hotshot fit`: from labelled texts, images or features to a model of old and new classes."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli import options
from hotshot.cli.terminal import Console, InputProgress, print_notes, waiting
from hotshot.errors import ParameterError
from hotshot.formatting import count

if TYPE_CHECKING:
    from hotshot.inputs import InputClassifier


def fit(
    data: Annotated[
        Path | None,
        typer.Argument(
            help="Old and new classes in one file or folder; those with at most --few samples are new.",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(
            help="Old classes with many samples: a table of texts, a folder of images per class, features or a bank."
        ),
    ] = None,
    support: Annotated[Path | None, typer.Option(help="New classes with one to a few samples.")] = None,
    encoder: Annotated[str | None, typer.Option(help=f"{options.ENCODERS} Not needed for features.")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.")] = Path("hotshot.model"),
    new_only: Annotated[bool, typer.Option("--new-only", help="Predict new classes only.")] = False,
    settings: Annotated[Path | None, typer.Option(help="File of parameters from hotshot tune.")] = None,
    few: Annotated[int, options.number("Maximum samples of a new class, if old and new classes are in one file.")] = 10,
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    strict: options.Strict = False,
    device: options.Device = "cpu",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Fit a model to old classes with many samples and new classes with a few."""
    if (data is None) == (support is None) or (data is not None and base is not None):
        raise ParameterError("Pass --base OLD and --support NEW, or one file with old and new classes.")
    options.refuse_existing(out, force, data, base, support, encoder, settings)
    with waiting("starting"):
        from hotshot.classifiers import load_parameters
        from hotshot.inputs import Columns, InputClassifier
    tuned = {} if settings is None else load_parameters(settings)
    model = InputClassifier(encoder, base, new_only=new_only, strict=strict, device=device, **tuned)
    console, columns = Console(stderr=True), Columns(text, label, id_)
    with InputProgress(console, "encoding") as progress:
        if data is not None:
            model.fit_together(data, few, columns=columns, watch=progress.watch)
        else:
            assert support is not None
            model.fit(support, columns=columns, watch=progress.watch)
        model.save(out, overwrite=force)
    print_notes(console, [*progress.notes, *_what_is_off(model)])
    print_summary(model, out, json)


def _what_is_off(model: InputClassifier) -> list[str]:
    """What the model cannot do, why, and how it could, in a sentence; nothing if it can do all."""
    if model.model.alarm_scores_ is not None:
        return []
    without = model.model.base is None
    off = "predict --reject, predict --batch and suggest are" if without else "predict --reject is"
    why = "they learn from old classes" if without else "it learns from many old classes"
    return [f"{off} off, because {why}: pass at least 20 old classes with 10 samples each, as --base or in one file."]


def print_summary(model: InputClassifier, out: Path, json: bool) -> None:
    """Print the classes and samples of a model, as JSON or in one or two sentences."""
    old = len(model.classes) - len(model.new_classes)
    summary: dict[str, Any] = {
        "model": str(out),
        "encoder": model.encoder,
        "old_classes": old,
        "new_classes": model.new_classes.tolist(),
        "samples": len(model.model.support_labels_),
        "left_out": model.unlabelled,
    }
    if json:
        print(dumps(summary, indent=2))
        return
    new = count(len(model.new_classes), "new class", "new classes")
    both = f"{count(old, 'old class', 'old classes')} and {new}" if old else new
    left = f" Ignored {count(model.unlabelled, 'row')} without a label." if model.unlabelled else ""
    Console().print(f"{out}: {both} ({count(summary['samples'], 'sample')}).{left}", markup=False, soft_wrap=True)
