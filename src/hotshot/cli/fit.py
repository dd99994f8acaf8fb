"""`hotshot fit`: from labelled texts, images or features to a model that answers old classes and new ones."""

from json import dumps
from pathlib import Path
from typing import Annotated, Any

import typer

from hotshot.cli import inputs, raw
from hotshot.cli.images import prepare_process
from hotshot.cli.terminal import Console, print_notes
from hotshot.errors import ParameterError
from hotshot.formatting import count
from hotshot.inputs.classifier import FEW, InputClassifier
from hotshot.inputs.rows import Columns


def fit(
    data: Annotated[
        Path | None,
        typer.Argument(
            help="Old and new classes in one file or folder; classes of at most --few samples are the new ones.",
            show_default=False,
        ),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(
            help="Old classes, with many samples each: a table of texts, class folders of images, features or a bank."
        ),
    ] = None,
    support: Annotated[Path | None, typer.Option(help="New classes, with one to a few samples each.")] = None,
    encoder: Annotated[
        str | None,
        typer.Option(
            help="What makes features of inputs: minilm, efficientnet-lite0, st:PATH, timm:NAME, hf:PATH, file.onnx, "
            "file.py:name. Not needed for features."
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the model.")] = Path("hotshot.model"),
    new_only: Annotated[bool, typer.Option("--new-only", help="Answer new classes only.")] = False,
    few: Annotated[int, inputs.number("Most samples of a new class, where old and new ones are in one file.")] = FEW,
    text: raw.Text = None,
    label: raw.Label = None,
    id_: raw.Id = None,
    device: raw.Device = "cpu",
    force: raw.Force = False,
    json: inputs.Json = False,
) -> None:
    """Fit a model to old classes with many samples and to new classes with a few."""
    if (data is None) == (support is None) or (data is not None and base is not None):
        raise ParameterError("Pass --base OLD and --support NEW, or one file that holds old and new classes.")
    raw.refuse_existing(out, force)
    prepare_process()
    console, columns = Console(stderr=True), Columns(text, label, id_)
    model = InputClassifier(encoder, base, new_only=new_only, device=device)
    with raw.Working(console, "encoding") as working:
        if data is not None:
            model.fit_together(data, few, columns=columns, watch=working.watch)
        else:
            assert support is not None
            model.fit(support, columns=columns, watch=working.watch)
        model.save(out, overwrite=force)
    print_notes(console, working.notes)
    found = summary(model, out)
    if json:
        print(dumps(found, indent=2))
    else:
        Console().print(in_words(found), markup=False, soft_wrap=True)


def summary(model: InputClassifier, out: Path) -> dict[str, Any]:
    """What a model knows, as JSON."""
    old = len(model.classes) - len(model.new_classes)
    return {
        "model": str(out),
        "encoder": model.encoder,
        "old_classes": old,
        "new_classes": model.new_classes.tolist(),
        "samples": len(model.model.support_labels_),
        "left_out": model.unlabelled,
    }


def in_words(found: dict[str, Any]) -> str:
    """What a model knows, in a sentence or two."""
    new = count(len(found["new_classes"]), "new class", "new classes")
    old = f"{count(found['old_classes'], 'old class', 'old classes')} and " if found["old_classes"] else ""
    left = f" {count(found['left_out'], 'row')} without a label left out." if found["left_out"] else ""
    return f"{found['model']}: answers {old}{new}, from {count(found['samples'], 'sample')} of the new.{left}"
