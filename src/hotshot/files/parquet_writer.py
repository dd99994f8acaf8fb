"""Writing Parquet: a column of labels and a column of vectors, one row group per batch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.errors import InputError
from hotshot.files.atomic import replace_file
from hotshot.files.content import Content
from hotshot.files.parquet import KEY, pyarrow


def write_parquet(path: Path, content: Content) -> None:
    """Write columns `label` and `features`; what the file says of itself is in the metadata of its schema."""
    pa = pyarrow()
    classes = content.class_array
    width = content.shape[1]
    label = pa.string() if content.label_type == "str" else pa.from_numpy_dtype(classes.dtype)
    vectors = pa.list_(pa.from_numpy_dtype(content.dtype), width)
    schema = pa.schema(
        [pa.field("label", label, nullable=False), pa.field("features", vectors, nullable=False)],
        metadata={KEY: json.dumps(content.about)},
    )
    with replace_file(path) as file:
        try:
            with pa.parquet.ParquetWriter(file, schema, use_dictionary=["label"], write_page_checksum=True) as writer:
                for X, codes in content.batches():
                    writer.write_batch(_batch(pa, schema, classes[codes], X))
        except (pa.ArrowException, UnicodeEncodeError) as error:
            raise InputError(f"{path} cannot hold these features: {error}.") from None


def _batch(pa: Any, schema: Any, labels: np.ndarray, X: np.ndarray) -> Any:
    names = pa.array(labels.tolist(), schema.field("label").type)
    flat = pa.array(np.ascontiguousarray(X).reshape(-1))
    return pa.record_batch([names, pa.FixedSizeListArray.from_arrays(flat, X.shape[1])], schema=schema)
