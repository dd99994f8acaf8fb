"""`hotshot predict`: the columns of the input with the answers added, some rows at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import options
from hotshot.cli.terminal import Console, InputProgress, print_notes, waiting
from hotshot.formatting import count, percentage, quoted


def predict(
    model: options.Model,
    data: Annotated[
        str,
        typer.Argument(
            help="Inputs: a table of texts or one text, an image or a folder of images, or features; - for standard "
            "input.",
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
        float | None, options.number("Reject inputs that fit no class, with this rate of false alarms, such as 0.05.")
    ] = None,
    unknown: Annotated[str, typer.Option(help="Answer for rejected inputs.")] = "none of these",
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Classify the inputs jointly, in proportions that are estimated: more accurate for many inputs that "
            "belong together. At most 50,000 at a time.",
        ),
    ] = False,
    text: options.Text = None,
    label: options.Label = None,
    id_: options.Id = None,
    prefix: Annotated[str, typer.Option(help="Prefix for the names of the answer columns.")] = "",
    form: Annotated[
        str | None, typer.Option("--format", help="Output format: csv, tsv, jsonl or parquet. Default: by suffix.")
    ] = None,
    strict: options.Strict = False,
    encoder: options.Encoder = None,
    device: options.Device = "cpu",
    force: options.Force = False,
) -> None:
    """Classify inputs: class, probability, runner-up and outlier score of each."""
    with waiting("starting"):
        from hotshot.files.tables import format_of
        from hotshot.inputs import Columns, InputClassifier
        from hotshot.inputs.answers import ERROR, Answered, write_answers
    form = format_of(out, form)
    if out is not None:
        options.refuse_existing(out, force, model, data, encoder)
    loaded = InputClassifier.load(model, device=device, encoder=encoder)
    if out is not None:
        options.refuse_overwriting(out, loaded.encoder)
    inputs = loaded.opened_line(data, Columns(text, label, id_))
    done, console = Answered(), Console(stderr=True)
    with InputProgress(console, "classifying") as progress:
        for done in write_answers(
            loaded, inputs, out, form, reject=reject, unknown=unknown, batch=batch, prefix=prefix, strict=strict,
            watch=progress.watch,
        ):  # fmt: skip
            progress.printed = done.inputs if out is None else 0
    print_notes(console, progress.notes)
    none = f", of which {done.rejected:,} {quoted(unknown)}" if reject is not None else ""
    sentences = [f"{'' if out is None else f'{out}: '}{count(done.inputs - done.unreadable, 'answer')}{none}."]
    if done.unreadable:
        verb = "was" if done.unreadable == 1 else "were"
        sentences.append(
            f"{done.unreadable:,} of {count(done.inputs, 'input')} {verb} not read: see column {prefix}{ERROR}."
        )
    if done.has_labels:
        agree = percentage(done.agreeing / done.labelled)
        sentences.append(f"{agree} of the {done.labelled:,} labels in the input agree (they were not used).")
    console.print(" ".join(sentences), markup=False, soft_wrap=True)
