"""Parquet: a column of labels beside a column of lists, or beside columns of numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import HotshotError, InputError
from hotshot.files.labels import label_array
from hotshot.files.limits import check_size
from hotshot.files.named import FEATURE_NAMES, LABEL_NAMES
from hotshot.files.names import listing, quoted
from hotshot.files.parquet_footer import check_parquet
from hotshot.files.source import ROWS_AT_ONCE, Batch, FeatureSource, rebatch

KEY = b"hotshot"
# A column that pandas adds for its index.
_INDEX = "__index_level_"


def pyarrow() -> Any:
    """The library that reads Parquet, or the sentence that says how to get it."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet files need pyarrow: pip install 'hotshot[parquet]'.") from None
    return pyarrow


@dataclass(frozen=True)
class Columns:
    """Which columns are read: the labels, and either one of lists or some of numbers."""

    label: str
    features: tuple[str, ...]
    of_lists: bool


def open_parquet(path: Path) -> FeatureSource:
    """Features and labels of a Parquet file, read a row group at a time."""
    pa = pyarrow()
    n_samples = check_parquet(path)
    with _opened(pa, path) as file:
        schema = file.schema_arrow
        columns = _columns(pa, schema, path)
        about = _about((schema.metadata or {}).get(KEY))
        text = _is_text(pa, schema.field(columns.label).type)
    dictionary = [columns.label] if text else []

    def pieces(rows: int, width: int | None) -> Iterator[Batch]:
        with _opened(pa, path, dictionary) as file:
            first = 0
            for batch in file.iter_batches(
                rows, columns=[columns.label, *columns.features], use_threads=False
            ):
                where = _Where(columns, first, n_samples, width, path)
                X = _lists(pa, batch, where) if columns.of_lists else _numbers(batch, where)
                yield X, _labels(pa, batch, where)
                first += len(X)
            if first != n_samples:
                raise InputError(f"{path} announces {n_samples} samples and holds {first}: copy it again.")

    X, _ = next(pieces(1, None))
    n_features = X.shape[1]
    check_size(path, n_samples * n_features * X.itemsize, "features")

    def batches(rows: int) -> Iterator[Batch]:
        return rebatch(pieces(min(rows, ROWS_AT_ONCE), n_features), rows)

    return FeatureSource(path, n_samples, n_features, X.dtype, batches, about, streams=True)


@dataclass(frozen=True)
class _Where:
    """Where a batch stands, for its sentences."""

    columns: Columns
    first: int
    n_samples: int
    width: int | None
    path: Path

    def missing(self, array: Any, width: int = 1) -> None:
        """Refuse an array that lacks values, `width` of which make a row."""
        if array.null_count:
            row = self.first + int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))) // width
            raise InputError(f"{self.path} lacks a value in row {row}: remove or repair this sample.")


@contextmanager
def _opened(pa: Any, path: Path, dictionary: list[str] | None = None) -> Iterator[Any]:
    """An open file whose faults come out as one sentence."""
    try:
        with pa.parquet.ParquetFile(
            path, read_dictionary=dictionary, pre_buffer=False, page_checksum_verification=True
        ) as file:
            yield file
    except HotshotError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, IndexError, RuntimeError, MemoryError) as error:
        reason = " ".join(str(error).split()).rstrip(".")[:100]
        raise InputError(
            f"{path} is not a sound Parquet file, {reason or type(error).__name__}: copy or download it again."
        ) from None


def _columns(pa: Any, schema: Any, path: Path) -> Columns:
    types = pa.types
    names = [name for name in schema.names if not name.startswith(_INDEX)]
    if len(set(names)) < len(names):
        raise InputError(f"{path} has two columns of one name: rename one.")
    labels = [
        name for name in names if name.lower() in LABEL_NAMES and not _is_list(types, schema.field(name).type)
    ]
    if not labels:
        labels = [name for name in names if _is_text(pa, schema.field(name).type)]
    if len(labels) != 1:
        raise InputError(
            f"{path} must have one column of labels and has {listing(map(quoted, labels)) or 'none'} among "
            f"{listing(map(quoted, names))}: call it 'label', and no other column so."
        )
    others = [name for name in names if name not in labels]
    lists = [name for name in others if _is_list(types, schema.field(name).type)]
    called = [name for name in lists if name.lower() in FEATURE_NAMES]
    if lists:
        lists = called or lists
        if len(lists) > 1:
            raise InputError(f"{path} has several columns of lists, {listing(map(quoted, lists))}: keep one.")
        # Beside a column of vectors, numbers are identifiers and the like.
        return Columns(labels[0], tuple(lists), of_lists=True)
    for name in others:
        if not _is_numeric(types, schema.field(name).type):
            raise InputError(
                f"{path} holds {schema.field(name).type} in column {quoted(name)}, not numbers: remove the column, "
                "or take features of it first."
            )
        if not name or name.startswith("Unnamed: "):
            raise InputError(f"{path} has a column without a name: name it or remove it.")
    if not others:
        raise InputError(f"{path} has no column of features beside {quoted(labels[0])}: add one of lists.")
    return Columns(labels[0], tuple(others), of_lists=False)


def _is_list(types: Any, kind: Any) -> bool:
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_numeric(types: Any, kind: Any) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_text(pa: Any, kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())


def _lists(pa: Any, batch: Any, where: _Where) -> np.ndarray:
    """A column of lists as features (rows, V)."""
    name = where.columns.features[0]
    column = batch.column(name)
    where.missing(column)
    if not _is_numeric(pa.types, column.type.value_type):
        raise InputError(
            f"{where.path} holds {column.type} in column {quoted(name)}: store lists of numbers."
        )
    lengths = pa.compute.list_value_length(column).to_numpy(zero_copy_only=False)
    width = where.width or int(lengths[0])
    if (lengths != width).any() or width == 0:
        row = int(np.argmax(lengths != width))
        raise InputError(
            f"{where.path} has {lengths[row]} features in row {where.first + row} of column {quoted(name)} where its "
            f"first row has {width}: extract all features with the same model."
        )
    flat = column.flatten()
    where.missing(flat, width)
    return flat.to_numpy(zero_copy_only=False).reshape(-1, width)


def _numbers(batch: Any, where: _Where) -> np.ndarray:
    """Columns of numbers as features (rows, V), of a type that holds all of them."""
    columns = [batch.column(name) for name in where.columns.features]
    for column in columns:
        where.missing(column)
    parts = [column.to_numpy(zero_copy_only=False) for column in columns]
    X = np.empty((batch.num_rows, len(parts)), dtype=np.result_type(*{part.dtype for part in parts}))
    for i, part in enumerate(parts):
        X[:, i] = part
    return X


def _labels(pa: Any, batch: Any, where: _Where) -> np.ndarray:
    column = batch.column(where.columns.label)
    where.missing(column)
    name = quoted(where.columns.label)
    if not pa.types.is_dictionary(column.type):
        if not _is_numeric(pa.types, column.type):
            raise InputError(
                f"{where.path} has labels of type {column.type} in {name}: use strings or integers."
            )
        return label_array(column.to_numpy(zero_copy_only=False), name, where.path)
    where.missing(column.dictionary)
    values = column.dictionary
    if _is_text(pa, values.type):
        classes = label_array(values.cast(pa.large_string()).to_pylist(), name, where.path)
    else:
        classes = label_array(values.to_numpy(zero_copy_only=False), name, where.path)
    check_size(where.path, where.n_samples * classes.itemsize, "labels")
    return classes[column.indices.to_numpy(zero_copy_only=False)]


def _about(text: bytes | None) -> dict[str, Any]:
    try:
        found = json.loads(text or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
