"""Files of torch.save come out as they went in: archives and streams, views, every type of number."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections import defaultdict
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest

from children import forked_child, no_child, real_child  # noqa: F401
from hotshot.errors import InputError
from hotshot.files import open_features
from hotshot.files.child_readers import open_torch

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

    return run


def check(got, features=X, labels=LABELS):
    features = features.numpy() if torch.is_tensor(features) else features
    assert got[0].dtype == features.dtype
    np.testing.assert_array_equal(got[0], features)
    assert got[1].tolist() == list(labels)


LAYOUTS = {
    "text": {"X": X, "y": Y.tolist(), "extractor": "wrn"},
    "pair": (X, Y),
    "classes": {3: X[:3], 7: X[3:5], 9: X[5:]},
    "default dictionary": defaultdict(list, {3: list(X[:3]), 7: list(X[3:5]), 9: list(X[5:])}),
    "lists of vectors": {3: list(X[:3]), 7: list(X[3:5]), 9: [X[5][None]]},
    "pooled": {3: [v[:, None, None] for v in X[:3]], 7: list(X[3:5]), 9: list(X[5:])},
    "NumPy": {"X": X.numpy(), "y": Y.numpy()},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(read, layout):
    check(read(LAYOUTS[layout]))


def test_brain_floats_become_single_floats_of_the_same_value(read):
    check(read({"X": X.bfloat16(), "y": Y}), X.bfloat16().float())


VIEWS = {
    "steps": X.repeat(3, 3)[3:15:2, ::3],
    "transposed": X.repeat(1, 3).t()[3:9],
    "one number": torch.tensor(2.5).expand(6, 40),
}


@pytest.mark.parametrize("view", VIEWS)
def test_views_are_read_as_what_they_show(read, view):
    check(read({"X": VIEWS[view], "y": Y}), VIEWS[view].contiguous())


# --- what is wrong with a file, in one sentence


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (X, "vectors without labels: store a dictionary"),
        (torch.nn.Linear(2, 2), "asks for torch.nn.modules.linear.Linear, more than plain tensors"),
        (torch.nn.Linear(2, 2).state_dict(), "must hold two arrays"),
        ({"a": X.to_sparse()}, "no list of vectors in class 'a'"),
        ({"X": X * 1j, "y": Y}, "holds complex numbers"),
    ],
    ids=["alone", "module", "weights", "sparse", "complex"],
)
@pytest.mark.filterwarnings("ignore:Sparse invariant")
def test_values_that_are_not_features(read, value, message):
    with pytest.raises(InputError, match=message):
        read(value)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_a_torchscript_program_is_refused(tmp_path):
    torch.jit.trace(torch.nn.Linear(2, 2), torch.zeros(1, 2)).save(tmp_path / "a.pt")
    with pytest.raises(InputError, match="TorchScript"):
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


@pytest.mark.parametrize("version", [None, "2.5.1"])
def test_without_a_torch_that_is_safe_the_remedy_is_named(tmp_path, monkeypatch, version):
    """Before 2.6, weights_only=True could be led to run code (CVE-2025-32434)."""

    def installed(name):
        if version is None:
            raise PackageNotFoundError
        return version

    torch.save({"X": X, "y": Y}, tmp_path / "a.pt")
    monkeypatch.setattr("importlib.metadata.version", installed)
    with pytest.raises(InputError, match=r"needs PyTorch 2.6 or later: pip install 'hotshot\[images\]'"):
        open_torch(tmp_path / "a.pt")


@pytest.mark.usefixtures("real_child")
def test_this_process_never_loads_with_torch(tmp_path, monkeypatch):
    torch.save({"X": X, "y": Y}, tmp_path / "a.pt")
    monkeypatch.setattr(torch, "load", None)
    check(open_torch(tmp_path / "a.pt").read())


def test_flags_that_a_file_gives_a_type_are_ignored(tmp_path):
    """NumPy would believe that numbers are objects, and count references to them."""
    data = pickle.dumps({"X": X.numpy(), "y": LABELS}, 2)
    flags = b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00"
    assert data.count(flags) == 1
    with zipfile.ZipFile(tmp_path / "a.pt", "w") as file:
        file.writestr("a/version", b"3\n")
        file.writestr("a/data.pkl", data.replace(flags, flags[:-1] + b"\x3f"))
    got = open_torch(tmp_path / "a.pt").read()
    check(got)
    assert got[0].dtype.flags == 0


# --- files that lie


def archive(tmp_path, members, method=zipfile.ZIP_STORED):
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w", method) as file:
        for name, data in {"a/version": b"3\n", **members}.items():
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
    "lies",
    [
        {"offset": b"K\x01"},
        {"size": b"\x8a\x05\x00\x00\x00\x00\x01K\x03\x86", "stride": b"K\x00K\x01\x86"},
        {"storage": b"os\nsystem\n"},
    ],
    ids=str,
)
@pytest.mark.usefixtures("forked_child")
def test_tensors_that_lie_are_refused(tmp_path, lies):
    path = archive(tmp_path, {"a/data.pkl": tensor_pickle(**lies), "a/data/0": NUMBERS.tobytes()})
    with pytest.raises(InputError) as caught:
        open_torch(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (24, "another checksum|not a valid torch file"),
        (100_000, "another checksum|not a valid torch file"),
        # A bomb is not even tried.
        (2**30, r"1\.07 GB, but a file of .* may unpack to at most 268 MB"),
    ],
)
def test_a_member_of_another_size_than_announced_is_refused(tmp_path, told, message):
    path = archive(tmp_path, {"a/data.pkl": tensor_pickle(), "a/data/0": bytes(1000)}, zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    assert data.count(struct.pack("<I", 1000)) == 2
    path.write_bytes(data.replace(struct.pack("<I", 1000), struct.pack("<I", told)))
    with pytest.raises(InputError, match=message):
        open_torch(path)
