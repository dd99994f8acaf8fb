"""Inputs that cannot be read: they keep their places in the answers, fits leave them out, and all are named at once."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sentences import NEW, labelled, read_table, sentences, write_problem, write_table

from hotshot import InputClassifier
from hotshot.errors import InputError, LeftOutWarning
from hotshot.inputs.answers import answer
from hotshot.inputs.encoding import AT_ONCE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_problem(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def model(folder):
    return InputClassifier(f"{folder}/words.py:embed", base=folder / "old.csv").fit(folder / "new.csv")


def test_an_inbox_with_bad_rows_is_answered(hotshot, model, tmp_path):
    model.save(tmp_path / "a.model")
    texts = [*sentences("kite", 300), "", *sentences("wren", 3), "  "]
    write_table(tmp_path / "inbox.csv", [(i, text) for i, text in enumerate(texts)], header=("ticket", "text"))
    found = hotshot("predict", "a.model", "inbox.csv", "-o", "answers.csv", "--reject", "0.05")
    assert found.returncode == 0, found.stderr
    assert "303 answers" in found.stderr
    assert "2 of 305 inputs were not read: see column error." in found.stderr
    rows = read_table(tmp_path / "answers.csv")
    assert [row["text"] for row in rows] == texts
    assert [i for i, row in enumerate(rows) if row["error"]] == [300, 304]
    assert (rows[300]["class"], rows[300]["probability"], rows[300]["error"]) == ("", "", "it has no text")
    alone = model.predict([text for text in texts if text.strip()], reject=0.05, unknown="none of these").tolist()
    assert [row["class"] for row in rows if not row["error"]] == alone
    jointly = hotshot("predict", "a.model", "inbox.csv", "--batch", "--format", "jsonl")
    lines = [json.loads(line) for line in jointly.stdout.splitlines()]
    assert [i for i, row in enumerate(lines) if row["class"] is None] == [300, 304]


@pytest.mark.parametrize(
    ("texts", "strict", "said"),
    [
        (
            ["Kite0", "", "Wren0", " "],
            ["--strict"],
            "2 of 4 inputs of inbox.csv cannot be read: row 2 (it has no text), row 4 (it has no text)",
        ),
        (["", " "], [], "2 of 2 inputs of inbox.csv cannot be read"),
    ],
)
def test_an_inbox_that_is_refused_lists_what_is_wrong_and_writes_nothing(hotshot, model, tmp_path, texts, strict, said):
    model.save(tmp_path / "a.model")
    write_table(tmp_path / "inbox.csv", [(text,) for text in texts], header=("text",))
    found = hotshot("predict", "a.model", "inbox.csv", "-o", "answers.csv", *strict)
    assert (found.returncode, said in found.stderr, (tmp_path / "answers.csv").exists()) == (2, True, False)


def test_a_fit_leaves_bad_rows_out_and_says_so(model, folder, tmp_path):
    old, new = labelled(["olda", "oldb"], 12), labelled(NEW, 3)
    write_table(tmp_path / "old.csv", [*old[:5], ("", "olda"), *old[5:]])
    write_table(tmp_path / "new.csv", [*new, (" ", "kite"), ("Kite", "")])
    encoder = f"{folder}/words.py:embed"
    with pytest.warns(LeftOutWarning) as caught:
        found = InputClassifier(encoder, base=tmp_path / "old.csv").fit(tmp_path / "new.csv")
    said = [str(one.message) for one in caught if one.category is LeftOutWarning]
    assert ["row 10 (it has no text)" in said[0], "1 of 25 inputs" in said[1], len(said)] == [True, True, 2]
    assert (len(found.model.support_labels_), found.unlabelled) == (9, 1)
    write_table(tmp_path / "old.csv", old)
    write_table(tmp_path / "new.csv", new)
    clean = InputClassifier(encoder, base=tmp_path / "old.csv").fit(tmp_path / "new.csv")
    np.testing.assert_array_equal(found.predict_proba(["Kite0 wren1"]), clean.predict_proba(["Kite0 wren1"]))
    write_table(tmp_path / "bad.csv", [*new, (" ", "kite")])
    with pytest.raises(InputError, match="1 of 10 inputs"):
        InputClassifier(encoder, strict=True).fit(tmp_path / "bad.csv")
    with pytest.warns(LeftOutWarning):
        found.add(["Gull0", "", "Gull1"], ["gull"] * 3)
    assert len(found.support.ids) == 11


def test_bad_elements_of_a_list_are_named_all_at_once(model):
    texts = ["Kite0"] * (AT_ONCE["texts"] + 1)
    texts[3], texts[-1] = "", None
    for method in (model.predict, model.predict_proba, model.outlier_score):
        with pytest.raises(InputError, match=r"row 4 \(it has no text\), row 257 \(it has no text\)"):
            method(texts)


def test_damaged_rows_of_a_table_of_features_are_bad_rows(hotshot, tmp_path):
    X = np.eye(4)[[0, 0, 1, 1, 2, 2]] + 0.1 * np.random.default_rng(0).normal(size=(6, 4))
    lines = ["label,a,b,c,d", *(f"{name},{','.join(map(str, x))}" for name, x in zip("uuvvww", X, strict=True))]
    damaged = ["u,1,2,3,4,5", "v,1", "w,1,2,x,4", "u,1,2,,4", "v,1,2,nan,4", ",1,2,3,4"]
    (tmp_path / "new.csv").write_text("\n".join([*lines, *damaged]) + "\n", encoding="utf-8")
    (tmp_path / "clean.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = hotshot("fit", "--support", "new.csv", "-o", "a.model")
    assert found.returncode == 0, found.stderr
    assert "5 of 12 inputs of new.csv cannot be read" in " ".join(found.stderr.split())
    assert "Ignored 1 row without a label." in found.stdout
    hotshot("fit", "--support", "clean.csv", "-o", "b.model")
    one, other = (InputClassifier.load(tmp_path / name).predict_proba(X) for name in ("a.model", "b.model"))
    np.testing.assert_array_equal(one, other)
    assert "5 of 12 inputs" in hotshot("fit", "--support", "new.csv", "-o", "c.model", "--strict").stderr
    hotshot("predict", "a.model", "new.csv", "-o", "answers.csv")
    errors = [bool(row["error"]) for row in read_table(tmp_path / "answers.csv")]
    assert errors == [False] * 6 + [True] * 5 + [False]


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy", "tuple", "generator"])
def test_columns_of_tables_are_lists_of_texts(model, library):
    texts = ["Kite0 kite1", "Wren0 wren1"]
    if library in ("pandas", "polars"):
        column = pytest.importorskip(library).Series(texts)
        if library == "pandas":
            column.index = [7, 3]
    else:
        column = {"numpy": np.array(texts), "tuple": tuple(texts), "generator": (text for text in texts)}[library]
    assert model.predict(column).tolist() == ["kite", "wren"]


@pytest.mark.parametrize("one", [7, b"text", None, {}, SimpleNamespace(columns=["text"], __iter__=lambda: iter("a"))])
def test_what_is_no_list_of_inputs_is_refused(model, one):
    with pytest.raises(InputError, match="must be a path, or a list or column of texts"):
        model.predict(one)


def test_ids_and_labels_that_are_no_characters_are_escaped(hotshot, model, folder, tmp_path):
    model.save(tmp_path / "words.model")
    rows = [{"id": "x\ud800", "text": "where is my card", "label": "\ud800"}, {"id": 2, "text": "card", "label": "b"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert hotshot("suggest", "words.model", "a.jsonl", "--json").returncode == 0
    fitted = hotshot("fit", "--support", "a.jsonl", "--encoder", f"{folder}/words.py:embed", "-o", "new.model")
    assert fitted.returncode == 0, fitted.stderr
    assert hotshot("explain", "new.model", "a.jsonl", "--html", "a.html").returncode == 0
    assert "\\ud800" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_one_text_is_answered(hotshot, model, tmp_path):
    model.save(tmp_path / "a.model")
    found = hotshot("predict", "a.model", "Kite0 kite1, please", "--format", "jsonl")
    assert json.loads(found.stdout)["class"] == "kite"
    assert "There is no file" in hotshot("predict", "a.model", "inbx.csv").stderr


@pytest.mark.parametrize(("out", "said"), [((), "Interrupted: 256 answers printed."), (("-o", "a.csv"), "nothing was")])
def test_an_interruption_says_what_was_written(hotshot, model, tmp_path, monkeypatch, out, said):
    model.save(tmp_path / "a.model")
    write_table(tmp_path / "inbox.csv", [("Kite0",)] * 3 * AT_ONCE["texts"], header=("text",))
    calls = []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return answer(*arguments, **options)

    monkeypatch.setattr("hotshot.inputs.answers.answer", interrupted)
    found = hotshot("predict", "a.model", "inbox.csv", *out)
    assert (found.returncode, said in found.stderr) == (130, True), found.stderr
    assert len(found.stdout.splitlines()) == (0 if out else 257)
    assert not (tmp_path / "a.csv").exists()
