"""From raw inputs to answers in the shell: three commands, one reason, and one sentence for every mistake."""

from __future__ import annotations

import io
import json
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from hotshot import InputClassifier
from hotshot.files import Samples, write_features
from sentences import NEW, OLD, contents, labelled, read_table, sentences, write_table


@pytest.fixture
def here(tables, birds, tmp_path):
    """Tables, an encoder and a fitted model, in the folder that commands run in."""
    shutil.copytree(tables, tmp_path, dirs_exist_ok=True)
    birds.save(tmp_path / "birds.model")
    return tmp_path


def test_three_commands_and_a_reason(hotshot, here):
    shutil.rmtree(here / "birds.model")
    fitted = hotshot.succeeds(
        "fit", "--base", "old.csv", "--support", "new.csv", "--encoder", "words.py:embed", "-o", "birds.model"
    )
    assert fitted.stdout == "birds.model: 20 old classes and 3 new classes (9 samples).\n"
    hotshot.succeeds("predict", "birds.model", "inbox.csv", "-o", "answers.csv", "--reject", "0.05")
    asked, answers = read_table(here / "inbox.csv"), read_table(here / "answers.csv")
    added = ["class", "probability", "runner_up", "runner_up_probability", "outlier_score", "error"]
    assert list(answers[0]) == [*asked[0], *added]
    assert [[row[name] for name in asked[0]] for row in answers] == [list(row.values()) for row in asked]
    right = [row["class"] == (row["truth"] if row["truth"] != "strange" else "none of these") for row in answers]
    assert np.mean(right) > 0.7
    model = InputClassifier.load(here / "birds.model", trust=True)
    texts, is_rejected = [row["text"] for row in answers], [row["class"] == "none of these" for row in answers]
    assert [row["runner_up" if no else "class"] for row, no in zip(answers, is_rejected, strict=True)] == [
        *model.predict(texts)
    ]
    scores = [float(row["outlier_score"]) for row in answers]
    np.testing.assert_allclose(scores, model.outlier_score(texts), atol=1e-3)
    explained = hotshot("explain", "birds.model", sentences("wren", 1, seed=9)[0])
    assert any(f'"{text}"' in explained.stdout for text in sentences("wren", 3))


@pytest.mark.parametrize("n_old", [0, 3, 20])
def test_fit_says_what_is_off_without_enough_old_classes(hotshot, here, n_old):
    write_table(here / "few.csv", labelled(OLD[:n_old], 12))
    base = ("--base", "few.csv") if n_old else ()
    fitted = hotshot("fit", *base, "--support", "new.csv", "--encoder", "words.py:embed", "-o", "a.model")
    said = fitted.noted
    assert ("pass at least 20 old classes with 10 samples each" in said) == (n_old < 20)
    for words, is_off in (("predict --reject", n_old < 20), ("--batch", n_old == 0), ("suggest", n_old == 0)):
        assert (words in said) == is_off
    for command, refused in (("predict --reject 0.05", n_old < 20), ("suggest", not n_old)):
        found = hotshot(*command.split(), "a.model", "inbox.csv", "--encoder", "words.py:embed")
        assert (found.returncode == 2) == refused
        assert not refused or "base" in found.stderr


def test_classes_are_added_and_removed(hotshot, here):
    write_table(here / "more.csv", labelled(["gull"], 2))
    found = json.loads(hotshot("add", "birds.model", "more.csv", "--json").stdout)
    assert found["new_classes"] == sorted([*NEW, "gull"])
    assert found["samples"] == 11
    found = hotshot("remove", "birds.model", "wren", "lark")
    assert "20 old classes and 2 new classes (5 samples)." in found.stdout
    assert InputClassifier.load(here / "birds.model", trust=True).predict(["Gull0 gull1"]).tolist() == ["gull"]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_standard_input_goes_to_standard_output(hotshot, here, monkeypatch, form):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"Kite0 kite1\nWren3 wren4\n")))
    lines = hotshot("predict", "birds.model", "-", "--format", form).stdout.splitlines()
    if form == "jsonl":
        assert [json.loads(line)["class"] for line in lines] == ["kite", "wren"]
    else:
        assert [line.split(",")[:2] for line in lines[1:]] == [["Kite0 kite1", "kite"], ["Wren3 wren4", "wren"]]


def test_a_batch_is_classified_jointly(hotshot, here):
    hotshot.succeeds("predict", "birds.model", "inbox.csv", "--batch", "--reject", "0.05", "-o", "answers.csv")
    answers, model = read_table(here / "answers.csv"), InputClassifier.load(here / "birds.model", trust=True)
    texts = [row["text"] for row in answers]
    expected = model.predict(texts, reject=0.05, unknown="none of these", batch=True)
    assert [row["class"] for row in answers] == expected.tolist()
    probabilities = model.predict_proba(texts, batch=True).max(axis=1)
    given = [float(row["probability"]) if row["probability"] else None for row in answers]
    assert all(p is None or p == pytest.approx(q, abs=1e-4) for p, q in zip(given, probabilities, strict=True))
    assert not np.allclose(probabilities, model.predict_proba(texts).max(axis=1), atol=1e-4)


def test_explanations_as_html_and_json(hotshot, here):
    hotshot("explain", "birds.model", "inbox.csv", "--rows", "3", "--html", "page.html")
    page = (here / "page.html").read_text(encoding="utf-8")
    assert page.count("<article>") == 3
    assert all(row["text"] in page for row in read_table(here / "inbox.csv")[:3])
    found = json.loads(hotshot("explain", "birds.model", "Kite0 kite1", "--json").stdout)
    assert found["reasons"][0]["label"] == "kite"
    assert "`kite` borrows from" in hotshot("explain", "birds.model").stdout


def test_labels_in_the_queries_are_compared(hotshot, here):
    write_table(here / "queries.csv", labelled(NEW, 5, seed=7))
    found = hotshot("predict", "birds.model", "queries.csv", "-o", "answers.csv")
    agree = np.mean([row["class"] == row["label"] for row in read_table(here / "answers.csv")])
    assert f"{100 * agree:.1f}% of the 15 labels in the input agree" in found.stderr


FIT = "--encoder words.py:embed -o x.model"
MISTAKES = [
    ("predict birds.model missing.csv", "There is no file"),
    ("predict missing.model inbox.csv", "is not a model"),
    ("predict birds.model inbox.csv --text words", "has no column 'words'"),
    ("predict birds.model empty.csv", "is empty"),
    ("predict birds.model inbox.csv -o birds.model", "birds.model must end in"),
    ("predict birds.model inbox.csv -o old.csv", "exists: pass --force"),
    ("predict birds.model inbox.csv -o answers.xlsx", "must end in .csv"),
    ("predict birds.model inbox.csv --reject 2", "reject must be a number from 0.001 to 0.5"),
    ("predict birds.model answered.csv", "--prefix"),
    ("predict birds.model other.safetensors", "features from 'another'"),
    ("predict birds.model wide.npz", "features"),
    ("predict newer.model inbox.csv", "newer.model is a model of version 99"),
    ("predict birds.model inbox.csv --encoder missing.py:embed", "There is no file"),
    ("explain birds.model Kite --html old.csv", "exists: pass --force"),
    ("explain birds.model --html page.html", "--html and --reject need inputs"),
    ("fit --base old.csv --support new.csv", "features"),
    ("fit --base old.csv", "Pass --base OLD and --support NEW"),
    ("fit all.csv --base old.csv", "Pass --base OLD and --support NEW"),
    ("fit --support new.csv --encoder mini -o x.model", "minilm"),
    (f"fit --support bare.csv {FIT}", "no column of labels"),
    ("fit --support new.csv --encoder words.py:embed -o birds.model", "exists: pass --force"),
    (f"fit --base old.csv --support old.csv {FIT}", "is a base class and a new class"),
    (f"fit --support one.csv {FIT}", "at least 2 classes"),
    ("add birds.model old.csv", "240 samples cannot be used: "),
    ("add birds.model bare.csv", "no column of labels"),
    ("remove birds.model olda", "is not a new class of this model"),
    ("suggest birds.model named.csv -o next.csv", "named.csv already has a column 'reason': rename it."),
]


@pytest.mark.parametrize(("line", "said"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_a_mistake_is_one_sentence(hotshot, here, line, said):
    (here / "empty.csv").write_text("", encoding="utf-8")
    write_table(here / "bare.csv", [("Kite0",)], header=("text",))
    write_table(here / "one.csv", labelled(["kite"], 2))
    write_table(here / "answered.csv", [("Kite0", "kite")], header=("text", "class"))
    write_table(here / "named.csv", [("Kite0", "x")], header=("text", "reason"))
    shutil.copytree(here / "birds.model", here / "newer.model")
    description = here / "newer.model" / "model.json"
    content = json.loads(description.read_text(encoding="utf-8"))
    description.write_text(json.dumps({**content, "version": 99}), encoding="utf-8")
    write_features(here / "other.safetensors", Samples(np.ones((3, 64), np.float32), about={"extractor": "another"}))
    np.savez(here / "wide.npz", X=np.ones((3, 65)), y=["a", "b", "c"])
    before = contents(here)
    found = hotshot.refuses(*line.split())
    assert said in found
    assert found.startswith("hotshot: ")
    assert "hotshot: " not in found[9:]
    assert contents(here) == before
