"""What is kept of each sample: ids, texts, thumbnails and columns, through files and back, also where they lie."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bounded import at_most
from children import no_child  # noqa: F401
from hotshot.errors import InputError
from hotshot.files import Samples, open_features, read_features, write_features
from hotshot.files.samples import columns_of
from hotshot.files.tensors import LONGEST, write_tensors

X = np.arange(12, dtype=np.float32).reshape(4, 3)
Y = ["b", "a", "b", "b"]
TEXTS = ["", 'so, a "quote"\n', "über 类 😀", "7"]
IDS = ["a/1.png", "b/2.png", "ü", "0"]
ALL = [".safetensors", ".npz", ".npy", ".csv", ".tsv", ".parquet"]


@pytest.mark.parametrize("rows", [slice(1, 3), slice(3, 9), [3, 1], np.array([1, 1]), [True, True, False, False]])
def test_some_rows_are_those_of_every_field(rows):
    samples = Samples(X, np.array(Y), columns_of({"id": IDS, "text": TEXTS, "file": list("wxyz")}, 4), {}, {1: "bad"})
    chosen = np.arange(4)[rows]
    found = samples[rows]
    assert len(found) == len(chosen)
    assert (found.X.tolist(), found.y.tolist()) == (X[rows].tolist(), [Y[i] for i in chosen])
    assert found.errors == {place: "bad" for place, row in enumerate(chosen) if row == 1}
    assert list(found.ids) == [IDS[i] for i in chosen]
    assert list(found.texts) == [TEXTS[i] for i in chosen]
    assert list(found.columns["file"]) == ["wxyz"[i] for i in chosen]


@pytest.mark.parametrize("suffix", ALL)
def test_without_ids_rows_are_numbered_and_nothing_is_written(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    write_features(path, (X, Y))
    found = read_features(path)
    assert list(found.ids) == ["0", "1", "2", "3"]
    assert found.texts is None
    assert not found.columns


def test_some_numbered_rows_keep_their_numbers(tmp_path):
    write_features(tmp_path / "a.safetensors", Samples(X, np.array(Y))[2:])
    assert list(read_features(tmp_path / "a.safetensors").ids) == ["2", "3"]
    assert [list(batch.ids) for batch in open_features(tmp_path / "a.safetensors").batches(1)] == [["2"], ["3"]]


def test_a_million_ids_take_memory_only_when_they_are_asked_for(tmp_path):
    path = tmp_path / "a.safetensors"
    n = 2**20
    offsets = np.arange(n + 1)
    header = {"format": "hotshot features 2"}
    tensors = {"kept.id.offsets": offsets, "X": np.zeros((n, 1), np.int8), "kept.id.data": np.full(n, 97, np.uint8)}
    write_tensors(path, tensors, {"hotshot": json.dumps(header)})
    with at_most(2**24):
        ids = open_features(path, labelled=False).columns["id"]
        assert len(ids) == n
        assert (ids[7], ids[-1], list(ids[5:7])) == ("a", "a", ["a", "a"])
    with at_most(2**20):
        assert Samples(range(n)).ids[-1] == str(n - 1)


# --- files without labels


@pytest.mark.parametrize("suffix", ALL)
def test_files_without_labels_are_read_if_none_are_needed(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    write_features(path, (X, None))
    found = read_features(path, labelled=False)
    assert found.y is None
    np.testing.assert_array_equal(found.X, X)
    assert [(len(part), y) for part, y in open_features(path, labelled=False).batches(3)] == [(3, None), (1, None)]
    with pytest.raises(InputError, match="label"):
        open_features(path)
    write_features(tmp_path / "again.npz", open_features(path, labelled=False))
    assert read_features(tmp_path / "again.npz", labelled=False).y is None


def test_old_labels_are_not_taken_for_those_of_features_without(tmp_path):
    write_features(tmp_path / "a.npy", (X, Y))
    with pytest.raises(InputError, match=r"a\.labels\.npy would be taken for the labels .* remove it"):
        write_features(tmp_path / "a.npy", (2 * X, None))
    np.testing.assert_array_equal(read_features(tmp_path / "a.npy").X, X)


def test_one_array_alone_has_no_labels(tmp_path):
    np.savez(tmp_path / "a.npz", X)
    assert read_features(tmp_path / "a.npz", labelled=False).y is None
    with pytest.raises(InputError, match="must hold two arrays, X and y"):
        read_features(tmp_path / "a.npz")


# --- hostile files


def write(path, **changes):
    tensors = {
        "kept.id.offsets": np.array([0, 1, 2, 3, 5]),
        "X": X,
        "y": np.zeros(4, int),
        "kept.id.data": np.frombuffer("abcü".encode(), np.uint8),
    }
    tensors |= {f"kept.id.{name}": np.asarray(values) for name, values in changes.items() if values is not None}
    for name in [name for name, values in changes.items() if values is None]:
        del tensors[f"kept.id.{name}"]
    header = {"format": "hotshot features 1", "classes": ["b"], "label_type": "str"}
    write_tensors(path, tensors, {"hotshot": json.dumps(header)})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"offsets": [0, 1, 2, 5]}, "in the wrong form or number", id="too few"),
        pytest.param({"offsets": [0.0, 1, 2, 3, 5]}, "in the wrong form or number", id="floats"),
        pytest.param({"offsets": [0, 3, 2, 3, 5]}, "with invalid offsets", id="backwards"),
        pytest.param({"offsets": [0, 1, 2, 3, 4]}, "with invalid offsets", id="too short"),
        pytest.param({"offsets": [0, 1, 2, 3, 2**62]}, "with invalid offsets", id="beyond the end"),
        pytest.param({"offsets": [0, 1, 2, 4, 5]}, "not UTF-8", id="half a character"),
        pytest.param({"data": np.array([97, 98, 99, 255, 255], np.uint8)}, "not UTF-8", id="no text"),
        pytest.param({"data": None}, "lacks the tensor", id="no bytes"),
        pytest.param(
            {"data": np.zeros(LONGEST + 1, np.uint8), "offsets": [0, 0, 0, 0, LONGEST + 1]}, "shorten it", id="huge"
        ),
    ],
)
def test_ids_that_do_not_fit_their_file_are_one_sentence(tmp_path, changes, message):
    path = tmp_path / "a.safetensors"
    write(path, **changes)
    with pytest.raises(InputError, match=message) as caught:
        read_features(path)
    assert "\n" not in str(caught.value)
    write(path)
    assert list(read_features(path).ids) == ["a", "b", "c", "ü"]
