"""The command line without the start of a process: `hotshot("evaluate", ...)` gives what a shell would."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from hotshot.cli import main


@pytest.fixture
def hotshot(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder; returncode, stdout and stderr as of a process."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["hotshot", *map(str, arguments)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        written = capsys.readouterr()
        return SimpleNamespace(returncode=code, stdout=written.out, stderr=written.err)

    return run
