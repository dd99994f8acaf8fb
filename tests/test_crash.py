"""A sample of `make crash`: a command, killed while writing and run again, leaves the files of an undisturbed run."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest

from hotshot.files.atomic import write_text

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are killed as on Linux")


@pytest.fixture
def crash(monkeypatch):
    pytest.importorskip("torch", reason="the crash test of all commands imports them all")
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.crash")


@pytest.mark.parametrize("command", ["evaluate", "convert .npy", "bank, without exchange"])
def test_a_command_that_is_killed_loses_nothing(crash, tmp_path, command):
    (scenario,) = (scenario for scenario in crash.SCENARIOS if scenario.name == command)
    points, kills, findings = crash.crash(scenario, tmp_path / "root", 2)
    assert points > kills == 2
    assert not findings


def old():
    for name in ("a", "b"):
        Path(name).write_text(f"old {name}")


def write_in_place():
    Path("a").write_text("new content")


def write_too_late():
    with open(".a.part", "wb") as file:
        file.write(b"new content")
        file.flush()
        os.replace(".a.part", "a")
        os.fsync(file.fileno())


def add_to_what_is_there():
    write_text("a", Path("a").read_text() + " and new")
    write_text("b", "new b")


def remove_first():
    Path("a").unlink()
    write_text("a", "new")


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (write_in_place, {"a is written under its final name", "a has neither its old nor its new content"}),
        (write_too_late, {"gets its final name before it is on the disk"}),
        (add_to_what_is_there, {"after the rerun a differ from the undisturbed run"}),
        (remove_first, {"exit code 1 of the rerun", "a is missing for a while"}),
    ],
)
def test_faults_are_found(crash, tmp_path, run, expected):
    points, kills, findings = crash.crash(crash.Scenario("broken", old, run), tmp_path / "root", None)
    assert points == kills > 2
    assert all(any(fault in finding for finding in findings) for fault in expected), findings
