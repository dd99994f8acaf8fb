"""A sample of `make crash`: a command, killed while writing and run again, leaves the files of an undisturbed run."""

from __future__ import annotations

import importlib
import pickle
import sys
from pathlib import Path

import pytest

from hotshot.files.atomic import write_text

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are killed as on Linux")


@pytest.fixture(scope="module")
def crash():
    pytest.importorskip("torch", reason="the crash test of all commands imports them all")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield importlib.import_module("benchmarks.crash")


@pytest.fixture(scope="module")
def start(crash, tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    assert crash.in_fork(crash.prepare, folder, folder.with_suffix(".log")) == 0
    return folder


@pytest.mark.parametrize("command", ["evaluate", "convert .npy", "bank"])
def test_a_command_that_is_killed_loses_nothing(crash, start, tmp_path, command):
    points, kills, findings = crash.crash(command, crash.SCENARIOS[command], start, tmp_path / "root", 2)
    assert points > kills == 2
    assert not findings


def test_every_command_can_be_sent_to_another_process(crash):
    assert [*pickle.loads(pickle.dumps(crash.SCENARIOS))] == [*crash.SCENARIOS]


def write_in_place():
    Path("a").write_text("new content")


def remove_first():
    Path("a").unlink()
    write_text("a", "new")


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (write_in_place, {"a is written under its final name", "a has neither its old nor its new content"}),
        (remove_first, {"exit code 1 of the rerun", "a is missing for a while"}),
    ],
)
def test_faults_are_found(crash, tmp_path, run, expected):
    (tmp_path / "start").mkdir()
    for name in ("a", "b"):
        (tmp_path / "start" / name).write_text(f"old {name}")
    points, kills, findings = crash.crash("broken", run, tmp_path / "start", tmp_path / "root", None)
    assert points == kills > 2
    assert all(any(fault in finding for finding in findings) for fault in expected), findings
