"""Pickles of features come out as they went in: every protocol, Python 2 and 3, NumPy 1 and 2, lists and arrays."""

from __future__ import annotations

import collections
import io
import pickle
import struct

import numpy as np
import pytest

from children import no_child  # noqa: F401
from hotshot.errors import InputError
from hotshot.files import open_features
from hotshot.files.child_readers import open_pickle

PROTOCOLS = range(6)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(7, 12)).astype(np.float32)
COUNTS = {"cat": 2, "dog": 4, "emu": 1}


def by_class(convert, names=tuple(COUNTS), features=X):
    parts = np.split(features, np.cumsum(list(COUNTS.values()))[:-1])
    return {name: convert(part) for name, part in zip(names, parts, strict=True)}


def labels(names=tuple(COUNTS)):
    return np.repeat(np.array(names), list(COUNTS.values()))


@pytest.fixture
def read(tmp_path):
    """Read the bytes of a pickle as features, or a value, which is written in every protocol and read as the same."""

    def run(value, part=None):
        written = [value] if isinstance(value, bytes) else [pickle.dumps(value, protocol=p) for p in PROTOCOLS]
        first = None
        for data in written:
            path = tmp_path / "features.plk"
            path.write_bytes(data)
            source = open_features(path, part=part)
            X, y = source.read()
            assert source.n_samples == len(X) == len(y)
            assert (source.n_features, source.dtype) == (X.shape[1], X.dtype)
            first = first or (X, y)
            np.testing.assert_array_equal(X, first[0])
            np.testing.assert_array_equal(y, first[1])
            assert (X.dtype, y.dtype) == (first[0].dtype, first[1].dtype)
        return first

    return run


def check(got, features=X, y=None):
    np.testing.assert_array_equal(got[0], features)
    assert got[1].tolist() == (labels() if y is None else np.asarray(y)).tolist()


CONVERSIONS = {
    "list of arrays": list,
    "one array": np.asarray,
    "list of lists": lambda part: part.tolist(),
    "list of tuples": lambda part: [tuple(row) for row in part.tolist()],
    "list of NumPy numbers": lambda part: [list(row) for row in part],
    "list of (V, 1, 1)": lambda part: [row[:, None, None] for row in part],
}


@pytest.mark.parametrize("form", CONVERSIONS)
def test_classes_are_read_as_written(read, form):
    got = read(by_class(CONVERSIONS[form]))
    check(got)
    python_floats = form in ("list of lists", "list of tuples")
    assert got[0].dtype == (np.float64 if python_floats else np.float32)


@pytest.mark.parametrize(
    "names",
    [
        (0, 1, 2),
        (-1, 300, 70_000),
        (2**40, -(2**62), 5),
        ("größe", "猫", "n01532829"),
        tuple(np.array([4, 9, 2])),
        tuple(np.array(["a", "bb", "ccc"])),
    ],
    ids=["small", "signed", "long", "text", "NumPy integers", "NumPy text"],
)
def test_labels_of_every_kind(read, names):
    got = read(by_class(list, names))
    check(got, y=labels(names))
    assert got[1].dtype.kind == ("U" if isinstance(names[0], str) else "i")


@pytest.mark.parametrize(
    "value",
    [
        {"features": X, "labels": labels().astype(">U9")},
        {"X": list(X), "y": labels().tolist(), "extractor": "wrn28_10", "epoch": 3, "args": {"lr": 0.1}},
        {"data": X.tolist(), "labels": tuple(labels().tolist())},
        (X, labels()),
        [list(X), labels().tolist()],
        collections.OrderedDict(by_class(list)),
    ],
    ids=["big-endian", "lists", "lists of lists", "pair", "list", "ordered"],
)
def test_layouts(read, value):
    check(read(value))


def test_other_entries_of_the_file_become_its_header(tmp_path):
    """Short text and numbers; a half of a character could not be written again."""
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps({"X": X, "y": labels(), "extractor": "wrn28_10", "epoch": 3, "args": {"lr": 1}}))
    assert open_pickle(path).about == {"extractor": "wrn28_10", "epoch": 3}
    path.write_bytes(pickle.dumps({"X": X, "y": labels(), "epoch": 3, "note": "\ud800"}, protocol=0))
    assert open_pickle(path).about == {"epoch": 3}


def test_parts_are_chosen_by_key(read):
    value = {"base": by_class(list), "novel": {"fox": list(X[:3])}, "note": "two sets"}
    check(read(value, part="base"))
    check(read(value, part="novel"), X[:3], ["fox"] * 3)
    with pytest.raises(InputError, match=r"several sets of samples, 'base', 'novel': choose one, for ex.*plk:base"):
        read(value)
    with pytest.raises(InputError, match="no part 'val'"):
        read(by_class(list), part="val")


# --- as other writers would write them


def old_numpy(data):
    return data.replace(b"numpy._core.multiarray", b"numpy.core.multiarray").replace(
        b"numpy._core.numeric", b"numpy.core.numeric"
    )


@pytest.mark.parametrize("protocol", range(4))
def test_files_written_with_numpy_1(read, protocol):
    """In these protocols names stand in lines of their own, so that they can be exchanged without harm."""
    data = pickle.dumps(by_class(list), protocol=protocol)
    assert old_numpy(data) != data
    check(read(old_numpy(data)))


class Python2Pickler(pickle._Pickler):
    """Writes bytes as the strings of Python 2, and names as they were there."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_str(self, value):
        data = value if isinstance(value, bytes) else value.encode()
        if not self.bin:
            quoted = repr(data)[1:].encode()
            self.write(b"S" + quoted + b"\n")
        elif len(data) < 256:
            self.write(b"U" + bytes([len(data)]) + data)
        else:
            self.write(b"T" + struct.pack("<i", len(data)) + data)
        self.memoize(value)

    def save_int(self, value):
        if self.bin or -(2**31) <= value < 2**31:
            super().save_long(value)
        else:
            self.write(b"L" + str(value).encode() + b"L\n")

    dispatch[str] = dispatch[bytes] = save_str
    dispatch[int] = save_int


def python_2(value, protocol):
    file = io.BytesIO()
    Python2Pickler(file, protocol).dump(value)
    return old_numpy(file.getvalue()).replace(b"cbuiltins\n", b"c__builtin__\n")


@pytest.mark.parametrize("protocol", range(3))
@pytest.mark.parametrize("form", ["list of arrays", "one array", "list of lists", "list of NumPy numbers"])
def test_files_written_by_python_2(read, form, protocol):
    data = python_2(by_class(CONVERSIONS[form]), protocol)
    assert b"_codecs" not in data
    check(read(data))
    names = (5, 2**40, -3)
    check(read(python_2(by_class(list, names), protocol)), y=labels(names))


def test_strings_of_python_2_that_are_not_utf_8_are_latin_1(read):
    check(read(b"(dS'caf\\xe9'\n((lF1.5\naF2.5\nals."), [[1.5, 2.5]], ["café"])


# --- what is wrong with a file, in one sentence


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "empty dictionary"),
        ([], "no vectors by class: store a dictionary"),
        (X, "vectors without labels: store"),
        (None, "no vectors by class"),
        ({"a": []}, "no samples in class 'a': remove"),
        ({0: [[]]}, r"an array \(1, 0\) of float64 in class 0: store numbers"),
        ({0: [X[0], X[1][:5]]}, r"vectors of different shapes in class 0, \(5,\) and \(12,\)"),
        ({0: [X[0]], 1: [X[1][:5]]}, "12 features in class 0 and 5 in class 1"),
        ({1.5: [X[0]]}, "label that is of type float: use short text or integers"),
        ({None: [X[0]]}, "label that is of type NoneType"),
        ({"a": [X[0]], 1: [X[1]]}, "different or unknown types"),
        ({"a\0": [X[0]], "a": [X[1]]}, "NUL"),
        ({"a" * 1001: [X[0]]}, "label that is text of 1001 characters"),
        ({2**64: [X[0]]}, "more than 64 bits"),
        ({0: X[0].tolist()}, r"an array \(12,\) of float64 in class 0: store numbers"),
        ({0: [[1.0, "b"]]}, r"an array \(1, 2\) of <U32 in class 0"),
        ({0: 5}, "no list of vectors in class 0"),
        ({"X": X, "y": ["a\0"] * 7}, "end in a NUL character"),
        ({0: [np.array(["a"])]}, "an array .* in class 0"),
    ],
    ids=str,
)
def test_values_that_are_not_features(read, value, message):
    with pytest.raises(InputError, match=message) as caught:
        read(pickle.dumps(value))
    assert str(caught.value).count("\n") == 0
    assert str(caught.value).endswith(".")


def test_every_truncated_file_is_refused(tmp_path):
    data = pickle.dumps({0: [X[0], X[1]], 1: [[1.5] * 12]}, protocol=4)
    path = tmp_path / "a.plk"
    for length in range(2, len(data), 3):
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match="is not a"):
            open_pickle(path)


def test_files_that_go_on_after_the_first_pickle_are_refused(read):
    with pytest.raises(InputError, match="holds 14 bytes after its first pickle: store all vectors in one"):
        read(pickle.dumps(by_class(list)) + b"\x80\x04]\x94." + b"\x80\x04(K\x01K\x02e.")
