"""What features and labels are accepted, and what is said of the others."""

from __future__ import annotations

import numpy as np
import pytest

from hotshot.arrays import check_features, check_labels
from hotshot.errors import InputError

GOOD = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def with_entry(value, dtype=np.float64):
    X = np.array(GOOD, dtype=dtype)
    X[1, 0] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        pytest.param(with_entry(np.nan), "NaN or infinity in 1 entries.*row 1, column 0.*repair", id="nan"),
        pytest.param(with_entry(np.inf), "NaN or infinity.*row 1, column 0", id="inf"),
        pytest.param([1.0, 2.0], r"2-dimensional.*\(2,\).*reshape", id="1-D"),
        pytest.param(np.ones((2, 2, 2)), r"2-dimensional.*\(2, 2, 2\)", id="3-D"),
        pytest.param(np.ones((0, 3)), "at least one sample", id="no samples"),
        pytest.param(np.ones((3, 0)), "one feature", id="no features"),
        pytest.param([], "2-dimensional", id="empty list"),
        pytest.param([["a", "b"]], "numbers.*convert", id="strings"),
        pytest.param([[1.0], [1.0, 2.0]], "rectangular", id="ragged"),
        pytest.param([[1j, 2.0]], "numbers.*convert", id="complex list"),
        pytest.param(np.array([[1j, 2.0]]), "real.*modulus", id="complex array"),
        pytest.param(np.array([["a", 1.0]], dtype=object), "numbers", id="array of objects"),
        pytest.param(np.array([["2020-01-01"]], dtype="M8[D]"), "numbers", id="dates"),
    ],
)
def test_bad_features_are_refused_by_name(X, message):
    with pytest.raises(InputError, match=f"^X_base .*{message}"):
        check_features(X, "X_base")


@pytest.mark.parametrize(
    ("given", "returned"),
    [(np.float16, np.float32), (np.float32, np.float32), (np.float64, np.float64), (np.int8, np.float64),
     (np.uint8, np.float64), (bool, np.float64)],
)  # fmt: skip
def test_dtypes(given, returned):
    X = np.array(GOOD).astype(given)
    got = check_features(X)
    assert got.dtype == returned
    np.testing.assert_array_equal(got, X.astype(returned))


def test_arrays_of_every_library_become_numpy(xp):
    got = check_features(xp.asarray(GOOD, dtype=xp.float32))
    assert type(got) is np.ndarray
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, GOOD)


@pytest.mark.parametrize(
    ("labels", "classes", "indices"),
    [
        (["b", "a", "b"], ["a", "b"], [1, 0, 1]),
        ([30, -1, 30], [-1, 30], [1, 0, 1]),
        ([True, False, True], [False, True], [1, 0, 1]),
        ([2.5, 0.0, 2.5], [0.0, 2.5], [1, 0, 1]),
        (np.array(["x", "y", "x"], dtype=object), ["x", "y"], [0, 1, 0]),
        (("c", "c", "c"), ["c"], [0, 0, 0]),
        (np.array([b"wren", b"kite", b"kite"]), ["kite", "wren"], [1, 0, 0]),
    ],
)
def test_labels_become_sorted_classes_and_indices(labels, classes, indices):
    got_classes, got_indices = check_labels(labels, 3)
    assert got_classes.tolist() == classes
    assert got_indices.tolist() == indices


@pytest.mark.parametrize("dtype", [object, "str", "string"])
def test_series_with_missing_labels_are_refused(dtype):
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="y "):
        check_labels(pandas.Series(["a", pandas.NA, "b"], dtype=dtype), 3)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        pytest.param(np.array([b"\xff", b"a", b"b"]), "not UTF-8, such as", id="bytes"),
        pytest.param([1, 2], r"one label per sample \(3\).*\(2,\)", id="too few"),
        pytest.param([[1], [2], [3]], r"one label per sample.*\(3, 1\)", id="2-D"),
        pytest.param("abc", "one label per sample", id="one string"),
        pytest.param([1.0, np.nan, 2.0], "NaN or infinity.*every sample a label", id="nan"),
        pytest.param(np.array([1, "a", 2], dtype=object), "cannot be sorted.*one type", id="mixed objects"),
        pytest.param(["a", None, "b"], "no label in row 1", id="None"),
        pytest.param([1, "a", 2], "y_base ", id="mixed list"),
        pytest.param([[1], [1, 2], [3]], "y_base ", id="ragged"),
    ],
)
def test_bad_labels_are_refused_by_name(labels, message):
    with pytest.raises(InputError, match="y_base ") as caught:
        check_labels(labels, 3, "y_base")
    assert caught.match(message)
