"""Runs read from their folders: the same as when they were made, or refused in one sentence."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from conftest import make_bank
from hotshot.bank import BaseClasses
from hotshot.classifiers import HOTClassifier
from hotshot.evaluation import evaluate, tune
from hotshot.evaluation.journal import decode, encode
from hotshot.evaluation.stored import load_run

X, LABELS = make_bank(n_classes=7, seed=4)
Y = np.array([f"class {label}" for label in LABELS])
BASE = BaseClasses.from_samples(*make_bank(n_classes=5, seed=5))
METHODS = {"hot": HOTClassifier(BASE), "centroid": KNeighborsClassifier(1)}
REQUEST = {"ways": 3, "shots": (1, 2), "queries": 4, "tasks": 45, "n_jobs": 1}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("stored") / "run"
    return out, evaluate(METHODS, X, Y, out=out, reference="centroid", about={"source": {"bank": "b"}}, **REQUEST)


@pytest.fixture
def run(whole, tmp_path):
    """A copy to be damaged."""
    return shutil.copytree(whole[0], tmp_path / "run")


def test_a_run_is_what_evaluate_returned(whole):
    out, found = whole
    stored = load_run(out)
    assert str(stored.evaluation) == str(found)
    assert stored.evaluation.rows() == found.rows()
    assert stored.evaluation.reference == "centroid"
    for k in (1, 2):
        for method in METHODS:
            assert (stored.evaluation[method, k].accuracies == found[method, k].accuracies).all()
    assert stored.about["source"] == {"bank": "b"}
    assert stored.about["versions"]["numpy"] == np.__version__
    assert stored.request["tasks"] == 45
    assert "request" not in stored.about


def test_what_is_said_about_a_run_decides_nothing(run):
    before = (run / "run.json").read_bytes()
    about = {"source": {"bank": "elsewhere"}, "versions": 3, "request": 4}
    evaluate(METHODS, X, Y, out=run, about=about, **REQUEST)
    assert (run / "run.json").read_bytes() == before
    evaluate(METHODS, X, Y, out=run.parent / "new", about=about, **{**REQUEST, "tasks": 2})
    assert load_run(run.parent / "new").request["tasks"] == 2
    assert load_run(run.parent / "new").about["versions"]["numpy"] == np.__version__


def lines(run):
    return (run / "journal.jsonl").read_bytes().splitlines(keepends=True)


def test_a_line_written_twice_counts_once(run, whole):
    (run / "journal.jsonl").write_bytes(b"".join([*lines(run), lines(run)[0]]))
    assert load_run(run).evaluation.rows() == whole[1].rows()


def change_record(line=0, **changes):
    def change(run):
        kept = lines(run)
        kept[line] = encode({**decode(kept[line].rstrip()), **changes})
        (run / "journal.jsonl").write_bytes(b"".join(kept))

    return change


def change_json(file, edit):
    def change(run):
        content = json.loads((run / file).read_text())
        edit(content)
        (run / file).write_text(json.dumps(content))

    return change


def change_lines(edit):
    return lambda run: (run / "journal.jsonl").write_bytes(b"".join(edit(lines(run))))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (change_lines(lambda old: old[1:]), "20 of its 180 tasks are missing: rerun the command"),
        (
            change_lines(lambda old: [old[0].replace(b"1", b"7"), *old[1:]]),
            r"20 of its 180 tasks are missing \(1 lines of its journal are damaged\)",
        ),
        (lambda run: (run / "run.json").unlink(), "is not a run folder"),
        (shutil.rmtree, "is not a run folder"),
        (lambda run: (run / "run.json").write_text("[]"), "is damaged"),
        (lambda run: (run / "run.json").write_text("[" * 100_000), "is damaged"),
        (lambda run: (run / "run.json").write_text("{}"), "cannot be read as a request"),
        (lambda run: (run / "results.json").unlink(), "has no results.json: rerun the command"),
        (lambda run: (run / "results.json").write_text("{}"), "is not a valid run"),
        (change_json("results.json", lambda c: c["rows"].clear()), "is not a valid run"),
        (change_json("results.json", lambda c: c["rows"][0].update(reference="x")), "reference must be one of"),
        (change_json("run.json", lambda c: c["request"].update(methods=[])), "cannot be read as a request"),
        (change_json("run.json", lambda c: c["request"].update(shots="all")), "is not a valid run"),
        (change_json("run.json", lambda c: c["request"].update(tasks=44)), "is not a valid run"),
        (change_json("run.json", lambda c: c["request"].update(batch=["nobody"])), "batch does not name its methods"),
        (change_json("run.json", lambda c: c["request"].update(setting="open")), "measures of another setting"),
        (change_json("run.json", lambda c: c["request"]["methods"].update(x={})), "90 of its 270 tasks are missing"),
        (change_json("run.json", lambda c: c["classes"].pop()), "is not a valid run"),
        (change_json("run.json", lambda c: c.update(classes=[1, 2])), "classes without names"),
        (change_record(line=1, counts=[[[0, 4, 4], [1, 4, 4], [2, 4, 4]]] * 20), "not run on the tasks of the others"),
        (change_record(statuses={"9": 1}), "is not a valid run"),
    ],
)  # fmt: skip
def test_damage_is_one_sentence(run, damage, words):
    damage(run)
    with pytest.raises(ValueError, match=words) as caught:
        load_run(run)
    assert str(run) in str(caught.value) or "reference" in words
    assert "\n" not in str(caught.value)


def test_a_round_of_a_search_is_a_run(tmp_path):
    request = {**REQUEST, "shots": 1, "tasks": 44}
    tune(BASE, X, Y, grid={"epsilon": [0.01, 0.05, 0.1]}, out=tmp_path / "t", **request)
    first, second = (load_run(tmp_path / "t" / f"round-{i}").evaluation for i in (1, 2))
    assert len(second.methods) < len(first.methods) == 4
    assert first.tasks + second.tasks == 44
