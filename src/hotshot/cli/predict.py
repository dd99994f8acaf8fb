"""`hotshot predict`: the columns of the input with the answers added, some rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from hotshot.cli import models
from hotshot.cli.inputs import Device, Force, number, refuse_existing, refuse_overwriting
from hotshot.cli.terminal import Console, print_notes
from hotshot.formatting import count, percentage, quoted

if TYPE_CHECKING:
    import numpy as np

    from hotshot.inputs.rows import Rows

# Inputs that are classified jointly; of more, so many at a time.
MOST_IN_A_BATCH = 50_000
T = TypeVar("T")
S = TypeVar("S")


def predict(
    model: models.Model,
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
        float | None, number("Reject inputs that fit no class, with this rate of false alarms, such as 0.05.")
    ] = None,
    unknown: Annotated[str, typer.Option(help="Answer for rejected inputs.")] = "none of these",
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="Classify the inputs jointly, in proportions that are estimated: more accurate for many inputs that "
            f"belong together. At most {MOST_IN_A_BATCH:,} at a time.",
        ),
    ] = False,
    text: models.Text = None,
    label: models.Label = None,
    id_: models.Id = None,
    prefix: Annotated[str, typer.Option(help="Prefix for the names of the answer columns.")] = "",
    form: Annotated[
        str | None, typer.Option("--format", help="Output format: csv, tsv, jsonl or parquet. Default: by suffix.")
    ] = None,
    strict: models.Strict = False,
    encoder: models.Encoder = None,
    device: Device = "cpu",
    force: Force = False,
) -> None:
    """Classify inputs: class, probability, runner-up and outlier score of each."""
    from hotshot.inputs.answers import (
        CLASS,
        ERROR,
        NUMBERS,
        answer,
        answer_columns,
        check_columns,
        format_of,
        in_place,
        writing,
    )
    from hotshot.inputs.rows import Columns

    form = format_of(out, form)
    if out is not None:
        refuse_existing(out, force, model, data, encoder)
    console, found = Console(stderr=True), models.load(model, device, encoder)
    if out is not None:
        refuse_overwriting(out, found.encoder)
    inputs = models.opened(found, data, Columns(text, label, id_))
    added = answer_columns(found.model, prefix)
    check_columns(inputs.columns, added, inputs.name)
    classes = set(map(str, found.classes.tolist()))
    rows_done = rejected = wrong = right = labelled = 0
    is_label = False
    with (
        models.InputProgress(console, "classifying") as progress,
        writing(out, form, [prefix + name for name in NUMBERS]) as write,
        ThreadPoolExecutor(1) as pool,
    ):

        def answered(some: tuple[list[Rows], np.ndarray]) -> tuple[list[Rows], dict[str, list[Any]]]:
            return some[0], answer(found.model, some[1], reject, unknown, batch=batch)

        batches = found.batches(inputs, progress.watch, strict=strict)
        together = joined(batches, MOST_IN_A_BATCH if batch else 1)
        # While some rows are written, the next ones are classified.
        for rows, readable in split(computed_ahead(pool, answered, together)):
            answers = in_place(readable, rows)
            write({**(rows.columns or {"id": list(rows.ids)}), **dict(zip(added, answers.values(), strict=True))})
            rows_done += len(rows)
            progress.printed = rows_done if out is None else 0
            wrong += len(rows.errors)
            rejected += sum(p is None for p in readable["probability"])
            if rows.labels is not None:
                pairs = [(own, x) for own, x in zip(rows.labels, answers[CLASS], strict=True) if own and x is not None]
                labelled += len(pairs)
                right += sum(own == str(given) for own, given in pairs)
                # Names of folders need not be labels.
                is_label = is_label or any(own in classes for own, _ in pairs)
    print_notes(console, progress.notes)
    none = f", of which {rejected:,} {quoted(unknown)}" if reject is not None else ""
    sentences = [f"{'' if out is None else f'{out}: '}{count(rows_done - wrong, 'answer')}{none}."]
    if wrong:
        verb = "was" if wrong == 1 else "were"
        sentences.append(f"{wrong:,} of {count(rows_done, 'input')} {verb} not read: see column {prefix}{ERROR}.")
    if is_label:
        sentences.append(
            f"{percentage(right / labelled)} of the {labelled:,} labels in the input agree (they were not used)."
        )
    console.print(" ".join(sentences), markup=False, soft_wrap=True)


def joined(batches: Iterable[tuple[Rows, np.ndarray]], most: int) -> Iterator[tuple[list[Rows], np.ndarray]]:
    """Rows and features of the readable ones, one batch after another until there are about `most` rows."""
    import numpy as np

    rows, features = [], []
    for own, X in batches:
        rows.append(own)
        features.append(X)
        if sum(map(len, rows)) >= most:
            yield rows, np.concatenate(features)
            rows, features = [], []
    if rows:
        yield rows, np.concatenate(features)


def split(answered: Iterable[tuple[list[Rows], dict[str, list[Any]]]]) -> Iterator[tuple[Rows, dict[str, list[Any]]]]:
    """The answers to the readable rows of each of the batches that `joined` put together."""
    for batches, answers in answered:
        start = 0
        for rows in batches:
            stop = start + len(rows.readable)
            yield rows, {name: column[start:stop] for name, column in answers.items()}
            start = stop


def computed_ahead(pool: ThreadPoolExecutor, work: Callable[[T], S], items: Iterable[T]) -> Iterator[S]:
    """Results of `work` on items, in order; work on the next item starts before a result is yielded."""
    waiting: Future[S] | None = None
    for item in items:
        begun = pool.submit(work, item)
        if waiting is not None:
            yield waiting.result()
        waiting = begun
    if waiting is not None:
        yield waiting.result()
