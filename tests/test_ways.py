"""The ways that docs/architecture.md describes are short: how many modules of hotshot a vector and a table pass."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import hotshot as package
from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier, read_features
from hotshot.cli.app import load_command

ROOT = Path(package.__file__).parent


def modules_passed(run):
    """Modules of hotshot in which a function is called while `run` runs; importing them does not count."""
    passed = set()

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(str(ROOT)):
            passed.add(str(Path(code.co_filename).relative_to(ROOT)))

    before = sys.getprofile()
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return passed


@pytest.fixture
def files(tmp_path):
    X, y = make_bank(14, 30, 8)
    np.savez(tmp_path / "base.npz", X=X[: 8 * 30], y=y[: 8 * 30])
    np.savez(tmp_path / "novel.npz", X=X[8 * 30 :], y=y[8 * 30 :])
    return tmp_path


def test_a_support_vector_passes_few_modules_from_its_file_to_a_prediction(files):
    def way():
        base = BaseClasses.from_samples(*read_features(files / "base.npz"))
        X, y = read_features(files / "novel.npz")
        HOTClassifier(base).fit(X[::10], y[::10]).predict(X)

    passed = modules_passed(way)
    assert len(passed) <= 19, " ".join(sorted(passed))


def test_a_table_passes_few_modules(files, hotshot):
    names = ("--base", files / "base.npz", "--novel", files / "novel.npz")
    load_command("evaluate")
    passed = modules_passed(lambda: hotshot("evaluate", *names, "--methods", "hot", "--tasks", 20, "--jobs", 1))
    assert len(passed) <= 33, " ".join(sorted(passed))
