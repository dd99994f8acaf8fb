"""Layouts of named arrays: what is features, what is labels, and what is refused because it could be two things."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
from scipy.io import savemat

from children import no_child  # noqa: F401
from conftest import real_data
from hotshot.errors import InputError, ParameterError
from hotshot.files import open_features, read_features

X = np.arange(12.0).reshape(4, 3)
WORDS = np.array(["b", "a", "b", "c"])
CODES = np.array([1, 0, 1, 2])
NAMES = np.array(["a", "b", "c"])
STACK = np.arange(24.0).reshape(2, 3, 4)


def save_torch(path, arrays):
    torch = pytest.importorskip("torch")
    native = {name: np.ascontiguousarray(x, x.dtype.newbyteorder("=")) for name, x in arrays.items()}
    torch.save({name: x.tolist() if x.dtype.kind in "US" else torch.tensor(x) for name, x in native.items()}, path)


def save_hdf5(path, arrays):
    with pytest.importorskip("h5py").File(path, "w") as file:
        for name, x in arrays.items():
            file[name] = x.astype(object) if x.dtype.kind == "U" else x


# Files that hold arrays by name, and types of numbers that they have.
CARRIERS = {
    "npz": (lambda path, arrays: np.savez(path, **arrays), "? u1 <i2 >i4 <u8 <f2 >f4 <f8"),
    "plk": (lambda path, arrays: path.write_bytes(pickle.dumps(arrays, 2)), "? u1 <i2 >i4 <u8 <f2 >f4 <f8"),
    "pt": (save_torch, "? u1 <i2 <i8 <f2 <f4"),
    "mat": (savemat, "u1 <i8 <f4"),
    "h5": (save_hdf5, "? u1 <i2 >i4 <u8 <f2 >f4 <f8"),
}


def carried(folder, kind, arrays):
    """A file of some kind with these arrays."""
    path = folder / f"features.{kind}"
    CARRIERS[kind][0](path, {name: np.asarray(x) for name, x in arrays.items()})
    return path


@pytest.fixture
def save(tmp_path):
    return lambda **arrays: carried(tmp_path, "npz", arrays)


@pytest.mark.parametrize(
    "arrays",
    [
        pytest.param({"X": X, "y": WORDS}, id="X, y"),
        pytest.param({"features": X, "labels": WORDS}, id="features, labels"),
        pytest.param({"data": X, "target": CODES, "target_names": NAMES, "feature_names": NAMES}, id="scikit-learn"),
        pytest.param({"X": X, "y": CODES, "class_names": NAMES}, id="codes and names"),
        pytest.param({"X": X, "y": CODES + 1, "names": NAMES}, id="codes from 1"),
        pytest.param({"X": X, "classes": WORDS}, id="classes per sample"),
        pytest.param({"X": X, "y": WORDS.astype("S")}, id="bytes"),
        pytest.param({"X_base": X, "y_base": WORDS}, id="one part"),
        pytest.param({"X": X, "y": WORDS, "scale": np.float32(1), "ids": np.arange(4)}, id="others beside"),
        pytest.param({"X": X, "y": WORDS, "tokens": STACK}, id="three dimensions beside"),
        pytest.param({"X": X.astype(">f8"), "y": WORDS}, id="big-endian"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", CARRIERS)
def test_layouts_of_features_and_labels(tmp_path, kind, arrays):
    found = read_features(carried(tmp_path, kind, arrays))
    np.testing.assert_array_equal(found.X, X)
    assert found.X.dtype == np.float64
    assert found.X.dtype.isnative
    assert found.y.tolist() == WORDS.tolist()


@pytest.mark.parametrize(
    ("arrays", "labels"),
    [
        ({"base": STACK}, [0, 0, 0, 1, 1, 1]),
        ({"base": STACK, "base_names": NAMES[:2]}, ["a"] * 3 + ["b"] * 3),
        ({"base": STACK, "names": NAMES[:2]}, ["a"] * 3 + ["b"] * 3),
        ({"X": STACK, "y": NAMES[:2]}, ["a"] * 3 + ["b"] * 3),
        ({"X": STACK, "y": np.array([[1, 1, 1], [7, 7, 8]])}, [1, 1, 1, 7, 7, 8]),
        ({"X": np.asfortranarray(STACK), "names": NAMES[:2]}, ["a"] * 3 + ["b"] * 3),
    ],
)
@pytest.mark.parametrize("kind", CARRIERS)
def test_arrays_of_classes_samples_features(tmp_path, kind, arrays, labels):
    found = read_features(carried(tmp_path, kind, arrays))
    np.testing.assert_array_equal(found.X, STACK.reshape(6, 4))
    assert found.y.tolist() == labels


def test_one_array_per_class_in_the_order_of_the_file(save):
    found = read_features(save(wren=X[:3], kite=X[3:]))
    np.testing.assert_array_equal(found.X, X)
    assert found.y.tolist() == ["wren"] * 3 + ["kite"]


@pytest.mark.parametrize(("kind", "dtype"), [(kind, x) for kind, (_, types) in CARRIERS.items() for x in types.split()])
def test_numbers_of_every_type_and_byte_order(tmp_path, kind, dtype):
    features = (X / 3).astype(dtype)
    found, y = open_features(carried(tmp_path, kind, {"X": features, "y": CODES[None, :]})).read()
    np.testing.assert_array_equal(found, features)
    assert found.dtype == np.dtype(dtype).newbyteorder("=")
    assert y.tolist() == CODES.tolist()


def test_one_part_may_stand_in_a_folder(save):
    assert read_features(save(**{"base/features": X, "base/labels": WORDS})).y.tolist() == WORDS.tolist()


@pytest.mark.parametrize("kind", CARRIERS)
def test_parts_are_chosen_by_name_or_path(tmp_path, kind):
    path = carried(tmp_path, kind, {"X_base": X, "y_base": WORDS, "X_novel": 2 * X, "y_novel": CODES})
    message = rf"several sets of samples, 'base', 'novel': choose one.*features\.{kind}:base"
    with pytest.raises(InputError, match=message):
        read_features(path)
    for found in (read_features(path, part="novel"), read_features(f"{path}:novel")):
        np.testing.assert_array_equal(found.X, 2 * X)
        assert found.y.tolist() == CODES.tolist()
    with pytest.raises(InputError, match="no part 'val': it has 'base', 'novel'"):
        read_features(f"{path}:val")
    with pytest.raises(ParameterError, match="names part 'base' and part= names 'novel'"):
        read_features(f"{path}:base", part="novel")


def test_a_file_whose_name_has_a_colon_is_that_file(tmp_path):
    np.savez(tmp_path / "features.npz:base.npz", X=X, y=WORDS)
    (tmp_path / "features.npz:base.npz").rename(tmp_path / "features.npz:base")
    assert read_features(tmp_path / "features.npz:base").X.shape == (4, 3)


def test_stacks_are_parts(save):
    path = save(base=STACK, val=STACK[:1], base_names=NAMES[:2], val_names=NAMES[2:])
    assert read_features(path, part="val").y.tolist() == ["c"] * 3
    assert read_features(path, part="base").y.tolist() == ["a"] * 3 + ["b"] * 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "must hold two arrays, X and y.*holds nothing"),
        ({"arr_0": X, "arr_1": WORDS}, r"must hold two arrays, X and y.*'arr_0' \(4, 3\) float64"),
        ({"arr_0": X}, "must hold two arrays"),
        ({"train": X, "test": X}, "must hold two arrays"),
        ({"X": X}, r"no labels for its features 'X' \(4, 3\), it holds nothing else: add an array y"),
        ({"X": X, "y": WORDS[:3]}, r"features 'X' \(4, 3\) and labels 'y' \(3,\): transpose"),
        ({"X": X, "y": WORDS[:2]}, "give one label per sample"),
        ({"X": X, "y": np.eye(4)[:, :3]}, "labels 'y'"),
        ({"X": X, "features": X, "y": WORDS}, "several arrays of features, 'X', 'features'"),
        ({"X": X, "y": WORDS, "labels": WORDS}, "several arrays of labels, 'y', 'labels'"),
        ({"X": X + 1j, "y": WORDS}, "complex.*modulus"),
        ({"X": X.reshape(4, 3, 1, 1), "y": WORDS}, "store numbers"),
        ({"X": X[:, :0], "y": WORDS}, "at least one sample and one feature"),
        ({"X": X, "y": CODES + 5, "names": NAMES}, "labels from 5 to 7 but 3 class names in 'names'"),
        ({"X": X, "y": CODES + 0.5, "names": NAMES}, "labels that are not integers"),
        ({"X": STACK, "y": np.array([0, 0])}, "2 names, 1 of them different"),
        ({"X": X, "y": np.array(["2020"] * 4, "M8[Y]")}, "plain numbers or strings"),
        ({"X": np.array([["a", "b"]] * 4), "y": WORDS}, "must hold two arrays"),
        ({"wren": X, "kite": X[:, :2]}, "has 3 features in class 'wren' and 2 in class 'kite'"),
        ({"wren": X, "kite": X[:0]}, "no samples in class 'kite'"),
        ({"X": X, "y": np.array([b"\xff\xfe"] * 4)}, "not UTF-8"),
    ],
)
def test_ambiguous_arrays_are_one_sentence(save, arrays, message):
    with pytest.raises(InputError, match=message):
        read_features(save(**arrays))


def test_long_names_in_sentences_are_cut(save):
    with pytest.raises(InputError) as caught:
        read_features(save(**{f"{i}\n" + "x" * 500: np.float32(i) for i in range(50)}))
    assert len(str(caught.value)) < 1200
    assert "\n" not in str(caught.value)
    assert re.search("and 42 more", str(caught.value))


def test_the_embeddings_of_bank_questions():
    X, y = read_features(real_data("banking77/features.npz"))
    assert X.shape == (7655, 384)
    assert X.dtype == np.float32
    assert len(np.unique(y)) == 77


def test_the_stack_of_miniimagenet_is_read_as_it_is_stored():
    path = real_data("miniimagenet/features.npz")
    source = open_features(f"{path}:base")
    assert (source.n_samples, source.n_features, source.dtype) == (38400, 640, np.uint8)
    X, y = next(source.batches(1000))
    with np.load(path) as arrays:
        np.testing.assert_array_equal(X, arrays["base"].reshape(-1, 640)[:1000])
        assert y[600] == arrays["base_names"][1]
    with pytest.raises(InputError, match="'base', 'val'"):
        open_features(path)
