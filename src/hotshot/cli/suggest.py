"""`hotshot suggest`: which inputs to label next, with reasons, and a table to fill in."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import options
from hotshot.cli.terminal import Console, InputProgress, print_notes, waiting
from hotshot.formatting import count


def suggest(
    model: options.Model,
    data: Annotated[
        Path,
        typer.Argument(
            help="Unlabelled inputs: a table of texts, a folder of images, or features; - for standard input.",
            show_default=False,
        ),
    ],
    number: Annotated[int, options.number("Number of suggestions.", "--number", "-n")] = 5,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Table to fill in (.csv, .tsv, .jsonl or .parquet): label it, then run hotshot add."
        ),
    ] = None,
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    encoder: options.Encoder = None,
    device: options.Device = "cpu",
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    """Suggest which inputs to label next, with reasons."""
    with waiting("starting"):
        from hotshot.files.tables import format_of
        from hotshot.inputs import Columns, InputClassifier
        from hotshot.inputs.suggesting import check_free
    format_of(out, None)
    if out is not None:
        options.refuse_existing(out, force, model, data, encoder)
    loaded = InputClassifier.load(model, device=device, encoder=encoder)
    inputs, console = loaded.opened(data, columns=Columns(text, label, id_)), Console(stderr=True)
    if out is not None:
        options.refuse_overwriting(out, loaded.encoder)
        check_free(inputs)
    with InputProgress(console, "encoding") as progress:
        suggested = loaded.suggest(inputs, number, watch=progress.watch)
    print_notes(console, progress.notes)
    if json:
        print(dumps(suggested.to_dict(), indent=2, ensure_ascii=False))
    else:
        Console().print(str(suggested), markup=False, soft_wrap=True)
    if out is not None:
        suggested.write(out, with_features=loaded.encoder is None)
        column = inputs.label or "label"
        console.print(
            f"{out}: {count(len(suggested.ids), 'suggestion')}. Fill in the column {column}, then run: "
            f"hotshot add {model} {out}",
            markup=False,
            soft_wrap=True,
        )
