"""What is measured of a feature file equals plain computations."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspected_files import TABLES, classes, measured, source

from hotshot.errors import InputError
from hotshot.evaluation.inspection import document, inspect_sources
from hotshot.evaluation.inspection.measure import row_hashes, row_norms


@given(TABLES, st.integers(1, 30))
def test_measures_equal_plain_computations(table, rows):
    X, y = table
    found = measured(X, y, rows)
    finite = np.isfinite(X)
    entries, constant, norms_found = (found.values[key] for key in ("entries", "constant_features", "norms"))
    assert entries["zero_share"] == (X == 0).mean()
    assert entries["negative_share"] == ((X < 0) & finite).mean()
    assert entries["smallest"] == (X[finite].min() if finite.any() else None)
    assert entries["largest"] == (X[finite].max() if finite.any() else None)
    for bad, mask in ((entries["nan"], np.isnan(X)), (entries["infinite"], np.isinf(X))):
        if not mask.any():
            assert bad is None
            continue
        row, column = np.argwhere(mask)[0].tolist()
        assert bad == {
            "count": mask.sum(),
            "samples": mask.any(axis=1).sum(),
            "features": mask.any(axis=0).sum(),
            "row": row,
            "column": column,
            "class": y[row],
        }
    one_value = [len(np.unique(column[np.isfinite(column)])) == 1 for column in X.T]
    only_zero = [bool(one) and bool((c[np.isfinite(c)] == 0).all()) for one, c in zip(one_value, X.T, strict=True)]
    assert constant["columns"] == np.flatnonzero(one_value).tolist()
    assert (constant["count"], constant["all_zero"]) == (sum(one_value), sum(only_zero))
    names, counts = np.unique(y, return_counts=True)
    assert dict(zip(found.class_names, found.class_counts.tolist(), strict=True)) == dict(
        zip(names.tolist(), counts.tolist(), strict=True)
    )
    whole = X[finite.all(axis=1)]
    if len(whole):
        # hypot neither over- nor underflows.
        norms = np.hypot.reduce(whole, axis=1, initial=0)
        assert norms_found["smallest"] == pytest.approx(norms.min(), rel=1e-12)
        assert norms_found["median"] == pytest.approx(np.median(norms), rel=1e-12)
        assert norms_found["largest"] == pytest.approx(norms.max(), rel=1e-12)
        assert norms_found["zero_vectors"] == (norms == 0).sum()
    else:
        assert norms_found is None


@given(TABLES)
def test_duplicates_equal_a_plain_search(table):
    X, y = table
    found = measured(X, y).values["duplicates"]
    labels_of = {}
    repeats, first_repeat = 0, None
    for row, (x, label) in enumerate(zip(X, y, strict=True)):
        if not x.any():
            continue
        # Adding 0 makes -0 the same as 0, and NaN is the same as NaN.
        seen = labels_of.setdefault((x + 0.0).tobytes(), [])
        if label in [own for own, _ in seen]:
            repeats += 1
            first_repeat = row if first_repeat is None else first_repeat
        seen.append((label, row))
    conflicts = sum(len({label for label, _ in seen}) > 1 for seen in labels_of.values())
    assert (found["repeats"], found["conflicts"]) == (repeats, conflicts)
    assert (found["repeat"] is None) == (repeats == 0)
    for pair, same in ((found["repeat"], True), (found["conflict"], False)):
        if pair is not None:
            first, second = pair
            assert first < second
            np.testing.assert_array_equal(X[first], X[second])
            assert (y[first] == y[second]) == same
    if first_repeat is not None:
        assert found["repeat"][1] == first_repeat


def test_the_batches_do_not_matter():
    X, y = classes(n_classes=30, per_class=230, width=5)
    order = np.random.default_rng(1).permutation(len(X))
    X, y = X[order], y[order]
    X[77], X[5000, 2] = X[76], np.nan
    whole = inspect_sources([("a", source(X, y))])
    for rows in (1000, 37):
        parts = inspect_sources([("a", source(X, y, rows=rows))])
        assert json.dumps(document(parts)) == json.dumps(document(whole))
        np.testing.assert_array_equal(parts.files[0].sample.X, whole.files[0].sample.X)


def test_stored_types_are_kept_and_counted_alike():
    X = np.random.default_rng(0).integers(0, 5, size=(40, 6))
    y = np.arange(40) % 4
    expected = measured(X.astype(np.float64), y).values
    for dtype in ("uint8", "int64", "float16", "float32"):
        found = measured(X.astype(dtype), y)
        assert found.values["dtype"] == found.sample.X.dtype == dtype
        for key in ("entries", "duplicates", "norms"):
            assert found.values[key] == expected[key]


def test_an_empty_file_is_one_sentence():
    with pytest.raises(InputError, match="holds no samples"):
        measured(np.empty((0, 3)), np.empty(0, dtype=int))


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_norms_neither_overflow_nor_vanish(scale):
    x = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -1.0]])
    np.testing.assert_allclose(row_norms(x * scale), np.array([5.0, 0.0, 1.0]) * scale, rtol=1e-12)


def test_hashes_of_all_small_tables_differ():
    values = np.array([0.0, 1.0, 2.0, -1.0, 0.5, 1e-3])
    grid = np.stack(np.meshgrid(*[values] * 5, indexing="ij"), axis=-1).reshape(-1, 5)
    assert len(np.unique(row_hashes(grid))) == len(grid)
