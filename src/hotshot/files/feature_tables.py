"""Tables of features, CSV, TSV and Parquet: a column of labels beside a column of vectors or columns of numbers."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import HotshotError, InputError
from hotshot.files.atomic import replace_file
from hotshot.files.native import unpacked
from hotshot.files.opening import check_size, damaged, json_object
from hotshot.files.roles import (
    FEATURE_NAMES,
    LABEL_NAMES,
    are_numbered,
    columns_of,
    is_beside,
    label_array,
    labels_from_text,
)
from hotshot.files.samples import ROWS_AT_ONCE, THUMBNAIL, Batch, FeatureSource
from hotshot.files.tables import LONGEST_LINE, cell_rows, cell_writer, opened_lines, pyarrow
from hotshot.formatting import listing, on_one_line, quoted

if TYPE_CHECKING:
    from hotshot.files.writing import Content

# Columns of the files that are written here.
_LABEL, _FEATURES = "label", "features"
_HEADER = b"hotshot"
# A column that pandas adds for its index.
_INDEX = "__index_level_"
# Above this, integers are not all floats.
_LARGEST_INTEGER = 2**53

# What a column holds. Unknown are cells that may be labels, but are not stored beside features: bytes, or nothing.
NUMBERS, TEXTS, DATES, VECTORS, UNKNOWN, OTHERS = "numbers", "texts", "dates", "vectors", "unknown", "others"


@dataclass(frozen=True)
class Roles:
    """Roles of columns, by their places.

    `missing` is the error message if there is no label. `features` are columns of numbers or, if `of_vectors`, one
    column of vectors. Those `beside` are stored with the features; those of them in `texts` only because they are text.
    """

    label: int | None
    missing: str
    features: tuple[int, ...]
    of_vectors: bool
    beside: tuple[int, ...]
    texts: frozenset[int]


def roles_of(
    names: Sequence[str], kinds: Sequence[str], path: Path, where: str = "", label: int | None = None
) -> Roles:
    """Which column is what; `label` is that of the labels, if it is known."""
    labels = [i for i, name in enumerate(names) if name.lower() in LABEL_NAMES and kinds[i] != VECTORS]
    if label is not None:
        labels = [label]
    elif not labels:
        # Without a usual name, the only column of text is the label.
        candidates = [i for i, kind in enumerate(kinds) if kind in (TEXTS, UNKNOWN)]
        labels = [i for i in candidates if not is_beside(names[i]) and names[i] != THUMBNAIL]
    label, missing = labels[0] if len(labels) == 1 else None, ""
    if label is None:
        several = listing(quoted(names[i]) for i in labels) or "none"
        missing = (
            f"{path} must have one column of labels and has {several} among {listing(map(quoted, names))}: "
            f"rename exactly one column to 'label'{where}."
        )
    others = [i for i in range(len(names)) if i != label]
    vectors = [i for i in others if kinds[i] == VECTORS]
    vectors = [i for i in vectors if names[i].lower() in FEATURE_NAMES] or vectors
    if len(vectors) > 1:
        both = listing(quoted(names[i]) for i in vectors)
        raise InputError(f"{path} has several columns of lists, {both}: keep one.")
    numbered, possible = are_numbered([names[i] for i in others if kinds[i] == NUMBERS]), set(labels)
    usual = {i for i in others if is_beside(names[i], kinds[i] == NUMBERS and not numbered)}
    texts = {i for i in others if kinds[i] in (TEXTS, DATES)}
    beside = {
        i
        for i in others
        if (kinds[i] in (NUMBERS, TEXTS, DATES) and names[i] != THUMBNAIL)
        or (kinds[i] == UNKNOWN and names[i] == THUMBNAIL)
        # Beside a column of vectors, numbers are identifiers and the like.
        if vectors or i in usual or i in possible or i in texts or names[i] == THUMBNAIL
    }
    features = vectors or [i for i in others if i not in beside]
    only = frozenset() if vectors else frozenset(texts - usual - possible)
    return Roles(label, missing, tuple(features), bool(vectors), tuple(sorted(beside)), only)


# --- CSV and TSV


@dataclass(frozen=True)
class Layout:
    """Columns of a CSV file with their roles; `counter` is one without a name that numbers the rows."""

    columns: tuple[str, ...]
    has_names: bool
    counter: int | None
    roles: Roles
    are_features: list[bool]

    def numbers(self, row: list[str], number: int, path: Path) -> list[float]:
        """The features of a row."""
        row = list(compress(row, self.are_features))
        if self.roles.of_vectors:
            row = row[0].strip().removeprefix("[").removesuffix("]").split(",")
        try:
            text = "".join(row)
            if "_" in text or not text.isascii():
                # Python would accept 1_000 and digits of other scripts.
                raise ValueError
            return list(map(float, row))
        except ValueError:
            names = list(compress(self.columns, self.are_features))
            names = names * len(row) if self.roles.of_vectors else names
            name, cell = next(pair for pair in zip(names, row, strict=True) if not _is_number(pair[1]))
            raise InputError(
                f"{path} holds {'text' if cell.strip() else 'nothing'}, not numbers, in column {quoted(name)} "
                f"(row {number}: {quoted(cell)}): repair or remove it, or extract features from texts first."
            ) from None


def open_text(path: Path, part: str | None = None, *, lenient: bool = False) -> FeatureSource:
    """Features and labels of a CSV file, or of a TSV file by its suffix.

    The file is read once for its labels, which are integers only if all of them look like integers, and once more for
    its numbers, as float64. If `lenient`, rows that are damaged are NaN, and labels may be missing.
    """
    layout, width = _layout(list(islice(_rows(path), 2)), path)
    n_samples, codes, classes, beside = _scan(path, layout, lenient)
    labels = None if layout.roles.label is None else labels_from_text(classes, path)
    if labels is not None:
        check_size(path, n_samples * labels.itemsize, "labels")

    def pieces(rows: int) -> Iterator[Batch]:
        data = _data(path, layout, lenient)
        for some in slices(n_samples, rows):
            X = np.empty((some.stop - some.start, width))
            for i, (number, row) in enumerate(islice(data, len(X))):
                try:
                    numbers = layout.numbers(row, number, path)
                    if len(numbers) != width:
                        raise InputError(
                            f"{path} has {len(numbers)} features in row {number} of the data, but its first row has "
                            f"{width}: extract all features with the same model."
                        )
                    X[i] = numbers
                except InputError:
                    if not lenient:
                        raise
                    X[i] = np.nan
            yield X, None if labels is None else labels[codes[some]]

    columns = columns_of(beside, n_samples)
    return FeatureSource(path, n_samples, width, np.dtype(np.float64), pieces, {}, columns, layout.roles.missing)


def _separator(path: Path) -> str:
    return "," if path.suffix.lower() == ".csv" else "\t"


def _rows(path: Path) -> Iterator[list[str]]:
    with opened_lines(path) as lines:
        for _, row, _ in cell_rows(lines, _separator(path), str(path)):
            yield row


def _data(path: Path, layout: Layout, lenient: bool) -> Iterator[tuple[int, list[str]]]:
    """Rows of data with their numbers, from 1; all of the same length."""
    n_columns = len(layout.columns)
    for number, row in enumerate(islice(_rows(path), int(layout.has_names), None), 1):
        if len(row) == n_columns:
            yield number, row
        elif lenient:
            yield number, [str(number) if column == layout.counter else "" for column in range(n_columns)]
        else:
            raise InputError(
                f"{path} has {len(row)} cells in row {number} of the data, but the first row has "
                f"{n_columns}: repair this row."
            )


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
    unnamed = [i for i, name in enumerate(columns) if not name or name.startswith("Unnamed: ")]
    roles = roles_of(columns, list(map(_kind, columns, sample)), path, " in the first line")
    if unnamed not in ([], [0]) or roles.label in unnamed:
        raise InputError(
            f"{path} has no name for column {unnamed[-1] + 1}: give every column a name, or remove the first line."
        )
    features = set(roles.features) - set(unnamed)
    if not features:
        raise InputError(
            f"{path} has no column of numbers, only {listing(map(quoted, columns))}: extract features from texts "
            f"first, or separate columns by {'commas' if _separator(path) == ',' else 'tabs'}."
        )
    are_features = [i in features for i in range(len(columns))]
    layout = Layout(columns, has_names, unnamed[0] if unnamed else None, roles, are_features)
    return layout, len(layout.numbers(list(sample), 1, path))


def _kind(name: str, cell: str) -> str:
    """What a column holds, from its first cell."""
    if name.lower() in FEATURE_NAMES and _is_vector(cell):
        return VECTORS
    if _is_number(cell):
        return NUMBERS
    return TEXTS if cell.strip() or is_beside(name) else UNKNOWN


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


def _scan(path: Path, layout: Layout, lenient: bool) -> tuple[int, np.ndarray, list[str], dict[str, list[str]]]:
    """The number of rows, the index of the label of each, the distinct labels, and the columns beside the features."""
    codes: dict[str, int] = {}
    by_row, number, counter, label = array("q"), 0, layout.counter, layout.roles.label
    beside: dict[int, list[str]] = {column: [] for column in layout.roles.beside if column != counter}
    for number, row in _data(path, layout, lenient):
        if counter is not None and row[counter] not in (str(number - 1), str(number)):
            raise InputError(
                f"{path} has a first column without a name that does not number the rows: name it or remove it."
            )
        for column, values in beside.items():
            if column in layout.roles.texts and _is_number(row[column]):
                raise InputError(
                    f"{path} holds text in row 1 and a number in row {number} of column "
                    f"{quoted(layout.columns[column])}: repair it, or remove the column."
                )
            values.append(row[column])
        if label is not None:
            text = row[label].strip()
            if not text and not lenient:
                raise InputError(f"{path} has no label in row {number} of the data: give every sample a label.")
            by_row.append(codes.setdefault(text, len(codes)))
    columns = {layout.columns[column]: values for column, values in beside.items()}
    return number, np.array(by_row, dtype=np.int64), list(codes), columns


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


def read_label_lines(path: Path) -> np.ndarray:
    """Labels (samples,) of a file with one per line; the first line may be a heading such as `label`."""
    suffix = path.suffix.lower()
    if suffix not in (".txt", ".csv"):
        raise InputError(f"{path} is not a file of labels: pass .npy, or .txt or .csv with one label per line.")
    with opened_lines(path) as lines:
        rows: Iterable[list[str]] = ([line] for line in lines)
        if suffix == ".csv":
            rows = (row for _, row, _ in cell_rows(lines, ",", str(path)))
        cells = [[cell.strip() for cell in row] for row in rows]
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
    by_row = [codes.setdefault(text, len(codes)) for text in texts]
    labels = labels_from_text(list(codes), path)
    check_size(path, len(texts) * labels.itemsize, "labels")
    return labels[by_row]


def write_text(path: Path, content: Content) -> None:
    """Write the other columns, a column `label`, and features `f0` and so on.

    If not all other columns can be told from features by their names, one column holds all features.
    """
    content.refuse_nul(path)
    beside = {name: values for name, values in content.columns.items() if name != THUMBNAIL}
    others = [name for name in beside if not is_beside(name)]
    taken = [name for name in beside if name.lower() in (*LABEL_NAMES, *FEATURE_NAMES)]
    if taken or (others and not content.classes):
        raise InputError(
            f"{path} cannot hold the column {quoted([*taken, *others][0])}, which may be taken for labels or features: "
            "write .safetensors instead, or rename it."
        )
    classes = [str(label) for label in content.classes]
    blank = next((label for label in classes if not label or label != label.strip()), None)
    if blank is not None:
        raise InputError(f"{path} cannot hold the label {quoted(blank)}, as blanks are no part of it: rename it.")
    first = 0
    try:
        with replace_file(path) as file, cell_writer(file, _separator(path)) as write:
            for X, codes in content.batches():
                some = slice(first, first + len(X))
                first = some.stop
                columns: dict[str, Any] = {
                    name: [_cell(x, path) for x in values[some]] for name, values in beside.items()
                }
                if classes:
                    columns[_LABEL] = [classes[code] for code in codes.tolist()]
                numbers = _writable(X, path)
                features = {f"f{i}": column for i, column in enumerate(numbers.T.tolist())}
                write(columns | ({_FEATURES: numbers.tolist()} if others else features))
    except UnicodeEncodeError as error:
        raise InputError(
            f"{path} cannot hold a label that is not valid text, {error.object[:60]!r}: rename it."
        ) from None


def _cell(text: str, path: Path) -> str:
    """Text of a sample; raises if it could not be read again."""
    if "\0" in text or len(text) > LONGEST_LINE // 2:
        raise InputError(
            f"{path} cannot hold texts with NUL characters or of more than {LONGEST_LINE // 2}, such as "
            f"{quoted(text)}: write .safetensors instead."
        )
    return text


def _writable(X: np.ndarray, path: Path) -> np.ndarray:
    """Numbers that are written in full precision."""
    if X.dtype.kind not in "iu":
        return X.astype(np.float64)
    if X.max() > _LARGEST_INTEGER or X.min() < -_LARGEST_INTEGER:
        raise InputError(f"{path} cannot hold integers above 2**53, which are read as floats: pass dtype='float64'.")
    return X


# --- Parquet


def open_parquet(path: Path, part: str | None = None) -> FeatureSource:
    """Features and labels of a Parquet file; features are read on demand, everything else at once."""
    pyarrow()
    with _readable_errors(path):
        file = _Parquet(path)
        first = next(file.features(rows=1))
        n_samples, width = file.n_samples, first.shape[1]
        # As long as the longest numbers: features are converted to these.
        check_size(path, 8 * n_samples * (width + 1), "columns")
        codes, classes, buffers = file.labels_and_columns()
    labels = None
    if classes:
        labels = label_array(classes, "its labels", path)
        check_size(path, n_samples * labels.itemsize, "labels")
    columns = {name: unpacked(data, offsets, n_samples, name, path) for name, (data, offsets) in buffers.items()}
    about = json_object((file.schema.metadata or {}).get(_HEADER, b"")) or {}

    def pieces(_: int) -> Iterator[Batch]:
        start = 0
        with _readable_errors(path):
            for X in file.features():
                yield X, None if labels is None else labels[codes[start : start + len(X)]]
                start += len(X)

    beside = columns_of(columns, n_samples)
    return FeatureSource(path, n_samples, width, first.dtype, pieces, about, beside, file.roles.missing)


class _Parquet:
    """A Parquet file and the columns to read."""

    def __init__(self, path: Path) -> None:
        self.pa, self.path = pyarrow(), path
        with self._opened() as file:
            self.schema, self.n_samples = file.schema_arrow, file.metadata.num_rows
        if self.n_samples <= 0:
            raise InputError(f"{path} holds no samples: store at least one.")
        self.names = [name for name in self.schema.names if not name.startswith(_INDEX)]
        if len(set(self.names)) < len(self.names):
            raise InputError(f"{path} has two columns with the same name: rename one.")
        kinds = [self._kind(self.schema.field(name).type) for name in self.names]
        is_ours = _HEADER in (self.schema.metadata or {}) and _LABEL in self.names
        self.roles = roles_of(self.names, kinds, path, label=self.names.index(_LABEL) if is_ours else None)
        self.label = None if self.roles.label is None else self.names[self.roles.label]
        for i in self.roles.features:
            self._check_features(self.names[i])
        if not self.roles.features:
            raise InputError(
                f"{path} has no column of features among {listing(map(quoted, self.names))}: add a column of lists, or "
                "extract features from texts first."
            )

    def _kind(self, kind: Any) -> str:
        types = self.pa.types
        if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            return VECTORS
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
            return NUMBERS
        if types.is_binary(kind) or types.is_large_binary(kind):
            return UNKNOWN
        if kind in (self.pa.string(), self.pa.large_string(), self.pa.string_view()):
            return TEXTS
        dated = types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind) or types.is_decimal(kind)
        return DATES if dated else OTHERS

    def _check_features(self, name: str) -> None:
        kind = self.schema.field(name).type
        held = f"{self.path} holds {on_one_line(str(kind), 60)} in column {quoted(name)}"
        if self.roles.of_vectors:
            if self._kind(kind.value_type) != NUMBERS:
                raise InputError(f"{held}: store lists of numbers.")
        elif self._kind(kind) != NUMBERS or self.pa.types.is_dictionary(kind):
            raise InputError(f"{held}, not numbers: remove the column, or extract features from it first.")
        elif not name or name.startswith("Unnamed: "):
            raise InputError(f"{self.path} has a column without a name: name it or remove it.")

    def _opened(self, **options: Any) -> Any:
        # With a buffer, pages are read one by one, not all of a row group.
        reader = self.pa.parquet.ParquetFile
        return reader(self.path, pre_buffer=False, buffer_size=2**20, page_checksum_verification=True, **options)

    def _batches(self, columns: Sequence[str], rows: int = ROWS_AT_ONCE, texts: Sequence[str] = ()) -> Iterator[Any]:
        """Some columns, so many rows at a time; raises unless the number of rows is as announced."""
        seen = 0
        with self._opened(read_dictionary=texts) as file:
            for batch in file.iter_batches(rows, columns=columns, use_threads=False):
                seen += len(batch)
                if seen > self.n_samples:
                    break
                yield batch
        if seen != self.n_samples:
            raise damaged(f"{self.path} should hold {self.n_samples} samples but holds {seen}")

    def features(self, rows: int = ROWS_AT_ONCE) -> Iterator[np.ndarray]:
        """Features (rows, V), contiguous."""
        first = width = 0
        for batch in self._batches([self.names[i] for i in self.roles.features], rows):
            for column in batch.columns:
                self._refuse_missing(column, first)
            if self.roles.of_vectors:
                X = self._vectors(batch.column(0), first, width)
            else:
                X = np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])
            first, width = first + len(X), X.shape[1]
            yield np.ascontiguousarray(X)

    def _vectors(self, column: Any, first: int, width: int) -> np.ndarray:
        """A column of lists as features (rows, V); `first` is the number of its first row, `width` is V if known."""
        lengths = self.pa.compute.list_value_length(column).to_numpy(zero_copy_only=False)
        width = width or int(lengths[0])
        if (lengths != width).any() or width == 0:
            row = int(np.argmax(lengths != width))
            raise InputError(
                f"{self.path} has {lengths[row]} features in row {first + row} of column "
                f"{quoted(self.names[self.roles.features[0]])} but its first row has {width}: extract all features "
                "with the same model."
            )
        flat = column.flatten()
        self._refuse_missing(flat, first, width)
        numbers: np.ndarray = flat.to_numpy(zero_copy_only=False).reshape(-1, width)
        return numbers

    def labels_and_columns(self) -> tuple[np.ndarray, list[Any], dict[str, tuple[np.ndarray, np.ndarray]]]:
        """Codes of labels, labels by code, and the columns beside the features: bytes and offsets by name."""
        names = [self.names[i] for i in self.roles.beside]
        codes, classes = [np.zeros(0, np.int64)], dict[Any, int]()
        texts: dict[str, list[Any]] = {name: [] for name in names}
        first = size = 0
        wanted = [*names, *([] if self.label is None else [self.label])]
        is_text = self.label is not None and self._kind(self.schema.field(self.label).type) in (TEXTS, UNKNOWN)
        for batch in self._batches(wanted, texts=[self.label] if is_text and self.label else []) if wanted else ():
            if self.label is not None:
                values, indices = self._labels(batch.column(self.label), first)
                codes.append(np.array([classes.setdefault(x, len(classes)) for x in values], np.int64)[indices])
            for name, blocks in texts.items():
                blocks.append(self._texts(batch.column(name), name))
                size += blocks[-1].nbytes
            check_size(self.path, size, "columns beside the features")
            first += len(batch)
        buffers = {name: self.pa.concat_arrays(blocks).buffers() for name, blocks in texts.items()}
        packed = {
            name: (np.frombuffer(data or b"", np.uint8), np.frombuffer(offsets, np.int64)[: self.n_samples + 1])
            for name, (_, offsets, data) in buffers.items()
        }
        return np.concatenate(codes), list(classes), packed

    def _labels(self, column: Any, first: int) -> tuple[list[Any], np.ndarray]:
        """Some labels, and which of them each row has."""
        self._refuse_missing(column, first)
        if self.pa.types.is_dictionary(column.type):
            values, indices = column.dictionary, column.indices.to_numpy(zero_copy_only=False)
            self._refuse_missing(values, first)
            is_text = self._kind(values.type) in (TEXTS, UNKNOWN)
            return (values.cast(self.pa.large_string()) if is_text else values).to_pylist(), indices
        if self._kind(column.type) != NUMBERS:
            raise InputError(
                f"{self.path} has labels of type {on_one_line(str(column.type), 60)} in {quoted(self.label)}: use "
                "strings or integers."
            )
        numbers, indices = np.unique(column.to_numpy(zero_copy_only=False), return_inverse=True)
        return numbers.tolist(), indices

    def _texts(self, column: Any, name: str) -> Any:
        """Values as text; missing ones are empty."""
        column = column.dictionary_decode() if self.pa.types.is_dictionary(column.type) else column
        kind = self.pa.large_binary() if name == THUMBNAIL else self.pa.large_string()
        return self.pa.compute.fill_null(column.cast(kind), self.pa.scalar("").cast(kind))

    def _refuse_missing(self, values: Any, first: int, width: int = 1) -> None:
        """Raise if an array of rows with `width` values, the first with number `first`, has missing values."""
        if values.null_count:
            row = first + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // width
            raise InputError(f"{self.path} has a missing value in row {row}: remove or repair this sample.")


@contextmanager
def _readable_errors(path: Path) -> Iterator[None]:
    """Turn the errors of Arrow, which are of every type, into one sentence about the file."""
    try:
        yield
    except (HotshotError, MemoryError):
        raise
    except Exception as error:
        reason = on_one_line(str(error) or type(error).__name__, 100).rstrip(".")
        raise InputError(f"{path} is not a valid Parquet file, {reason}: copy or download it again.") from None


def write_parquet(path: Path, content: Content) -> None:
    """Write columns `label` and `features`; the header is in the metadata of the schema."""
    pa = pyarrow()
    taken = next((name for name in content.columns if name in (_LABEL, _FEATURES)), None)
    if taken is not None:
        raise InputError(f"{path} already has a column {quoted(taken)} of its own: rename the other.")
    classes = content.class_array
    kinds = {name: pa.binary() if name == THUMBNAIL else pa.string() for name in content.columns}
    if content.classes:
        kinds[_LABEL] = pa.string() if content.label_type == "str" else pa.from_numpy_dtype(classes.dtype)
    kinds[_FEATURES] = pa.list_(pa.from_numpy_dtype(content.dtype), content.shape[1])
    fields = [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]
    schema = pa.schema(fields, metadata={_HEADER: json.dumps(content.about)})
    with replace_file(path) as file:
        try:
            with pa.parquet.ParquetWriter(file, schema, use_dictionary=[_LABEL], write_page_checksum=True) as writer:
                first = 0
                for X, codes in content.batches():
                    some = slice(first, first + len(X))
                    columns = [pa.array(list(values[some]), kinds[name]) for name, values in content.columns.items()]
                    if content.classes:
                        columns.append(pa.array(classes[codes].tolist(), kinds[_LABEL]))
                    flat = pa.array(np.ascontiguousarray(X).reshape(-1))
                    columns.append(pa.FixedSizeListArray.from_arrays(flat, X.shape[1]))
                    writer.write_batch(pa.record_batch(columns, schema=schema))
                    first = some.stop
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise InputError(f"{path} cannot hold these features ({error}): write .safetensors instead.") from None
