"""Few modules of hotshot process a vector or a task; docs/architecture.md lists them."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import hotshot as package
from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier, read_features

ROOT = Path(package.__file__).parent


def modules_used(run):
    """Modules of hotshot whose functions `run` calls; imports do not count."""
    used = set()

    def record(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(str(ROOT)):
            used.add(str(Path(code.co_filename).relative_to(ROOT)))

    before = sys.getprofile()
    sys.setprofile(record)
    threading.setprofile(record)
    try:
        run()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return used


@pytest.fixture
def files(tmp_path):
    """Base classes of enough samples to choose settings on, and six others."""
    X, y = make_bank(36, 30, 8)
    np.savez(tmp_path / "base.npz", X=X[: 30 * 30], y=y[: 30 * 30])
    np.savez(tmp_path / "novel.npz", X=X[30 * 30 :], y=y[30 * 30 :])
    return tmp_path


def test_few_modules_process_a_vector_from_its_file_to_a_prediction(files):
    def fit_and_predict():
        base = BaseClasses.from_samples(*read_features(files / "base.npz"))
        X, y = read_features(files / "novel.npz")
        HOTClassifier(base).fit(X[::10], y[::10]).predict(X)

    fit_and_predict()
    used = modules_used(fit_and_predict)
    assert len(used) <= 21, " ".join(sorted(used))


def test_few_modules_process_a_task(files, hotshot):
    names = ("--base", files / "base.npz", "--novel", files / "novel.npz")
    # A first run imports what it needs, and the bodies of classes count as calls.
    hotshot("evaluate", *names, "--methods", "hot", "--tasks", 20, "--jobs", 1, "--out", files / "first")
    used = modules_used(lambda: hotshot("evaluate", *names, "--methods", "hot", "--tasks", 20, "--jobs", 1))
    assert len(used) <= 35, " ".join(sorted(used))
