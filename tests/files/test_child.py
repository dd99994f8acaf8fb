"""The process that reads pickles, .pt, .mat and Parquet: it leaves nothing behind, and may fail."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from children import forked_child, no_child, real_child  # noqa: F401
from hotshot.errors import InputError
from hotshot.files import child, read_features

X = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "a.plk").write_bytes(pickle.dumps({"cat": X, "dog": X + 1}))
    return tmp_path / "a.plk"


@pytest.fixture
def room(tmp_path, monkeypatch):
    """The folder for temporary files, empty."""
    (tmp_path / "room").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "room"))
    return tmp_path / "room"


@pytest.mark.usefixtures("real_child")
def test_modules_beside_the_data_are_never_imported(path, monkeypatch):
    """Neither from the current folder nor from PYTHONPATH."""
    for name in ("pickle", "numpy", "json", "scipy", "sitecustomize"):
        (path.parent / f"{name}.py").write_text(f"open({str(path.parent / 'marker')!r}, 'w')")
    (path.parent / "hotshot").mkdir()
    (path.parent / "hotshot" / "__init__.py").write_text("raise SystemExit")
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv("PYTHONPATH", str(path.parent))
    assert read_features("a.plk").y.tolist() == ["cat", "cat", "dog", "dog"]
    assert not (path.parent / "marker").exists()


@pytest.mark.usefixtures("real_child")
def test_the_child_starts_without_the_rest_of_hotshot(path, monkeypatch):
    """Importing all of hotshot takes seconds."""
    heavy = {"sklearn", "matplotlib", "torch", "rich", "hotshot.classifiers", "scipy", "pyarrow"}
    marker = path.with_suffix(".loaded")
    tell = f"open({str(marker)!r}, 'w').write(' '.join({heavy} & set(sys.modules)))"
    monkeypatch.setattr(child, "_START", child._START + tell)
    read_features(path)
    assert marker.read_text() == ""


@pytest.mark.parametrize("content", [None, b"cos\nsystem\n(Vtrue\ntR.", b"\x80\x02})" + b"\x85" * 2**20 + b"K\x00s."])
@pytest.mark.usefixtures("real_child")
def test_nothing_is_left_behind(path, room, content):
    if content is None:
        file = read_features(path)
        # What was mapped is there although its file is gone.
        np.testing.assert_array_equal(file.X, np.concatenate([X, X + 1]))
    else:
        path.write_bytes(content)
        with pytest.raises(InputError):
            read_features(path)
    assert not list(room.iterdir())


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-signal.SIGSEGV, r"crashes the program that reads such files \(SIGSEGV\)"),
        (-signal.SIGABRT, r"\(SIGABRT\)"),
        (-signal.SIGKILL, "the system stopped the reader"),
        (-signal.SIGXCPU, "takes more than 60 seconds"),
        (3, r"cannot be read \(exit code 3\)"),
        (0, r"cannot be read \(exit code 0\)"),
    ],
)
@pytest.mark.usefixtures("forked_child")
def test_every_end_of_a_child_is_one_sentence(path, room, monkeypatch, code, message):
    def end(request):
        (Path(request.folder) / "errors").touch()
        return code

    monkeypatch.setattr(child, "run", end)
    with pytest.raises(InputError, match=message) as caught:
        read_features(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).endswith(".")
    assert not list(room.iterdir())


@pytest.mark.usefixtures("real_child")
def test_a_python_that_cannot_be_started_is_one_sentence(path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(path.parent / "nowhere"))
    with pytest.raises(InputError, match="cannot be started: No such file"):
        read_features(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.usefixtures("forked_child")
def test_a_full_disk_is_reported_with_the_remedy(path, monkeypatch):
    run = child.run

    def full(request):
        os.symlink("/dev/full", Path(request.folder) / "tensors")
        return run(request)

    monkeypatch.setattr(child, "run", full)
    with pytest.raises(InputError, match=r"No space left on device: set TMPDIR"):
        read_features(path)
