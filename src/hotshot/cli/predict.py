"""`hotshot predict`: answers beside the columns of the input, as many rows at a time as memory needs not notice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
import typer

from hotshot.cli import raw
from hotshot.cli.inputs import number
from hotshot.cli.terminal import Console, print_notes
from hotshot.formatting import count, percentage, quoted
from hotshot.inputs.answers import CLASS, NONE, answer, answer_columns, check_columns, format_of, writing
from hotshot.inputs.rows import Columns, Rows

T = TypeVar("T")
S = TypeVar("S")


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
        number('Answer "none of these" for inputs that fit no class, at this rate of false alarms, such as 0.05.'),
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
    with raw.Working(console, "answering") as working, writing(out, form) as write, ThreadPoolExecutor(1) as pool:

        def answered(some: tuple[Rows, np.ndarray]) -> tuple[Rows, dict[str, list[Any]]]:
            return some[0], answer(found.model, some[1], reject, unknown)

        # While some rows are written, the next ones are answered.
        for rows, answers in one_ahead(pool, answered, found.batches(inputs, working.watch)):
            write({**(rows.columns or {"id": list(rows.ids)}), **dict(zip(added, answers.values(), strict=True))})
            rows_done += len(rows)
            rejected += sum(p is None for p in answers["probability"])
            if rows.labels is not None:
                pairs = [pair for pair in zip(rows.labels, answers[CLASS], strict=True) if pair[0]]
                labelled += len(pairs)
                right += sum(label == str(given) for label, given in pairs)
    print_notes(console, working.notes)
    none = f", of which {rejected:,} {quoted(unknown)}" if reject is not None else ""
    told = [f"{'' if out is None else f'{out}: '}{count(rows_done, 'answer')}{none}."]
    if labelled:
        told.append(
            f"{percentage(right / labelled)} of the {labelled:,} labels in the input agree; they were not used."
        )
    console.print(" ".join(told), markup=False, soft_wrap=True)


def one_ahead(pool: ThreadPoolExecutor, work: Callable[[T], S], items: Iterable[T]) -> Iterator[S]:
    """What `work` makes of items, in their order; the next is begun before one is given."""
    waiting: Future[S] | None = None
    for item in items:
        begun = pool.submit(work, item)
        if waiting is not None:
            yield waiting.result()
        waiting = begun
    if waiting is not None:
        yield waiting.result()
