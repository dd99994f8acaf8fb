"""Nothing that a command reads is overwritten by it, with or without --force; an old output is, with --force."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from hotshot import InputClassifier
from hotshot.files import write_features
from sentences import contents


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    X = np.repeat(np.eye(8), 4, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(32, 8))
    y = np.repeat([f"class {i}" for i in range(8)], 4)
    np.savez(folder / "old.npz", X=X[:24], y=y[:24])
    np.savez(folder / "new.npz", X=X[24:], y=y[24:])
    np.save(folder / "pool.npy", X)
    np.save(folder / "pool.labels.npy", y)
    for name in ("run/results.json", "tuned.json", "feat/.decoded/a/1.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    write_features(folder / "pool.csv", (X, y))
    InputClassifier(base=folder / "old.npz").fit(folder / "new.npz").save(folder / "a.model")
    return folder


@pytest.fixture
def here(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    os.symlink(tmp_path / "pool.csv", tmp_path / "linked.csv")
    os.symlink(tmp_path / "a.model", tmp_path / "linked.model")
    os.link(tmp_path / "pool.csv", tmp_path / "hard.csv")
    (tmp_path / "linked-run").mkdir()
    os.symlink(tmp_path / "tuned.json", tmp_path / "linked-run" / "results.json")
    shutil.copytree(tmp_path / "a.model" / "base.bank", tmp_path / "a.bank")
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "predict a.model pool.csv -o pool.csv",
        "predict a.model ./pool.csv -o linked.csv",
        "predict a.model linked.csv -o pool.csv",
        "predict a.model pool.csv -o a.model/model.json --format jsonl",
        "suggest a.model pool.csv -o pool.csv",
        "explain a.model pool.csv --html pool.csv",
        "explain linked.model pool.csv --html a.model/model.json",
        "export a.model a.model/model.json",
        "export linked.model a.model/inputs.json",
        "convert pool.csv linked.csv",
        "convert a.bank a.bank",
        "bank compact a.bank -o a.bank",
        "bank merge a.bank a.bank -o a.bank",
        "fit --base a.model/base.bank --support new.npz -o a.model",
        "fit --base old.npz --support new.npz -o old.npz",
        "predict a.model pool.npy -o pool.labels.npy --format csv",
        "predict a.model pool.npy -o hard.csv --encoder net.py:f@pool.csv",
        "convert pool.npy pool.labels.npy",
        "tune --base old.npz --val pool.csv --out pool.csv",
        "evaluate --base old.npz --novel new.npz --methods hot=run/results.json --out run",
        "evaluate --base old.npz --novel new.npz --methods hot=tuned.json --out linked-run",
    ],
)
def test_what_a_command_reads_is_not_overwritten(hotshot, here, line):
    before = contents(here)
    force = [] if line.startswith(("tune", "evaluate")) else ["--force"]
    assert "is both input and output" in hotshot.refuses(*line.split(), *force)
    assert contents(here) == before


@pytest.mark.parametrize(
    "line",
    [
        "predict a.model pool.npy -o out.csv",
        "suggest a.model pool.npy -o out.csv",
        "fit --base old.npz --support new.npz -o out.model",
    ],
)
def test_an_old_output_is_overwritten_if_asked(hotshot, here, line):
    hotshot.succeeds(*line.split())
    hotshot.refuses(*line.split())
    hotshot.succeeds(*line.split(), "--force")


def test_a_model_is_not_extended_by_a_file_that_it_would_delete(hotshot, here):
    shutil.copy(here / "new.npz", here / "a.model" / "more.npz")
    hotshot.refuses("add", "a.model", "a.model/more.npz")
    assert (here / "a.model" / "more.npz").exists()
