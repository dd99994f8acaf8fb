"""Every writable format gives back values, names and order exactly, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from children import no_child  # noqa: F401
from hotshot.arrays import label_array
from hotshot.files import open_features, read_features, write_features

FORMATS = [".safetensors", ".npz", ".npy", ".csv", ".tsv", ".parquet"]
FLOATS = ["float16", "float32", "float64"]
# What gets lost where labels are taken for numbers, for cells, for lines or for C strings.
NAMES = st.one_of(
    st.sampled_from(
        ["", " ", " a ", "1", "-7", "007", "1.0", "nan", "True", "a,b", 'say "b"', "a\nb", "a\rb", "\ufeffx"]
    ),
    st.sampled_from(["a\tb", "é", "类", "😀", "label", "'", "a\\b", "\x1b[31m", "9" * 20, "\u2028", "NULL"]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
)
LABELS = st.one_of(
    st.lists(NAMES, min_size=1, max_size=8),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=8),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8),
    st.lists(st.sampled_from([-1, 0, 2**31, -(2**31) - 1, 2**53 + 1]), min_size=1, max_size=8),
    st.lists(st.booleans(), min_size=1, max_size=8),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8),
)


def features(dtype, n):
    """Numbers of a type, with denormals, both zeros, the largest, NaN and infinity."""
    width = np.dtype(dtype).itemsize * 8
    return hnp.arrays(dtype, st.tuples(st.just(n), st.integers(1, 3)), elements=st.floats(width=width))


@st.composite
def sets_of_samples(draw):
    labels = draw(LABELS)
    # NumPy makes floats of integers of which one needs all of 64 bits.
    dtype = np.uint64 if type(labels[0]) is int and max(labels) >= 2**63 else None
    return draw(features(draw(st.sampled_from(FLOATS)), len(labels))), np.array(labels, dtype)


def assert_same(found, X, y):
    X_found, y_found = found
    np.testing.assert_array_equal(X_found, X)
    known = ~np.isnan(X.astype(float))
    np.testing.assert_array_equal(np.signbit(X_found)[known], np.signbit(X)[known])
    if y.dtype.kind == "f" and (np.abs(y) < 2**53).all() and (y == np.round(y)).all():
        # Whole numbers are integers, as everywhere.
        y = y.astype(np.int64)
    assert y_found.tolist() == y.tolist()
    assert [type(label) for label in y_found.tolist()] == [type(label) for label in y.tolist()]


@pytest.mark.parametrize("suffix", FORMATS)
@settings(max_examples=30)
@given(samples=sets_of_samples())
def test_values_names_and_order_come_back(tmp_path_factory, suffix, samples):
    X, y = samples
    path = tmp_path_factory.getbasetemp() / f"round{suffix}"
    # Whole numbers are integers in whatever type they come.
    y = label_array(y)
    if suffix in (".csv", ".tsv"):
        # Labels in tables have no types, and blanks around them say nothing.
        y = np.array([f"label {label}." for label in y.tolist()])
    write_features(path, (X, y))
    found = open_features(path)
    assert (found.n_samples, found.n_features) == X.shape
    assert_same(found.read(), X, y)
    if suffix not in (".csv", ".tsv"):
        assert found.dtype == X.dtype
    # Once more, from file to file: hashes in headers are right.
    again = path.with_name("again.safetensors")
    write_features(again, found)
    assert_same(open_features(again).read(), X, y)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(
    ("dtype", "checked"), [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("uint8", "float64")]
)
def test_checked_features_have_the_type_that_holds_them(tmp_path, suffix, dtype, checked):
    X = (np.arange(6).reshape(3, 2) * 1.1).astype(dtype)
    path = tmp_path / f"features{suffix}"
    write_features(path, (X, [1, 2, 1]))
    file = read_features(path)
    # Text has no types: integers that float32 holds are read as such.
    assert file.X.dtype == ("float32" if dtype == "uint8" and suffix in (".csv", ".tsv") else checked)
    np.testing.assert_array_equal(file.X, X)
    assert file.y.tolist() == [1, 2, 1]


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".npy", ".parquet", ".csv"])
def test_batches_are_the_whole_in_pieces(tmp_path, suffix):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(23, 3)), np.array(list("abcd"))[rng.integers(0, 4, 23)]
    path = tmp_path / f"features{suffix}"
    write_features(path, (X, y))
    source = open_features(path)
    for rows in (1, 5, 22, 23, 100):
        batches = list(source.batches(rows))
        assert [len(part) for part, _ in batches[:-1]] == [rows] * (len(batches) - 1)
        np.testing.assert_array_equal(np.concatenate([part for part, _ in batches]), X)
        np.testing.assert_array_equal(np.concatenate([part for _, part in batches]), y)
