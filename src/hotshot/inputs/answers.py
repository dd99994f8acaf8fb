"""Answers to inputs, and files of them: the columns of the input with the answers added, some rows at a time."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import check_writable, replace_file
from hotshot.formatting import listing, quoted

# Answer for an input that fits no class.
NONE = "none of these"
CLASS, PROBABILITY, RUNNER_UP, RUNNER_UP_PROBABILITY, OUTLIER = (
    "class", "probability", "runner_up", "runner_up_probability", "outlier_score",
)  # fmt: skip
FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
# Digits that are written: single precision has no more significant ones.
DIGITS = 6

Columns = dict[str, list[Any]]


def answer(
    model: Any, X: np.ndarray, reject: float | None = None, unknown: Any = NONE, *, batch: bool = False
) -> Columns:
    """The two most probable classes of features (rows, V), with probabilities and outlier scores.

    For a rejected row the class is `unknown`, without a probability, and the most probable class is the runner-up. As a
    batch the rows are classified jointly.
    """
    probabilities, scores, rejected = model.answers(X, reject, batch=batch)
    rows = np.arange(len(probabilities))
    first = probabilities.argmax(axis=1)
    best = probabilities[rows, first]
    probabilities[rows, first] = -1
    second = probabilities.argmax(axis=1)
    names = np.array(model.classes_.tolist(), dtype=object)
    found: Columns = {
        CLASS: names[first].tolist(),
        PROBABILITY: _rounded(best),
        RUNNER_UP: names[second].tolist(),
        RUNNER_UP_PROBABILITY: _rounded(probabilities[rows, second]),
    }
    if scores is not None:
        found[OUTLIER] = _rounded(scores)
    for i in np.flatnonzero(rejected):
        found[RUNNER_UP][i], found[RUNNER_UP_PROBABILITY][i] = found[CLASS][i], found[PROBABILITY][i]
        found[CLASS][i], found[PROBABILITY][i] = unknown, None
    return found


def answer_columns(model: Any, prefix: str = "") -> list[str]:
    """Names of the answer columns, in the order of `answer`."""
    known = [CLASS, PROBABILITY, RUNNER_UP, RUNNER_UP_PROBABILITY, *([] if model.base is None else [OUTLIER])]
    return [prefix + name for name in known]


def _rounded(values: np.ndarray) -> list[float]:
    return np.round(values.astype(np.float64), DIGITS).tolist()


def format_of(out: Path | None, asked: str | None) -> str:
    """csv, tsv, jsonl or parquet: as asked, else by the suffix of the file, else csv."""
    known = sorted(set(FORMATS.values()))
    if asked is not None and asked not in known:
        raise ParameterError(f"--format must be one of {', '.join(known)}, got {quoted(asked)}.")
    if asked is None and out is not None and out.suffix.lower() not in FORMATS:
        raise ParameterError(f"{out} must end in {', '.join(FORMATS)}: rename it, or pass --format.")
    form = asked or (FORMATS[out.suffix.lower()] if out is not None else "csv")
    if form == "parquet" and out is None:
        raise ParameterError("Parquet cannot be written to standard output: pass -o FILE.parquet.")
    return form


def check_columns(
    columns: Sequence[str],
    added: Sequence[str],
    name: str,
    remedy: str = "rename it or pass --prefix to rename the answer columns",
) -> None:
    """Raise if an input has a column with the name of an answer column."""
    both = [column for column in columns if column in added]
    if both:
        raise InputError(
            f"{name} already has {'a column' if len(both) == 1 else 'columns'} {listing(map(quoted, both))}: {remedy}."
        )


@contextmanager
def writing(out: Path | None, form: str) -> Iterator[Callable[[Columns], None]]:
    """A function that writes the next rows; the file appears or changes only after all are written."""
    if out is None:
        with _WRITERS[form](sys.stdout.buffer) as write:
            yield write
        sys.stdout.flush()
        return
    check_writable(out)
    with replace_file(out) as file, _WRITERS[form](file) as write:
        yield write


@contextmanager
def _cells(file: BinaryIO, separator: str = ",") -> Iterator[Callable[[Columns], None]]:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    names: list[str] = []

    def write(columns: Columns) -> None:
        if not names:
            names.extend(columns)
            writer.writerow(names)
        writer.writerows(zip(*(_plain(columns[name]) for name in names), strict=True))
        text.flush()

    try:
        yield write
    finally:
        text.detach()


def _plain(values: list[Any]) -> Iterable[Any]:
    """Values for cells; nested values from JSON lines are written as JSON."""
    if not any(isinstance(value, (dict, list)) for value in values):
        return values
    return (json.dumps(x, ensure_ascii=False) if isinstance(x, (dict, list)) else x for x in values)


@contextmanager
def _tabs(file: BinaryIO) -> Iterator[Callable[[Columns], None]]:
    with _cells(file, "\t") as write:
        yield write


@contextmanager
def _lines(file: BinaryIO) -> Iterator[Callable[[Columns], None]]:
    def write(columns: Columns) -> None:
        rows = zip(*columns.values(), strict=True)
        lines = (json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)
        file.write("".join(lines).encode())
        file.flush()

    yield write


@contextmanager
def _parquet(file: BinaryIO) -> Iterator[Callable[[Columns], None]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError("Parquet files need pyarrow: pip install 'hotshot[parquet]'.") from None
    writer: Any = None

    def write(columns: Columns) -> None:
        nonlocal writer
        try:
            if writer is None:
                kinds = {name: pa.array(values).type for name, values in columns.items()}
                # All of the first rows may lack a value.
                empty = {name: pa.float64() if name.endswith(PROBABILITY) else pa.string() for name in columns}
                fields = {name: empty[name] if kind == pa.null() else kind for name, kind in kinds.items()}
                writer = pq.ParquetWriter(file, pa.schema(fields))
            writer.write_table(pa.table(columns, schema=writer.schema))
        except (pa.ArrowException, TypeError) as error:
            raise InputError(f"The answers cannot be written as Parquet ({error}): write CSV or JSON lines.") from None

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


_WRITERS = {"csv": _cells, "tsv": _tabs, "jsonl": _lines, "parquet": _parquet}
