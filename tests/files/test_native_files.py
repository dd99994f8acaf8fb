"""The native form: what its header must say, versions, and files that are torn or lie."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bounded import assert_refused, at_most
from hotshot.files import open_features, read_features, write_features
from hotshot.files.tensors import map_tensors, write_tensors

X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "features.safetensors"


def write(path, X=X, y=(0, 1, 0, 1), **changes):
    header = {"format": "hotshot features 1", "classes": ["b", "a"], "label_type": "str", **changes}
    write_tensors(path, {"X": np.asarray(X), "y": np.asarray(y)}, {"hotshot": json.dumps(header)})


def test_the_header_describes_the_features(path):
    write_features(path, (X, ["b", "a", "b", "b"]), about={"extractor": "DINO"})
    file = map_tensors(path)
    header = json.loads(file.metadata["hotshot"])
    stated = {"classes": ["b", "a"], "label_type": "str", "counts": [3, 1], "extractor": "DINO"}
    assert header == {"format": "hotshot features 1", **stated}
    assert file.tensors["y"].tolist() == [0, 1, 0, 0]


def test_numbers_are_mapped_and_not_read(path):
    write_features(path, (np.zeros((200_000, 8), np.float32), np.zeros(200_000, int)))
    with at_most(2**22):
        source = open_features(path)
        X, y = source.read()
    assert X.shape == (200_000, 8)
    assert len(y) == 200_000
    assert not X.flags.writeable


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"format": "hotshot features 3"}, "of version 1 to 2, .* install a newer hotshot", id="newer"),
        pytest.param({"format": "hotshot bank 1"}, "its format is 'hotshot bank 1'", id="bank"),
        pytest.param({"format": "hotshot features one"}, "its format is", id="no number"),
        pytest.param({"classes": []}, "not a list", id="no classes"),
        pytest.param({"classes": ["b"]}, "1 classes and label codes from 0 to 1", id="too few classes"),
        pytest.param({"classes": ["b", 2]}, "not a list of str", id="two types"),
        pytest.param({"classes": [True, 1], "label_type": "int"}, "not a list of int", id="boolean as integer"),
        pytest.param({"classes": [2**70, 1], "label_type": "int"}, "more than 64 bits", id="huge integers"),
        pytest.param({"label_type": "object"}, "KeyError: 'object'", id="unknown type"),
        pytest.param({"classes": ["b\0", "b"]}, "NUL", id="NUL"),
        pytest.param({"y": [0, 1, 0, 2]}, "from 0 to 2", id="code too large"),
        pytest.param({"y": [0, 1, 0, -1]}, "from -1 to 1", id="negative code"),
        pytest.param({"y": [0.0, 1, 0, 1]}, "have shape|do not match", id="codes as floats"),
        pytest.param({"X": X[0]}, "have shape|do not match", id="one dimension"),
        pytest.param({"X": X[:0], "y": np.zeros(0, int)}, "have shape|do not match", id="no samples"),
    ],
)
def test_a_header_that_does_not_fit_is_refused(path, changes, message):
    write(path, **changes)
    assert_refused(path, message)


@pytest.mark.parametrize("header", ["", "[]", "7", "{", "[" * 100_000, '"hotshot features 1"'])
def test_a_header_that_is_not_an_object_is_refused(path, header):
    write_tensors(path, {"X": X, "y": np.zeros(4, int)}, {"hotshot": header})
    assert_refused(path, "its format is 'None'")


@pytest.mark.parametrize("missing", ["X", "y"])
def test_a_file_without_its_tensors_is_refused(path, missing):
    write(path)
    file = map_tensors(path)
    write_tensors(path, {name: x for name, x in file.tensors.items() if name != missing}, file.metadata)
    assert_refused(path, "features X or label codes y are missing")


def test_one_long_name_cannot_fill_the_memory(path):
    write(path, X=np.zeros((20_000, 1), np.int8), y=np.zeros(20_000, np.int8), classes=["x" * 100_000])
    assert_refused(path, "labels of 8 GB, but")


def test_brain_floats_become_single_floats_of_the_same_value(path):
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    X = torch.tensor([[1.0, -2.5], [3.0, 1e-9]]).bfloat16()
    safetensors.save_file({"X": X, "y": torch.arange(2)}, path)
    np.testing.assert_array_equal(read_features(path).X, X.float().numpy())
