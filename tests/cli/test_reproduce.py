"""`hotshot reproduce`: the paper by one command, from an embedded bank or the user's own files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from conftest import make_bank
from hotshot.evaluation import tuning
from hotshot.paper import EXPERIMENTS, load_findings, transport

pytestmark = pytest.mark.usefixtures("few_explored_tasks")


@pytest.fixture
def files(tmp_path):
    X, y = make_bank(14, 24, 6, spread=0.7)
    X = X - X.min()
    for name, rows in (("base", y < 6), ("novel", y >= 6)):
        np.savez(tmp_path / f"{name}.npz", X=X[rows], y=[f"class {c}" for c in y[rows]])
    return ["--base", "base.npz", "--novel", "novel.npz"]


def test_every_experiment_is_listed(hotshot):
    run = hotshot.succeeds("reproduce", "--list")
    assert all(name in run.stdout for name in EXPERIMENTS)
    assert list(EXPERIMENTS) == [
        "accuracy", "costs", "backbones", "retrieved", "generated", "cross-domain", "speed", "histogram",
        "toy-weights", "plan", "cost", "nearest", "sample-weights", "tsne",
    ]  # fmt: skip


def test_the_whole_paper_is_reproduced_from_two_files(hotshot, files, tmp_path, monkeypatch):
    monkeypatch.setattr(transport, "PER_CLASS", 20)
    monkeypatch.setattr(tuning, "DEFAULT_GRID", {"epsilon": [0.01, 0.05]})
    X, y = make_bank(6, 24, 6, seed=5, spread=0.7)
    np.savez(tmp_path / "val.npz", X=X - X.min(), y=[f"val {c}" for c in y])
    flags = [*files, "--tasks", "2", "--queries", "5", "--jobs", "1", "--name", "miniImageNet", "--val", "val.npz"]
    flags += ["--other", "miniImageNet=base.npz,novel.npz,Conv4"]
    hotshot.succeeds("reproduce", "--all", *flags)
    for name, experiment in EXPERIMENTS.items():
        found = load_findings(tmp_path / "reproduction" / name)
        assert found["title"] == experiment.title
        assert found["about"]["tasks"] == 2
        for figure in found["figures"]:
            for suffix in ("svg", "png"):
                assert (tmp_path / "reproduction" / name / f"{figure}.{suffix}").stat().st_size > 1000
    page = (tmp_path / "reproduction" / "report.html").read_text(encoding="utf-8")
    assert all(experiment.title in page for experiment in EXPERIMENTS.values())
    tables = load_findings(tmp_path / "reproduction" / "costs")["tables"]
    published = {"mean": 68.57, "half_width": 0.55, "published": True, "signed": False, "places": 2}
    assert tables[0]["rows"][0][3] == published
    accuracies, backbones = (
        [row[0] for row in load_findings(tmp_path / "reproduction" / name)["tables"][0]["rows"]]
        for name in ("accuracy", "backbones")
    )
    assert accuracies[:2] == ["H-OT", "H-OT tuned on validation classes"]
    assert "Conv4" in backbones
    again = hotshot("reproduce", "costs", *flags, "--json")
    assert json.loads(again.stdout)[0]["tables"] == tables


@pytest.mark.usefixtures("one_setting_to_try")
def test_an_embedded_bank_has_its_own_ways_and_fewer_tasks(hotshot):
    run = hotshot.succeeds("reproduce", "nearest", "--bank", "omniglot")
    assert "40 tasks per evaluation instead of 2000" in run.stdout
    assert "20-way-1-shot task of omniglot" in run.stdout


def test_feature_sets_with_the_same_title_are_refused(hotshot, files):
    for named, other, message in (
        (("--name", "birds"), "birds=base.npz,novel.npz", "got 'birds' twice"),
        (("--name", "birds", "--backbone", "Conv4"), "birds=base.npz,novel.npz,Conv4", "got 'birds, Conv4' twice"),
    ):
        assert message in hotshot.refuses("reproduce", "backbones", *files, *named, "--other", other)


def test_a_folder_of_other_features_or_of_another_size_is_refused(hotshot, files, tmp_path):
    flags = ["reproduce", "nearest", "--tasks", "3", "--queries", "5", "--jobs", "1"]
    hotshot.succeeds(*flags, *files)
    page = (tmp_path / "reproduction" / "report.html").read_bytes()
    (tmp_path / "moved.npz").write_bytes((tmp_path / "novel.npz").read_bytes())
    np.savez(tmp_path / "other.npz", X=np.arange(240.0).reshape(40, 6) % 7, y=np.repeat(list("abcdefgh"), 5))
    for others, what in (
        (["--base", "base.npz", "--novel", "other.npz", "--name", "novel"], "features"),
        (["--base", "base.npz", "--novel", "moved.npz"], "data"),
        ([*files, "--seed", "1"], "seed"),
    ):
        refused = f"reproduction holds another request (it differs in {what})"
        assert refused in hotshot.refuses(*flags, *others)
    assert (tmp_path / "reproduction" / "report.html").read_bytes() == page
    # Features that have moved are the same ones, and more experiments join those that are there.
    hotshot.succeeds("reproduce", "cost", *flags[2:], "--base", "base.npz", "--novel", "moved.npz", "--name", "novel")
    source = json.loads((tmp_path / "reproduction" / "run.json").read_text())["source"]
    assert source["novel"].endswith("moved.npz")


def test_a_folder_that_cannot_be_written_is_reported_first(hotshot, files, tmp_path):
    flags = ["reproduce", "nearest", *files, "--tasks", "3", "--out"]
    for out, message in (("base.npz", "base.npz is a file, not a folder"), ("base.npz/x", "is a file, not a folder")):
        assert message in hotshot.refuses(*flags, out)
    (tmp_path / "paper").mkdir()
    (tmp_path / "paper" / "report.html").write_text("mine")
    assert "report.html exists and is not a report" in hotshot.refuses(*flags, "paper")
    assert not list((tmp_path / "paper").glob("*/findings.json"))
