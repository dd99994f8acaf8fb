"""Writing: types, streams, files that are whole or not there."""

from __future__ import annotations

import os

import numpy as np
import pytest

from bounded import at_most
from children import no_child, use_real_child  # noqa: F401
from hotshot.errors import InputError, ParameterError
from hotshot.files import open_features, read_features, write_features, writing
from hotshot.files.samples import FeatureSource

FORMATS = [".safetensors", ".npz", ".npy", ".csv", ".tsv", ".parquet"]
X = np.array([[1.0, -2.5], [0.1, 3.0], [1e-9, 4.0]])
Y = ["b", "a", "b"]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", np.dtype("float32")])
def test_features_are_rounded_to_the_type_asked_for(tmp_path, suffix, dtype):
    path = tmp_path / f"features{suffix}"
    write_features(path, (X, Y), dtype=dtype)
    found = open_features(path)
    np.testing.assert_array_equal(found.read()[0], X.astype(dtype))
    assert found.dtype == (np.float64 if suffix in (".csv", ".tsv") else np.dtype(dtype))


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize(("value", "dtype"), [(-70_000.0, "float16"), (1e39, "float32")])
def test_numbers_too_large_for_a_type_are_an_error_and_no_infinity(tmp_path, suffix, value, dtype):
    source = np.ones((3, 2))
    source[1, 1] = value
    with pytest.raises(InputError, match=rf"in row 1, column 1, which {dtype} cannot hold"):
        write_features(tmp_path / f"features{suffix}", (source, Y), dtype=dtype)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["a.pt", "a.plk", "a.pickle", "a.mat", "a.h5", "a.xyz", "a", ".npz"])
def test_no_pickle_is_ever_written(tmp_path, name):
    with pytest.raises(ParameterError, match=r"Features are written as \.safetensors.*: choose one"):
        write_features(tmp_path / name, (X, Y))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("X", "y", "options", "error", "message"),
    [
        (X, Y, {"dtype": "int8"}, ParameterError, "dtype must be one of float16, float32, float64"),
        (X, Y, {"about": {"a": {1, 2}}}, ParameterError, "about must be valid as JSON"),
        (X, Y[:2], {}, InputError, "y must hold one label per sample"),
        (X[0], Y, {}, InputError, "X must be"),
        (X[:0], [], {}, InputError, "X must be"),
        (X + 1j, Y, {}, InputError, "X must be"),
        ([["a"]], ["a"], {}, InputError, "X must be"),
        (X, [None] * 3, {}, InputError, "no label in row 0"),
        (X, [1.0, np.nan, 2.0], {}, InputError, "NaN"),
        (X.astype(np.longdouble), Y, {}, InputError, "float64"),
    ],
)
def test_features_that_cannot_be_written_are_one_sentence(tmp_path, X, y, options, error, message):
    for suffix in FORMATS:
        with pytest.raises(error, match=message):
            write_features(tmp_path / f"features{suffix}", (X, y), **options)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("label", ["a\0b", "\ud800"])
def test_labels_that_a_format_cannot_hold_are_refused_or_kept(tmp_path, suffix, label):
    path = tmp_path / f"features{suffix}"
    try:
        write_features(path, ([[1.0]], [label]))
    except InputError:
        assert os.listdir(tmp_path) == []
    else:
        assert read_features(path).y.tolist() == [label]


def test_integers_that_text_would_round_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"integers above 2\*\*53"):
        write_features(tmp_path / "a.csv", (np.array([[2**53 + 1]]), ["a"]))
    assert os.listdir(tmp_path) == []


def test_a_file_may_be_written_over_itself(tmp_path):
    for suffix in (".safetensors", ".npy", ".npz", ".csv", ".parquet"):
        path = tmp_path / f"features{suffix}"
        write_features(path, (X, Y))
        write_features(path, open_features(path), dtype="float32")
        np.testing.assert_array_equal(read_features(path).X, X.astype(np.float32))


def source_of(n, width, batch):
    """A source that makes its rows as it goes."""

    def batches(rows):
        for start in range(0, n, batch):
            some = np.arange(start, min(start + batch, n))
            yield np.outer(some, np.ones(width)), np.array(list("abcdefg"))[some % 7]

    return FeatureSource("made up", n, width, np.dtype(float), batches)


@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".npy", ".csv", ".parquet"])
def test_memory_is_for_one_batch(tmp_path, suffix, monkeypatch):
    # 8 MB in batches of 0.1 MB, and 8 bytes a sample for its label.
    n, width, batch = (20_000, 50, 256) if suffix != ".csv" else (5_000, 50, 64)
    monkeypatch.setattr(writing, "ROWS_AT_ONCE", batch)
    path = tmp_path / f"features{suffix}"
    # What is imported on the way is not counted.
    write_features(path, (X, Y))
    # The memory of a child is its own.
    use_real_child(monkeypatch)
    with at_most(n * width * 8 // 4):
        write_features(path, source_of(n, width, batch))
        for part, _ in open_features(path).batches(batch):
            assert part.shape[1] == width


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_error_in_the_middle_leaves_the_old_file(tmp_path, suffix):
    path = tmp_path / f"features{suffix}"
    write_features(path, (X, Y))
    before = sorted(os.listdir(tmp_path)), path.read_bytes()
    passes = []

    def batches(rows):
        passes.append(rows)
        yield X, np.array(Y)
        if len(passes) == 2:
            raise OSError(5, "Input/output error")

    with pytest.raises(InputError, match="Input/output error"):
        write_features(path, FeatureSource("made up", 3, 2, X.dtype, batches))
    assert (sorted(os.listdir(tmp_path)), path.read_bytes()) == before


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_source_that_changes_between_its_two_passes_is_refused(tmp_path, suffix):
    lengths = iter([3, 2])

    def batches(rows):
        n = next(lengths)
        yield X[:n], np.array(Y)[:n]

    with pytest.raises(InputError, match="changed while it was read"):
        write_features(tmp_path / f"features{suffix}", FeatureSource("made up", 3, 2, X.dtype, batches))
    assert os.listdir(tmp_path) == []
