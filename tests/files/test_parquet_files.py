"""Parquet: layouts of columns, and pages that announce more than they hold."""

from __future__ import annotations

import io
import sys
from contextlib import suppress

import numpy as np
import pytest

from bounded import assert_refused
from children import crashes
from hotshot.errors import InputError
from hotshot.files import open_features, read_features, write_features

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

X = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
Y = list("babcabb")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "features.parquet"


def lists(kind, X=X):
    return pa.array(X.tolist(), kind)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param({"label": Y, "v": lists(pa.list_(pa.float32()))}, id="lists"),
        pytest.param({"label": Y, "v": lists(pa.list_(pa.float32(), 3))}, id="lists of fixed size"),
        pytest.param({"text": Y, "v": lists(pa.list_(pa.float32())), "y": Y}, id="text beside"),
        pytest.param(
            {"other": lists(pa.list_(pa.int8()), X.astype(int)), "embedding": lists(pa.list_(pa.float32())), "y": Y},
            id="two columns of lists, one of them called features",
        ),
        pytest.param({"v": lists(pa.list_(pa.float32())), "bird": Y}, id="the one column of text"),
        pytest.param({"label": pa.array(Y).dictionary_encode(), "v": lists(pa.list_(pa.float32()))}, id="categories"),
        pytest.param({"label": [y.encode() for y in Y], "v": lists(pa.list_(pa.float32()))}, id="bytes"),
        pytest.param({"label": Y, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}, id="columns of numbers"),
        pytest.param({"label": Y, "__index_level_0__": range(7), "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}, id="index"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"row_group_size": 2},
        {"compression": "zstd", "use_dictionary": False},
        {"compression": "none", "data_page_version": "2.0", "data_page_size": 8},
    ],
    ids=["plain", "groups", "zstd", "version 2"],
)
def test_layouts_of_columns(path, columns, options):
    pq.write_table(pa.table(columns), path, **options)
    source = open_features(path)
    assert (source.n_samples, source.n_features, source.dtype) == (7, 3, np.float32)
    found = read_features(path)
    np.testing.assert_array_equal(found.X, X)
    assert found.y.tolist() == Y
    np.testing.assert_array_equal(np.concatenate([part for part, _ in source.batches(2)]), X)


@pytest.mark.parametrize("labels", [[3, -1, 3], [2**63, 1, 0], [True, False, True], [0.5, 1.0, 0.5]])
def test_labels_keep_their_type(path, labels):
    kind = pa.uint64() if labels[0] == 2**63 else None
    pq.write_table(pa.table({"label": pa.array(labels, kind), "v": lists(pa.list_(pa.float64()), X[:3])}), path)
    y = read_features(path).y.tolist()
    assert y == labels
    assert type(y[0]) is type(labels[0])


V = lists(pa.list_(pa.float32()))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param({"v": V}, "one column of labels and has none among 'v'", id="no label"),
        pytest.param({"label": Y}, "no column of features", id="no features"),
        pytest.param({"label": Y, "text": Y}, "no column of features among .* extract features from texts", id="text"),
        pytest.param({"label": Y, "v": [[1.0]] * 6 + [[1.0, 2.0]]}, "2 features in row 6 of column 'v'", id="ragged"),
        pytest.param({"label": Y, "v": [[1.0]] * 5 + [None, [1.0]]}, "has a missing value in row 5", id="list missing"),
        pytest.param({"label": [*Y[:3], None, *Y[4:]], "v": V}, "has a missing value in row 3", id="label missing"),
        pytest.param({"label": pa.array([1] * 7, pa.timestamp("s")), "v": V}, "labels of type timestamp", id="dates"),
        pytest.param({"label": [b"\xff"] * 7, "v": V}, "not a valid Parquet file", id="labels not UTF-8"),
        pytest.param({"label": pa.array([], pa.string()), "v": pa.array([], V.type)}, "no samples", id="no rows"),
    ],
)  # fmt: skip
def test_a_value_without_features_is_one_sentence(path, columns, message):
    pq.write_table(pa.table(columns), path, row_group_size=4)
    with pytest.raises(InputError, match=message):
        read_features(path)


def test_without_pyarrow_the_remedy_is_named(path, monkeypatch):
    write_features(path, (X, Y))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'hotshot\[parquet\]'"):
        read_features(path)


# --- what is kept


def test_columns_of_files_and_times_are_kept_whatever_their_type(path):
    columns = {
        "filename": pa.array(["XC1.wav"] * 6 + [None]).dictionary_encode(),
        "offset": pa.array(np.arange(7) * 2.5),
        "recorded": pa.array(range(7), pa.timestamp("s")),
        "score": pa.array(range(7)),
        "label": Y,
        "blob": pa.array([b"\xff"] * 7),
        "nested": pa.array([{"a": 1}] * 7),
        "embedding": lists(pa.list_(pa.float32())),
    }
    pq.write_table(pa.table(columns), path, row_group_size=2)
    found = read_features(path)
    np.testing.assert_array_equal(found.X, X)
    assert list(found.ids)[-3:] == ["XC1.wav 10", "XC1.wav 12.5", "15"]
    assert set(found.columns) == {"filename", "offset", "recorded", "score", "id"}
    assert list(found.columns["score"]) == list("0123456")
    assert found.columns["recorded"][1] == "1970-01-01 00:00:01.000"


def test_times_beside_numbered_columns_are_no_features(path):
    columns = {"id": range(7), "Start (s)": range(7), "text": Y, "y": Y, "f0": X[:, 0], "f1": X[:, 1], "note": Y}
    pq.write_table(pa.table(columns), path)
    found = read_features(path)
    np.testing.assert_array_equal(found.X, X[:, :2])
    assert (found.y.tolist(), list(found.texts), list(found.ids)) == (Y, Y, list("0123456"))
    assert set(found.columns) == {"Start (s)", "note", "id", "text"}
    pq.write_table(pa.table({"id": range(7), "time": X[:, 0], "y": Y, "height": X[:, 1]}), path)
    np.testing.assert_array_equal(read_features(path).X, X[:, :2])


def test_one_long_text_that_repeats_cannot_fill_the_memory(path):
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(60_000, np.int32)), pa.array(["x" * 9_000]))
    pq.write_table(pa.table({"label": np.zeros(60_000, np.int8), "text": texts, "a": np.zeros(60_000)}), path)
    assert_refused(path, "columns beside the features of .*, but a file of")


def test_texts_that_are_not_utf_8_are_one_sentence(path):
    texts = pa.StringArray.from_buffers(7, pa.py_buffer(np.arange(8, dtype=np.int32)), pa.py_buffer(b"\xff" * 7))
    pq.write_table(pa.table({"label": Y, "text": texts, "v": V}), path)
    assert_refused(path, "not a valid Parquet file, .*Invalid UTF8")


# --- the stream


def test_a_fault_in_the_middle_of_a_stream_is_one_sentence(path):
    # More features than are read at once.
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(70_000 * 64, dtype=np.float32)), 64)
    pq.write_table(pa.table({"v": vectors}), path, compression="none", write_page_checksum=True)
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 1
    path.write_bytes(whole)
    batches = open_features(path, labelled=False).batches(500)
    next(batches)
    with pytest.raises(InputError, match=r"features\.parquet is not a valid Parquet file, .*CRC"):
        list(batches)


# --- hostile files


def test_rows_that_repeat_are_a_bomb(path):
    """35 million values in a few thousand bytes: a reader would take hundreds of megabytes."""
    n = 2**25 + 2**20
    zeros = np.zeros(n, np.int8)
    pq.write_table(pa.table({"label": zeros, "a": zeros}), path, row_group_size=n)
    assert path.stat().st_size < 2**19
    assert_refused(path, "of 554 MB, but a file of .* may unpack to")


def test_one_long_label_that_repeats_cannot_fill_the_memory(path):
    labels = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), pa.array(["x" * 100_000]))
    pq.write_table(pa.table({"label": labels, "a": np.zeros(20_000, np.int8)}), path)
    assert_refused(path, "labels of 8 GB, but")


def test_row_groups_that_are_all_the_same_bytes_are_a_bomb(path):
    """A footer of a few kilobytes that takes gigabytes of memory in Arrow."""
    zeros = np.zeros(2**20)
    pq.write_table(pa.table({"label": zeros.astype(np.int8), "a": zeros}), path)
    footer = pq.read_metadata(path)
    for _ in range(10):
        footer.append_row_groups(footer)
    data = path.read_bytes()
    data = data[: -8 - int.from_bytes(data[-8:-4], "little")]
    with io.BytesIO() as file:
        footer.write_metadata_file(file)
        path.write_bytes(data + file.getvalue().removeprefix(b"PAR1"))
    assert path.stat().st_size < 2**19
    assert_refused(path, "holds columns of 17.2 GB, but a file of .* may unpack to at most 268 MB")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_any_changed_byte_is_an_error_or_as_large_as_announced(path, version):
    columns = {"label": Y, "text": Y, "start": range(7), "v": lists(pa.list_(pa.float32()))}
    pq.write_table(pa.table(columns), path, data_page_version=version, write_page_checksum=True)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)

    def check(change):
        at, value = change
        path.write_bytes(whole[:at] + bytes([value]) + whole[at + 1 :])
        with suppress(InputError):
            source = open_features(path)
            found, _ = source.read()
            assert found.shape == (source.n_samples, source.n_features)
            assert found.nbytes < 1000
            assert all(len(list(values)) == source.n_samples for values in source.columns.values())

    changes = [(at, int(rng.integers(256))) for at in range(0, len(whole), 8)]
    assert crashes(changes, check) == []
