"""Safetensors files: the library as a peer in both directions, torn and lying files, writing that cannot leave half."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from hotshot.errors import InputError
from hotshot.files.tensors import DTYPES, Stream, map_tensors, write_tensors

safetensors = pytest.importorskip("safetensors")
pytest.importorskip("safetensors.numpy")
safe_open = safetensors.safe_open

TYPES = [np.dtype(code) for code in DTYPES.values()]
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(lambda n: n != "__metadata__")
ARRAYS = st.sampled_from(TYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
)


def same(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.safetensors"


def raw(header, numbers=b"", length=None):
    """A file of any header, sound or not."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + numbers


def entry(shape=(2,), offsets=(0, 8), dtype="F32", **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


@given(tensors=st.dictionaries(NAMES, ARRAYS, max_size=4), metadata=st.dictionaries(NAMES, NAMES, max_size=3))
def test_the_library_reads_what_is_written_and_the_other_way_round(tmp_path_factory, tensors, metadata):
    path = tmp_path_factory.mktemp("t") / "file.safetensors"
    write_tensors(path, tensors, metadata)
    with safe_open(path, framework="numpy") as file:
        assert set(file.keys()) == set(tensors)
        assert (file.metadata() or {}) == metadata
        for name, tensor in tensors.items():
            assert same(file.get_tensor(name), tensor)
    safetensors.numpy.save_file(tensors, path, metadata or None)
    file = map_tensors(path)
    assert set(file.tensors) == set(tensors)
    assert file.metadata == metadata
    assert all(same(file.tensors[name], tensor) for name, tensor in tensors.items())


def test_big_endian_and_strided_arrays_are_written_by_value(path):
    X = np.arange(12, dtype=">f4").reshape(3, 4)[:, ::2]
    write_tensors(path, {"X": X}, {})
    np.testing.assert_array_equal(map_tensors(path).tensors["X"], X)


# --- torn and lying files


def test_a_file_torn_at_any_byte_is_refused(path):
    write_tensors(path, {"X": np.arange(6.0).reshape(2, 3), "y": np.arange(2)}, {"about": "birds"})
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError, match=r"copy or download it again\.$"):
            map_tensors(path)


def test_any_changed_byte_of_the_header_is_an_error_or_another_sound_file(path):
    write_tensors(path, {"X": np.arange(6.0).reshape(2, 3)}, {"about": "birds"})
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    refused = 0
    for at in range(8 + length):
        for byte in (0, 0x22, 0x2C, 0x39, 0x7B, 0xFF):
            path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            try:
                assert all(X.nbytes <= 48 for X in map_tensors(path).tensors.values())
            except InputError:
                refused += 1
    assert refused > 3 * length


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(raw({}, length=2**63), "longer than the file", id="huge length"),
        pytest.param(raw(b"\xff\xfe{}"), "not a JSON object", id="not UTF-8"),
        pytest.param(raw({"__metadata__": {"a": 1}}), "metadata", id="number in metadata"),
        pytest.param(raw({"X": {}}), "data_offsets", id="empty entry"),
        pytest.param(raw({"X": entry(offsets=(-8, 0))}), "invalid offsets", id="negative"),
        pytest.param(raw({"X": entry(offsets=(0.0, 8.0))}, bytes(8)), "indices must be integers", id="floats"),
        pytest.param(raw({"X": entry(shape=(-2,))}, bytes(8)), "invalid shape", id="negative shape"),
        pytest.param(raw({"X": entry(shape=(3,))}, bytes(8)), "is not a valid", id="shape too large"),
        pytest.param(raw({"X": entry((0, 2**62, 2**62), (0, 0))}), "is not a valid", id="huge but empty"),
        pytest.param(raw({"X": entry(dtype="F7")}, bytes(8)), "'F7'.*float32", id="unknown type"),
        pytest.param(raw({"X": entry()}), "truncated", id="no numbers"),
        pytest.param(raw({"X": entry(offsets=(4, 12))}, bytes(12)), "gap", id="gap at the start"),
        pytest.param(raw({"X": entry(), "y": entry(offsets=(4, 12))}, bytes(12)), "overlaps", id="overlap"),
        pytest.param(
            raw(b'{"X":%b,"X":%b}' % ((json.dumps(entry()).encode(),) * 2), bytes(8)), "repeats", id="repeated name"
        ),
    ],
)  # fmt: skip
def test_a_false_header_is_one_sentence(path, content, message):
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        map_tensors(path)


# --- writing


def test_streams_are_written_block_by_block(path):
    X = np.arange(20.0).reshape(10, 2)
    write_tensors(path, {"X": Stream((10, 2), np.dtype(np.float32), (X[i : i + 3] for i in range(0, 10, 3)))}, {})
    found = map_tensors(path).tensors["X"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("rows", [0, 9, 11])
def test_a_stream_of_another_length_is_refused_and_leaves_nothing(path, rows):
    stream = Stream((10, 2), np.dtype(np.float32), iter([np.zeros((rows, 2))]))
    with pytest.raises(InputError, match=f"should have 20 numbers but has {2 * rows}"):
        write_tensors(path, {"X": stream}, {})
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([1j]), np.zeros(1, np.longdouble), np.array([None])])
def test_types_that_the_format_lacks_are_refused_and_leave_nothing(path, array):
    with pytest.raises(InputError, match="safetensors does not have"):
        write_tensors(path, {"X": array}, {})
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize(("names", "metadata"), [(["\ud800"], {}), (["X"], {"a": "\udfff"})])
def test_names_that_are_not_text_are_refused_and_leave_no_file(path, names, metadata):
    with pytest.raises(InputError, match="is not valid text"):
        write_tensors(path, dict.fromkeys(names, np.zeros(1)), metadata)
    assert os.listdir(path.parent) == []
