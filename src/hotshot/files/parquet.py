"""Parquet, read by Arrow in a child process: a column of labels beside a column of lists or columns of numbers."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import HotshotError, InputError
from hotshot.files.atomic import replace_file
from hotshot.files.child import GROWTH_OF_COMPRESSED, read_in_child
from hotshot.files.named import FEATURE_NAMES, LABEL_NAMES, parsed_about
from hotshot.files.source import ROWS_AT_ONCE, FeatureSource, check_size, in_memory, label_array
from hotshot.formatting import listing, on_one_line, quoted

if TYPE_CHECKING:
    from hotshot.files.writing import Content

_KEY = b"hotshot"
# A column that pandas adds for its index.
_INDEX = "__index_level_"


def _check_pyarrow() -> None:
    """The sentence that says how to get the library that reads Parquet."""
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError("Parquet files need pyarrow: pip install 'hotshot[parquet]'.")


def open_parquet(path: Path, part: str | None = None) -> FeatureSource:
    """Features and labels of a Parquet file."""
    _check_pyarrow()
    X, codes, classes, about = read_in_child("parquet", path, GROWTH_OF_COMPRESSED)
    labels = label_array(list(classes) if isinstance(classes, tuple) else classes, "its labels", path)
    check_size(path, len(codes) * labels.itemsize, "labels")
    return in_memory(path, X, lambda some: labels[codes[some]], parsed_about(about), streams=True)


@dataclass(frozen=True)
class _Columns:
    """Which columns are read: the labels, and either one of lists or some of numbers."""

    label: str
    features: tuple[str, ...]
    of_lists: bool


def read_raw(path: Path, name: str) -> tuple[Any, ...]:
    """Features, codes of labels, the labels by code, and the JSON that the file keeps; runs in the child."""
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.parquet

    def opened(**options: Any) -> Any:
        return pa.parquet.ParquetFile(path, pre_buffer=False, page_checksum_verification=True, **options)

    try:
        with opened() as file:
            schema, n_samples = file.schema_arrow, file.metadata.num_rows
        if n_samples <= 0:
            raise InputError(f"{name} holds no samples: store at least one.")
        columns = _columns(pa, schema, name)
        text = _is_text(pa, schema.field(columns.label).type)
        with opened(read_dictionary=[columns.label] if text else []) as file:
            reader = _Rows(pa, columns, n_samples, path)
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=[columns.label, *columns.features], use_threads=False):
                reader.take(batch)
        return (*reader.found(), (schema.metadata or {}).get(_KEY, b"").decode(errors="replace"))
    except (HotshotError, MemoryError):
        raise
    except Exception as error:
        # Arrow raises errors of every kind, for which the file is to blame.
        reason = on_one_line(str(error) or type(error).__name__, 100).rstrip(".")
        raise InputError(f"{name} is not a sound Parquet file, {reason}: copy or download it again.") from None


def _columns(pa: Any, schema: Any, path: str) -> _Columns:
    names = [name for name in schema.names if not name.startswith(_INDEX)]
    if len(set(names)) < len(names):
        raise InputError(f"{path} has two columns of one name: rename one.")
    kinds = {name: schema.field(name).type for name in names}
    labels = [name for name in names if name.lower() in LABEL_NAMES and not _is_list(pa, kinds[name])]
    labels = labels or [name for name in names if _is_text(pa, kinds[name])]
    if len(labels) != 1:
        raise InputError(
            f"{path} must have one column of labels and has {listing(map(quoted, labels)) or 'none'} among "
            f"{listing(map(quoted, names))}: call it 'label', and no other column so."
        )
    others = [name for name in names if name not in labels]
    lists = [name for name in others if _is_list(pa, kinds[name])]
    if lists:
        lists = [name for name in lists if name.lower() in FEATURE_NAMES] or lists
        if len(lists) > 1:
            raise InputError(f"{path} has several columns of lists, {listing(map(quoted, lists))}: keep one.")
        if not _is_numeric(pa, kinds[lists[0]].value_type):
            raise InputError(
                f"{path} holds {on_one_line(str(kinds[lists[0]]), 60)} in column {quoted(lists[0])}: store lists of "
                "numbers."
            )
        # Beside a column of vectors, numbers are identifiers and the like.
        return _Columns(labels[0], tuple(lists), of_lists=True)
    for name in others:
        if not _is_numeric(pa, kinds[name]):
            raise InputError(
                f"{path} holds {on_one_line(str(kinds[name]), 60)} in column {quoted(name)}, not numbers: remove the "
                "column, or take features of it first."
            )
        if not name or name.startswith("Unnamed: "):
            raise InputError(f"{path} has a column without a name: name it or remove it.")
    if not others:
        raise InputError(f"{path} has no column of features beside {quoted(labels[0])}: add one of lists.")
    return _Columns(labels[0], tuple(others), of_lists=False)


def _is_list(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_numeric(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _is_text(pa: Any, kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())


class _Rows:
    """Takes batches of rows into arrays that are made once the first has told their width."""

    def __init__(self, pa: Any, columns: _Columns, n_samples: int, path: Path) -> None:
        self.pa, self.columns, self.n_samples, self.path = pa, columns, n_samples, path
        self.first = 0
        self.X: np.ndarray = np.empty((0, 0))
        self.labels: list[np.ndarray] = []
        self.classes: dict[Any, int] = {}

    def take(self, batch: Any) -> None:
        """The next rows."""
        X = self._lists(batch) if self.columns.of_lists else self._numbers(batch)
        if self.first == 0:
            # As long as the longest numbers: features are converted to these.
            check_size(self.path, 8 * self.n_samples * (X.shape[1] + 1), "columns")
            self.X = np.empty((self.n_samples, X.shape[1]), X.dtype)
        last = self.first + len(X)
        if last <= self.n_samples:
            self.X[self.first : last] = X
            self.labels.append(self._labels(batch))
        self.first = last

    def found(self) -> tuple[np.ndarray, np.ndarray, Any]:
        """Features, codes of labels and labels by code."""
        if self.first != self.n_samples:
            raise InputError(f"{self.path} announces {self.n_samples} samples and holds {self.first}: copy it again.")
        labels = np.concatenate(self.labels)
        if self.classes:
            return self.X, labels, tuple(self.classes)
        classes, codes = np.unique(labels, return_inverse=True)
        return self.X, codes, classes

    def _lists(self, batch: Any) -> np.ndarray:
        """A column of lists as features (rows, V)."""
        name = self.columns.features[0]
        column = batch.column(name)
        self._refuse_missing(column)
        lengths = self.pa.compute.list_value_length(column).to_numpy(zero_copy_only=False)
        width = self.X.shape[1] if self.first else int(lengths[0])
        if (lengths != width).any() or width == 0:
            row = int(np.argmax(lengths != width))
            raise InputError(
                f"{self.path} has {lengths[row]} features in row {self.first + row} of column {quoted(name)} where "
                f"its first row has {width}: extract all features with the same model."
            )
        flat = column.flatten()
        self._refuse_missing(flat, width)
        return flat.to_numpy(zero_copy_only=False).reshape(-1, width)

    def _numbers(self, batch: Any) -> np.ndarray:
        """Columns of numbers as features (rows, V), of a type that holds all of them."""
        columns = [batch.column(name) for name in self.columns.features]
        for column in columns:
            self._refuse_missing(column)
        return np.column_stack([column.to_numpy(zero_copy_only=False) for column in columns])

    def _labels(self, batch: Any) -> np.ndarray:
        """Labels of numbers, or codes of the texts in `classes`."""
        column = batch.column(self.columns.label)
        self._refuse_missing(column)
        if not self.pa.types.is_dictionary(column.type):
            if not _is_numeric(self.pa, column.type):
                raise InputError(
                    f"{self.path} has labels of type {on_one_line(str(column.type), 60)} in "
                    f"{quoted(self.columns.label)}: use strings or integers."
                )
            return column.to_numpy(zero_copy_only=False)
        values, indices = column.dictionary, column.indices.to_numpy(zero_copy_only=False)
        self._refuse_missing(values)
        if not _is_text(self.pa, values.type):
            return values.to_numpy(zero_copy_only=False)[indices]
        texts = values.cast(self.pa.large_string()).to_pylist()
        return np.array([self.classes.setdefault(text, len(self.classes)) for text in texts])[indices]

    def _refuse_missing(self, array: Any, width: int = 1) -> None:
        """Refuse an array that lacks values, `width` of which make a row."""
        if array.null_count:
            row = self.first + int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))) // width
            raise InputError(f"{self.path} lacks a value in row {row}: remove or repair this sample.")


def write_parquet(path: Path, content: Content) -> None:
    """Write columns `label` and `features`; what the file says of itself is in the metadata of its schema."""
    _check_pyarrow()
    import pyarrow as pa
    import pyarrow.parquet

    classes = content.class_array
    label = pa.string() if content.label_type == "str" else pa.from_numpy_dtype(classes.dtype)
    vectors = pa.list_(pa.from_numpy_dtype(content.dtype), content.shape[1])
    schema = pa.schema(
        [pa.field("label", label, nullable=False), pa.field("features", vectors, nullable=False)],
        metadata={_KEY: json.dumps(content.about)},
    )
    with replace_file(path) as file:
        try:
            with pa.parquet.ParquetWriter(file, schema, use_dictionary=["label"], write_page_checksum=True) as writer:
                for X, codes in content.batches():
                    names = pa.array(classes[codes].tolist(), label)
                    flat = pa.array(np.ascontiguousarray(X).reshape(-1))
                    lists = pa.FixedSizeListArray.from_arrays(flat, X.shape[1])
                    writer.write_batch(pa.record_batch([names, lists], schema=schema))
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise InputError(f"{path} cannot hold these features: {error}.") from None
