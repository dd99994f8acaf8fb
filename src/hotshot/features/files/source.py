"""What every reader gives: a feature file that was looked at, whose numbers are read when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

# Rows that a stream takes from a file at once.
ROWS_AT_ONCE = 2**13

Batch = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class FeatureSource:
    """Features (samples, V) and labels (samples,) in a file, as they are stored.

    Attributes
    ----------
    path : Path
    n_samples : int or None
        None where only the end of the file tells.
    n_features : int
        V.
    dtype : dtype
        Of the features in the file; they are not converted here.
    batches : function of a number of rows
        Iterates over the file: features (rows, V) and labels (rows,) at a time, in the order of the file.
    about : dict
        What the file says of its features: extractor, transform, source and so on; empty where it says nothing.
    streams : bool
        Whether `batches` needs memory for one batch only, not for the whole file.
    """

    path: Path
    n_samples: int | None
    n_features: int
    dtype: np.dtype
    batches: Callable[[int], Iterator[Batch]]
    about: dict[str, Any] = field(default_factory=dict)
    streams: bool = False

    def read(self) -> Batch:
        """All features and labels; views of the file where it can be mapped."""
        parts = list(self.batches(self.n_samples or ROWS_AT_ONCE))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])
