"""Reading in a child: tests read in a fork, those that import `no_child` in this process, unless they ask for another.

A fork has its limits but starts many times faster than a Python of its own.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import pytest

from hotshot.files import child

# Before a fixture puts another in its place.
RUN = child.run


def use_real_child(monkeypatch):
    """From here on children are started as they are for users."""
    monkeypatch.setattr(child, "run", RUN)


def fork():
    """As os.fork, from a process whose other threads wait for work and are not missed."""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        # A crash of the child is expected: it is not shown. One that hangs ends.
        faulthandler.disable()
        signal.alarm(200)
    return process


def forked(request):
    """As `child.run`: the exit code of a process that answers the request within its limits."""
    importlib.import_module(request.module)
    importlib.import_module(request.library or request.module)
    process = fork()
    if process == 0:
        code = 1
        try:
            errors = os.open(f"{request.folder}/errors", os.O_WRONLY | os.O_CREAT)
            os.dup2(errors, 1)
            os.dup2(errors, 2)
            child.limit(request)
            child.answer(request)
            code = 0
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace"))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def in_this_process(request):
    """As `child.run`, without limits: for files that are sound, or refused before they do harm."""
    child.answer(request)
    return 0


def use_forks(monkeypatch):
    """From here on children have their limits but not their own Python."""
    monkeypatch.setattr(child, "run", forked)


@pytest.fixture
def real_child(monkeypatch):
    """Children are started as they are for users."""
    use_real_child(monkeypatch)


@pytest.fixture
def forked_child(monkeypatch):
    """Children have their limits but not their own Python."""
    use_forks(monkeypatch)


@pytest.fixture(autouse=True)
def no_child(request, monkeypatch):
    """Unless another of these fixtures is asked for."""
    if not {"real_child", "forked_child"} & set(request.fixturenames):
        monkeypatch.setattr(child, "run", in_this_process)


def crashes(cases, check):
    """The cases for which `check` ends the process it runs in; all run in one fork, and in a new one after a crash."""
    crashed = []
    cases = list(cases)
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder) / "at"
        first = 0
        while first < len(cases):
            process = fork()
            if process == 0:
                code = 1
                # What a crash leaves behind goes with this folder.
                tempfile.tempdir = folder
                try:
                    for number in range(first, len(cases)):
                        at.write_text(str(number))
                        check(cases[number])
                    code = 0
                except BaseException:
                    (Path(folder) / "failure").write_text(traceback.format_exc())
                finally:
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
            assert code <= 0, (Path(folder) / "failure").read_text()
            first = len(cases) if code == 0 else int(at.read_text()) + 1
            crashed += [] if code == 0 else [cases[first - 1]]
    return crashed
