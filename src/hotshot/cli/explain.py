"""`hotshot explain`: why inputs are answered as they are, with the examples themselves."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import inputs, raw
from hotshot.cli.terminal import Console, print_notes
from hotshot.errors import ParameterError
from hotshot.files.atomic import write_text
from hotshot.formatting import count
from hotshot.inputs.rows import TEXTS, Columns


def explain(
    model: raw.Model,
    data: Annotated[
        str | None,
        typer.Argument(
            help="A text, an image, or a file of inputs. Without it, what each new class borrows.", show_default=False
        ),
    ] = None,
    rows: Annotated[int, inputs.number("Most inputs of a file that are explained.")] = 5,
    html: Annotated[Path | None, typer.Option(help="Write a page with the inputs and the examples instead.")] = None,
    text: raw.Text = None,
    label: raw.Label = None,
    id_: raw.Id = None,
    encoder: raw.Encoder = None,
    device: raw.Device = "cpu",
    force: raw.Force = False,
    json: inputs.Json = False,
) -> None:
    """Explain answers: the closest examples, what base classes lent, and what decided."""
    if html is not None:
        if data is None:
            raise ParameterError("--html shows inputs: name a text, an image or a file.")
        raw.refuse_existing(html, force)
    console, found = Console(stderr=True), raw.load(model, device, encoder)
    is_text = data is not None and found.kind == TEXTS and data != "-" and not Path(data).exists()
    given = None if data is None else found.opened([data] if is_text else data, columns=Columns(text, label, id_))
    if given is None:
        loans = found.model.explain(names=found.support.names())
        print(dumps(loans.to_dict(), indent=2, ensure_ascii=False) if json else loans)
        return
    with raw.Working(console, "encoding") as working:
        explained = found.explain(given, rows)
    print_notes(console, working.notes)
    if json:
        print(dumps(explained.to_dict(), indent=2, ensure_ascii=False))
    if html is not None:
        write_text(html, explained.to_html(f"Answers of {model.name}, explained"))
        console.print(f"{html}: {count(len(explained.close), 'answer')} explained.", markup=False)
    elif not json:
        Console().print(str(explained), markup=False, soft_wrap=True)
