"""Parquet, read by Arrow: a column of labels beside a column of lists or columns of numbers."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import HotshotError, InputError
from hotshot.files.atomic import replace_file
from hotshot.files.native import unpacked
from hotshot.files.opening import check_size, damaged, json_object
from hotshot.files.roles import FEATURE_NAMES, LABEL_NAMES, are_numbered, columns_of, is_beside, label_array
from hotshot.files.samples import ROWS_AT_ONCE, THUMBNAIL, Batch, FeatureSource
from hotshot.formatting import listing, on_one_line, quoted

if TYPE_CHECKING:
    from hotshot.files.writing import Content

_KEY = b"hotshot"
# Columns of the files that are written here.
_LABEL, _FEATURES = "label", "features"
# A column that pandas adds for its index.
_INDEX = "__index_level_"


def _check_pyarrow() -> None:
    """Raise with instructions if pyarrow is missing."""
    if importlib.util.find_spec("pyarrow") is None:
        raise InputError("Parquet files need pyarrow: pip install 'hotshot[parquet]'.")


def open_parquet(path: Path, part: str | None = None) -> FeatureSource:
    """Features and labels of a Parquet file; features are read on demand, everything else at once."""
    _check_pyarrow()
    with _readable_errors(path):
        file = _File(path)
        first = next(file.features(rows=1))
        n_samples, width = file.n_samples, first.shape[1]
        # As long as the longest numbers: features are converted to these.
        check_size(path, 8 * n_samples * (width + 1), "columns")
        codes, classes, beside = file.labels_and_kept()
    labels = None
    if codes is not None:
        labels = label_array(classes, "its labels", path)
        check_size(path, n_samples * labels.itemsize, "labels")
    texts = {name: unpacked(data, offsets, n_samples, name, path) for name, (data, offsets) in beside.items()}
    about = json_object((file.schema.metadata or {}).get(_KEY, b"")) or {}

    def pieces(_: int) -> Iterator[Batch]:
        start = 0
        with _readable_errors(path):
            for X in file.features():
                yield X, None if labels is None else labels[codes[start : start + len(X)]]
                start += len(X)

    columns = columns_of(texts, n_samples)
    return FeatureSource(path, n_samples, width, first.dtype, pieces, about, columns, file.columns.missing)


@dataclass(frozen=True)
class _Columns:
    """Roles of columns: label (or why there is none), features (one of lists or some of numbers), other stored ones."""

    label: str | None
    missing: str
    features: tuple[str, ...]
    of_lists: bool
    kept: tuple[str, ...]


class _File:
    """A Parquet file and the columns to read."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.parquet

        self.pa, self.path = pa, path
        with self._opened() as file:
            self.schema, self.n_samples = file.schema_arrow, file.metadata.num_rows
        if self.n_samples <= 0:
            raise InputError(f"{path} holds no samples: store at least one.")
        self.columns = _columns(pa, self.schema, path)

    def _opened(self, **options: Any) -> Any:
        # With a buffer, pages are read one by one, not all of a row group.
        reader = self.pa.parquet.ParquetFile
        return reader(self.path, pre_buffer=False, buffer_size=2**20, page_checksum_verification=True, **options)

    def batches(self, columns: Sequence[str], rows: int = ROWS_AT_ONCE, texts: Sequence[str] = ()) -> Iterator[Any]:
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
        for batch in self.batches(self.columns.features, rows):
            X = self._lists(batch.column(0), first, width) if self.columns.of_lists else self._numbers(batch, first)
            first, width = first + len(X), X.shape[1]
            yield np.ascontiguousarray(X)

    def _lists(self, column: Any, first: int, width: int) -> np.ndarray:
        """A column of lists as features (rows, V); `first` is the number of its first row, `width` is V if known."""
        self._refuse_missing(column, first)
        lengths = self.pa.compute.list_value_length(column).to_numpy(zero_copy_only=False)
        width = width or int(lengths[0])
        if (lengths != width).any() or width == 0:
            row = int(np.argmax(lengths != width))
            raise InputError(
                f"{self.path} has {lengths[row]} features in row {first + row} of column "
                f"{quoted(self.columns.features[0])} but its first row has {width}: extract all features with the "
                "same model."
            )
        flat = column.flatten()
        self._refuse_missing(flat, first, width)
        found: np.ndarray = flat.to_numpy(zero_copy_only=False).reshape(-1, width)
        return found

    def _numbers(self, batch: Any, first: int) -> np.ndarray:
        """Columns of numbers as features (rows, V), of a common type."""
        for column in batch.columns:
            self._refuse_missing(column, first)
        return np.column_stack([column.to_numpy(zero_copy_only=False) for column in batch.columns])

    def labels_and_kept(self) -> tuple[Any, Any, dict[str, Any]]:
        """Codes of labels and labels by code, or twice None, and other stored columns: bytes and offsets by name."""
        label, kept = self.columns.label, self.columns.kept
        is_text = label is not None and _is_text(self.pa, self.schema.field(label).type)
        labels: list[np.ndarray] = []
        classes: dict[Any, int] = {}
        texts: dict[str, list[Any]] = {name: [] for name in kept}
        first = size = 0
        asked = [*kept, *([] if label is None else [label])]
        for batch in self.batches(asked, texts=[label] if is_text and label else []) if asked else ():
            if label is not None:
                labels.append(self._labels(batch.column(label), classes, first))
            for name, found in texts.items():
                found.append(self._texts(batch.column(name), name))
                size += found[-1].nbytes
            check_size(self.path, size, "columns beside the features")
            first += len(batch)
        packed = {name: self._packed(found) for name, found in texts.items()}
        if label is None:
            return None, None, packed
        if classes:
            return np.concatenate(labels), list(classes), packed
        numbers, codes = np.unique(np.concatenate(labels), return_inverse=True)
        return codes, numbers, packed

    def _labels(self, column: Any, classes: dict[Any, int], first: int) -> np.ndarray:
        """Numeric labels, or codes of text labels, which are collected in `classes`."""
        self._refuse_missing(column, first)
        if not self.pa.types.is_dictionary(column.type):
            if not _is_numeric(self.pa, column.type):
                raise InputError(
                    f"{self.path} has labels of type {on_one_line(str(column.type), 60)} in "
                    f"{quoted(self.columns.label)}: use strings or integers."
                )
            return np.asarray(column.to_numpy(zero_copy_only=False))
        values, indices = column.dictionary, column.indices.to_numpy(zero_copy_only=False)
        self._refuse_missing(values, first)
        if not _is_text(self.pa, values.type):
            return np.asarray(values.to_numpy(zero_copy_only=False)[indices])
        texts = values.cast(self.pa.large_string()).to_pylist()
        return np.array([classes.setdefault(text, len(classes)) for text in texts])[indices]

    def _texts(self, column: Any, name: str) -> Any:
        """Values as text; missing ones are empty."""
        column = column.dictionary_decode() if self.pa.types.is_dictionary(column.type) else column
        kind = self.pa.large_binary() if name == THUMBNAIL else self.pa.large_string()
        return self.pa.compute.fill_null(column.cast(kind), self.pa.scalar("").cast(kind))

    def _packed(self, texts: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        _, offsets, data = self.pa.concat_arrays(texts).buffers()
        return np.frombuffer(data or b"", np.uint8), np.frombuffer(offsets, np.int64)[: self.n_samples + 1]

    def _refuse_missing(self, array: Any, first: int, width: int = 1) -> None:
        """Raise if an array of rows with `width` values, the first with number `first`, has missing values."""
        if array.null_count:
            row = first + int(np.argmax(array.is_null().to_numpy(zero_copy_only=False))) // width
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


def _columns(pa: Any, schema: Any, path: Path) -> _Columns:
    names = [name for name in schema.names if not name.startswith(_INDEX)]
    if len(set(names)) < len(names):
        raise InputError(f"{path} has two columns with the same name: rename one.")
    kinds = {name: schema.field(name).type for name in names}
    own = _KEY in (schema.metadata or {})
    labels = [name for name in names if name.lower() in LABEL_NAMES and not _is_list(pa, kinds[name])]
    if own:
        labels = [name for name in labels if name == _LABEL]
    elif not labels:
        labels = [name for name in names if _is_text(pa, kinds[name]) and not is_beside(name) and name != THUMBNAIL]
    label, missing = labels[0] if len(labels) == 1 else None, ""
    if label is None:
        missing = (
            f"{path} must have one column of labels and has {listing(map(quoted, labels)) or 'none'} among "
            f"{listing(map(quoted, names))}: rename exactly one column to 'label'."
        )
    others = [name for name in names if name != label]
    lists = [name for name in others if _is_list(pa, kinds[name])]
    numbered = are_numbered([name for name in others if _is_numeric(pa, kinds[name])])
    possible = set(labels)
    kept = tuple(
        name
        for name in others
        if _can_be_kept(pa, kinds[name], name)
        # Beside a column of vectors, numbers are identifiers and the like.
        and (lists or is_beside(name, not numbered) or name in possible or not _is_numeric(pa, kinds[name]))
    )
    if lists:
        lists = [name for name in lists if name.lower() in FEATURE_NAMES] or lists
        if len(lists) > 1:
            raise InputError(f"{path} has several columns of lists, {listing(map(quoted, lists))}: keep one.")
        if not _is_numeric(pa, kinds[lists[0]].value_type):
            raise InputError(
                f"{path} holds {on_one_line(str(kinds[lists[0]]), 60)} in column {quoted(lists[0])}: store lists of "
                "numbers."
            )
        return _Columns(label, missing, tuple(lists), True, kept)
    left_out = set(kept)
    features = tuple(name for name in others if name not in left_out)
    for name in features:
        if not _is_numeric(pa, kinds[name]):
            raise InputError(
                f"{path} holds {on_one_line(str(kinds[name]), 60)} in column {quoted(name)}, not numbers: remove the "
                "column, or extract features from it first."
            )
        if not name or name.startswith("Unnamed: "):
            raise InputError(f"{path} has a column without a name: name it or remove it.")
    if not features:
        raise InputError(
            f"{path} has no column of features among {listing(map(quoted, names))}: add a column of lists, or "
            "extract features from texts first."
        )
    return _Columns(label, missing, features, False, kept)


def _can_be_kept(pa: Any, kind: Any, name: str) -> bool:
    """Whether values can be stored as text; thumbnails are bytes."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    if is_bytes or name == THUMBNAIL:
        return bool(is_bytes and name == THUMBNAIL)
    dated = pa.types.is_date(kind) or pa.types.is_time(kind) or pa.types.is_timestamp(kind)
    return bool(dated or pa.types.is_decimal(kind) or _is_numeric(pa, kind) or _is_text(pa, kind))


def _is_list(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_numeric(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind))


def _is_text(pa: Any, kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())


def write_parquet(path: Path, content: Content) -> None:
    """Write columns `label` and `features`; the header is in the metadata of the schema."""
    _check_pyarrow()
    import pyarrow as pa
    import pyarrow.parquet

    kept = content.columns
    taken = [name for name in kept if name in (_LABEL, _FEATURES)]
    if taken:
        raise InputError(f"{path} already has a column {quoted(taken[0])} of its own: rename the other.")
    classes = content.class_array
    label = pa.string() if content.label_type == "str" else pa.from_numpy_dtype(classes.dtype)
    vectors = pa.list_(pa.from_numpy_dtype(content.dtype), content.shape[1])
    kinds = {name: pa.binary() if name == THUMBNAIL else pa.string() for name in kept}
    kinds |= {_LABEL: label} if content.classes else {}
    kinds[_FEATURES] = vectors
    fields = [pa.field(name, kind, nullable=False) for name, kind in kinds.items()]
    schema = pa.schema(fields, metadata={_KEY: json.dumps(content.about)})
    with replace_file(path) as file:
        try:
            with pa.parquet.ParquetWriter(file, schema, use_dictionary=[_LABEL], write_page_checksum=True) as writer:
                first = 0
                for X, codes in content.batches():
                    some = slice(first, first + len(X))
                    columns = [pa.array(list(values[some]), kinds[name]) for name, values in kept.items()]
                    if content.classes:
                        columns.append(pa.array(classes[codes].tolist(), label))
                    flat = pa.array(np.ascontiguousarray(X).reshape(-1))
                    columns.append(pa.FixedSizeListArray.from_arrays(flat, X.shape[1]))
                    writer.write_batch(pa.record_batch(columns, schema=schema))
                    first = some.stop
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise InputError(f"{path} cannot hold these features ({error}): write .safetensors instead.") from None
