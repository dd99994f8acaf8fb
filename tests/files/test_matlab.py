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
        ({"y": CODES.astype(np.uint8)}, CODES),
        ({"y": CODES + 1, "class_names": NAMES}, LABELS),
        ({"y": CODES + 1.0, "class_names": NAMES[:, None]}, LABELS),
        ({"y": LABELS.astype(object)[:, None]}, LABELS),
        ({"y": CODES + 0.5}, CODES + 0.5),
        ({"y": CODES, "options": {"a": 1, "b": {"c": "d"}}, "mixed": np.array([1, "a"], dtype=object)}, CODES),
    ],
    ids=["bytes", "from 1", "doubles and names", "column of cells", "fractions", "others"],
)  # fmt: skip
def test_labels_of_every_kind(read, variables, labels):
    check(read({"X": X, **variables}), labels=labels)


def test_sparse_features_become_dense(read):
    features = np.where(X > 0, X, 0)
    check(read({"X": scipy.sparse.csc_array(features), "y": CODES}), features, CODES)


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
    "X": X, "y": CODES, "class_names": NAMES, "text": np.array(["ab", "c"]), "struct": {"a": 1}, "about": "{}",
    "sparse": scipy.sparse.csc_array(np.eye(3)),
}  # fmt: skip
SEEDS = [
    saved(EVERYTHING),
    saved(EVERYTHING, do_compression=True),
    saved({"X": X, "y": CODES, "s": scipy.sparse.csc_array(np.eye(3)), "t": "abc"}, format="4"),
]


@pytest.mark.parametrize("seed", range(3), ids=["plain", "compressed", "version 4"])
def test_every_truncation_is_refused_or_loses_whole_variables(tmp_path, monkeypatch, seed):
    def check(length):
        (tmp_path / "a.mat").write_bytes(SEEDS[seed][:length])
        try:
            source = open_matlab(tmp_path / "a.mat")
        except InputError as error:
            assert "\n" not in str(error)  # noqa: PT017
            return
        features, y = source.read()
        assert np.array_equal(features, X)
        assert source.unlabelled if y is None else len(y) == len(X)

    for length in crashes(range(1, len(SEEDS[seed]), 11), check)[:3]:
        # What ended SciPy's process is one sentence in this one.
        (tmp_path / "a.mat").write_bytes(SEEDS[seed][:length])
        use_real_child(monkeypatch)
        with pytest.raises(InputError, match=r"a\.mat"):
            open_matlab(tmp_path / "a.mat")


# --- files that lie


def element(kind, data, length=None):
    length = len(data) if length is None else length
    return struct.pack("<II", kind, length) + data + bytes(-len(data) % 8)


def matrix(of_class=6, shape=(2, 3), values=None):
    """The variable X."""
    head = element(6, struct.pack("<II", of_class, 0)) + element(5, struct.pack("<2i", *shape)) + element(1, b"X")
    return element(14, head + (element(9, bytes(48)) if values is None else values))


def packed(variable):
    data = zlib.compress(variable, 9)
    return struct.pack("<II", 15, len(data)) + data


def sparse(row, shape, columns=(0, 1, 1)):
    """A sparse variable with one number in a row of the first column."""
    starts = struct.pack(f"<{len(columns)}i", *columns)
    values = element(5, struct.pack("<i", row)) + element(5, starts) + element(9, bytes(8))
    return matrix(of_class=5, shape=shape, values=values)


MEMORY, UNSOUND, CRASH = "would take more than", "not a valid MATLAB file", "crashes the program"
LIES = {
    "element beyond its variable": (matrix(values=element(9, bytes(48), 2**31)), MEMORY),
    "unknown type": (matrix(values=element(99, bytes(48))), f"{CRASH}|{UNSOUND}"),
    "cells without contents": (matrix(of_class=1, shape=(2**27, 1), values=b""), MEMORY),
    "sparse and huge": (sparse(0, (2**30, 2)), "may unpack"),
    "sparse with an index beyond": (sparse(2**30, (2, 2)), UNSOUND),
    "sparse with columns that wrap twice": (sparse(0, (2, 3), (0, 2**31 - 1, -(2**31), 1)), UNSOUND),
    "twice": (matrix() + matrix(), "Duplicate variable name"),
    "bomb": (packed(matrix(shape=(2**21, 8), values=element(9, bytes(2**27)))), f"{MEMORY}|File too large"),
}  # fmt: skip


@pytest.mark.usefixtures("forked_child")
@pytest.mark.parametrize("lie", LIES)
def test_files_that_lie_are_refused_within_their_allowance(tmp_path, lie, monkeypatch):
    """The kernel gives the child a sixteenth of what it has for users, and no byte more."""
    monkeypatch.setattr(child, "MEMORY", child.MEMORY // 16)
    content, message = LIES[lie]
    (tmp_path / "a.mat").write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + content)
    with pytest.raises(InputError, match=message):
        open_matlab(tmp_path / "a.mat")
