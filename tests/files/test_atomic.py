"""Files and folders appear whole or not at all, a folder has one writer at a time, and the dead leave nothing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import filelock
import numpy as np
import pytest

from children import fork
from hotshot.errors import InputError, RunError
from hotshot.files import read_features, write_features
from hotshot.files.atomic import (
    check_writable,
    held,
    locked,
    one_at_a_time,
    recover,
    replace_file,
    replace_folder,
    write_json,
    write_text,
)


def write_folder(path, text):
    with replace_folder(path, "marker.json", overwrite=True) as folder:
        write_text(folder / "text", text)
        write_text(folder / "marker.json", "{}")


def in_fork(work):
    """Run something in a fork of this process that is killed where it calls the function it is given."""
    process = fork()
    if not process:
        try:
            work(lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize("name", ["a.json", "a.folder", "x" * 200 + ".json", "[a]*.json"])
def test_leftovers_of_a_killed_process_are_removed_by_the_next_writer_of_that_name(tmp_path, name):
    def work(kill):
        if name.endswith(".folder"):
            with replace_folder(tmp_path / name, "marker.json", overwrite=True) as folder:
                write_text(folder / "text", "half")
                kill()
        with replace_file(tmp_path / name) as file:
            file.write(b"half")
            file.flush()
            kill()

    in_fork(work)
    assert len(list(tmp_path.iterdir())) == 1
    write_json(tmp_path / "other.json", {})
    assert len(list(tmp_path.iterdir())) == 2
    if name.endswith(".folder"):
        write_folder(tmp_path / name, "new")
    else:
        write_json(tmp_path / name, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "other.json"])


def test_unfinished_files_of_a_living_process_stay(tmp_path):
    with replace_file(tmp_path / "a") as first:
        first.write(b"first")
        write_text(tmp_path / "a", "second")
    assert (tmp_path / "a").read_text() == "first"
    with replace_folder(tmp_path / "b", "marker.json", overwrite=True) as folder:
        write_text(folder / "marker.json", "{}")
        write_folder(tmp_path / "b", "second")
    assert os.listdir(tmp_path / "b") == ["marker.json"]
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_folder_that_was_moved_away_by_a_dead_process_comes_back(tmp_path):
    path = tmp_path / "a"
    write_folder(path, "old")
    rename = type(path).rename

    def work(kill):
        type(path).rename = lambda self, target: kill() if target == path else rename(self, target)
        write_folder(path, "new")

    in_fork(work)
    assert not path.exists()
    assert (recover(path) / "text").read_text() == "old"
    write_folder(path, "new")
    assert (path / "text").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_a_living_process_has_moved_away_is_waited_for(tmp_path, monkeypatch):
    path = tmp_path / "a"
    write_folder(path, "old")
    rename, seen = type(path).rename, []
    reader = threading.Thread(target=lambda: seen.append((recover(path) / "text").read_text()))

    def look(self, target):
        if target == path:
            reader.start()
            time.sleep(0.1)
            assert not seen
        return rename(self, target)

    monkeypatch.setattr(type(path), "rename", look)
    write_folder(path, "new")
    reader.join()
    assert seen == ["new"]


# Pairs


def test_new_features_are_never_found_beside_old_labels(tmp_path, monkeypatch):
    X = np.arange(12.0).reshape(4, 3)
    write_features(tmp_path / "a.npy", (X, ["old"] * 4))
    replace, steps = type(tmp_path).replace, []

    def look(self, target):
        steps.append(target.name)
        found = sorted(name for name in os.listdir(tmp_path) if not name.startswith("."))
        assert found == ["a.npy"]
        with pytest.raises(InputError, match="has no file of labels beside it"):
            read_features(tmp_path / "a.npy")
        return replace(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(type(tmp_path), "replace", look)
        write_features(tmp_path / "a.npy", (X + 1, ["new"] * 4))
    assert steps == ["a.npy", "a.labels.npy"]
    found = read_features(tmp_path / "a.npy")
    assert found.X[0, 0] == 1
    assert found.y.tolist() == ["new"] * 4


def test_a_pair_that_does_not_fit_on_the_disk_leaves_the_old_one(tmp_path, monkeypatch):
    X = np.arange(12.0).reshape(4, 3)
    write_features(tmp_path / "a.npy", (X, ["old"] * 4))

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        write_features(tmp_path / "a.npy", (X + 1, ["new"] * 4))
    assert read_features(tmp_path / "a.npy").y.tolist() == ["old"] * 4
    assert len(list(tmp_path.iterdir())) == 2


# The disk


def test_files_and_their_names_are_forced_to_the_disk(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def note(descriptor):
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        fsync(descriptor)

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("only Linux says which file it is")
    monkeypatch.setattr(os, "fsync", note)
    write_text(tmp_path / "a", "text")
    assert [os.path.basename(path) for path in synced] == ["new0", tmp_path.name]
    synced.clear()
    write_folder(tmp_path / "b", "new")
    # Two files, each with its name; the folder; the name of the folder.
    assert [os.path.basename(path) for path in synced] == ["new0", "new", "new0", "new", "new", tmp_path.name]


# Names that cannot be written


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/a.json", "cannot be written: No such file"),
        ("file/a.json", "cannot be written: Not a directory"),
        ("folder", "is a folder: name a file"),
        ("x" * 300, "cannot be written: File name too long"),
    ],
)
def test_outputs_that_cannot_be_written_are_reported_before_the_work(tmp_path, name, message):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=message):
        check_writable(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


# Locks

HOLDER = """
import sys, time
from hotshot.files.atomic import locked
with locked(sys.argv[1]):
    print("locked", flush=True)
    time.sleep(60)
"""


def test_one_process_at_a_time_writes_to_a_folder_and_a_killed_one_lets_go(tmp_path):
    folder = tmp_path / "a" / "b"
    with subprocess.Popen([sys.executable, "-c", HOLDER, folder], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"locked\n"
        with pytest.raises(RunError, match=r"Another process is writing to the folder .*b: wait for it, or name"):
            locked(folder).__enter__()
        holder.kill()
    for _ in range(100):
        # The kernel takes the lock when it has ended the process.
        try:
            with locked(folder) as found:
                assert found == folder
            break
        except RunError:
            time.sleep(0.1)
    else:
        pytest.fail("the lock of a dead process is still there")


def test_everything_works_on_a_disk_without_locks(tmp_path, monkeypatch):
    def acquire(self):
        raise OSError(errno.ENOTSUP, "no locks here")

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    with locked(tmp_path), locked(tmp_path), held(tmp_path / "a"), one_at_a_time(tmp_path / "b"):
        write_text(tmp_path / "a", "text")
        write_folder(tmp_path / "b", "old")
        write_folder(tmp_path / "b", "new")
    assert sorted(os.listdir(tmp_path)) == [".lock", "a", "b"]


def test_a_name_is_held_by_one_at_a_time_and_leaves_no_file(tmp_path):
    with held(tmp_path / "a"), pytest.raises(RunError, match="Another process is writing to"), held(tmp_path / "a"):
        pass
    order = []

    def change(number):
        with one_at_a_time(tmp_path / "a"):
            order.append(number)
            time.sleep(0.05)
            order.append(number)

    threads = [threading.Thread(target=change, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert order[::2] == order[1::2]
    assert not os.listdir(tmp_path)
