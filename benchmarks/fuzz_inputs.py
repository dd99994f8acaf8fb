"""Inputs of `benchmarks.fuzz_files`: valid files of every format, changed by Hypothesis."""

from __future__ import annotations

import io
import pickle
import struct
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hotshot.files import write_features

# Most files have few changes, so that readers do not stop at the first bytes.
CHANGES = [1, 1, 1, 1, 2, 2, 3, 6]
KINDS = ["bit", "byte", "number", "number", "token", "token", "cut", "end", "twice", "splice"]


# --- valid files


class Files(dict[str, list[tuple[str, bytes]]]):
    """Suffix and bytes of files, by format, with a short repr for Hypothesis."""

    def __repr__(self) -> str:
        return "Files(…)"


def valid_files() -> Files:
    """Small valid files."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 10)).astype(np.float32)
    y = np.repeat(["cat", "dog", "größe"], 2)
    codes = np.repeat([0, 1, 2], 2)
    files = Files()
    files |= {
        "pickle": [
            (".plk", pickle.dumps(value, protocol=protocol))
            for protocol in range(6)
            for value in (
                {"cat": list(X[:3]), "dog": list(X[3:])},
                {0: X[:3].tolist(), 7: [tuple(row) for row in X[3:].tolist()]},
                {"features": X, "labels": y},
                {"base": {1: list(X[:2].astype(np.float16))}, "novel": {"data": X, "y": codes.tolist()}},
                {3: [[np.float64(v) for v in X[0]], [1, 2, 300, 70_000, -1, 2**40, True, 0, 1, 2]]},
            )
        ],
        "torch archive": [(".pt", data) for data in _torch_files(X, codes, True)],
        "torch stream": [(".pt", data) for data in _torch_files(X, codes, False)],
        "mat": [(".mat", data) for data in _matlab_files(X, y, codes)],
        "npz": [(".npz", data) for data in _npz_files(X, y, codes)],
    }
    for suffix in (".npy", ".safetensors", ".csv", ".tsv", ".parquet"):
        files[suffix[1:]] = []
        for labels in (y, codes):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"a{suffix}"
                write_features(path, (X, labels), about={"extractor": "none"})
                files[suffix[1:]].append((suffix, path.read_bytes()))
    return files


def _torch_files(X: np.ndarray, codes: np.ndarray, archive: bool) -> list[bytes]:
    import torch

    tensor, labels = torch.from_numpy(X), torch.from_numpy(codes)
    made = []
    for value in (
        {"features": tensor, "labels": labels},
        (tensor.bfloat16(), labels),
        {1: list(tensor[:3]), 2: list(tensor[3:].half())},
        {"X": tensor.t()[:6, ::2], "y": labels.tolist(), "Z": X},
        {"X": tensor[:1, :1].expand(6, 4), "y": labels},
    ):
        file = io.BytesIO()
        torch.save(value, file, _use_new_zipfile_serialization=archive)
        made.append(file.getvalue())
    return made


def _matlab_files(X: np.ndarray, y: np.ndarray, codes: np.ndarray) -> list[bytes]:
    from scipy.io import savemat
    from scipy.sparse import csc_array

    made = []
    for variables, options in (
        ({"X": X, "y": codes, "class_names": y[::2].astype(object)}, {}),
        ({"X": X, "y": y, "about": '{"a": 1}', "s": {"a": 1}}, {}),
        ({"X": csc_array(X), "y": y.astype(object)}, {}),
        ({"X": X, "y": codes, "names": y[::2].astype(object)}, {"do_compression": True}),
        ({"X": X, "y": codes}, {"format": "4"}),
        ({"X": csc_array(X), "y": codes, "t": "text"}, {"format": "4"}),
    ):
        file = io.BytesIO()
        savemat(file, variables, **options)
        made.append(file.getvalue())
    return made


def _npz_files(X: np.ndarray, y: np.ndarray, codes: np.ndarray) -> list[bytes]:
    made = []
    for save in (np.savez, np.savez_compressed):
        for arrays in (
            {"X": X, "y": y},
            {"base": X.reshape(3, 2, 10), "base_names": y[::2]},
            {"cat": X[:2], "dog": np.asfortranarray(X[2:])},
            {"X": X.astype(np.float16), "y": codes, "names": y[::2]},
        ):
            file = io.BytesIO()
            save(file, **arrays)
            made.append(file.getvalue())
    return made


# --- changes

INTERESTING = [0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**40]
INTERESTING += [2**60, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
OPCODES = b"(012aebdegh]}lsutNRQ.iocpqrGIJKLMSTUVXB" + bytes(range(0x80, 0x99))
TOKENS = [
    *(bytes([code]) for code in OPCODES),
    b"cos\nsystem\n", b"cnumpy\nndarray\n", b"cnumpy\ndtype\n", b"cbuiltins\ngetattr\n",
    b"ccollections\nOrderedDict\n", b"cnumpy.core.multiarray\nscalar\n", b"cnumpy.core.numeric\n_frombuffer\n",
    b"c_codecs\nencode\n", b"h\x00", b"h\x05", b"G" + bytes(8), (b"G" + bytes(8)) * 9, b"K\x01",
    b"(" + b"K\x01" * 9 + b"e", b"I-1\n", b"F1.5\n", b"S'a'\n", b"Va\n",
    b"nan", b"inf", b"1e400", b"-", b",", b"\t", b"\n", b"\r\n", b'"', b"\0", b"\xff", b"{", b"[", b":",
    b"F64", b"I64", b"BF16", b"U99999", b"|O", b"<f8", b">f4", b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06",
    b"PAR1", b"\x93NUMPY", b"MATLAB 5.0 MAT-file", b"9" * 30, b"1" * 200, "é".encode(), b"\xed\xa0\x80",
]  # fmt: skip


def changed(draw: Any, data: bytes, others: list[bytes]) -> bytes:
    """A file with one to six changes at random places."""
    for _ in range(draw(st.sampled_from(CHANGES))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(KINDS))
        if kind == "bit" and data:
            data = data[:at] + bytes([data[at] ^ (1 << draw(st.integers(0, 7)))]) + data[at + 1 :]
        elif kind == "byte":
            data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
        elif kind == "number":
            width = draw(st.sampled_from([1, 2, 4, 8]))
            value = draw(st.sampled_from(INTERESTING)) % 2 ** (8 * width)
            order = draw(st.sampled_from(["little", "big"]))
            data = data[:at] + value.to_bytes(width, order) + data[at + width :]
        elif kind == "token":
            data = data[:at] + draw(st.sampled_from(TOKENS)) + data[at + draw(st.integers(0, 3)) :]
        elif kind == "cut":
            data = data[:at] + data[at + draw(st.integers(1, 64)) :]
        elif kind == "end":
            data = data[:at]
        elif kind == "twice":
            data = data[: at + draw(st.integers(1, 64))] + data[at:]
        else:
            other = draw(st.sampled_from(others))
            start = draw(st.integers(0, max(len(other) - 1, 0)))
            data = data[:at] + other[start : start + draw(st.integers(1, 128))] + data[at:]
    return data


def changed_member(draw: Any, data: bytes) -> bytes:
    """An archive with one changed member and correct checksums."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    main = [name for name in members if name.endswith((".pkl", ".npy"))]
    name = draw(st.sampled_from([*main * 5, *members]))
    members[name] = changed(draw, members[name], list(members.values()))
    file = io.BytesIO()
    method = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    with zipfile.ZipFile(file, "w", method) as archive:
        for key, value in members.items():
            archive.writestr(key, value)
    return file.getvalue()


def changed_variable(draw: Any, data: bytes) -> bytes:
    """A MATLAB file with one variable changed and compressed."""
    start, variables = 128, []
    while start < len(data):
        end = start + 8 + struct.unpack_from("<I", data, start + 4)[0]
        variables.append(data[start:end])
        start = end
    at = draw(st.integers(0, len(variables) - 1))
    packed = zlib.compress(changed(draw, variables[at], variables))
    variables[at] = struct.pack("<II", 15, len(packed)) + packed
    return data[:128] + b"".join(variables)


def values() -> Any:
    """Values of many types and shapes, few of them features."""
    numbers = st.one_of(st.integers(-2, 2**65), st.floats(), st.booleans())
    text = st.text(max_size=5)
    arrays = st.builds(
        lambda shape, code: np.ones(shape, code),
        st.lists(st.integers(0, 4), max_size=4).map(tuple),
        st.sampled_from(["f2", "<f4", ">f4", "f8", "u1", "i8", "?", "U3", "S3", "c8", "O"]),
    )
    scalars = st.sampled_from([np.float32(1.5), np.int64(3), np.str_("a"), np.bool_(True), np.float64("nan")])
    leaves = st.one_of(numbers, text, st.none(), arrays, st.binary(max_size=9), scalars)
    names = st.sampled_from(["X", "y", "features", "labels", "names", "X_base", "base", "about"])
    keys = st.one_of(names, st.integers(0, 3), text, numbers, st.none(), st.binary(max_size=3))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.tuples(inner, inner),
            st.dictionaries(keys, inner, max_size=4),
            st.lists(numbers, min_size=7, max_size=20),
        ),
        max_leaves=12,
    )


VALUES = values()


@st.composite
def fuzzed(draw: Any, files: Files) -> tuple[str, str, bytes]:
    """Format, suffix and bytes of a file: random, or made from a valid one."""
    name = draw(st.sampled_from(sorted(files)))
    suffix, data = draw(st.sampled_from(files[name]))
    how = draw(st.integers(0, 9))
    if how == 0:
        return name, suffix, draw(st.binary(max_size=200))
    if how == 1 and name in ("pickle", "csv", "tsv"):
        start = b"\x80\x04" if name == "pickle" else b""
        return name, suffix, start + b"".join(draw(st.lists(st.sampled_from(TOKENS), max_size=40))) + b"."
    if how < 4 and name == "pickle":
        return name, suffix, pickle.dumps(draw(VALUES), protocol=draw(st.integers(0, 5)))
    if how < 4 and data[:10] == b"MATLAB 5.0":
        return name, suffix, changed_variable(draw, data)
    if how < 6 and data[:2] == b"PK":
        return name, suffix, changed_member(draw, data)
    others = [other for _, other in files[name]]
    return name, suffix, changed(draw, data, others)
