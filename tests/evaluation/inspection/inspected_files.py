"""Feature files to inspect, made in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hotshot.evaluation.inspection import inspect_sources
from hotshot.evaluation.inspection.measure import measure
from hotshot.files.source import FeatureSource


def source(X, y, about=None, rows=None, kept=None):
    """A source of arrays, in batches of `rows` whatever is asked for."""
    X, y = np.asarray(X), np.asarray(y)

    def batches(asked):
        step = rows or asked
        for start in range(0, len(X), step):
            yield X[start : start + step], y[start : start + step]

    return FeatureSource(Path("made-up"), len(X), X.shape[1], X.dtype, batches, about or {}, True, kept)


def classes(n_classes=12, per_class=30, width=20, seed=0, name="class"):
    """Positive float32 features of Gaussian classes with nothing wrong."""
    rng = np.random.default_rng(seed)
    y = np.repeat([f"{name} {c}" for c in range(n_classes)], per_class)
    centres = rng.normal(size=(n_classes, width))
    X = np.repeat(centres, per_class, axis=0) + 0.5 * rng.normal(size=(len(y), width))
    return np.exp(0.5 * X).astype(np.float32), y


def inspected(*files):
    """Inspection of files given as (X, y), (X, y, about), or arguments of `source` by name."""
    return inspect_sources(
        [(f"file {i}", source(**file) if isinstance(file, dict) else source(*file)) for i, file in enumerate(files)]
    )


def measured(X, y, rows=None, watch=None):
    """One file measured in batches of `rows`."""
    return measure(source(X, y, rows=rows), "file", None, watch)


def codes(found):
    return {finding.code for finding in found.findings}


ENTRIES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.nan, np.inf, -np.inf, 1e200, -1e-200, 3.0])
TABLES = st.tuples(st.integers(1, 25), st.integers(1, 4)).flatmap(
    lambda shape: st.tuples(
        arrays(np.float64, shape, elements=ENTRIES), arrays(np.int64, shape[0], elements=st.integers(0, 3))
    )
)
