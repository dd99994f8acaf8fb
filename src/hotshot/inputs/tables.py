"""Tables of texts, row by row: CSV, TSV, JSON lines or plain lines, from a file or standard input."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from hotshot.errors import InputError, ParameterError
from hotshot.files.opening import json_object
from hotshot.files.roles import LABEL_NAMES
from hotshot.files.text import cell_reader, checked_lines, opened_lines
from hotshot.formatting import did_you_mean, listing, quoted

STDIN, STDIN_NAME = "-", "Standard input"
# Column names that are recognised, in upper or lower case; users must name other columns.
TEXT_NAMES = ("text", "sentence", "question", "query", "utterance", "message", "content", "body", "input", "prompt")
LABELS = (*sorted(LABEL_NAMES), "intent", "topic")
ID_NAMES = ("id", "ids", "key", "uid", "uuid", "row", "index")
SUFFIXES = {".csv": ",", ".tsv": "\t", ".jsonl": "json", ".ndjson": "json", ".txt": "lines"}
# The one column of a file with a text in each line.
TEXT = "text"

Row = dict[str, Any]
# Rows, each with what is wrong with its line, or "".
Rows = Iterator[tuple[Row, str]]


@dataclass(frozen=True)
class Table:
    """Rows of a table; those from standard input can be read only once."""

    name: str
    columns: tuple[str, ...]
    rows: Callable[[], Rows]

    def column(self, wanted: str | None, names: Sequence[str], role: str) -> str | None:
        """The column that the user names, or the one with a recognised name; None if there is none.

        `role` is the parameter of `Columns` that names it: text, label or id.
        """
        if wanted is not None:
            if wanted not in self.columns:
                raise ParameterError(
                    f"{self.name} has no column {quoted(wanted)}, only {listing(map(quoted, self.columns))}: name one "
                    f"of these with {naming(role)}.{did_you_mean(wanted, self.columns)}"
                )
            return wanted
        found = [column for column in self.columns if column.strip().lower() in names]
        if len(found) > 1:
            first = min(found, key=lambda column: list(names).index(column.strip().lower()))
            if role != "text":
                raise InputError(
                    f"{self.name} has several possible {role} columns, {listing(map(quoted, found))}: name one with "
                    f"{naming(role)}."
                )
            return first
        return found[0] if found else None


def naming(role: str) -> str:
    """How to name a column, in Python and in the shell, for error messages."""
    return f"columns=Columns({role}=…) (in the shell --{role})"


def is_table(path: Path) -> bool:
    """Whether a path has the suffix of a table, or is standard input."""
    return str(path) == STDIN or path.suffix.lower() in SUFFIXES


def open_table(path: Path, text: str | None = None) -> Table:
    """A table with its columns; plain lines are a table with one column, `text`, unless the user names another."""
    name = STDIN_NAME if str(path) == STDIN else str(path)
    if str(path) == STDIN:
        # It can be read only once: the line that names the columns is put back.
        whole = checked_lines(sys.stdin.buffer, name)
        first = list(islice(whole, 1))
        rows, columns = _parsed(_format(path, first, name, text), chain(first, whole), name)
        return Table(name, columns, lambda: rows)
    with opened_lines(path) as lines:
        first = list(islice(lines, 1))
    form = _format(path, first, name, text)
    with opened_lines(path) as lines:
        columns = _parsed(form, lines, name)[1]

    def again() -> Rows:
        with opened_lines(path) as lines:
            yield from _parsed(form, lines, name)[0]

    return Table(name, columns, again)


def _format(path: Path, first: list[str], name: str, text: str | None) -> str:
    """The separator of columns, "json", or "lines"."""
    if not first:
        raise InputError(f"{name} is empty: write a line of column names and one line per input.")
    known = SUFFIXES.get(path.suffix.lower(), "")
    if first[0].lstrip().startswith("{") and known in ("", "json"):
        return "json"
    if known == ",":
        # Spreadsheets in many countries use semicolons.
        return ";" if ";" in first[0] and "," not in first[0] else ","
    if known:
        return known
    heads = {sign: [name.strip() for name in first[0].split(sign)] for sign in (",", "\t", ";")}
    if text is not None:
        return next((sign for sign, names in heads.items() if text in names), ",")
    words = {sign: {name.lower() for name in names} for sign, names in heads.items()}
    return next((sign for sign, names in words.items() if names & set(TEXT_NAMES)), "lines")


def _parsed(form: str, lines: Iterator[str], name: str) -> tuple[Rows, tuple[str, ...]]:
    """Rows and column names."""
    if form == "lines":
        rows: Rows = (({TEXT: line.rstrip("\r\n")}, "") for line in lines if line.strip())
    else:
        rows = _json_rows(lines, name) if form == "json" else _cells(lines, form, name)
    first = list(islice(rows, 1))
    if not first:
        raise InputError(f"{name} has no rows: write one line per input.")
    return chain(first, rows), tuple(first[0][0])


def _cells(lines: Iterator[str], separator: str, name: str) -> Rows:
    reader = cell_reader(lines, separator)
    columns: list[str] = []
    while True:
        start = reader.line_num
        try:
            row = next(reader, None)
        except csv.Error as error:
            # Where a quoted cell goes over several lines, nobody knows which rows are lost.
            if not columns or reader.line_num > start + 1:
                reason = str(error).replace("\t", "\\t")
                raise InputError(
                    f"{name} is not a valid table, {reason} at line {reader.line_num}: repair this line."
                ) from None
            yield dict.fromkeys(columns), f"its line {reader.line_num} is not valid: {error}"
            continue
        if row is None:
            return
        if not columns:
            columns = [column.strip() for column in row]
            _check_columns(columns, name)
        elif row:
            missing = len(columns) - len(row)
            wrong = f"its line {reader.line_num} has {len(row)} cells, but the first line has {len(columns)}"
            yield dict(zip(columns, row + [""] * missing, strict=False)), wrong if missing else ""


def _check_columns(columns: list[str], name: str) -> None:
    twice = next((column for column, times in Counter(columns).items() if times > 1), None)
    if twice is not None or not all(columns):
        what = "a column without a name" if not all(columns) else f"two columns {quoted(twice)}"
        raise InputError(f"{name} has {what} in its first line: give every column its own name.")


def _json_rows(lines: Iterator[str], name: str) -> Rows:
    columns: dict[str, None] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = json_object(line) or {}
        if not columns and not row:
            raise InputError(f"{name} has no JSON object in line {number}: write one object per line.")
        columns = columns or dict.fromkeys(row)
        strange = next((key for key in row if key not in columns), None)
        wrong = f"its line {number} is not a JSON object" if not row else ""
        if strange is not None:
            wrong = f"its line {number} has the key {quoted(strange)}, but the first line has not"
        yield {key: row.get(key) for key in columns}, wrong
