"""MATLAB files come out as they went in; lengths that lie are found before SciPy believes them."""

from __future__ import annotations

import io
import json
import struct
import zlib

import numpy as np
import pytest
import scipy.sparse
from scipy.io import savemat

from children import crashes, forked_child, no_child, real_child, use_real_child  # noqa: F401
from hotshot.errors import InputError
from hotshot.files import child, open_features
from hotshot.files.child_readers import open_matlab

X = np.random.default_rng(0).normal(size=(6, 4))
CODES = np.array([0, 0, 1, 1, 1, 2])
NAMES = np.array(["cat", "doggy", "größe"], dtype=object)
LABELS = NAMES[CODES].astype(str)


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
def read(request, tmp_path):
    """Save variables and read them as features."""

    def run(variables, part=None, **options):
        path = tmp_path / "features.mat"
        options = options or {"do_compression": request.param}
        savemat(path, variables, **options)
        return open_features(path, part=part).read()

    return run


def check(got, features=X, labels=LABELS):
    assert got[0].dtype == features.dtype
    np.testing.assert_array_equal(got[0], features)
    assert got[1].tolist() == np.asarray(labels).tolist()


@pytest.mark.parametrize(
    ("variables", "labels"),
    [
        ({"y": CODES}, CODES),
        ({"y": CODES.astype(np.uint8)}, CODES),
        ({"y": CODES + 1, "class_names": NAMES}, LABELS),
        ({"y": CODES + 1.0, "class_names": NAMES[:, None]}, LABELS),
        ({"y": LABELS.astype(object)[:, None]}, LABELS),
        ({"y": LABELS}, LABELS),
        ({"y": CODES + 0.5}, CODES + 0.5),
        ({"y": CODES, "options": {"a": 1, "b": {"c": "d"}}, "mixed": np.array([1, "a"], dtype=object)}, CODES),
    ],
    ids=["row", "bytes", "from 1", "doubles and names", "column of cells", "characters", "fractions", "others"],
)  # fmt: skip
def test_labels_of_every_kind(read, variables, labels):
    check(read({"X": X, **variables}), labels=labels)


@pytest.mark.parametrize("dtype", ["f4", "u1", "i8"])
def test_numbers_of_every_type(read, dtype):
    features = (10 * np.abs(X)).astype(dtype)
    check(read({"features": features, "y": CODES}), features, CODES)


def test_sparse_features_become_dense(read):
    features = np.where(X > 0, X, 0)
    check(read({"X": scipy.sparse.csc_array(features), "y": CODES}), features, CODES)


def test_parts(read):
    variables = {"X_base": X, "y_base": CODES, "X_novel": X[:2], "y_novel": [8.0, 9.0]}
    check(read(variables, "base"), labels=CODES)
    check(read(variables, "novel"), X[:2], [8, 9])
    with pytest.raises(InputError, match="several"):
        read(variables)


def test_the_header_of_the_file_is_read(tmp_path):
    about = {"extractor": "wrn28_10", "größe": [1, 2]}
    savemat(tmp_path / "a.mat", {"X": X, "y": CODES, "about": json.dumps(about, ensure_ascii=False)})
    assert open_matlab(tmp_path / "a.mat").about == about


@pytest.mark.parametrize("features", [X, scipy.sparse.csc_array(X)], ids=["dense", "sparse"])
def test_version_4(read, features):
    check(read({"X": features, "y": CODES}, format="4"), labels=CODES)


# --- what is wrong with a file, in one sentence


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"X": X.T, "y": CODES}, "transpose"),
        ({"X": X * 1j, "y": CODES}, "complex numbers in 'X': take their real part"),
        ({"s": {"X": X, "y": CODES}}, "holds nothing"),
        ({}, "holds nothing"),
    ],
    ids=["transposed", "complex", "struct", "empty"],
)
def test_variables_that_are_not_features(read, variables, message):
    with pytest.raises(InputError, match=message):
        read(variables)


def saved(variables, **options):
    file = io.BytesIO()
    savemat(file, variables, **options)
    return file.getvalue()


EVERYTHING = {
    "X": X,
    "y": CODES,
    "class_names": NAMES,
    "text": np.array(["ab", "c"]),
    "sparse": scipy.sparse.csc_array(np.eye(3)),
    "struct": {"a": 1},
    "about": "{}",
}
SEEDS = [
    saved(EVERYTHING),
    saved(EVERYTHING, do_compression=True),
    saved({"X": X, "y": CODES, "s": scipy.sparse.csc_array(np.eye(3)), "t": "abc"}, format="4"),
]


def read_or_refused(data, path):
    """Bytes as features, or None after one sentence."""
    path.write_bytes(data)
    try:
        source = open_matlab(path)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return None
    got, y = source.read()
    assert source.unlabelled if y is None else len(got) == len(y)
    return got


@pytest.mark.parametrize("seed", range(3), ids=["plain", "compressed", "version 4"])
def test_every_truncation_is_refused_or_loses_whole_variables(tmp_path, seed):
    def check(length):
        got = read_or_refused(SEEDS[seed][:length], tmp_path / "a.mat")
        assert got is None or np.array_equal(got, X)

    for length in crashes(range(1, len(SEEDS[seed]), 11), check)[:3]:
        assert_crash_is_refused(SEEDS[seed][:length], tmp_path / "a.mat")


def assert_crash_is_refused(data, path):
    """What ended SciPy's process, in which memory is now arranged in another way, is one sentence in this one."""
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        use_real_child(patch)
        with pytest.raises(InputError, match=r"a\.mat"):
            open_matlab(path)


# --- files that lie


def element(kind, data, length=None):
    length = len(data) if length is None else length
    return struct.pack("<II", kind, length) + data + bytes(-len(data) % 8)


def matrix(name=b"X", of_class=6, shape=(2, 3), values=None, more=0):
    """A variable, which may claim more bytes than it has."""
    body = element(6, struct.pack("<II", of_class, 0))
    body += element(5, struct.pack(f"<{len(shape)}i", *shape)) + element(1, name)
    body += element(9, bytes(48)) if values is None else values
    return element(14, body, len(body) + more)


def mat_file(*variables):
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(variables)


def packed(variable):
    data = zlib.compress(variable, 9)
    return struct.pack("<II", 15, len(data)) + data


def sparse_values(row, columns=(0, 1, 1)):
    """One number in a row of the first column."""
    starts = struct.pack(f"<{len(columns)}i", *columns)
    return element(5, struct.pack("<i", row)) + element(5, starts) + element(9, bytes(8))


BIG = 2**27
MEMORY, UNSOUND, CRASH = "would take more than", "not a valid MATLAB file", "crashes the program"
LIES = {
    "element beyond its variable": (matrix(values=element(9, bytes(48), 2**31)), MEMORY),
    "unknown type": (matrix(values=element(99, bytes(48))), f"{CRASH}|{UNSOUND}"),
    "cells without contents": (matrix(of_class=1, shape=(BIG, 1), values=b""), MEMORY),
    "sparse and huge": (matrix(of_class=5, shape=(2**30, 2), values=sparse_values(0)), "may unpack"),
    "sparse with an index beyond": (matrix(of_class=5, shape=(2, 2), values=sparse_values(2**30)), UNSOUND),
    "sparse with columns that wrap twice": (
        matrix(of_class=5, shape=(2, 3), values=sparse_values(0, (0, 2**31 - 1, -(2**31), 1))),
        UNSOUND,
    ),
    "twice": (matrix() + matrix(), "Duplicate variable name"),
    "bomb": (packed(matrix(shape=(2**21, 8), values=element(9, bytes(2**27)))), f"{MEMORY}|File too large"),
}  # fmt: skip


@pytest.mark.usefixtures("forked_child")
@pytest.mark.parametrize("lie", LIES)
def test_files_that_lie_are_refused_within_their_allowance(tmp_path, lie, monkeypatch):
    """The kernel gives the child a sixteenth of what it has for users, and no byte more."""
    monkeypatch.setattr(child, "MEMORY", child.MEMORY // 16)
    content, message = LIES[lie]
    path = tmp_path / "a.mat"
    path.write_bytes(mat_file(content))
    with pytest.raises(InputError, match=message):
        open_matlab(path)
