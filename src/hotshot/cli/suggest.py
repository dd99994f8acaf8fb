"""`hotshot suggest`: which inputs to label next, with reasons, and a table to fill in."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import inputs, models
from hotshot.cli.terminal import Console, print_notes
from hotshot.formatting import count


def suggest(
    model: models.Model,
    data: Annotated[
        Path,
        typer.Argument(
            help="Unlabelled inputs: a table of texts, a folder of images, or features; - for standard input.",
            show_default=False,
        ),
    ],
    number: Annotated[int, inputs.number("Number of suggestions.", "--number", "-n")] = 5,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Table to fill in (.csv, .tsv, .jsonl or .parquet): label it, then run hotshot add."
        ),
    ] = None,
    text: models.Text = None,
    label: models.Label = None,
    id_: models.Id = None,
    encoder: models.Encoder = None,
    device: inputs.Device = "cpu",
    force: inputs.Force = False,
    json: inputs.Json = False,
) -> None:
    """Suggest which inputs to label next, with reasons."""
    from hotshot.inputs.answers import check_columns, format_of, writing
    from hotshot.inputs.rows import FEATURES, Columns
    from hotshot.inputs.suggesting import PROBABILITY, PROBABLE, REASON

    form = format_of(out, None)
    if out is not None:
        inputs.refuse_existing(out, force, model, data, encoder)
    console, found = Console(stderr=True), models.load(model, device, encoder)
    given = found.opened(data, columns=Columns(text, label, id_))
    if out is not None:
        inputs.refuse_overwriting(out, found.encoder)
        check_columns(given.columns, (PROBABLE, PROBABILITY, REASON), given.name, "rename it")
    with models.InputProgress(console, "encoding") as progress:
        suggested = found.suggest(given, number, watch=progress.watch)
    print_notes(console, progress.notes)
    if json:
        print(dumps(suggested.to_dict(), indent=2, ensure_ascii=False))
    else:
        Console().print(str(suggested), markup=False, soft_wrap=True)
    if out is not None:
        table = suggested.table(out.parent, with_features=found.encoder is None)
        with writing(out, form, [PROBABILITY, FEATURES] if FEATURES in table else [PROBABILITY]) as write:
            write(table)
        column = "label" if suggested.label is None else suggested.label
        console.print(
            f"{out}: {count(len(suggested.ids), 'suggestion')}. Fill in the column {column}, then run: "
            f"hotshot add {model} {out}",
            markup=False,
            soft_wrap=True,
        )
