"""Tables of features, CSV, TSV and Parquet: a column of labels beside a column of vectors or columns of numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import slices
from hotshot.errors import InputError
from hotshot.files.atomic import replace_file
from hotshot.files.named_arrays import FEATURE_NAMES, LABEL_NAMES, label_array, labels_from_text
from hotshot.files.opening import check_size, damaged, json_object, one_sentence
from hotshot.files.samples import (
    ID_COLUMNS,
    PLACES,
    ROWS_AT_ONCE,
    TEXT_COLUMNS,
    THUMBNAIL,
    TIMES,
    Batch,
    FeatureSource,
    Lazy,
    bare,
    columns_of,
)
from hotshot.files.tables import LONGEST_LINE, cell_rows, opened_lines, pyarrow, text_writer
from hotshot.formatting import listing, on_one_line, quoted

if TYPE_CHECKING:
    from hotshot.files.writing import Content

# Columns of the files that are written here.
_LABEL, _FEATURES, _HEADER = "label", "features", b"hotshot"
# A column that pandas adds for its index.
_INDEX = "__index_level_"
# Above this, integers are not all floats.
_LARGEST_INTEGER = 2**53


# --- roles of columns

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
    """Which column is what; `label` is that of the labels, if it is certain."""
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
    # Features by number are f0, f1 and so on, beside files and times or alone.
    plain = [names[i] for i in others if kinds[i] == NUMBERS and not is_beside(names[i])]
    numbered, possible = bool(plain) and all(name[-1:].isdigit() for name in plain), set(labels)

    def stands_beside(i: int) -> bool:
        if names[i] == THUMBNAIL:
            return kinds[i] == UNKNOWN
        # Beside a column of vectors, numbers are identifiers and the like.
        usual = bool(vectors) or i in possible or is_beside(names[i], kinds[i] == NUMBERS and not numbered)
        return kinds[i] in (TEXTS, DATES) or (kinds[i] == NUMBERS and usual)

    beside = {i for i in others if stands_beside(i)}
    features = vectors or [i for i in others if i not in beside]
    texts = {i for i in beside if kinds[i] in (TEXTS, DATES) and i not in possible and not is_beside(names[i])}
    only = frozenset() if vectors else frozenset(texts)
    return Roles(label, missing, tuple(features), bool(vectors), tuple(sorted(beside)), only)


def is_beside(name: str, of_numbers: bool = False) -> bool:
    """Whether a column of this name, of texts or of numbers, is stored beside the features.

    Numbers called as a place or time may be features, unless features have no names but numbers.
    """
    usual = (*ID_COLUMNS, *TEXT_COLUMNS)
    return bare(name) in (usual if of_numbers else (*usual, *PLACES, *TIMES))


# --- CSV and TSV


def open_text(path: Path, part: str | None = None, *, lenient: bool = False) -> FeatureSource:
    """Features and labels of a CSV file, or of a TSV file by its suffix.

    The file is read once for its labels, which are integers only if all of them look like integers, and once more for
    its numbers, as float64. If `lenient`, rows that are damaged are NaN, and labels may be missing.
    """
    table = _TextTable(path, lenient)
    n_samples, labels, beside = table.scan()

    def pieces(rows: int) -> Iterator[Batch]:
        numbered = table.rows()
        for some in slices(n_samples, rows):
            X = np.full((some.stop - some.start, table.width), np.nan)
            for i, (number, row) in enumerate(islice(numbered, len(X))):
                try:
                    X[i] = table.numbers(row, number)
                except InputError:
                    if not lenient:
                        raise
            yield X, None if labels is None else labels[some]

    columns, unlabelled = columns_of(beside, n_samples), table.roles.missing
    return FeatureSource(path, n_samples, table.width, np.dtype(np.float64), pieces, {}, columns, unlabelled)


class _TextTable:
    """The columns of a CSV or TSV file with their roles; `counter` is one without a name that numbers the rows."""

    def __init__(self, path: Path, lenient: bool) -> None:
        self.path, self.lenient, self.width = path, lenient, 0
        first = list(islice(self._cells(), 2))
        names = [name.strip() for name in first[0]] if first else []
        self.n_heads = int(_are_names(names))
        if len(first) <= self.n_heads:
            raise damaged(f"{path} has {'column names but no samples' if first else 'no rows'}")
        sample = first[self.n_heads]
        self.names = names if self.n_heads else [f"column {i}" for i in range(1, len(names) + 1)]
        if not self.n_heads and [_is_number(cell) for cell in sample] == [True, True, False] and _is_vector(sample[2]):
            # As BirdNET-Analyzer writes it.
            self.names = ["start", "end", "embedding"]
        if len(sample) != len(self.names):
            raise InputError(f"{path} has {len(sample)} cells below {len(self.names)} names: repair its first line.")
        unnamed = [i for i, name in enumerate(self.names) if not name or name.startswith("Unnamed: ")]
        self.roles = roles_of(self.names, list(map(_kind, self.names, sample)), path, " in the first line")
        if unnamed not in ([], [0]) or self.roles.label in unnamed:
            raise InputError(f"{path} has no name for column {unnamed[-1] + 1}: name it, or remove the first line.")
        self.counter = unnamed[0] if unnamed else None
        features = set(self.roles.features) - set(unnamed)
        if not features:
            sign = "commas" if _separator(path) == "," else "tabs"
            raise InputError(
                f"{path} has no column of numbers, only {listing(map(quoted, self.names))}: extract features from "
                f"texts first, or separate columns by {sign}."
            )
        self.are_features = [i in features for i in range(len(self.names))]
        self.width = len(self.numbers(sample, 1))

    def _cells(self) -> Iterator[list[str]]:
        with opened_lines(self.path) as lines:
            for _, row, _ in cell_rows(lines, _separator(self.path), str(self.path)):
                yield row

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Rows of data with their numbers, from 1; all of the same length."""
        n_columns = len(self.names)
        for number, row in enumerate(islice(self._cells(), self.n_heads, None), 1):
            if len(row) != n_columns and not self.lenient:
                raise InputError(
                    f"{self.path} has {len(row)} cells in row {number} of the data, but the first row has {n_columns}: "
                    "repair this row."
                )
            if len(row) != n_columns:
                row = [str(number) if column == self.counter else "" for column in range(n_columns)]
            yield number, row

    def numbers(self, row: list[str], number: int) -> list[float]:
        """The features of a row."""
        cells = list(compress(row, self.are_features))
        if self.roles.of_vectors:
            cells = _split(cells[0])
        try:
            text = "".join(cells)
            # Python would accept 1_000 and digits of other scripts.
            numbers = list(map(float, cells)) if "_" not in text and text.isascii() else []
        except ValueError:
            numbers = []
        if not numbers:
            names = list(compress(self.names, self.are_features))
            place, cell = next((i, cell) for i, cell in enumerate(cells) if not _is_number(cell))
            raise InputError(
                f"{self.path} holds {'text' if cell.strip() else 'nothing'}, not numbers, in column "
                f"{quoted(names[0 if self.roles.of_vectors else place])} (row {number}: {quoted(cell)}): repair "
                "or remove it, or extract features from texts first."
            )
        if len(numbers) != (self.width or len(numbers)):
            raise InputError(
                f"{self.path} has {len(numbers)} features in row {number} of the data, but its first row has "
                f"{self.width}: extract all features with the same model."
            )
        return numbers

    def scan(self) -> tuple[int, np.ndarray | None, dict[str, list[str]]]:
        """The number of rows, their labels, and the columns beside the features."""
        codes, number, label = list[int](), 0, self.roles.label
        classes: dict[str, int] = {}
        beside: dict[int, list[str]] = {column: [] for column in self.roles.beside if column != self.counter}
        for number, row in self.rows():
            if self.counter is not None and row[self.counter] not in (str(number - 1), str(number)):
                raise InputError(
                    f"{self.path} has a first column without a name that does not number the rows: name or remove it."
                )
            for column, values in beside.items():
                if column in self.roles.texts and _is_number(row[column]):
                    raise InputError(
                        f"{self.path} holds text in row 1 and a number in row {number} of column "
                        f"{quoted(self.names[column])}: repair it, or remove the column."
                    )
                values.append(row[column])
            if label is not None:
                text = row[label].strip()
                if not text and not self.lenient:
                    raise InputError(f"{self.path} has no label in row {number} of the data: give every sample one.")
                codes.append(classes.setdefault(text, len(classes)))
        columns = {self.names[column]: values for column, values in beside.items()}
        return number, None if label is None else _labels(classes, codes, self.path), columns


def _labels(classes: dict[str, int], codes: list[int], path: Path) -> np.ndarray:
    """Labels (samples,) from their distinct texts and the code of each sample."""
    labels = labels_from_text(list(classes), path)
    check_size(path, len(codes) * labels.itemsize, "labels")
    return labels[codes]


def _form(path: Path) -> str:
    return "csv" if path.suffix.lower() == ".csv" else "tsv"


def _separator(path: Path) -> str:
    return "," if _form(path) == "csv" else "\t"


def _kind(name: str, cell: str) -> str:
    """What a column holds, from its first cell."""
    if name.lower() in FEATURE_NAMES and _is_vector(cell):
        return VECTORS
    if _is_number(cell):
        return NUMBERS
    return TEXTS if cell.strip() or is_beside(name) else UNKNOWN


def _are_names(cells: list[str]) -> bool:
    """Whether a first line holds column names: two words, or consecutive numbers with at most one known name."""
    words = [cell for cell in cells if not _is_number(cell)]
    counts = [cell for cell in cells if _is_number(cell)]
    counted = counts in [[str(i) for i in range(first, first + len(counts))] for first in (0, 1)]
    if len(words) != 1:
        return len(words) > 1 or (counted and len(counts) > 2)
    return counted and (not words[0] or is_beside(words[0]) or words[0].lower() in LABEL_NAMES)


def _split(cell: str) -> list[str]:
    return cell.strip().removeprefix("[").removesuffix("]").split(",")


def _is_vector(cell: str) -> bool:
    """Whether a cell holds numbers separated by commas, or numbers in brackets."""
    return ("," in cell or cell.strip().startswith("[")) and all(map(_is_number, _split(cell)))


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
        rows = [row for _, row, _ in cell_rows(lines, ",", str(path))] if suffix == ".csv" else [[x] for x in lines]
    if any(len(row) != 1 for row in rows):
        raise InputError(f"{path} must have one column, the labels: remove the others.")
    texts = [row[0].strip() for row in rows]
    texts = texts[1:] if texts and texts[0].lower() in LABEL_NAMES else texts
    if not texts or not all(texts):
        raise InputError(f"{path} has no label for sample {(*texts, '').index('') + 1}: give every sample a label.")
    classes = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    return _labels(classes, [classes[text] for text in texts], path)


def write_text(path: Path, content: Content) -> None:
    """Write the other columns, a column `label`, and features `f0` and so on.

    If not all other columns can be told from features by their names, one column holds all features.
    """
    beside = [name for name in content.columns if name != THUMBNAIL]
    others = [name for name in beside if not is_beside(name)]
    taken = [name for name in beside if name.lower() in (*LABEL_NAMES, *FEATURE_NAMES)]
    if taken or (others and not content.classes):
        raise InputError(
            f"{path} cannot hold the column {quoted([*taken, *others][0])}, which may be taken for labels or features: "
            "write .safetensors instead, or rename it."
        )
    classes = [str(label) for label in content.classes]
    wrong = next((label for label in classes if not label or label != label.strip() or "\0" in label), None)
    if wrong is not None:
        raise InputError(f"{path} cannot hold the label {quoted(wrong)}, blanks around it or NUL: rename it.")
    try:
        with replace_file(path) as file, text_writer(file, _form(path), "strict") as write:
            for batch in content.batches():
                X = batch.X
                if X.dtype.kind in "iu" and (X.max() > _LARGEST_INTEGER or X.min() < -_LARGEST_INTEGER):
                    raise InputError(f"{path} cannot hold integers above 2**53, read as floats: pass dtype='float64'.")
                columns: dict[str, Any] = {name: [_cell(x, path) for x in batch.columns[name]] for name in beside}
                if classes:
                    columns[_LABEL] = [classes[code] for code in batch.y]
                numbers = X if X.dtype.kind in "iu" else X.astype(np.float64)
                features = {f"f{i}": column for i, column in enumerate(numbers.T.tolist())}
                write(columns | ({_FEATURES: numbers.tolist()} if others else features))
    except UnicodeEncodeError as error:
        raise InputError(f"{path} cannot hold text that is not valid, {error.object[:60]!r}: rename it.") from None


def _cell(text: str, path: Path) -> str:
    """Text of a sample; raises if it could not be read again."""
    if "\0" in text or len(text) > LONGEST_LINE // 2:
        raise InputError(
            f"{path} cannot hold texts with NUL characters or of more than {LONGEST_LINE // 2}, such as "
            f"{quoted(text)}: write .safetensors instead."
        )
    return text


# --- Parquet


def open_parquet(path: Path, part: str | None = None) -> FeatureSource:
    """Features and labels of a Parquet file; features are read on demand, everything else at once."""
    with one_sentence(path, "Parquet file"):
        table = _Parquet(path)
        first = next(table.features(rows=1))
        # As long as the longest numbers: features are converted to these.
        check_size(path, 8 * table.n_samples * (first.shape[1] + 1), "columns")
        labels, beside = table.labels(), table.columns()
    about = json_object((table.schema.metadata or {}).get(_HEADER, b"")) or {}

    def pieces(_: int) -> Iterator[Batch]:
        start = 0
        with one_sentence(path, "Parquet file"):
            for X in table.features():
                yield X, None if labels is None else labels[start : start + len(X)]
                start += len(X)

    columns, unlabelled = columns_of(beside, table.n_samples), table.roles.missing
    return FeatureSource(path, table.n_samples, first.shape[1], first.dtype, pieces, about, columns, unlabelled)


class _Parquet:
    """A Parquet file and the roles of its columns."""

    def __init__(self, path: Path) -> None:
        self.pa, self.path = pyarrow(), path
        with self._opened() as file:
            self.schema, self.n_samples = file.schema_arrow, file.metadata.num_rows
        self.names = [name for name in self.schema.names if not name.startswith(_INDEX)]
        if self.n_samples <= 0 or len(set(self.names)) < len(self.names) or not all(self.names):
            raise InputError(f"{path} holds no samples, or columns without names of their own: write it again.")
        types = [self.schema.field(name).type for name in self.names]
        kinds = list(map(self._kind, types))
        is_ours = _HEADER in (self.schema.metadata or {}) and _LABEL in self.names
        self.roles = roles_of(self.names, kinds, path, label=self.names.index(_LABEL) if is_ours else None)
        for i in self.roles.features:
            numbers = self._kind(types[i].value_type) if self.roles.of_vectors else kinds[i]
            if numbers != NUMBERS or self.pa.types.is_dictionary(types[i]):
                raise InputError(
                    f"{path} holds {on_one_line(str(types[i]), 60)} in column {quoted(self.names[i])}, not numbers: "
                    "remove the column, or extract features from it first."
                )
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
        return DATES if types.is_temporal(kind) or types.is_decimal(kind) else OTHERS

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
            columns = batch.columns
            for column in columns:
                self._refuse_missing(column, first)
            if self.roles.of_vectors:
                lengths = self.pa.compute.list_value_length(columns[0]).to_numpy(zero_copy_only=False)
                width = width or int(lengths[0])
                if (lengths != width).any() or width == 0:
                    row = int(np.argmax(lengths != width))
                    raise InputError(
                        f"{self.path} has {lengths[row]} features in row {first + row} of column "
                        f"{quoted(self.names[self.roles.features[0]])} but its first row has {width}: extract all "
                        "features with the same model."
                    )
                flat = columns[0].flatten()
                self._refuse_missing(flat, first, width)
                X = flat.to_numpy(zero_copy_only=False).reshape(-1, width)
            else:
                X = np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])
            first += len(X)
            yield np.ascontiguousarray(X)

    def labels(self) -> np.ndarray | None:
        """Labels (samples,), if there are any."""
        if self.roles.label is None:
            return None
        name = self.names[self.roles.label]
        kind = self._kind(self.schema.field(name).type)
        if kind not in (NUMBERS, TEXTS, UNKNOWN):
            held = on_one_line(str(self.schema.field(name).type), 60)
            raise InputError(f"{self.path} has labels of type {held} in {quoted(name)}: use strings or integers.")
        codes, classes, first = [], dict[Any, int](), 0
        # Each text once, and not for each row.
        for batch in self._batches([name], texts=[name] if kind != NUMBERS else []):
            column = batch.column(0)
            column = column if self.pa.types.is_dictionary(column.type) else column.dictionary_encode()
            self._refuse_missing(column, first)
            values = column.dictionary.cast(self.pa.large_string()) if kind != NUMBERS else column.dictionary
            self._refuse_missing(values, first)
            numbers = np.array([classes.setdefault(x, len(classes)) for x in values.to_pylist()], np.int64)
            codes.append(numbers[column.indices.to_numpy(zero_copy_only=False)])
            first += len(batch)
        labels = label_array(list(classes), "its labels", self.path)
        check_size(self.path, self.n_samples * labels.itemsize, "labels")
        return labels[np.concatenate(codes)]

    def columns(self) -> dict[str, Lazy]:
        """The columns beside the features by name, as text; missing values are empty."""
        pa, size, columns = self.pa, 0, {}
        for name in (self.names[i] for i in self.roles.beside):
            kind, blocks = pa.large_binary() if name == THUMBNAIL else pa.large_string(), []
            for batch in self._batches([name]):
                column = batch.column(0)
                column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
                blocks.append(pa.compute.fill_null(column.cast(kind), pa.scalar("").cast(kind)))
                blocks[-1].validate(full=True)
                size += blocks[-1].nbytes
                check_size(self.path, size, "columns beside the features")
            columns[name] = _texts(pa.concat_arrays(blocks))
        return columns

    def _refuse_missing(self, values: Any, first: int, width: int = 1) -> None:
        """Raise if an array of rows with `width` values, the first with number `first`, has missing values."""
        if values.null_count:
            row = first + int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // width
            raise InputError(f"{self.path} has a missing value in row {row}: remove or repair this sample.")


def _texts(values: Any) -> Lazy:
    return Lazy(lambda row: values[row].as_py(), range(len(values)))


def write_parquet(path: Path, content: Content) -> None:
    """Write columns `label` and `features`; the header is in the metadata of the schema."""
    pa = pyarrow()
    taken = next((name for name in content.columns if name in (_LABEL, _FEATURES)), None)
    if taken is not None:
        raise InputError(f"{path} already has a column {quoted(taken)} of its own: rename the other.")
    kinds = {name: pa.binary() if name == THUMBNAIL else pa.string() for name in content.columns}
    if content.classes:
        classes = pa.array(content.classes, pa.uint64() if content.is_long else None)
        kinds[_LABEL] = classes.type
    kinds[_FEATURES] = pa.list_(pa.from_numpy_dtype(content.dtype), content.shape[1])
    fields = [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]
    schema = pa.schema(fields, metadata={_HEADER: json.dumps(content.about)})
    with replace_file(path) as file:
        try:
            with pa.parquet.ParquetWriter(file, schema, use_dictionary=[_LABEL], write_page_checksum=True) as writer:
                for batch in content.batches():
                    columns = [pa.array(list(values), kinds[name]) for name, values in batch.columns.items()]
                    if content.classes:
                        columns.append(classes.take(pa.array(batch.y)))
                    flat = pa.array(np.ascontiguousarray(batch.X).reshape(-1))
                    columns.append(pa.FixedSizeListArray.from_arrays(flat, batch.X.shape[1]))
                    writer.write_batch(pa.record_batch(columns, schema=schema))
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise InputError(f"{path} cannot hold these features ({error}): write .safetensors instead.") from None
