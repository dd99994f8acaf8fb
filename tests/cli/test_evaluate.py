"""`hotshot evaluate` and `hotshot tune` from files, as a person runs them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hotshot import InputClassifier
from hotshot.evaluation.data import load_base, load_data
from hotshot.files import read_features, write_features

SMALL = ["--ways", "3", "--queries", "4", "--tasks", "45", "--jobs", "1"]
TINY = ["--ways", "3", "--queries", "4", "--tasks", "2", "--jobs", "1", "--shots", "1"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("features")
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(14, 5))
    y = np.repeat([f"class-{c}" for c in range(14)], 12)
    X = np.repeat(centres, 12, axis=0) + 0.8 * rng.normal(size=(len(y), 5))
    np.savez(folder / "base.npz", X=X[:96], y=y[:96])
    np.savez(folder / "novel.npz", X=X[96:], y=y[96:])
    write_features(folder / "base.safetensors", (X[:96], y[:96]), about={"extractor": "DINO"})
    write_features(folder / "novel.safetensors", (X[96:], y[96:]), about={"extractor": "CLIP"})
    return folder


def data(files):
    return ["--base", files / "base.npz", "--novel", files / "novel.npz"]


@pytest.mark.parametrize(
    ("flags", "texts"),
    [
        ([*SMALL, "--methods", "hot,centroid-cl2n", "--shots", "1,3"], ("3-way-3-shot", "45 tasks", "beyond the mean")),
        ([*TINY, "--methods", "centroid-cl2n,bd-cspn", "--batch"], ("classified jointly", "bd-cspn classified")),
        ([*TINY, "--methods", "hot,lda", "--setting", "open"], ("3-way-1-shot, 2 tasks", "AUROC", "false alarms")),
        ([*TINY[2:], "--methods", "hot,lda", "--setting", "generalised"], ("6-way-1-shot", "harmonic", "base alone")),
        (["--ways", "2-4", "--shots", "1,1-3", "--queries", "dirichlet:1:2", "--tasks", "9", "--jobs", "1"],
         ("2 to 4 ways, 1 shot, 9 tasks", "2 to 4 ways, 1 to 3 shots, 9 tasks")),
    ],
    ids=["closed", "batch", "open", "generalised", "unequal"],
)  # fmt: skip
def test_evaluate_prints_tables_and_resumes_from_its_folder(hotshot, files, flags, texts):
    first = hotshot.succeeds("evaluate", *data(files), *flags)
    shown = first.said
    for text in (*texts, "±", "Run folder: runs"):
        assert all(word in shown for word in text.split()), text
    assert ("beyond the mean" in shown) == ("--setting" not in flags)
    second = hotshot("evaluate", *data(files), *flags)
    assert "tasks were already in" in second.stdout
    numbers = [[line for line in run.stdout.splitlines() if "±" in line] for run in (first, second)]
    assert numbers[0] == numbers[1]
    found = json.loads(hotshot("evaluate", *data(files), *flags, "--json").stdout)
    assert f"Run folder: {found['run']}" in first.stdout


def test_json_is_one_document_and_agrees_with_the_file_of_results(hotshot, files, tmp_path):
    out = tmp_path / "run"
    run = hotshot("evaluate", *data(files), *SMALL, "--methods", "hot,ridge", "--shots", "1", "--out", out, "--json")
    document = json.loads(run.stdout)
    assert document["results"] == json.loads((out / "results.json").read_text())["rows"]
    hot, ridge = document["results"]
    assert ridge["reference_minus_this"] == pytest.approx(hot["accuracy"] - ridge["accuracy"])
    assert ridge["calibration_error"] is None
    assert hot["transport"] == {"converged": 45 * 9}
    assert sum(hot["recall"].values()) / 6 == pytest.approx(hot["accuracy"], abs=0.05)


def test_control_c_keeps_finished_tasks_and_reports_them(files, tmp_path):
    out = tmp_path / "run"
    sizes = ["--ways", "3", "--queries", "4", "--tasks", "100000", "--shots", "1", "--jobs", "1"]
    command = [sys.executable, "-m", "hotshot", "evaluate", *data(files), *sizes, "--methods", "hot", "--out", out]
    process = subprocess.Popen(
        list(map(str, command)),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A shell starts what runs in its background deaf to Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        journal = out / "journal.jsonl"
        deadline = time.monotonic() + 60
        while not (journal.exists() and journal.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    sentence = r"Interrupted\. \S+ holds [\d,]+ finished tasks: rerun the command to resume"
    assert re.search(sentence, " ".join(errors.split()))
    assert "Traceback" not in errors


def test_an_extractor_named_in_only_one_file_is_accepted(files):
    base, novel = files / "base.safetensors", files / "novel.safetensors"
    assert load_base(base).extractor == "DINO"
    for pair in ((base, files / "novel.npz"), (files / "base.npz", novel)):
        load_data(*pair, None)


def test_features_of_another_extractor_get_one_note(hotshot, tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([f"class-{c}" for c in range(30)], 12)
    X = np.repeat(rng.normal(size=(30, 16)), 12, axis=0) + 0.8 * rng.normal(size=(len(y), 16))
    np.savez(tmp_path / "base.npz", X=X[:288], y=y[:288])
    np.savez(tmp_path / "novel.npz", X=100 * X[288:], y=y[288:])
    command = ("evaluate", *data(tmp_path), *TINY, "--methods", "ot-mean-cosine,centroid-cl2n")
    run, as_json = hotshot(*command), hotshot(*command, "--json")
    assert run.returncode == 0, run.stderr
    assert run.said.count("look unlike those of the base classes") == 1
    assert json.loads(as_json.stdout)["results"]
    assert "look unlike those of the base classes" in as_json.noted


def test_a_folder_of_another_request_is_refused(hotshot, files, tmp_path):
    common = ["evaluate", *data(files), *TINY[:-2], "--methods", "centroid", "--out", tmp_path / "run"]
    hotshot.succeeds(*common, "--shots", "1")
    assert "holds another request (it differs in shots)" in hotshot.refuses(*common, "--shots", "2")


@pytest.mark.parametrize("out", ["nowhere/tuned.json", ".", "base.npz/tuned.json"])
def test_tune_reports_first_that_its_result_cannot_be_written(hotshot, files, monkeypatch, out):
    monkeypatch.setattr("hotshot.evaluation.tune", lambda *arguments, **options: pytest.fail("the search came first"))
    said = hotshot.refuses(
        "tune", "--base", files / "base.npz", "--val", files / "novel.npz", *TINY, "--out", files / out
    )
    refusals = ("cannot be written", "is a folder: name a file", "is both input and output")
    assert any(refusal in said for refusal in refusals)


def test_tune_writes_parameters_that_evaluate_and_fit_take(hotshot, files, tmp_path):
    tuned = tmp_path / "tuned.json"
    run = hotshot.succeeds(
        "tune", "--base", files / "base.npz", "--val", files / "novel.npz", *SMALL, "--shots", "1",
        "--grid", "epsilon=0.01,0.1", "--grid", "mix=auto,0.2", "--out", tuned,
    )  # fmt: skip
    assert "gain: points over the defaults, paired." in run.said
    again = hotshot.succeeds("evaluate", *data(files), *TINY, "--methods", f"hot,tuned={tuned}")
    assert "tuned" in again.stdout
    sources = ("--base", files / "base.npz", "--support", files / "novel.npz")
    hotshot.succeeds("fit", *sources, "--settings", tuned, "-o", tmp_path / "tuned.model")
    wanted = json.loads(tuned.read_text())["parameters"]
    assert {name: InputClassifier.load(tmp_path / "tuned.model").model.get_params()[name] for name in wanted} == wanted


def test_the_same_command_resumes_with_the_same_features_and_starts_anew_with_others(hotshot, files, tmp_path):
    novel = tmp_path / "novel.npz"
    X, y = read_features(files / "novel.npz")
    command = ("evaluate", "--base", files / "base.npz", "--novel", novel, *TINY, "--methods", "hot")

    def run_with(features):
        np.savez(novel, X=features, y=y)
        found = hotshot.succeeds(*command)
        return found.stdout.split("Run folder: ")[1].strip(), "2 tasks were already in" in found.stdout

    first, resumed = run_with(X)
    assert not resumed
    assert run_with(X) == (first, True)
    assert run_with(X + 0.001)[0] != first
    assert run_with(X) == (first, True)


def test_a_single_task_has_no_interval_in_tables_and_in_json(hotshot, files):
    common = ["--ways", "3", "--queries", "4", "--tasks", "1", "--shots", "1", "--jobs", "1"]
    run = hotshot.succeeds("evaluate", *data(files), *common, "--methods", "hot,cosine")
    assert "3-way-1-shot, 1 task\n" in re.sub(r" +\n", "\n", run.stdout)
    assert "inf" not in run.stdout
    sets = ("--base", files / "base.npz", "--val", files / "novel.npz")
    tuned = hotshot("tune", *sets, *common, "--grid", "epsilon=0.01,0.1", "--json")
    found = json.loads(tuned.stdout, parse_constant=pytest.fail)
    assert found["candidates"][0]["accuracy_half_width"] is None
