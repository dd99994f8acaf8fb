"""`hotshot predict`: answers beside the columns of the input, as many rows at a time as memory needs not notice."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from hotshot.cli import raw
from hotshot.cli.terminal import Console, print_notes
from hotshot.formatting import count, percentage, quoted
from hotshot.inputs.answers import CLASS, NONE, answer, answer_columns, check_columns, format_of, writing
from hotshot.inputs.rows import Columns


def predict(
    model: raw.Model,
    data: Annotated[
        Path,
        typer.Argument(
            help="Inputs: a table of texts, a folder or a single image, features; - is standard input.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="File for the answers: .csv, .tsv, .jsonl or .parquet. Default: standard output."
        ),
    ] = None,
    reject: Annotated[
        float | None,
        typer.Option(
            help='Answer "none of these" for inputs that fit no class, at this rate of false alarms, such as 0.05.'
        ),
    ] = None,
    unknown: Annotated[str, typer.Option(help="Answer for inputs that fit no class.")] = NONE,
    text: raw.Text = None,
    label: raw.Label = None,
    id_: raw.Id = None,
    prefix: Annotated[str, typer.Option(help="Beginning of the names of the columns of answers.")] = "",
    form: Annotated[
        str | None, typer.Option("--format", help="csv, tsv, jsonl or parquet. Default: by the suffix of --out.")
    ] = None,
    encoder: raw.Encoder = None,
    device: raw.Device = "cpu",
    force: raw.Force = False,
) -> None:
    """Answer inputs: class, probability, runner-up, and how little each fits any class."""
    form = format_of(out, form)
    if out is not None:
        raw.refuse_existing(out, force)
    console, found = Console(stderr=True), raw.load(model, device, encoder)
    inputs = found.opened(data, columns=Columns(text, label, id_))
    added = answer_columns(found.model, prefix)
    check_columns(inputs.columns, added, inputs.name)
    rows_done = rejected = right = labelled = 0
    with raw.Working(console, "answering") as working, writing(out, form) as write:
        for rows, X in found.batches(inputs, working.watch):
            answers = answer(found.model, X, reject, unknown)
            write({**(rows.columns or {"id": rows.ids}), **dict(zip(added, answers.values(), strict=True))})
            rows_done += len(rows)
            rejected += sum(p is None for p in answers["probability"])
            known = np.array(rows.labels or [], dtype=object)
            labelled += int((known != "").sum())
            right += int(sum(a == str(b) for a, b in zip(known, answers[CLASS], strict=False) if a))
    print_notes(console, working.notes)
    none = f", of which {rejected:,} {quoted(unknown)}" if reject is not None else ""
    told = [f"{'' if out is None else f'{out}: '}{count(rows_done, 'answer')}{none}."]
    if labelled:
        told.append(
            f"{percentage(right / labelled)} of the {labelled:,} labels in the input agree; they were not used."
        )
    console.print(" ".join(told), markup=False, soft_wrap=True)
