"""Writing feature files in every format that is not a pickle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import as_array, slices, to_numpy
from hotshot.checks import check_labels
from hotshot.errors import InputError, ParameterError
from hotshot.files.content import survey
from hotshot.files.labels import integer_array
from hotshot.files.matlab_writer import write_matlab
from hotshot.files.native import write_native
from hotshot.files.numpy_writers import write_npy, write_npz
from hotshot.files.parquet_writer import write_parquet
from hotshot.files.reading import FeatureFile
from hotshot.files.source import Batch, FeatureSource
from hotshot.files.text_writer import write_text

WRITERS = {
    ".safetensors": write_native,
    ".npz": write_npz,
    ".npy": write_npy,
    ".csv": write_text,
    ".tsv": write_text,
    ".parquet": write_parquet,
    ".mat": write_matlab,
}
_PICKLES = (".pt", ".pth", ".plk", ".pkl", ".pickle", ".p")


def write_features(
    path: str | Path,
    source: FeatureSource | FeatureFile | tuple[Any, Any],
    *,
    dtype: str | np.dtype | None = None,
    about: dict[str, Any] | None = None,
) -> None:
    """Write features in the format of the suffix; the file appears, or changes, only when all of it is written.

    Memory is needed for one batch and the labels, except for `.mat`. The source is gone through twice: once for its
    classes and its hash, which stand before the numbers.

    Parameters
    ----------
    path : str or Path
        `.safetensors`, `.npz`, `.npy` (labels go to `name.labels.npy` beside it), `.csv`, `.tsv`, `.parquet`, `.mat`.
    source : FeatureSource, FeatureFile or pair of features (samples, V) and labels (samples,)
    dtype : "float16", "float32", "float64" or None
        Type of the features in the file; their own where None. A number too large for it is an error.
    about : dict or None
        What the file shall say of its features, such as `{"extractor": "DINO"}`; what the source says where None.
        CSV and `.npy` files have no place for it.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        why = "hotshot never writes a pickle" if suffix in _PICKLES else f"got {suffix or path.name!r}"
        raise ParameterError(f"Features are written as {', '.join(WRITERS)}; {why}: choose one of these suffixes.")
    if not isinstance(source, FeatureSource):
        X, y = source
        said = source.about if isinstance(source, FeatureFile) else {}
        # Features in memory may be others than those of the file they came from.
        source = _source(X, y, {name: value for name, value in said.items() if name != "hash"})
    if suffix == ".mat" and dtype is None and source.dtype == np.float16:
        # MATLAB has no half precision, and single precision holds it exactly.
        dtype = "float32"
    WRITERS[suffix](path, survey(source, dtype, about))


def _source(X: Any, y: Any, about: dict[str, Any]) -> FeatureSource:
    """Arrays in memory as a source; they need not be finite, but must be features and labels."""
    features = to_numpy(as_array(X, "X"))
    if features.ndim != 2 or 0 in features.shape or features.dtype.kind not in "fiub":
        raise InputError(f"X must be a real (samples, features) array, got shape {features.shape} {features.dtype}.")
    if isinstance(y, (list, tuple)) and all(type(label) is int for label in y):
        # NumPy would make floats of integers of which one needs all of 64 bits.
        y = integer_array(y, Path("y"))
    classes, members = check_labels(y, len(features), "y")
    labels = (np.array(classes.tolist()) if classes.dtype.kind == "O" else classes)[members]
    if labels.dtype.kind not in "Uiubf":
        raise InputError(f"y must hold strings, integers, booleans or floats, got {classes.dtype}.")

    def batches(rows: int) -> Iterator[Batch]:
        for some in slices(len(features), rows):
            yield features[some], labels[some]

    n_samples, n_features = features.shape
    return FeatureSource(Path("features"), n_samples, n_features, features.dtype, batches, about)
