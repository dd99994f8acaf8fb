"""CSV and TSV: a column of labels and columns of numbers, with or without a line of column names."""

from __future__ import annotations

import csv
import io
import json
from array import array
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.atomic import replace_file
from hotshot.files.opening import check_size, opened
from hotshot.files.roles import FEATURE_NAMES, LABEL_NAMES, are_numbered, columns_of, is_beside, labels_from_text
from hotshot.files.samples import THUMBNAIL, Batch, Columns, FeatureSource
from hotshot.formatting import listing, quoted

if TYPE_CHECKING:
    from hotshot.files.writing import Content

# A line of a hundred thousand features has a few million characters.
LONGEST_LINE = 2**24
# Columns of the files that are written here.
_LABEL, _FEATURES = "label", "features"
# Above this, integers are not all floats.
_LARGEST_INTEGER = 2**53


@dataclass(frozen=True)
class Layout:
    """Roles of the columns, which are counted from 0.

    `counter` numbers the rows. Columns in `kept` are not features; those of them in `texts` only because their first
    cell is text. The cells of `vector`, if any, hold all features of a row, separated by commas. `missing` is the error
    message if there are no labels.
    """

    columns: tuple[str, ...]
    has_names: bool
    label: int | None
    counter: int | None
    kept: tuple[int, ...]
    texts: tuple[int, ...]
    vector: int | None
    missing: str

    @cached_property
    def are_features(self) -> list[bool]:
        """Of each column, whether it holds features."""
        others = {self.label, self.counter, *self.kept}
        return [i not in others for i in range(len(self.columns))]

    def numbers(self, row: list[str], number: int, path: Path) -> list[float]:
        """The features of a row."""
        row = list(compress(row, self.are_features))
        if self.vector is not None:
            row = row[0].strip().removeprefix("[").removesuffix("]").split(",")
        try:
            text = "".join(row)
            if "_" in text or not text.isascii():
                # Python would accept 1_000 and digits of other scripts.
                raise ValueError
            return list(map(float, row))
        except ValueError:
            names = list(compress(self.columns, self.are_features))
            names = names if self.vector is None else names * len(row)
            name, cell = next(pair for pair in zip(names, row, strict=True) if not _is_number(pair[1]))
            raise InputError(
                f"{path} holds {'text' if cell.strip() else 'nothing'}, not numbers, in column {quoted(name)} "
                f"(row {number}: {quoted(cell)}): repair or remove it, or extract features from texts first."
            ) from None

    def features(self, row: list[str], number: int, path: Path, width: int) -> list[float]:
        """The features of a row; raises unless there are `width`."""
        numbers = self.numbers(row, number, path)
        if len(numbers) != width:
            raise InputError(
                f"{path} has {len(numbers)} features in row {number} of the data, but its first row has {width}: "
                "extract all features with the same model."
            )
        return numbers


def open_text(path: Path, part: str | None = None, *, lenient: bool = False) -> FeatureSource:
    """Features and labels of a CSV file, or of a TSV file by its suffix.

    The file is read once for its labels, which are integers only if all of them look like integers, and once more for
    its numbers, as float64. If `lenient`, rows that are damaged are NaN, and labels may be missing.
    """
    delimiter = _delimiter(path)
    layout, width = _layout(list(islice(_rows(path, delimiter), 2)), path)
    n_samples, codes, classes, columns = _scan(path, delimiter, layout, lenient)
    labels = None if layout.label is None else labels_from_text(classes, path)
    if labels is not None:
        check_size(path, n_samples * labels.itemsize, "labels")

    def pieces(rows: int) -> Iterator[Batch]:
        read = _data(path, delimiter, layout, lenient)
        for some in slices(n_samples, rows):
            X = np.empty((some.stop - some.start, width))
            for i, (number, row) in enumerate(islice(read, len(X))):
                try:
                    X[i] = layout.features(row, number, path, width)
                except InputError:
                    if not lenient:
                        raise
                    X[i] = np.nan
            yield X, None if labels is None else labels[codes[some]]

    dtype = np.dtype(np.float64)
    return FeatureSource(path, n_samples, width, dtype, pieces, {}, columns, layout.missing)


def _delimiter(path: Path) -> str:
    return "," if path.suffix.lower() == ".csv" else "\t"


def shortest_floats(X: np.ndarray) -> np.ndarray:
    """X in float32 if that changes no number, as if it was written from float32."""
    with np.errstate(over="ignore"):
        short = X.astype(np.float32)
    return short if np.array_equal(short, X, equal_nan=True) else X


def cell_reader(lines: Iterable[str], delimiter: str = ",") -> Any:
    """A reader of rows of cells; a cell may be as long as a line."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    return csv.reader(lines, delimiter=delimiter, strict=True)


def _rows(path: Path, delimiter: str) -> Iterator[list[str]]:
    """Rows of cells, without empty lines."""
    with opened_lines(path) as lines:
        reader = cell_reader(lines, delimiter)
        try:
            yield from filter(None, reader)
        except csv.Error as error:
            reason = str(error).replace("\t", "\\t")
            raise InputError(f"{path} is not a valid table at line {reader.line_num} ({reason}): repair it.") from None


def _data(path: Path, delimiter: str, layout: Layout, lenient: bool) -> Iterator[tuple[int, list[str]]]:
    """Rows of data with their numbers, from 1; all of the same length."""
    rows = islice(_rows(path, delimiter), int(layout.has_names), None)
    for number, row in enumerate(rows, 1):
        if len(row) != len(layout.columns) and lenient:
            row = [str(number) if column == layout.counter else "" for column in range(len(layout.columns))]
        if len(row) != len(layout.columns):
            raise InputError(
                f"{path} has {len(row)} cells in row {number} of the data, but the first row has "
                f"{len(layout.columns)}: repair this row."
            )
        yield number, row


def _layout(first: list[list[str]], path: Path) -> tuple[Layout, int]:
    """The layout of a table, from its first two rows, and its number of features."""
    if not first:
        raise InputError(f"{path} has no rows: copy or download it again.")
    names = [name.strip() for name in first[0]]
    has_names = _is_line_of_names(names)
    if has_names and len(first) == 1:
        raise InputError(f"{path} has column names but no samples: copy or download it again.")
    sample = first[int(has_names)]
    columns = tuple(names) if has_names else tuple(f"column {i}" for i in range(1, len(names) + 1))
    if not has_names and [_is_number(cell) for cell in sample] == [True, True, False] and _is_vector(sample[2]):
        # As BirdNET-Analyzer writes it.
        columns = ("start", "end", "embedding")
    if len(sample) != len(columns):
        raise InputError(f"{path} has {len(sample)} cells below {len(columns)} names: repair its first line.")
    vectors = [i for i, name in enumerate(columns) if name.lower() in FEATURE_NAMES and _is_vector(sample[i])]
    vector = vectors[0] if len(vectors) == 1 else None
    labels, missing = _label_columns(columns, sample, vector, path)
    label = labels[0] if len(labels) == 1 else None
    unnamed = [i for i, name in enumerate(columns) if not name or name.startswith("Unnamed: ")]
    if unnamed not in ([], [0]) or label in unnamed:
        raise InputError(
            f"{path} has no name for column {unnamed[-1] + 1}: give every column a name, or remove the first line."
        )
    others = [i for i in range(len(columns)) if i not in (label, vector, *unnamed)]
    numeric = [_is_number(cell) for cell in sample]
    numbered = are_numbered([columns[i] for i in others if numeric[i]])
    possible = set(labels)
    kept = {
        i for i in others if vector is not None or i in possible or is_beside(columns[i], numeric[i] and not numbered)
    }
    # Other columns of text are stored beside the features.
    texts = {i for i in others if i not in kept and has_names and sample[i].strip() and not numeric[i]}
    if len(others) - len(kept) - len(texts) < 1 and vector is None:
        raise InputError(
            f"{path} has no column of numbers, only {listing(map(quoted, columns))}: extract features from texts "
            f"first, or separate columns by {'commas' if _delimiter(path) == ',' else 'tabs'}."
        )
    counter = unnamed[0] if unnamed else None
    layout = Layout(
        columns, has_names, label, counter, tuple(sorted(kept | texts)), tuple(sorted(texts)), vector, missing
    )
    return layout, len(layout.numbers(list(sample), 1, path))


def _is_line_of_names(cells: list[str]) -> bool:
    """Whether a first line holds column names: two words, or consecutive numbers with at most one known name."""
    words = [cell for cell in cells if not _is_number(cell)]
    if len(words) > 1:
        return True
    counts = [cell for cell in cells if cell not in words]
    counted = counts in [[str(i) for i in range(first, first + len(counts))] for first in (0, 1)]
    if not words:
        return counted and len(counts) > 2
    return counted and (not words[0] or is_beside(words[0]) or words[0].lower() in LABEL_NAMES)


def _label_columns(
    columns: tuple[str, ...], sample: list[str], vector: int | None, path: Path
) -> tuple[list[int], str]:
    """Possible columns of labels, and the error message unless it is exactly one."""
    labels = [i for i, name in enumerate(columns) if name.lower() in LABEL_NAMES]
    if not labels:
        # Without a known name, the only column of text is the label.
        words = [i for i, cell in enumerate(sample) if not _is_number(cell) and i != vector]
        labels = [i for i in words if not is_beside(columns[i])]
    if len(labels) == 1:
        return labels, ""
    found = listing(quoted(columns[i]) for i in labels) if labels else "none"
    return labels, (
        f"{path} must have one column of labels and has {found} among {listing(map(quoted, columns))}: "
        "rename exactly one column to 'label' in the first line."
    )


def _scan(path: Path, delimiter: str, layout: Layout, lenient: bool) -> tuple[int, np.ndarray, list[str], Columns]:
    """The number of rows, the index of the label of each, the distinct labels, and the other stored columns."""
    codes: dict[str, int] = {}
    found, number = array("q"), 0
    kept: dict[int, list[str]] = {column: [] for column in layout.kept if layout.columns[column] != THUMBNAIL}
    for number, row in _data(path, delimiter, layout, lenient):
        if layout.counter is not None and row[layout.counter] not in (str(number - 1), str(number)):
            raise InputError(
                f"{path} has a first column without a name that does not number the rows: name it or remove it."
            )
        for column in layout.texts:
            if _is_number(row[column]):
                raise InputError(
                    f"{path} holds text in row 1 and a number in row {number} of column "
                    f"{quoted(layout.columns[column])}: repair it, or remove the column."
                )
        for column, values in kept.items():
            values.append(row[column])
        if layout.label is not None:
            label = row[layout.label].strip()
            if not label and not lenient:
                raise InputError(f"{path} has no label in row {number} of the data: give every sample a label.")
            found.append(codes.setdefault(label, len(codes)))
    columns = {layout.columns[column]: values for column, values in kept.items()}
    return number, np.array(found, dtype=np.int64), list(codes), columns_of(columns, number)


def _is_vector(cell: str) -> bool:
    """Whether a cell holds numbers separated by commas, or numbers in brackets."""
    numbers = cell.strip().removeprefix("[").removesuffix("]").split(",")
    return (len(numbers) > 1 or cell.strip().startswith("[")) and all(map(_is_number, numbers))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell and cell.isascii()


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


def read_label_lines(path: Path) -> np.ndarray:
    """Labels (samples,) of a file with one per line; the first line may be a heading such as `label`."""
    suffix = path.suffix.lower()
    if suffix not in (".txt", ".csv"):
        raise InputError(f"{path} is not a file of labels: pass .npy, or .txt or .csv with one label per line.")
    try:
        with opened_lines(path) as lines:
            rows = cell_reader(lines) if suffix == ".csv" else ([line] for line in lines)
            cells = [[cell.strip() for cell in row] for row in rows if row]
    except csv.Error as error:
        raise InputError(f"{path} is not a valid CSV file ({error}): repair it.") from None
    if any(len(row) != 1 for row in cells):
        raise InputError(f"{path} must have one column, the labels: remove the others.")
    texts = [row[0] for row in cells]
    if texts and texts[0].lower() in LABEL_NAMES:
        del texts[0]
    if not all(texts):
        raise InputError(f"{path} has no label for sample {texts.index('') + 1}: give every sample a label.")
    if not texts:
        raise InputError(f"{path} holds no labels: write one per line.")
    codes: dict[str, int] = {}
    found = [codes.setdefault(text, len(codes)) for text in texts]
    labels = labels_from_text(list(codes), path)
    check_size(path, len(texts) * labels.itemsize, "labels")
    return labels[found]


def write_table(path: Path, content: Content) -> None:
    """Write the other stored columns, a column `label`, and features `f0` and so on.

    If not all other columns can be told from features by their names, one column holds all features.
    """
    content.refuse_nul(path)
    kept = {name: values for name, values in content.columns.items() if name != THUMBNAIL}
    others = [name for name in kept if not is_beside(name)]
    taken = [name for name in kept if name.lower() in (*LABEL_NAMES, *FEATURE_NAMES)]
    if taken or (others and not content.classes):
        raise InputError(
            f"{path} cannot hold the column {quoted([*taken, *others][0])}, which may be taken for labels or features: "
            "write .safetensors instead, or rename it."
        )
    blank = [label for label in map(str, content.classes) if not label or label != label.strip()]
    if blank:
        raise InputError(f"{path} cannot hold the label {quoted(blank[0])}, as blanks are no part of it: rename it.")
    names = [*kept, *([_LABEL] if content.classes else [])]
    with replace_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, delimiter=_delimiter(path))
        writer.writerow([*names, *([_FEATURES] if others else [f"f{i}" for i in range(content.shape[1])])])
        first, classes = 0, [str(label) for label in content.classes]
        try:
            for X, codes in content.batches():
                some = slice(first, first + len(X))
                columns = [[_cell(x, path) for x in values[some]] for values in kept.values()]
                cells = zip(*columns, *([[classes[code] for code in codes.tolist()]] if classes else []), strict=True)
                for numbers in _numbers(X, path):
                    writer.writerow([*next(cells, ()), *([json.dumps(numbers)] if others else numbers)])
                first = some.stop
            text.flush()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{path} cannot hold a label that is not valid text, {error.object[:60]!r}: rename it."
            ) from None
        finally:
            text.detach()


def _cell(text: str, path: Path) -> str:
    """Text of a sample; raises if it could not be read again."""
    if "\0" in text or len(text) > LONGEST_LINE // 2:
        raise InputError(
            f"{path} cannot hold texts with NUL characters or of more than {LONGEST_LINE // 2}, such as "
            f"{quoted(text)}: write .safetensors instead."
        )
    return text


def _numbers(X: np.ndarray, path: Path) -> list[list[float]]:
    """Rows of numbers, written in full precision."""
    if X.dtype.kind in "iu" and (X.max() > _LARGEST_INTEGER or X.min() < -_LARGEST_INTEGER):
        raise InputError(f"{path} cannot hold integers above 2**53, which are read as floats: pass dtype='float64'.")
    return (X if X.dtype.kind in "iu" else X.astype(np.float64)).tolist()
