"""Files of torch.save come out as they went in, without torch: archives and streams, views, every type of number."""

from __future__ import annotations

import io
import pickle
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from children import no_child  # noqa: F401
from hotshot.errors import InputError
from hotshot.files import open_features
from hotshot.files.torch_files import open_torch

torch = pytest.importorskip("torch")

X = torch.randn(6, 12, generator=torch.Generator().manual_seed(0))
Y = torch.tensor([3, 3, 3, 7, 7, 9])
LABELS = [3, 3, 3, 7, 7, 9]


@pytest.fixture(params=[True, False], ids=["archive", "stream"])
def read(request, tmp_path):
    """Save a value in one of the two formats and read it as features."""

    def run(value, part=None):
        path = tmp_path / "features.pt"
        torch.save(value, path, _use_new_zipfile_serialization=request.param)
        return open_features(path, part=part).read()

    run.archive = request.param
    return run


def check(got, features=X, labels=LABELS):
    features = features.numpy() if torch.is_tensor(features) else features
    assert got[0].dtype == features.dtype
    np.testing.assert_array_equal(got[0], features)
    assert got[1].tolist() == list(labels)


LAYOUTS = {
    "names": {"features": X, "labels": Y},
    "short names": {"X": X, "y": Y.int()},
    "text": {"X": X, "y": Y.tolist(), "extractor": "wrn"},
    "pair": (X, Y),
    "list": [X, Y],
    "classes": {3: X[:3], 7: X[3:5], 9: X[5:]},
    "lists of vectors": {3: list(X[:3]), 7: list(X[3:5]), 9: [X[5][None]]},
    "pooled": {3: [v[:, None, None] for v in X[:3]], 7: list(X[3:5]), 9: list(X[5:])},
    "parameter": {"X": torch.nn.Parameter(X), "y": Y},
    "NumPy": {"X": X.numpy(), "y": Y.numpy()},
    "one of each": {"X": X.numpy(), "y": Y, "size": X.size()},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(read, layout):
    check(read(LAYOUTS[layout]))


@pytest.mark.parametrize(
    "name", ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool", "uint16", "uint32"]
)
def test_numbers_of_every_type(read, name):
    if name.startswith("uint") and name != "uint8" and not read.archive:
        pytest.skip("torch itself cannot save these types in the old format")
    features = (10 * X.abs()).to(getattr(torch, name))
    check(read({"X": features, "y": Y}), features)


def test_brain_floats_become_single_floats_of_the_same_value(read):
    check(read({"X": X.bfloat16(), "y": Y}), X.bfloat16().float())


WIDE = torch.randn(20, 40, generator=torch.Generator().manual_seed(1))
VIEWS = {
    "rows": WIDE[3:9],
    "block": WIDE[3:9, 5:17],
    "steps": WIDE[3:15:2, ::3],
    "transposed": WIDE.t()[3:9, 5:17],
    "expanded rows": WIDE[:1].expand(6, 40),
    "expanded columns": WIDE[:6, :1].expand(6, 40),
    "one number": torch.tensor(2.5).expand(6, 40),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_read_as_what_they_show(read, view):
    check(read({"X": VIEWS[view], "y": Y}), VIEWS[view].contiguous())


def test_parts_are_chosen_by_key(read):
    value = {"base": {"X": X, "y": Y}, "novel": {1: X[:2]}}
    check(read(value, "base"))
    check(read(value, "novel"), X[:2], [1, 1])
    with pytest.raises(InputError, match="several sets of samples, 'base', 'novel'"):
        read(value)


def test_a_file_packed_again_with_compression_is_read(tmp_path):
    torch.save({"X": X, "y": Y}, tmp_path / "a.pt")
    with zipfile.ZipFile(tmp_path / "a.pt") as old, zipfile.ZipFile(tmp_path / "b.pt", "w", 8) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
    check(open_torch(tmp_path / "b.pt").read())


def test_rows_stay_in_the_file_until_they_are_asked_for(tmp_path):
    torch.save({"X": X, "y": Y}, tmp_path / "a.pt")
    source = open_torch(tmp_path / "a.pt")
    assert source.streams
    assert [len(part) for part, _ in source.batches(4)] == [4, 2]


def test_storages_within_storages_of_very_old_files(tmp_path):
    numbers = np.arange(20, dtype=np.float32)

    class Tensor:
        def __reduce__(self):
            return _rebuild_tensor, (Stored(), 1, (3, 4), (4, 1))

    class Stored:
        pass

    class Pickler(pickle._Pickler):
        def persistent_id(self, value):
            if isinstance(value, Stored):
                return ("storage", FloatStorage, "1", "cpu", 20, ("2", 5, 13))
            return None

    _rebuild_tensor = type("_rebuild_tensor", (), {"__module__": "torch._utils"})
    FloatStorage = type("FloatStorage", (), {"__module__": "torch"})
    file = io.BytesIO()
    for value in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}):
        pickle.dump(value, file, 2)
    pickler = Pickler(file, 2)
    pickler.save_global = lambda value, name=None: pickler.write(f"c{value.__module__}\n{value.__name__}\n".encode())
    pickler.dispatch = {**pickle._Pickler.dispatch, type: lambda self, value: pickler.save_global(value)}
    pickler.dump([Tensor(), [1, 2, 1]])
    pickle.dump(["1"], file, 2)
    file.write(struct.pack("<q", 20) + numbers.tobytes())
    (tmp_path / "a.pt").write_bytes(file.getvalue())
    check(open_torch(tmp_path / "a.pt").read(), numbers[6:18].reshape(3, 4), [1, 2, 1])


# --- what is wrong with a file, in one sentence


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X, "vectors without labels: store a dictionary"),
        ({"X": X}, "no labels"),
        ({"X": X, "y": Y[:2]}, "give one label per sample"),
        (torch.nn.Linear(2, 2), "asks for torch.nn.modules.linear.Linear, more than plain tensors"),
        (torch.nn.Linear(2, 2).state_dict(), "must hold two arrays"),
        ({"a": X.to_sparse()}, "_rebuild_sparse_tensor, more than plain tensors"),
        ({"X": X * 1j, "y": Y}, "ComplexFloatStorage"),
    ],
    ids=["alone", "no labels", "few labels", "module", "weights", "sparse", "complex"],
)
@pytest.mark.filterwarnings("ignore:Sparse invariant")
def test_values_that_are_not_features(read, value, message):
    with pytest.raises(InputError, match=message):
        read(value)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_torchscript_program_is_refused(tmp_path):
    torch.jit.trace(torch.nn.Linear(2, 2), torch.zeros(1, 2)).save(tmp_path / "a.pt")
    with pytest.raises(InputError, match="TorchScript program, not features"):
        open_torch(tmp_path / "a.pt")


@pytest.mark.parametrize("archive", [True, False], ids=["archive", "stream"])
def test_every_truncation_is_refused(tmp_path, archive):
    file = io.BytesIO()
    torch.save({"X": X[:, :2], "y": Y}, file, _use_new_zipfile_serialization=archive)
    data = file.getvalue()
    path = tmp_path / "a.pt"
    for length in range(1, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(InputError, match="again"):
            open_torch(path)


def test_torch_is_not_imported(tmp_path):
    torch.save({"X": X, "y": Y}, tmp_path / "a.pt")
    code = (
        "import sys; from hotshot.files.torch_files import open_torch; "
        f"open_torch({str(tmp_path / 'a.pt')!r}).read(); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- files that lie


def archive(tmp_path, members, method=zipfile.ZIP_STORED):
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def tensor_pickle(
    storage=b"torch\nFloatStorage\n", count=b"K\x06", offset=b"K\x00", size=b"K\x02K\x03\x86", stride=b"K\x03K\x01\x86"
):
    """The pickle of {'X': a tensor, 'y': [0, 1]}, in which parts can be exchanged for lies."""
    return (
        b"\x80\x02}(X\x01\x00\x00\x00Xctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagec"
        + storage
        + b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
        + count
        + b"tQ"
        + offset
        + size
        + stride
        + b"\x89ccollections\nOrderedDict\n)RtRX\x01\x00\x00\x00y](K\x00K\x01eu."
    )


NUMBERS = np.arange(6, dtype=np.float32)


def test_a_tensor_of_our_own_making_is_read(tmp_path):
    path = archive(tmp_path, {"a/data.pkl": tensor_pickle(), "a/data/0": NUMBERS.tobytes()})
    check(open_torch(path).read(), NUMBERS.reshape(2, 3), [0, 1])


@pytest.mark.parametrize(
    ("lies", "message"),
    [
        ({"offset": b"K\x01"}, "not a valid torch file, (strides is incompatible|buffer is too small)"),
        ({"offset": b"J\xff\xff\xff\xff"}, "is not in the file"),
        ({"stride": b"K\x04K\x01\x86"}, "strides is incompatible"),
        ({"stride": b"J\xfd\xff\xff\xffK\x01\x86"}, "invalid shape"),
        ({"size": b"J\xff\xff\xff\xffK\x03\x86"}, "invalid shape"),
        (
            {"size": b"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x40K\x03\x86", "stride": b"K\x00K\x01\x86"},
            "larger than any memory",
        ),
        ({"size": b"\x8a\x05\x00\x00\x00\x00\x01K\x03\x86", "stride": b"K\x00K\x01\x86"}, "more than 268 MB of memory"),
        ({"size": b"K\x02\x85"}, "invalid shape"),
        ({"count": b"K\x07"}, "24 bytes for 7 numbers"),
        ({"count": b"J\xff\xff\xff\xff"}, "is not in the file"),
        ({"storage": b"torch\nDoubleStorage\n"}, "24 bytes for 6 numbers of 8 bytes"),
        ({"storage": b"os\nsystem\n"}, "asks to call os.system"),
        ({"storage": b"torch\nload\n"}, "torch.load, more than plain tensors"),
        ({"storage": b"torch\nSize\n"}, "is not in the file"),
    ],
)
def test_tensors_that_lie_are_refused(tmp_path, lies, message):
    path = archive(tmp_path, {"a/data.pkl": tensor_pickle(**lies), "a/data/0": NUMBERS.tobytes()})
    with pytest.raises(InputError, match=message):
        open_torch(path)


@pytest.mark.parametrize(
    "state", [b"}X\x04\x00\x00\x00kindX\x06\x00\x00\x00objects", b"N}X\x05\x00\x00\x00countK\xffs\x86"]
)
def test_storages_cannot_be_changed_by_a_pickle(tmp_path, state):
    """BUILD sets attributes of most objects."""
    pickled = tensor_pickle().replace(b"tQ", b"tQ" + state + b"b")
    path = archive(tmp_path, {"a/data.pkl": pickled, "a/data/0": NUMBERS.tobytes()})
    with pytest.raises(InputError, match="modifies a storage"):
        open_torch(path)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a/data.pkl": tensor_pickle()}, "no member 'data/0'"),
        ({"a/data.pkl": tensor_pickle(), "b/data.pkl": b""}, "2 pickles of tensors"),
        ({"data/0": NUMBERS.tobytes()}, "0 pickles of tensors"),
        ({"a/data.pkl": tensor_pickle(), "a/../../x": b""}, "lead outside the archive"),
        ({"a/data.pkl": tensor_pickle(), "/etc/passwd": b""}, "lead outside the archive"),
        ({"a/data.pkl": tensor_pickle(), "a/byteorder": b"big"}, "big-endian"),
        ({"a/data.pkl": tensor_pickle(), "a/code/x.py": b""}, "TorchScript"),
        ({"a/data.pkl": tensor_pickle() + b"N.", "a/data/0": NUMBERS.tobytes()}, "bytes after its pickle"),
    ],
)
def test_archives_that_lie_are_refused(tmp_path, members, message):
    with pytest.raises(InputError, match=message):
        open_torch(archive(tmp_path, members))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(tmp_path):
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w") as file:
        for _ in range(2):
            file.writestr("a/data.pkl", tensor_pickle())
    with pytest.raises(InputError, match="members have the same name"):
        open_torch(path)


def test_a_bomb_is_not_unpacked(tmp_path):
    """A member that says it unpacks to a gigabyte is not even tried."""
    path = archive(tmp_path, {"a/data.pkl": tensor_pickle(), "a/data/0": bytes(1000)}, zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<I", 1000), struct.pack("<I", 2**30)))
    with pytest.raises(InputError, match=r"1\.07 GB, but a file of .* may unpack to at most 268 MB"):
        open_torch(path)


def test_a_member_that_unpacks_to_more_than_announced_is_refused(tmp_path):
    path = archive(tmp_path, {"a/data.pkl": tensor_pickle(), "a/data/0": bytes(1000)}, zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    assert data.count(struct.pack("<I", 1000)) == 2
    path.write_bytes(data.replace(struct.pack("<I", 1000), struct.pack("<I", 24)))
    with pytest.raises(InputError, match="Bad CRC-32"):
        open_torch(path)


def test_a_changed_number_shows_in_the_checksum(tmp_path):
    path = archive(tmp_path, {"a/data.pkl": tensor_pickle(), "a/data/0": NUMBERS.tobytes()})
    path.write_bytes(path.read_bytes().replace(NUMBERS.tobytes(), NUMBERS[::-1].tobytes()))
    with pytest.raises(InputError, match="Bad CRC-32"):
        open_torch(path)


def test_encrypted_members_are_named(tmp_path):
    path = archive(tmp_path, {"a/data.pkl": tensor_pickle(), "a/data/0": NUMBERS.tobytes()})
    data = bytearray(path.read_bytes())
    at = data.find(b"PK\x01\x02")
    data[at + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="encrypted"):
        open_torch(path)
