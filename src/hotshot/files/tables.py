"""Tables row by row: CSV, TSV, JSON lines or plain lines, from a file or standard input; written also as Parquet."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import check_writable, replace_file
from hotshot.files.named_arrays import LABEL_NAMES
from hotshot.files.opening import json_object, opened
from hotshot.formatting import did_you_mean, listing, quoted

STDIN, STDIN_NAME = "-", "Standard input"
# Column names that are recognised, in upper or lower case; users must name other columns.
TEXT_NAMES = ("text", "sentence", "question", "query", "utterance", "message", "content", "body", "input", "prompt")
LABELS = (*sorted(LABEL_NAMES), "intent", "topic")
ID_NAMES = ("id", "ids", "key", "uid", "uuid", "row", "index")
SUFFIXES = {".csv": ",", ".tsv": "\t", ".jsonl": "json", ".ndjson": "json", ".txt": "lines"}
_WRITTEN = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
# The one column of a file with a text in each line.
TEXT = "text"
# A line of a hundred thousand features has a few million characters.
LONGEST_LINE = 2**24
# Halves of surrogate pairs, in JSON or in names of files, are written as in JSON: \\ud800.
NOT_CHARACTERS = "backslashreplace"

Row = dict[str, Any]
# Rows, each with what is wrong with its line, or "".
Rows = Iterator[tuple[Row, str]]
Columns = dict[str, list[Any]]


# --- lines and cells


def checked_lines(file: BinaryIO, name: str) -> Generator[str]:
    """Lines of an open file with their line ends; raise if a line is not text."""
    text, number = io.TextIOWrapper(file, encoding="utf-8-sig", newline=""), 0
    try:
        while line := text.readline(LONGEST_LINE):
            number += 1
            if len(line) == LONGEST_LINE:
                raise InputError(f"{name} has more than {LONGEST_LINE} characters in line {number}: pass a table.")
            if "\0" in line:
                raise InputError(f"{name} has a NUL character in line {number}: it is damaged, or not text.")
            yield line
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8 text after line {number}: save it as UTF-8.") from None
    finally:
        # The caller closes the file.
        text.detach()


@contextmanager
def opened_lines(path: Path) -> Iterator[Iterator[str]]:
    """The lines of a file."""
    with opened(path) as file, closing(checked_lines(file, str(path))) as lines:
        yield lines


def cell_rows(
    lines: Iterable[str], separator: str, name: str, keep_bad: bool = False
) -> Iterator[tuple[int, list[str], str]]:
    """Rows of cells that are not empty, each with the number of its last line and what is wrong with it, or "".

    A row that is not valid is an error, but if `keep_bad` only where it is the first or goes over several lines: nobody
    knows then which rows are lost.
    """
    # A cell may be as long as a line.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    reader, is_first = csv.reader(lines, delimiter=separator, strict=True), True
    while True:
        start = reader.line_num
        try:
            for row in reader:
                if row:
                    yield reader.line_num, row, ""
                    is_first = False
                start = reader.line_num
            return
        except csv.Error as error:
            if not keep_bad or is_first or reader.line_num > start + 1:
                reason = str(error).replace("\t", "\\t")
                raise InputError(
                    f"{name} is not a valid table at line {reader.line_num} ({reason}): repair it."
                ) from None
            yield reader.line_num, [], f"its line {reader.line_num} is not valid: {error}"


# --- tables of texts


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
        usual = [column for column in self.columns if column.strip().lower() in names]
        if len(usual) > 1 and role != "text":
            raise InputError(
                f"{self.name} has several possible {role} columns, {listing(map(quoted, usual))}: name one with "
                f"{naming(role)}."
            )
        return min(usual, key=lambda column: list(names).index(column.strip().lower()), default=None)


def naming(role: str) -> str:
    """How to name a column, in Python and in the shell, for error messages."""
    return f"columns=Columns({role}=…) (in the shell --{role})"


def is_table(path: Path) -> bool:
    """Whether a path has the suffix of a table, or is standard input."""
    return str(path) == STDIN or path.suffix.lower() in SUFFIXES


def open_table(path: Path, text: str | None = None) -> Table:
    """A table with its columns; plain lines are a table with one column, `text`, unless the user names another."""
    if str(path) == STDIN:
        # It can be read only once: the row that tells the columns is put back.
        once = _parsed(path, checked_lines(sys.stdin.buffer, STDIN_NAME), STDIN_NAME, text)
        first = next(once)
        return Table(STDIN_NAME, tuple(first[0]), lambda: chain([first], once))

    def rows() -> Generator[tuple[Row, str]]:
        with opened_lines(path) as lines:
            yield from _parsed(path, lines, str(path), text)

    with closing(rows()) as again:
        return Table(str(path), tuple(next(again)[0]), rows)


def _parsed(path: Path, lines: Iterator[str], name: str, text: str | None) -> Rows:
    first = list(islice(lines, 1))
    form, row = _form(path, first, name, text), None
    parse = {"lines": _plain_rows, "json": _json_rows}.get(form, partial(_named_cells, separator=form))
    for row in parse(chain(first, lines), name):
        yield row
    if row is None:
        raise InputError(f"{name} has no rows: write one line per input.")


def _form(path: Path, first: list[str], name: str, text: str | None) -> str:
    """The separator of columns, "json", or "lines", by the suffix and the first line."""
    if not first:
        raise InputError(f"{name} is empty: write a line of column names and one line per input.")
    by_suffix = SUFFIXES.get(path.suffix.lower(), "")
    if first[0].lstrip().startswith("{") and by_suffix in ("", "json"):
        return "json"
    if by_suffix == ",":
        # Spreadsheets in many countries use semicolons.
        return ";" if ";" in first[0] and "," not in first[0] else ","
    if by_suffix:
        return by_suffix
    heads = {sign: [name.strip() for name in first[0].split(sign)] for sign in (",", "\t", ";")}
    if text is not None:
        return next((sign for sign, names in heads.items() if text in names), ",")
    words = {sign: {name.lower() for name in names} for sign, names in heads.items()}
    return next((sign for sign, names in words.items() if names & set(TEXT_NAMES)), "lines")


def _plain_rows(lines: Iterable[str], name: str) -> Rows:
    return (({TEXT: line.rstrip("\r\n")}, "") for line in lines if line.strip())


def _named_cells(lines: Iterable[str], name: str, separator: str) -> Rows:
    columns: list[str] = []
    for number, row, wrong in cell_rows(lines, separator, name, keep_bad=True):
        if not columns:
            columns = [column.strip() for column in row]
            twice = next((column for column, times in Counter(columns).items() if times > 1), None)
            if twice is not None or not all(columns):
                what = "a column without a name" if not all(columns) else f"two columns {quoted(twice)}"
                raise InputError(f"{name} has {what} in its first line: give every column its own name.")
        elif wrong:
            yield dict.fromkeys(columns), wrong
        else:
            missing = len(columns) - len(row)
            if missing:
                wrong = f"its line {number} has {len(row)} cells, but the first line has {len(columns)}"
            yield dict(zip(columns, row + [""] * missing, strict=False)), wrong


def _json_rows(lines: Iterable[str], name: str) -> Rows:
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


# --- writing


def format_of(out: Path | None, form: str | None) -> str:
    """csv, tsv, jsonl or parquet: the one that the user names, else by the suffix of the file, else csv."""
    possible = sorted(set(_WRITTEN.values()))
    if form is not None and form not in possible:
        raise ParameterError(f"--format must be one of {', '.join(possible)}, got {quoted(form)}.")
    if form is None and out is not None and out.suffix.lower() not in _WRITTEN:
        raise ParameterError(f"{out} must end in {', '.join(_WRITTEN)}: rename it, or pass --format.")
    form = form or (_WRITTEN[out.suffix.lower()] if out is not None else "csv")
    if form == "parquet" and out is None:
        raise ParameterError("Parquet cannot be written to standard output: pass -o FILE.parquet.")
    return form


@contextmanager
def writing(out: Path | None, form: str, numbers: Collection[str] = ()) -> Iterator[Callable[[Columns], None]]:
    """A function that writes the next rows; the file appears or changes only after all are written.

    In formats with types, the columns `numbers` hold numbers or lists of them, and all others text: what the next rows
    hold is unknown.
    """
    opened = partial(_parquet_writer, numbers=numbers) if form == "parquet" else partial(text_writer, form=form)
    if out is None:
        with opened(sys.stdout.buffer) as write:
            yield write
        sys.stdout.flush()
        return
    check_writable(out)
    with replace_file(out) as file, opened(file) as write:
        yield write


@contextmanager
def text_writer(file: BinaryIO, form: str, errors: str = NOT_CHARACTERS) -> Iterator[Callable[[Columns], None]]:
    """A function that writes rows as JSON lines, or as cells (csv, tsv) after their names."""
    text = io.TextIOWrapper(file, encoding="utf-8", errors=errors, newline="")
    writer = csv.writer(text, delimiter="\t" if form == "tsv" else ",", lineterminator="\n")
    has_names = False

    def write(columns: Columns) -> None:
        nonlocal has_names
        rows = zip(*columns.values(), strict=True)
        if form == "jsonl":
            text.writelines(_as_json(dict(zip(columns, row, strict=True))) + "\n" for row in rows)
        else:
            writer.writerows([] if has_names else [columns])
            writer.writerows(map(_plain, row) for row in rows)
            has_names = True
        text.flush()

    try:
        yield write
    finally:
        text.detach()


def _plain(value: Any) -> Any:
    return _as_json(value) if isinstance(value, (dict, list)) else value


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def _parquet_writer(file: BinaryIO, numbers: Collection[str]) -> Iterator[Callable[[Columns], None]]:
    pa = pyarrow()
    writer: Any = None

    def write(columns: Columns) -> None:
        nonlocal writer
        if writer is None:
            number, vector = pa.float64(), pa.list_(pa.float64())
            schema = dict.fromkeys(columns, pa.string())
            for name in columns.keys() & set(numbers):
                schema[name] = vector if isinstance(columns[name][0], list) else number
            schema = pa.schema([(_as_text(name), kind) for name, kind in schema.items()])
            writer = pa.parquet.ParquetWriter(file, schema)
        cells = [values if name in numbers else list(map(_as_text, values)) for name, values in columns.items()]
        writer.write_table(pa.table(cells, schema=writer.schema))

    try:
        yield write
    finally:
        if writer is None:
            writer = pa.parquet.ParquetWriter(file, pa.schema([]))
        writer.close()


def _as_text(value: Any) -> str | None:
    """A value as text: all but texts as JSON."""
    text = value if isinstance(value, str) or value is None else _as_json(value)
    return None if text is None else text.encode(errors=NOT_CHARACTERS).decode()


def pyarrow() -> Any:
    """The library, with its Parquet; raises with instructions if it is missing."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet files need pyarrow: pip install 'hotshot[parquet]'.") from None
    return pa
