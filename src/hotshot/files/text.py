"""CSV and TSV: a column of labels and columns of numbers, with or without a line of names."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.atomic import replace_file
from hotshot.files.named import LABEL_NAMES
from hotshot.files.source import MARKS, Batch, FeatureSource, check_size, labels_from_text, mark_of, opened
from hotshot.formatting import listing, quoted

if TYPE_CHECKING:
    from hotshot.files.writing import Content

# A line of a hundred thousand features has a few million characters.
LONGEST_LINE = 2**24
# Above this, integers are not all floats.
_LARGEST_INTEGER = 2**53


@dataclass(frozen=True)
class Layout:
    """Which column is what; columns count from 0, `counter` is one that only numbers the rows."""

    columns: tuple[str, ...]
    has_names: bool
    label: int
    mark: str | None
    counter: int | None

    @property
    def left_out(self) -> list[int]:
        """Columns that are no features, the last one first."""
        return sorted({self.label, self.label if self.counter is None else self.counter}, reverse=True)

    def numbers(self, row: list[str], number: int, path: Path) -> list[float]:
        """The features of a row, whose other cells are taken out of it."""
        for column in self.left_out:
            del row[column]
        try:
            text = "".join(row)
            if "_" in text or not text.isascii():
                # Python reads 1_000 and other scripts' digits, and nobody means them.
                raise ValueError
            return list(map(float, row))
        except ValueError:
            names = [name for i, name in enumerate(self.columns) if i not in self.left_out]
            name, cell = next(pair for pair in zip(names, row, strict=True) if not _is_number(pair[1]))
            raise InputError(
                f"{path} holds {'text' if cell.strip() else 'nothing'}, not numbers, in column {quoted(name)} "
                f"(row {number}: {quoted(cell)}): repair or remove it, or take features of texts first."
            ) from None


def open_text(path: Path, part: str | None = None) -> FeatureSource:
    """Features and labels of a CSV file, or of a TSV file by its suffix.

    The file is read once for its labels, which are integers only where all of them look like integers, and once more
    for its numbers. They are float64; every shorter float is one of them.
    """
    delimiter = _delimiter(path)
    layout = _layout(list(islice(_rows(path, delimiter), 2)), path)
    codes, classes = _scan(path, delimiter, layout)
    labels = labels_from_text(classes, layout.mark, path)
    check_size(path, len(codes) * labels.itemsize, "labels")
    width = len(layout.columns) - len(layout.left_out)

    def batches(rows: int) -> Iterator[Batch]:
        read = _data(path, delimiter, layout)
        for some in slices(len(codes), rows):
            X = np.empty((some.stop - some.start, width))
            for i, (number, row) in enumerate(islice(read, len(X))):
                X[i] = layout.numbers(row, number, path)
            yield X, labels[codes[some]]

    return FeatureSource(path, len(codes), width, np.dtype(np.float64), batches, streams=True)


def _delimiter(path: Path) -> str:
    return "\t" if path.suffix.lower() == ".tsv" else ","


def shortest_floats(X: np.ndarray) -> np.ndarray:
    """X in float32 where that changes no number, as where it was written from float32."""
    with np.errstate(over="ignore"):
        short = X.astype(np.float32)
    return short if np.array_equal(short, X, equal_nan=True) else X


def _rows(path: Path, delimiter: str) -> Iterator[list[str]]:
    """Rows of cells, without empty lines."""
    reader = csv.reader(_lines(path), delimiter=delimiter, strict=True)
    try:
        for row in reader:
            if row:
                yield row
    except csv.Error as error:
        reason = str(error).replace("\t", "\\t")
        raise InputError(f"{path} is not a sound table at line {reader.line_num}: {reason}.") from None


def _data(path: Path, delimiter: str, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """Rows of data with their numbers, from 1; all of the same length."""
    rows = islice(_rows(path, delimiter), int(layout.has_names), None)
    for number, row in enumerate(rows, 1):
        if len(row) != len(layout.columns):
            raise InputError(
                f"{path} has {len(row)} cells in row {number} of the data where the first row has "
                f"{len(layout.columns)}: repair this row."
            )
        yield number, row


def _layout(first: list[list[str]], path: Path) -> Layout:
    if not first:
        raise InputError(f"{path} has no rows: copy or download it again.")
    names = [name.strip() for name in first[0]]
    has_names = _is_line_of_names(names)
    if has_names and len(first) == 1:
        raise InputError(f"{path} has names of columns but no samples: copy or download it again.")
    columns = tuple(names) if has_names else tuple(f"column {i}" for i in range(1, len(names) + 1))
    sample = first[int(has_names)]
    if len(sample) != len(columns):
        raise InputError(f"{path} has {len(sample)} cells below {len(columns)} names: repair its first line.")
    label, mark = _label_column(columns, sample, path)
    unnamed = [i for i, name in enumerate(columns) if not name or name.startswith("Unnamed: ")]
    if unnamed not in ([], [0]) or label in unnamed:
        raise InputError(
            f"{path} has no name for column {unnamed[-1] + 1}: give every column a name, or remove the first line."
        )
    if len(columns) - 1 - len(unnamed) < 1:
        raise InputError(
            f"{path} has no column of numbers, only {listing(map(quoted, columns))}: separate columns by "
            f"{'tabs' if path.suffix.lower() == '.tsv' else 'commas'}."
        )
    layout = Layout(columns, has_names, label, mark, unnamed[0] if unnamed else None)
    layout.numbers(list(sample), 1, path)
    return layout


def _is_line_of_names(cells: list[str]) -> bool:
    """Whether a first line names columns: it has two words, or one that means labels beside a count of columns."""
    words = [cell for cell in cells if not _is_number(cell)]
    if len(words) != 1:
        return len(words) > 1
    counts = [cell for cell in cells if cell not in words]
    counted = [[str(i) for i in range(first, first + len(counts))] for first in (0, 1)]
    return _label_mark(words[0]) is not None and counts in counted


def _label_column(columns: tuple[str, ...], sample: list[str], path: Path) -> tuple[int, str | None]:
    marks = {i: mark for i, name in enumerate(columns) if (mark := _label_mark(name)) is not None}
    if not marks:
        # No name tells: the one column of text does.
        marks = {i: "" for i, cell in enumerate(sample) if not _is_number(cell)}
    if len(marks) == 1:
        [(label, mark)] = marks.items()
        return label, mark or None
    found = listing(quoted(columns[i]) for i in marks) if marks else "none"
    raise InputError(
        f"{path} must have one column of labels and has {found} among {listing(map(quoted, columns))}: "
        "call it 'label' in the first line, and no other column so."
    )


def _label_mark(name: str) -> str | None:
    """The mark of a column of labels, "text" of `label:text`, empty without one; None where it is no such column."""
    word, _, mark = name.partition(":")
    if word.strip().lower() not in LABEL_NAMES or mark not in ("", *MARKS):
        return None
    return mark


def _scan(path: Path, delimiter: str, layout: Layout) -> tuple[np.ndarray, list[str]]:
    """Index of the label of every row, and the distinct labels."""
    codes: dict[str, int] = {}
    found = []
    for number, row in _data(path, delimiter, layout):
        label = row[layout.label] if layout.mark else row[layout.label].strip()
        if not label and not layout.mark:
            raise InputError(f"{path} has no label in row {number} of the data: give every sample a label.")
        if layout.counter is not None and row[layout.counter] not in (str(number - 1), str(number)):
            raise InputError(
                f"{path} has a first column without a name that does not number the rows: name it or remove it."
            )
        found.append(codes.setdefault(label, len(codes)))
    return np.array(found, dtype=np.int64), list(codes)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell and cell.isascii()


def _lines(path: Path) -> Iterator[str]:
    """Lines with their ends; what is not text is refused by line."""
    number = 0
    try:
        with opened(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            while line := text.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise InputError(
                        f"{path} has more than {LONGEST_LINE} characters in line {number}: it is no table."
                    )
                if "\0" in line:
                    raise InputError(f"{path} has a NUL character in line {number}: it is damaged or no text.")
                yield line
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text after line {number}: save it as UTF-8.") from None


def read_label_lines(path: Path) -> np.ndarray:
    """Labels (samples,) of a file with one per line; the first line may be a heading such as `label`."""
    suffix = path.suffix.lower()
    if suffix not in (".txt", ".csv"):
        raise InputError(f"{path} is no file of labels: pass .npy, or .txt or .csv with one label per line.")
    try:
        rows = csv.reader(_lines(path), strict=True) if suffix == ".csv" else ([line] for line in _lines(path))
        cells = [[cell.strip() for cell in row] for row in rows if row]
    except csv.Error as error:
        raise InputError(f"{path} is not a sound CSV file: {error}.") from None
    if any(len(row) != 1 for row in cells):
        raise InputError(f"{path} must have one column, the labels: remove the others.")
    texts = [row[0] for row in cells]
    if texts and texts[0].lower() in LABEL_NAMES:
        del texts[0]
    if not all(texts):
        raise InputError(f"{path} has no label in line {texts.index('') + 1} of them: give every sample a label.")
    if not texts:
        raise InputError(f"{path} holds no labels: write one per line.")
    codes: dict[str, int] = {}
    found = [codes.setdefault(text, len(codes)) for text in texts]
    labels = labels_from_text(list(codes), None, path)
    check_size(path, len(texts) * labels.itemsize, "labels")
    return labels[found]


def write_table(path: Path, content: Content) -> None:
    """Write a column `label`, with a mark where its labels need one, and the features `f0`, `f1` and so on."""
    content.refuse_nul(path)
    mark = mark_of(content.classes, content.label_type)
    with replace_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, delimiter=_delimiter(path))
        writer.writerow([f"label:{mark}" if mark else "label", *(f"f{i}" for i in range(content.shape[1]))])
        labels = [str(label) for label in content.classes]
        try:
            for X, codes in content.batches():
                for code, row in zip(codes.tolist(), _numbers(X, path), strict=True):
                    writer.writerow([labels[code], *row])
            text.flush()
        except UnicodeEncodeError as error:
            raise InputError(f"{path} cannot hold a label that is no valid text: {error.object[:60]!r}.") from None
        finally:
            text.detach()


def _numbers(X: np.ndarray, path: Path) -> list[list[float]]:
    """Rows of numbers that Python writes in full."""
    if X.dtype.kind in "iu" and (X.max() > _LARGEST_INTEGER or X.min() < -_LARGEST_INTEGER):
        raise InputError(f"{path} cannot hold integers above 2**53, which are read as floats: pass dtype='float64'.")
    return (X if X.dtype.kind in "iu" else X.astype(np.float64)).tolist()
