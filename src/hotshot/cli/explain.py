"""`hotshot explain`: reasons for predictions, with the closest examples."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import inputs, models
from hotshot.cli.terminal import Console, print_notes
from hotshot.errors import ParameterError
from hotshot.formatting import count


def explain(
    model: models.Model,
    data: Annotated[
        str | None,
        typer.Argument(
            help="A text, an image, or a file of inputs. Without it, the transfer weights of the new classes.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[int, inputs.number("Maximum number of inputs to explain.")] = 5,
    reject: Annotated[float | None, inputs.number("Reject inputs that fit no class, as hotshot predict does.")] = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Add the parts of the difference between the two logits.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="File for an HTML page with inputs and examples.")] = None,
    text: models.Text = None,
    label: models.Label = None,
    id_: models.Id = None,
    encoder: models.Encoder = None,
    device: inputs.Device = "cpu",
    force: inputs.Force = False,
    json: inputs.Json = False,
) -> None:
    """Explain predictions: the closest examples, the runner-up, and the lenders."""
    from hotshot.files.atomic import write_text
    from hotshot.inputs.rows import Columns

    if data is None and (html is not None or reject is not None):
        raise ParameterError("--html and --reject need inputs: pass a text, an image or a file.")
    if html is not None:
        inputs.refuse_existing(html, force, model, data, encoder)
    console, found = Console(stderr=True), models.load(model, device, encoder)
    if html is not None:
        inputs.refuse_overwriting(html, found.encoder)
    given = None if data is None else models.opened(found, data, Columns(text, label, id_))
    if given is None:
        loans = found.model.explain(names=found.support.names())
        print(dumps(loans.to_dict(), indent=2, ensure_ascii=False) if json else loans)
        return
    with models.InputProgress(console, "encoding") as progress:
        explained = found.explain(given, rows, reject=reject)
    print_notes(console, progress.notes)
    if json:
        print(dumps(explained.to_dict(), indent=2, ensure_ascii=False))
    if html is not None:
        write_text(html, explained.to_html(f"Answers of {model.name}, explained"))
        console.print(f"{html}: {count(len(explained.close), 'answer')} explained.", markup=False)
    elif not json:
        Console().print(explained.in_words(numbers=numbers), markup=False, soft_wrap=True)
