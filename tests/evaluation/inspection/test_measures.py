"""What is measured of a feature file equals plain computations."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspected_files import TABLES, classes, source

from hotshot.errors import InputError
from hotshot.evaluation.inspection import document, inspect_sources
from hotshot.evaluation.inspection.counting import row_norms
from hotshot.evaluation.inspection.duplicates import row_hashes
from hotshot.evaluation.inspection.measures import measure


@given(TABLES, st.integers(1, 30))
def test_measures_equal_plain_computations(table, rows):
    X, y = table
    found = measure(source(X, y, rows=rows))
    finite = np.isfinite(X)
    assert found.zeros == (X == 0).mean()
    assert found.negatives == ((X < 0) & finite).mean()
    assert found.smallest == (X[finite].min() if finite.any() else None)
    assert found.largest == (X[finite].max() if finite.any() else None)
    for bad, mask in ((found.nan, np.isnan(X)), (found.infinite, np.isinf(X))):
        if not mask.any():
            assert bad is None
            continue
        assert (bad.count, bad.samples, bad.features) == (
            mask.sum(),
            mask.any(axis=1).sum(),
            mask.any(axis=0).sum(),
        )
        assert [bad.row, bad.column] == np.argwhere(mask)[0].tolist()
    one_value = [len(np.unique(column[np.isfinite(column)])) == 1 for column in X.T]
    only_zero = [
        bool(one) and bool((c[np.isfinite(c)] == 0).all()) for one, c in zip(one_value, X.T, strict=True)
    ]
    assert found.constant.tolist() == np.flatnonzero(one_value).tolist()
    assert found.all_zero.tolist() == np.flatnonzero(only_zero).tolist()
    names, counts = np.unique(y, return_counts=True)
    assert dict(zip(found.names, found.counts.tolist(), strict=True)) == dict(
        zip(names.tolist(), counts.tolist(), strict=True)
    )
    whole = X[finite.all(axis=1)]
    if len(whole):
        # hypot neither over- nor underflows.
        norms = np.hypot.reduce(whole, axis=1, initial=0)
        assert found.norms.smallest == pytest.approx(norms.min(), rel=1e-12)
        assert found.norms.median == pytest.approx(np.median(norms), rel=1e-12)
        assert found.norms.largest == pytest.approx(norms.max(), rel=1e-12)
        assert found.norms.zero_vectors == (norms == 0).sum()
    else:
        assert found.norms is None


@given(TABLES)
def test_duplicates_equal_a_plain_search(table):
    X, y = table
    found = measure(source(X, y)).duplicates
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
    assert (found.repeats, found.conflicts) == (repeats, conflicts)
    assert (found.repeat is None) == (repeats == 0)
    for pair, same in ((found.repeat, True), (found.conflict, False)):
        if pair is not None:
            first, second = pair
            assert first < second
            np.testing.assert_array_equal(X[first], X[second])
            assert (y[first] == y[second]) == same
    if first_repeat is not None:
        assert found.repeat[1] == first_repeat


def test_the_batches_do_not_matter():
    X, y = classes(n_classes=30, per_class=230, width=5)
    order = np.random.default_rng(1).permutation(len(X))
    X, y = X[order], y[order]
    X[77], X[5000, 2] = X[76], np.nan
    whole = inspect_sources([("a", source(X, y))])
    for rows in (1000, 37):
        parts = inspect_sources([("a", source(X, y, rows=rows))])
        assert json.dumps(document(parts)) == json.dumps(document(whole))
        np.testing.assert_array_equal(parts.files[0].measures.sample.X, whole.files[0].measures.sample.X)


def test_stored_types_are_kept_and_counted_alike():
    X = np.random.default_rng(0).integers(0, 5, size=(40, 6))
    y = np.arange(40) % 4
    expected = measure(source(X.astype(np.float64), y))
    for dtype in (np.uint8, np.int64, np.float16, np.float32):
        found = measure(source(X.astype(dtype), y))
        assert found.dtype == dtype
        assert found.sample.X.dtype == dtype
        assert (found.zeros, found.duplicates, found.norms) == (
            expected.zeros,
            expected.duplicates,
            expected.norms,
        )


def test_an_empty_file_is_one_sentence():
    with pytest.raises(InputError, match="holds no samples"):
        measure(source(np.empty((0, 3)), np.empty(0, dtype=int)))


def test_watching_tells_rows_and_total():
    X, y = classes(2, 30, 3)
    seen = []
    measure(source(X, y, rows=25), lambda done, total: seen.append((done, total)))
    assert seen == [(25, 60), (50, 60), (60, 60)]


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_norms_neither_overflow_nor_vanish(scale):
    x = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, -1.0]])
    norms, finite = row_norms(x * scale)
    np.testing.assert_allclose(norms, np.array([5.0, 0.0, 1.0]) * scale, rtol=1e-12)
    assert finite.all()


def test_hashes_of_all_small_tables_differ():
    values = np.array([0.0, 1.0, 2.0, -1.0, 0.5, 1e-3])
    grid = np.stack(np.meshgrid(*[values] * 5, indexing="ij"), axis=-1).reshape(-1, 5)
    assert len(np.unique(row_hashes(grid))) == len(grid)
