"""`hotshot explain`: reasons for predictions, with the closest examples."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import options
from hotshot.cli.terminal import Console, InputProgress, print_notes, waiting
from hotshot.errors import ParameterError
from hotshot.formatting import count


def explain(
    model: options.Model,
    data: Annotated[
        str | None,
        typer.Argument(
            help="A text, an image, or a file of inputs. Without it, the transfer weights of the new classes.",
            show_default=False,
        ),
    ] = None,
    rows: Annotated[int, options.number("Maximum number of inputs to explain.")] = 5,
    reject: Annotated[float | None, options.number("Reject inputs that fit no class, as hotshot predict does.")] = None,
    numbers: Annotated[
        bool, typer.Option("--numbers", help="Add the parts of the difference between the two logits.")
    ] = False,
    html: Annotated[Path | None, typer.Option(help="File for an HTML page with inputs and examples.")] = None,
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    encoder: options.Encoder = None,
    device: options.Device = "cpu",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Explain predictions: the closest examples, the runner-up, and the lenders."""
    if data is None and (html is not None or reject is not None):
        raise ParameterError("--html and --reject need inputs: pass a text, an image or a file.")
    if html is not None:
        options.refuse_existing(html, force, model, data, encoder)
    with waiting("starting"):
        from hotshot.files.atomic import write_text
        from hotshot.inputs import Columns, InputClassifier
        from hotshot.inputs.explaining import names_of
    loaded = InputClassifier.load(model, device=device, encoder=encoder)
    if data is None:
        loans = loaded.model.explain(names=names_of(loaded.support))
        print(dumps(loans.to_dict(), indent=2, ensure_ascii=False) if json else loans)
        return
    if html is not None:
        options.refuse_overwriting(html, loaded.encoder)
    inputs, console = loaded.opened_line(data, Columns(text, label, id_)), Console(stderr=True)
    with InputProgress(console, "encoding") as progress:
        explained = loaded.explain(inputs, rows, reject=reject)
    print_notes(console, progress.notes)
    if json:
        print(dumps(explained.to_dict(), indent=2, ensure_ascii=False))
    if html is not None:
        write_text(html, explained.to_html(f"Answers of {model.name}, explained"))
        console.print(f"{html}: {count(len(explained.close), 'answer')} explained.", markup=False)
    elif not json:
        Console().print(explained.in_words(numbers=numbers), markup=False, soft_wrap=True)
