"""Reading in a child: most tests read in this process, those with `forked_child` or `real_child` do not."""

from __future__ import annotations

import importlib
import os
import sys
import warnings

import pytest

from hotshot.files import child


def forked(request):
    """As `child.run`: the exit code of a process that answers the request within its limits."""
    module = importlib.import_module(f"hotshot.files.{request.reader}")
    sys.stdout.flush()
    with warnings.catch_warnings():
        # Threads of this process that wait for work are not missed.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if process == 0:
        code = 1
        try:
            errors = os.open(f"{request.folder}/errors", os.O_WRONLY | os.O_CREAT)
            os.dup2(errors, 1)
            os.dup2(errors, 2)
            child.limit(request)
            child.answer(request, module)
            code = 0
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}".encode(errors="replace"))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def in_this_process(request):
    """As `child.run`, without limits: for files that are sound, or refused before they do harm."""
    child.answer(request, importlib.import_module(f"hotshot.files.{request.reader}"))
    return 0


@pytest.fixture
def real_child():
    """Children are started as they are for users."""


@pytest.fixture
def forked_child(monkeypatch):
    """Children have their limits but not their own Python."""
    monkeypatch.setattr(child, "run", forked)


@pytest.fixture(autouse=True)
def no_child(request, monkeypatch):
    """Unless another of these fixtures is asked for."""
    if not {"real_child", "forked_child"} & set(request.fixturenames):
        monkeypatch.setattr(child, "run", in_this_process)
