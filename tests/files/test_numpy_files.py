"""`.npz` and `.npy`: archives and headers that lie, bombs, pickles inside, and labels beside."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
import zipfile
import zlib

import numpy as np
import pytest

from bounded import assert_refused, at_most
from hotshot.errors import InputError, ParameterError
from hotshot.files import open_features, read_features

X = np.arange(12.0).reshape(4, 3)
Y = np.array(["b", "a", "b", "c"])


def npy(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def npy_of(header, numbers=b"", version=1):
    """An `.npy` array of any header, sound or not."""
    text = header.encode("latin-1")
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 if version == 1 else 4, "little") + text + numbers


def described(descr="'<f8'", order="False", shape="(4, 3)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "features.npz"


def write_zip(path, members, change=lambda infos: None, method=zipfile.ZIP_STORED):
    """An archive of members, whose table of contents is changed before it is written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, content in members:
                archive.writestr(name, content)
            change(archive.filelist)


GOOD = [("X.npy", npy(X)), ("y.npy", npy(Y))]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_read_in_batches(path, save, order):
    save(path, X=np.asarray(X, order=order), y=Y)
    source = open_features(path)
    np.testing.assert_array_equal(np.concatenate([part for part, _ in source.batches(3)]), X)


def test_only_what_is_asked_for_is_unpacked(path):
    np.savez_compressed(path, X=np.zeros((100_000, 8)), y=np.zeros(100_000, np.int8), other=np.zeros((500_000, 8)))
    with at_most(3 * 2**20):
        for part, _ in open_features(path).batches(4096):
            assert part.shape[1] == 8


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_of_the_header_is_read(path, version):
    write_zip(path, [("X.npy", npy_of(described() + "\n", X.tobytes(), version)), GOOD[1]])
    np.testing.assert_array_equal(read_features(path).X, X)


# --- hostile archives


class Evil:
    """What runs when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


def test_pickles_inside_are_never_run(path, tmp_path):
    marker = tmp_path / "marker"
    evil = np.array([Evil(marker)] * 4, dtype=object)
    for arrays in ({"X": X, "y": evil}, {"X": evil, "y": Y}, {"X": X, "y": Y, "about": evil}, {"a": evil, "b": X}):
        np.savez(path, **arrays)
        assert_refused(path, "of Python objects, a pickle, which hotshot never runs")
        assert not marker.exists()
    content = pickle.dumps(Evil(marker))
    for name, pretended in (("X.npy", content), ("X.pkl", content), ("X", content)):
        write_zip(path, [(name, pretended), *GOOD[1:]])
        assert_refused(path, "features")
        assert not marker.exists()
    for descr in ("'|O'", "'O'", "'|O8'", "[('a', '|O')]"):
        write_zip(path, [("X.npy", npy_of(described(descr, shape="(1,)"), content)), *GOOD[1:]])
        assert_refused(path, "Python objects|save plain numbers")
        assert not marker.exists()


def encrypt(infos):
    infos[0].flag_bits |= 1


@pytest.mark.parametrize(
    ("members", "options"),
    [([*GOOD, GOOD[0]], {}), (GOOD, {"change": encrypt}), (GOOD, {"method": zipfile.ZIP_BZIP2})],
    ids=["twice", "encrypted", "bzip2"],
)
def test_members_that_numpy_never_writes_are_refused(path, members, options):
    write_zip(path, members, **options)
    assert_refused(path, "that numpy never writes")


def test_members_that_overlap_are_refused(path):
    def repeat(infos):
        for i in range(1000):
            twin = copy.copy(infos[0])
            twin.filename = twin.orig_filename = f"class{i}.npy"
            infos.append(twin)

    write_zip(path, GOOD, repeat, zipfile.ZIP_DEFLATED)
    assert_refused(path, "that numpy never writes|not a valid .npz file")


def bomb(path, n_bytes):
    """Zeros packed a thousandfold, in the time of one block: full flushes make blocks that can be repeated."""
    shape = f"({n_bytes // 8}, 1)"
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    first = packer.compress(npy_of(described(shape=shape))) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    last = packer.flush()
    content = first + block * (n_bytes // 2**20) + last

    def declare(infos):
        infos[0].compress_type = zipfile.ZIP_DEFLATED
        infos[0].file_size = n_bytes + len(npy_of(described(shape=shape)))

    write_zip(path, [("X.npy", content), ("y.npy", npy(Y))], declare)


@pytest.mark.parametrize("gibibytes", [1, 40])
def test_bombs_are_refused_before_they_are_unpacked(path, gibibytes):
    bomb(path, gibibytes * 2**30)
    assert path.stat().st_size < gibibytes * 2**21
    assert_refused(path, "arrays of .* GB, but a file of .* may unpack to .* damaged or hostile")


@pytest.mark.parametrize("factor", [0, 0.5, 0.99, 1.01, 2, 1e6, 2**31])
def test_sizes_in_the_table_of_contents_that_lie_are_refused(path, factor):
    def lie(infos):
        infos[0].file_size = int(infos[0].file_size * factor)

    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        write_zip(path, GOOD, lie, method)
        assert_refused(path, "should hold|unpack to|ends inside|not a valid|does not hold")


@pytest.mark.parametrize("name", ["compress_size", "header_offset", "CRC", "compress_type"])
@pytest.mark.parametrize("value", [1, 5, 999, 65535])
def test_a_wrong_table_of_contents_is_refused(path, name, value):
    def lie(infos):
        setattr(infos[0], name, value)

    write_zip(path, GOOD, lie)
    assert_refused(path, "features.npz")


def test_a_changed_number_is_found_by_its_checksum(path):
    np.savez(path, X=X, y=Y)
    content = path.read_bytes()
    at = content.index(X.tobytes())
    path.write_bytes(content[: at + 5] + b"!" + content[at + 6 :])
    assert_refused(path, "Bad CRC-32")


def test_an_archive_torn_at_any_byte_is_refused(path):
    np.savez(path, X=X, y=np.array([1, 0, 1, 2], np.int8))
    whole = path.read_bytes()
    for end in range(0, len(whole), 3):
        path.write_bytes(whole[:end])
        with pytest.raises(InputError):
            read_features(path)


# --- hostile headers


HEADERS = [
    pytest.param(npy_of(described(shape="(4000000000000, 3)"), X.tobytes()), "should hold", id="huge shape"),
    pytest.param(npy_of(described(shape="(9" + "9" * 90 + ",)"), X.tobytes()), "should hold", id="more than 64 bits"),
    pytest.param(npy_of(described(shape="(0, 999999999999, 999999999999)")), "should hold", id="huge but empty"),
    pytest.param(npy_of(described(shape="(" + "1," * 40 + ")"), bytes(8)), "should hold", id="40 dimensions"),
    pytest.param(npy_of(described(shape="(5, 3)"), X.tobytes()), "should hold", id="one row too many"),
    pytest.param(npy_of(described("'<f3'")), "descr is not a valid dtype", id="unknown type"),
    pytest.param(npy_of(described("[('a', '<f8')]"), X.tobytes()), "plain numbers", id="structured"),
    pytest.param(npy_of("__import__('os').system('true')"), "malformed node", id="code"),
    pytest.param(b"\x93NUMPY\x09\x00" + bytes(90), "not a valid .npy file", id="version 9"),
]


@pytest.mark.parametrize(("content", "message"), HEADERS)
def test_false_headers_are_refused_in_archives(path, content, message):
    write_zip(path, [("X.npy", content), GOOD[1]])
    assert_refused(path, message)


# --- .npy and its labels


@pytest.mark.parametrize(
    ("name", "beside", "content"),
    [
        ("a.npy", "a.labels.npy", npy(Y)),
        ("a.npy", "a_labels.npy", npy(Y[:, None])),
        ("a.npy", "a.labels.txt", b"b\na\nb\r\nc"),
        ("a.npy", "a.labels.txt", b"label\nb\na\nb\nc\n"),
        ("a.npy", "a.labels.csv", b'"b"\na\nb\nc\n'),
        ("a.npy", "a.labels.csv", b"category\nb\na\nb\nc\n"),
        ("X.npy", "y.npy", npy(Y)),
        ("features.npy", "labels.npy", npy(Y.astype("S"))),
    ],
)
def test_labels_stand_beside(tmp_path, name, beside, content):
    np.save(tmp_path / name, X)
    (tmp_path / beside).write_bytes(content)
    found = read_features(tmp_path / name)
    np.testing.assert_array_equal(found.X, X)
    assert found.y.tolist() == Y.tolist()
    (tmp_path / beside).rename(tmp_path / f"else{(tmp_path / beside).suffix}")
    named = read_features(tmp_path / name, labels=tmp_path / f"else{(tmp_path / beside).suffix}")
    assert named.y.tolist() == Y.tolist()


def test_features_are_mapped_and_not_read(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((200_000, 8)))
    np.save(tmp_path / "a.labels.npy", np.zeros(200_000, np.int8))
    with at_most(2**21):
        X, _ = open_features(tmp_path / "a.npy").read()
    assert not X.flags.writeable


@pytest.mark.parametrize(
    ("beside", "content", "message"),
    [
        (None, b"", r"none of a\.labels\.npy, a_labels\.npy, a\.labels\.txt, a\.labels\.csv: write"),
        ("a.labels.npy", npy(Y[:3]), "transpose"),
        ("a.labels.npy", npy(np.eye(4)), r"shape \(4, 4\).*argmax"),
        ("a.labels.npy", b"<html>", "not a valid .npy file"),
        ("a.labels.txt", b"a\n\nb\nc\n", "no label for sample 2"),
        ("a.labels.txt", b"label\n", "no label for sample 1"),
        ("a.labels.txt", b"a\nb\xff\nc\nd\n", "not UTF-8"),
        ("a.labels.txt", b"a\nb\0\nc\nd\n", "NUL character in line 2"),
        ("a.labels.csv", b"a,1\nb,2\nc,3\nd,4\n", "must have one column"),
    ],
)
def test_invalid_labels_are_one_sentence(tmp_path, beside, content, message):
    np.save(tmp_path / "a.npy", X)
    if beside:
        (tmp_path / beside).write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_features(tmp_path / "a.npy")


def test_named_labels_that_cannot_be_are_one_sentence(tmp_path, path):
    np.save(tmp_path / "a.npy", X)
    np.savez(path, X=X, y=Y)
    for labels, message in (("nowhere.npy", "no file"), ("nowhere.txt", "no file"), ("a.pkl", "not a file of labels")):
        with pytest.raises(InputError, match=message):
            read_features(tmp_path / "a.npy", labels=tmp_path / labels)
    with pytest.raises(ParameterError, match=r"labels= is only for \.npy files"):
        read_features(path, labels=tmp_path / "a.npy")
    with pytest.raises(InputError, match="has no part 'base'"):
        read_features(f"{tmp_path / 'a.npy'}:base")


# --- labels from headers of no width, text that is none, and numbers that grow


@pytest.mark.parametrize("descr", ["'|S0'", "'<U0'", "'|S00'", "'>U0'", "'S'", "'U'"])
def test_labels_of_no_width_never_become_memory_of_the_program(tmp_path, path, descr):
    empty = npy_of(described(descr, shape="(4,)"))
    for name in ("y", "labels", "class_names", "about"):
        write_zip(path, [("X.npy", npy(X)), (f"{name}.npy", empty)])
        assert_refused(path, "of type .*: save plain numbers or strings")
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "a.labels.npy").write_bytes(empty)
    assert_refused(tmp_path / "a.npy", "of type .*: save plain numbers or strings")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("code", [0xD800, 0xDDDF, 0x110000, 0x7FFFFFFF, 0xFFFFFFFF])
def test_labels_beyond_unicode_are_one_sentence(tmp_path, path, order, code):
    words = npy_of(described(f"'{order}U2'", shape="(4,)"), np.array([97, code] * 4, f"{order}u4").tobytes())
    write_zip(path, [("X.npy", npy(X)), ("y.npy", words)])
    assert_refused(path, "labels in 'y' with invalid characters: copy or download it again")
    write_zip(path, [("X.npy", npy(X)), ("y.npy", npy(np.arange(4))), ("names.npy", words)])
    assert_refused(path, "labels in 'names' with invalid characters")
    write_zip(path, [("X.npy", npy(X)), ("y.npy", npy(Y)), ("about.npy", words)])
    assert read_features(path).about == {}
    np.save(tmp_path / "a.npy", X)
    (tmp_path / "a.labels.npy").write_bytes(words)
    assert_refused(tmp_path / "a.npy", "with invalid characters")


@pytest.mark.parametrize("dtype", ["u1", "b1", "i2", "f2"])
def test_numbers_that_grow_as_floats_are_counted_as_floats(path, dtype):
    grown = 4 if dtype == "f2" else 8
    rows = 2**28 // grown // 1024 + 1
    np.savez_compressed(path, X=np.zeros((rows, 1024), dtype), y=np.zeros(rows, "u1"))
    assert_refused(path, r"holds features, as floats, of 26.*, but a file of .* may unpack to at most 268 MB", 2**20)
