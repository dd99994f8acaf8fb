"""Inputs that cannot be read: they keep their places in the answers, fits leave them out, and all are named at once."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from hotshot import InputClassifier
from hotshot.errors import InputError, LeftOutWarning
from hotshot.inputs.answers import answer
from hotshot.inputs.encoding import AT_ONCE
from sentences import NEW, labelled, read_table, sentences, write_table


def test_an_inbox_with_bad_rows_is_answered(hotshot, birds, tmp_path):
    birds.save(tmp_path / "a.model")
    texts = [*sentences("kite", 300), "", *sentences("wren", 3), "  "]
    write_table(tmp_path / "inbox.csv", [(i, text) for i, text in enumerate(texts)], header=("ticket", "text"))
    found = hotshot.succeeds("predict", "a.model", "inbox.csv", "-o", "answers.csv", "--reject", "0.05")
    assert "303 answers" in found.stderr
    assert "2 of 305 inputs were not read: see column error." in found.stderr
    rows = read_table(tmp_path / "answers.csv")
    assert [row["text"] for row in rows] == texts
    assert [i for i, row in enumerate(rows) if row["error"]] == [300, 304]
    assert (rows[300]["class"], rows[300]["probability"], rows[300]["error"]) == ("", "", "it has no text")
    alone = birds.predict([text for text in texts if text.strip()], reject=0.05, unknown="none of these").tolist()
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
def test_an_inbox_that_is_refused_lists_what_is_wrong(hotshot, birds, tmp_path, texts, strict, said):
    birds.save(tmp_path / "a.model")
    write_table(tmp_path / "inbox.csv", [(text,) for text in texts], header=("text",))
    found = hotshot("predict", "a.model", "inbox.csv", "-o", "answers.csv", *strict)
    assert (found.returncode, said in found.stderr, (tmp_path / "answers.csv").exists()) == (2, True, False)


def test_a_fit_leaves_bad_rows_out_and_says_so(birds, tables, tmp_path):
    old, new = labelled(["olda", "oldb"], 12), labelled(NEW, 3)
    write_table(tmp_path / "old.csv", [*old[:5], ("", "olda"), *old[5:]])
    write_table(tmp_path / "new.csv", [*new, (" ", "kite"), ("Kite", "")])
    encoder = f"{tables}/words.py:embed"
    with pytest.warns(LeftOutWarning) as caught:
        found = InputClassifier(encoder, base=tmp_path / "old.csv").fit(tmp_path / "new.csv")
    said = [str(one.message) for one in caught if one.category is LeftOutWarning]
    assert ["row 10 (it has no text)" in said[0], "1 of 25 inputs" in said[1], len(said)] == [True, True, 2]
    assert (len(found.model.support_labels_), found.unlabelled) == (9, 1)
    write_table(tmp_path / "old.csv", old)
    write_table(tmp_path / "new.csv", new)
    clean = InputClassifier(encoder, base=tmp_path / "old.csv").fit(tmp_path / "new.csv")
    np.testing.assert_array_equal(found.predict_proba(["Kite0 wren1"]), clean.predict_proba(["Kite0 wren1"]))


def test_bad_elements_of_a_list_are_named_all_at_once(birds):
    texts = ["Kite0"] * (AT_ONCE["texts"] + 1)
    texts[3], texts[-1] = "", None
    for method in (birds.predict, birds.predict_proba, birds.outlier_score):
        with pytest.raises(InputError, match=r"row 4 \(it has no text\), row 257 \(it has no text\)"):
            method(texts)


def test_damaged_rows_of_a_table_of_features_are_bad_rows(hotshot, tmp_path):
    X = np.eye(4)[[0, 0, 1, 1, 2, 2]] + 0.1 * np.random.default_rng(0).normal(size=(6, 4))
    lines = ["label,a,b,c,d", *(f"{name},{','.join(map(str, x))}" for name, x in zip("uuvvww", X, strict=True))]
    damaged = ["u,1,2,3,4,5", "v,1", "w,1,2,x,4", "u,1,2,,4", "v,1,2,nan,4", ",1,2,3,4"]
    (tmp_path / "new.csv").write_text("\n".join([*lines, *damaged]) + "\n", encoding="utf-8")
    (tmp_path / "clean.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = hotshot.succeeds("fit", "--support", "new.csv", "-o", "a.model")
    assert "5 of 12 inputs of new.csv cannot be read" in found.noted
    assert "Ignored 1 row without a label." in found.stdout
    hotshot("fit", "--support", "clean.csv", "-o", "b.model")
    one, other = (InputClassifier.load(tmp_path / name).predict_proba(X) for name in ("a.model", "b.model"))
    np.testing.assert_array_equal(one, other)
    assert "5 of 12 inputs" in hotshot("fit", "--support", "new.csv", "-o", "c.model", "--strict").stderr
    hotshot("predict", "a.model", "new.csv", "-o", "answers.csv")
    errors = [bool(row["error"]) for row in read_table(tmp_path / "answers.csv")]
    assert errors == [False] * 6 + [True] * 5 + [False]


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy", "tuple", "generator"])
def test_columns_of_tables_are_lists_of_texts(birds, library):
    texts = ["Kite0 kite1", "Wren0 wren1"]
    if library in ("pandas", "polars"):
        column = pytest.importorskip(library).Series(texts)
        if library == "pandas":
            column.index = [7, 3]
    else:
        column = {"numpy": np.array(texts), "tuple": tuple(texts), "generator": (text for text in texts)}[library]
    assert birds.predict(column).tolist() == ["kite", "wren"]


@pytest.mark.parametrize("one", [7, b"text", None, {}, SimpleNamespace(columns=["text"], __iter__=lambda: iter("a"))])
def test_what_is_no_list_of_inputs_is_refused(birds, one):
    with pytest.raises(InputError, match="must be a path, or a list or column of texts"):
        birds.predict(one)


def test_ids_and_labels_that_are_no_characters_are_escaped(hotshot, birds, tables, tmp_path):
    birds.save(tmp_path / "words.model")
    rows = [{"id": "x\ud800", "text": "where is my card", "label": "\ud800"}, {"id": 2, "text": "card", "label": "b"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    hotshot.succeeds("suggest", "words.model", "a.jsonl", "--json")
    hotshot.succeeds("fit", "--support", "a.jsonl", "--encoder", f"{tables}/words.py:embed", "-o", "new.model")
    hotshot.succeeds("explain", "new.model", "a.jsonl", "--html", "a.html")
    assert "\\ud800" in (tmp_path / "a.html").read_text(encoding="utf-8")


def test_one_text_is_answered(hotshot, birds, tmp_path):
    birds.save(tmp_path / "a.model")
    found = hotshot("predict", "a.model", "Kite0 kite1, please", "--format", "jsonl")
    assert json.loads(found.stdout)["class"] == "kite"


@pytest.mark.parametrize(("out", "said"), [((), "Interrupted: 256 answers printed."), (("-o", "a.csv"), "nothing was")])
def test_an_interruption_says_what_was_written(hotshot, birds, tmp_path, monkeypatch, out, said):
    birds.save(tmp_path / "a.model")
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
