"""No byte of a pickle runs: every known way to make one run code is tried, plain and inside torch files.

That the attacks are real is shown on Python's own unpickler first; each would make a folder.
"""

from __future__ import annotations

import copyreg
import pickle
import struct
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from children import forked_child, no_child, real_child, use_real_child  # noqa: F401
from hotshot.errors import InputError
from hotshot.files import child, pickles
from hotshot.files.child_readers import open_pickle, open_torch

CODE = "__import__('os').mkdir({!r})"


class Call:
    """Pickles as a call of a function with arguments."""

    def __init__(self, function, *args):
        self.parts = (function, args)

    def __reduce__(self):
        return self.parts


def text(value):
    """A short text of protocol 4."""
    data = str(value).encode()
    return b"\x8c" + bytes([len(data)]) + data


def line(value):
    return str(value).encode() + b"\n"


# --- attacks that work on Python's own unpickler; each is a function of the folder to make


def _calls():
    import os

    return {
        "os.mkdir": lambda m: Call(os.mkdir, m),
        "eval": lambda m: Call(eval, CODE.format(m)),
        "pickle.loads": lambda m: Call(pickle.loads, pickle.dumps(Call(os.mkdir, m))),
        "object array": lambda m: {0: np.array([Call(os.mkdir, m), 1], dtype=object)},
        "key of a dictionary": lambda m: {Call(os.mkdir, m): [np.ones(3)]},
        "shape of an array": lambda m: Call(np.ndarray, Call(os.mkdir, m)),
    }


CALLS = _calls()

RAW = {
    "GLOBAL": lambda m: b"cos\nmkdir\n(V" + line(m) + b"tR.",
    "GLOBAL of Python 2": lambda m: b"c__builtin__\neval\n(V" + line(CODE.format(m)) + b"tR.",
    "INST": lambda m: b"(V" + line(m) + b"ios\nmkdir\n.",
    "OBJ": lambda m: b"(cos\nmkdir\nV" + line(m) + b"o.",
    "STACK_GLOBAL": lambda m: b"\x80\x04" + text("os") + text("mkdir") + b"\x93" + text(m) + b"\x85R.",
    "getattr": lambda m: (
        b"cbuiltins\ngetattr\n(cbuiltins\n__import__\n(Vos\ntRVmkdir\ntR(V" + line(m) + b"tR."
    ),
    "BUILD calls __setstate__": lambda m: (
        b"cfunctools\npartial\n(cbuiltins\nlen\ntR(cos\nmkdir\n(V" + line(m) + b"t}Ntb)R."
    ),
    "EXT1": lambda m: b"\x80\x02\x82\xf1X" + struct.pack("<I", len(m)) + m.encode() + b"\x85R.",
    "after a frame that lies": lambda m: (
        b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00N0cos\nmkdir\n(V" + line(m) + b"tR."
    ),
}  # fmt: skip


def attack(name, marker, protocol=4):
    return RAW[name](str(marker)) if name in RAW else pickle.dumps(CALLS[name](str(marker)), protocol=protocol)


@pytest.fixture
def extension_codes():
    """The registry of extension codes, and its cache, filled as a program that uses them would."""
    copyreg.add_extension("os", "mkdir", 0xF1)
    try:
        yield
    finally:
        copyreg.remove_extension("os", "mkdir", 0xF1)
        copyreg._extension_cache.pop(0xF1, None)


def plain(data, path):
    # What does not start as a pickle is not even looked at.
    path.write_bytes(data if data[0] in b"\x80(]})c" else b"\x80\x04" + data)
    return open_pickle(path)


def in_archive(data, path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", data)
        file.writestr("archive/version", b"3")
    return open_torch(path)


def in_stream(data, path, step=3):
    values = [pickle.dumps(value, 2) for value in (0x1950A86A20F9469CFC6C, 1001, {}, None, [])]
    values[step] = data
    path.write_bytes(b"".join(values))
    return open_torch(path)


@pytest.mark.parametrize("name", [*RAW, *CALLS])
def test_attacks_are_real_and_refused(name, tmp_path, request, extension_codes):
    marker = tmp_path / "made"
    for protocol in range(6 if name in CALLS else 1):
        data = attack(name, marker, protocol)
        for carrier in (in_archive, in_stream, plain):
            if name.startswith("EXT") and carrier is plain:
                # The registry of extension codes is the child's own, and empty.
                use_real_child(request.getfixturevalue("monkeypatch"))
            with pytest.raises(InputError) as caught:
                carrier(data, tmp_path / "a.pt")
            assert str(caught.value).isprintable()
            assert not marker.exists()
        # Some fail after the harm is done.
        with suppress(Exception):
            pickle.loads(data)
        assert marker.exists(), "this attack is none"
        marker.rmdir()
        # Python's unpickler has filled its cache of extension codes, which makes no difference.
        with pytest.raises(InputError):
            plain(data, tmp_path / "a.plk")
        assert not marker.exists()


@pytest.mark.parametrize("step", range(5))
def test_every_pickle_of_a_torch_stream_is_read_as_data(step, tmp_path):
    marker = tmp_path / "made"
    with pytest.raises(InputError, match=r"asks to call (os|posix)\.mkdir|not a valid torch file"):
        in_stream(attack("os.mkdir", marker, 2), tmp_path / "a.pt", step)
    assert not marker.exists()


def test_the_sentence_names_what_the_file_asks_for(tmp_path):
    with pytest.raises(InputError, match=r"asks to call os\.system, which no file of numbers needs, and nothing of it"):
        plain(b"cos\nsystem\n(Vtrue\ntR.", tmp_path / "a.plk")


@pytest.mark.parametrize("name", ["x\x1b[31m\x07", "é\u202e" * 10, "a" * 200, "\ud800"])
def test_names_are_made_safe_to_print(name, tmp_path):
    data = name.encode("utf-8", "surrogatepass")
    with pytest.raises(InputError) as caught:
        plain(b"cos\n" + data + b"\n.", tmp_path / "a.plk")
    said = str(caught.value).removeprefix(str(tmp_path))
    assert said.isprintable()
    assert len(said) < 400


# --- what no feature file has, live or not

NUMPY = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR"
DTYPE = b"cnumpy\ndtype\n(S'f4'\nI0\nI1\ntR(I3\nS'<'\nNNNI-1\nI-1\nI0\ntb"


def array(shape=b"(I2\nt", dtype=DTYPE, fortran=b"I00\n", data=b"S'12345678'\n"):
    return b"(dI0\n(l" + NUMPY + b"(I1\n" + shape + dtype + fortran + data + b"tbas."


ARRAY = array().removeprefix(b"(dI0\n(l").removesuffix(b"as.")


def test_the_array_of_our_own_making_is_sound(tmp_path):
    got, _ = plain(array(), tmp_path / "a.plk").read()
    np.testing.assert_array_equal(got, np.frombuffer(b"12345678", np.float32)[None])


def dtype_of(code, state=b"(I3\nS'<'\nNNNI-1\nI-1\nI0\ntb"):
    return b"cnumpy\ndtype\n(S'" + code + b"'\nI0\nI1\ntR" + state


REFUSED = {
    "NEWOBJ": b"\x80\x02ccollections\nOrderedDict\n)\x81.",
    "calling a name that is only mentioned": b"cbuiltins\nlist\n)R.",
    "BUILD of a name": b"cnumpy\nndarray\n}b.",
    "BUILD of a class": b"cnumpy\ndtype\n(N}(V__setstate__\ncnumpy\nndarray\nutb.",
    "persistent id": b"\x80\x02X\x02\x00\x00\x00osQ.",
    "buffer outside the file": b"\x80\x05\x97.",
    "numpy.load": b"cnumpy\nload\n(V/etc/passwd\nNI01\ntR.",
    "nothing": b"\x80\x04.",
    "integer with a million digits": b"I" + b"9" * 10**6 + b"\n.",
    "text of 2**32 - 1": b"X\xff\xff\xff\xffabc.",
    "array of objects": array(dtype=dtype_of(b"O8")),
    "structured array": array(
        dtype=dtype_of(b"V8", b"(I3\nS'|'\nN(S'a'\nt(dS'a'\n(" + DTYPE + b"I0\ntsI8\nI1\nI0\ntb")
    ),
    "array of subarrays": array(dtype=dtype_of(b"f4", b"(I3\nS'<'\n(" + DTYPE + b"(I2\ntttNNI4\nI1\nI0\ntb")),
    "type of another size": array(dtype=dtype_of(b"f4", b"(I3\nS'<'\nNNNI999\nI-1\nI0\ntb")),
    "type by a program": array(dtype=dtype_of(b"f4,(100000,100000)f8")),
    "empty text of a huge shape": array(dtype=dtype_of(b"S"), shape=b"(I1000000000\nt", data=b"S''\n"),
    "huge shape": array(shape=b"(I1000000000000\nt"),
    "shape that wraps to the right size": array(shape=b"(L18446744073709551618L\nt"),
    "too few bytes": array(data=b"S'1234567'\n"),
    "array of huge reconstruction": (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I1000000000000\ntS'd'\ntR."
    ),
    "encoded by another codec": b"c_codecs\nencode\n(Vabc\nVzlib_codec\ntR.",
    "default dictionary with a function": b"ccollections\ndefaultdict\n(cos\nsystem\ntR.",
    "list within itself": b"\x80\x02}K\x00]q\x00h\x00as.",
    "parts with names that are not printable": pickle.dumps({"a\x7f\n": {0: [[1.0]]}, "b": {0: [[1.0]]}}),
    "array of text beyond Unicode": (
        b"(dS'X'\n(l(lF1.0\naasS'y'\n" + NUMPY + b"(I1\n(I1\nt"
        + dtype_of(b"U1", b"(I3\nS'<'\nNNNI4\nI4\nI8\ntb") + b"I00\nS'\\xff\\xff\\xff\\xff'\ntbs."
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_objects_that_no_feature_file_needs_are_refused(name, tmp_path):
    with pytest.raises(InputError) as caught:
        plain(REFUSED[name], tmp_path / "a.plk").read()
    said = str(caught.value)
    assert said.isprintable()
    assert said.endswith(".")
    assert len(said) < 600


# --- floods: little in the file, much in memory or time


SIZE = 2**17


def laughs(levels, width):
    """Lists of references to the list before: width**levels vectors."""
    data = b"\x80\x02}K\x00]q\x00(" + b"K\x01" * 9 + b"e0"
    for level in range(1, levels):
        data += b"]" + b"q" + bytes([level]) + b"(" + (b"h" + bytes([level - 1])) * width + b"e0"
    return data + b"h" + bytes([levels - 1]) + b"s."


def repeated(vector, n_classes, per_class):
    """Classes that all hold the same list of references to one vector."""
    data = b"\x80\x02" + vector + b"q\x000]q\x01(" + b"h\x00" * per_class + b"e0}("
    return data + b"".join(b"J" + struct.pack("<i", i) + b"h\x01" for i in range(n_classes)) + b"u."


def colliding_keys(n):
    """Integers of one hash: as keys of a Python dictionary they take a time quadratic in their number."""
    prime = 2**61 - 1
    keys = (int.to_bytes(i * prime, 12, "little") for i in range(n))
    return b"\x80\x02}(" + b"".join(b"\x8a\x0c" + key + b"N" for key in keys) + b"u."


FLOODS = {
    "lists in lists": b"]" * (SIZE // 2) + b"a" * (SIZE // 2 - 1) + b".",
    "dictionaries in dictionaries": b"}K\x00" * (SIZE // 4) + b"}" + b"s" * (SIZE // 4) + b".",
    "memo, sparse": b"N" + b"".join(b"r" + struct.pack("<I", 5 * i) for i in range(SIZE // 5)) + b".",
    "frames": b"\x95" + bytes(8) + (b"\x95" + bytes(8)) * (SIZE // 9) + b"N.",
    "ordered dictionaries": b"ccollections\nOrderedDict\nq\x000" + b"h\x00)R" * (SIZE // 4) + b".",
    "encoding the same text": (
        b"c_codecs\nencode\nq\x000X" + struct.pack("<I", SIZE) + b"a" * SIZE + b"X\x06\x00\x00\x00latin1\x86q\x010"
        + b"h\x00h\x01R0" * 20_000 + b"N."
    ),
    "ordered dictionaries of the same list": (
        b"ccollections\nOrderedDict\nq\x000](" + b"NN\x86" * 20_000 + b"e\x85q\x010" + b"h\x00h\x01R0" * 300 + b"N."
    ),
    "laughs": laughs(10, 100),
    "one vector a million times": repeated(b"](" + b"K\x01" * 640 + b"e", 1000, 1000),
    "one array ten million times": repeated(ARRAY, 1000, 10_000),
    "empty vectors": repeated(b")", 10_000, 10_000),
    "keys of one hash": colliding_keys(SIZE // 100),
    "labels as long as the longest": (
        b"\x80\x02}(X\x01\x00\x00\x00X](](K\x01K\x02e](K\x01K\x02eeX\x01\x00\x00\x00y](X" + struct.pack("<I", SIZE)
        + b"a" * SIZE + b"X\x01\x00\x00\x00bq\x00" + b"h\x00" * 10_000 + b"eu."
    ),
    "classes of one empty list": repeated(b"N", SIZE // 7, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOODS)
@pytest.mark.usefixtures("forked_child")
def test_floods_are_refused_within_the_stated_memory_and_time(name, tmp_path, monkeypatch):
    """A tenth of the memory that the child of a user has, of which the kernel gives no byte more."""
    monkeypatch.setattr(child, "MEMORY", child.MEMORY // 10)
    with pytest.raises(InputError) as caught:
        plain(FLOODS[name], tmp_path / "a.plk").read()
    assert "seconds to read" not in str(caught.value)


@pytest.mark.usefixtures("real_child")
def test_more_memory_than_the_file_may_take_is_one_sentence(tmp_path, monkeypatch):
    """Lists take eighty bytes of memory for every byte in the file."""
    monkeypatch.setattr(child, "MEMORY", 2**25)
    with pytest.raises(InputError, match=r"would take more than 101 MB of memory to read: it is damaged or hostile"):
        plain(b"]" * 2**21, tmp_path / "a.plk")


@pytest.mark.usefixtures("real_child")
def test_a_hang_is_one_sentence(tmp_path, monkeypatch):
    """A dictionary takes a time that is quadratic in the number of keys of one hash."""
    monkeypatch.setattr(child, "SECONDS", 1)
    with pytest.raises(InputError, match="takes more than 1 seconds to read: it is damaged or hostile"):
        plain(colliding_keys(60_000), tmp_path / "a.plk")


@pytest.mark.usefixtures("real_child")
def test_a_crash_is_one_sentence(tmp_path):
    """Python follows nested tuples to compute a hash until the stack of the process ends."""
    with pytest.raises(InputError, match=r"crashes the program that reads such files \(SIGSEGV\), in a separate"):
        plain(b"\x80\x02})" + b"\x85" * 2**20 + b"K\x00s.", tmp_path / "a.plk")


# --- that nothing in the table can be led to run something


def test_calls_in_a_pickle_are_replaced_by_a_few_safe_functions():
    assert {type(known) for known in pickles.TABLE.values()} == {pickles.Known}
    made = {known.make for known in pickles.TABLE.values() if known.make is not None}
    assert {function.__module__ for function in made} == {"hotshot.files.pickles"}
    assert {text.split(".")[0] for text in pickles.TABLE} == {"numpy", "builtins", "_codecs", "collections"}


@pytest.mark.usefixtures("real_child")
def test_this_process_never_unpickles(tmp_path):
    """Python's pickle module is replaced by one that raises."""
    (tmp_path / "a.plk").write_bytes(pickle.dumps({0: [np.ones(3)]}))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("load", "loads", "Unpickler", "_Unpickler"):
            patch.setattr(pickle, name, None)
        got, _ = open_pickle(tmp_path / "a.plk").read()
    np.testing.assert_array_equal(got, np.ones((1, 3)))
