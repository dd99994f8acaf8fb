"""Tables of a person's own: columns are found or named, rows are as written, and what is wrong is named."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotshot.errors import InputError, ParameterError
from hotshot.inputs.rows import BY_NAME, TEXTS, Columns, open_inputs
from hotshot.inputs.tables import open_table


def rows_of(path, columns=BY_NAME):
    opened = open_inputs(path, TEXTS, columns)
    batches = list(opened.batches(2))
    return opened, [x for b in batches for x in b.content], [x for b in batches for x in b.labels or []]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'text,label\n"one, two",x\nthree,y\n'),
        ("a.tsv", "label\tutterance\nx\tone, two\ny\tthree\n"),
        ("semicolons.csv", "Question;Category\none, two;x\nthree;y\n"),
        ("a.jsonl", '{"text": "one, two", "label": "x"}\n\n{"label": "y", "text": "three"}\n'),
        ("bom.csv", '\ufeffid,sentence,intent\r\n7,"one, two",x\r\n8,three,y\r\n'),
        ("named.csv", 'what,kind,more\n"one, two",x,1\nthree,y,2\n'),
    ],
)
def test_texts_and_labels_are_found_or_named(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    columns = Columns("what", "kind") if name == "named.csv" else BY_NAME
    opened, texts, labels = rows_of(path, columns)
    assert texts == ["one, two", "three"]
    assert labels == ["x", "y"]
    assert all(list(batch.columns) == list(opened.columns) for batch in opened.batches(1))


def test_lines_are_texts_and_a_lone_column_is_the_text(tmp_path):
    (tmp_path / "a.txt").write_text("one, two\n\nthree\n", encoding="utf-8")
    assert rows_of(tmp_path / "a.txt")[1:] == (["one, two", "three"], [])
    (tmp_path / "a.csv").write_text("words,label\none,x\n", encoding="utf-8")
    assert rows_of(tmp_path / "a.csv")[1:] == (["one"], ["x"])


def test_ids_are_those_of_the_table_or_numbers(tmp_path):
    (tmp_path / "a.csv").write_text("text,id\none,q7\ntwo,q8\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("text\none\ntwo\n", encoding="utf-8")
    ids = [[i for b in open_inputs(tmp_path / f, TEXTS).batches(1) for i in b.ids] for f in ("a.csv", "b.csv")]
    assert ids == [["q7", "q8"], ["0", "1"]]


@pytest.mark.parametrize(
    "content",
    ["one\ntwo, or three\n", 'id,text\n1,one\n2,"two, or three"\n', '{"text": "one"}\n{"text": "two, or three"}\n'],
)
def test_standard_input_is_a_table_json_lines_or_bare_lines(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content.encode())))
    assert rows_of(Path("-"))[1] == ["one", "two, or three"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "text,label\n", "no rows"),
        ("a.csv", "text,label\none,x\ntwo,y,z\n", "3 cells in line 3"),
        ("a.csv", "text,text\none,two\n", "two columns 'text'"),
        ("a.csv", "text,\none,two\n", "without a name"),
        ("a.csv", 'text,label\n"one,x\n', "not a valid table"),
        ("a.csv", "colour,size\nred,1\n", r"name it with columns=Columns\(text=…\) \(in the shell --text\)"),
        ("a.csv", "text,label,intent\none,x,y\n", r"name one with columns=Columns\(label=…\) \(in the shell --label\)"),
        ("a.csv", "text,label\n ,x\n", "no text in row 1"),
        ("a.jsonl", '{"text": "one"}\nnothing\n', "no JSON object in line 2"),
        ("a.jsonl", '{"text": "one"}\n{"text": "two", "more": 1}\n', "the key 'more' in line 2"),
        ("a.jsonl", '{"text": 7}\n', "no text in row 1"),
        ("a.csv", "text\none\0\n", "NUL character"),
        ("a.docx", "text\none\n", "not a table of texts"),
    ],
)
def test_an_invalid_table_is_one_sentence(tmp_path, name, content, said):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        rows_of(tmp_path / name)


def test_other_encodings_and_missing_files_are_refused(tmp_path):
    (tmp_path / "a.csv").write_bytes("text\nsmörgås\n".encode("latin-1"))
    with pytest.raises(InputError, match="save it as UTF-8"):
        rows_of(tmp_path / "a.csv")
    with pytest.raises(InputError, match="There is no file"):
        rows_of(tmp_path / "b.csv")


def test_a_missing_column_is_reported_with_the_closest_name(tmp_path):
    (tmp_path / "a.csv").write_text("utterances,label\none,x\n", encoding="utf-8")
    with pytest.raises(ParameterError, match=r"no column 'utterance'.*Did you mean 'utterances'"):
        open_inputs(tmp_path / "a.csv", TEXTS, Columns(text="utterance"))


def test_a_table_can_be_read_again(tmp_path):
    (tmp_path / "a.csv").write_text("text\none\ntwo\n", encoding="utf-8")
    table = open_table(tmp_path / "a.csv")
    assert list(table.rows()) == list(table.rows()) == [{"text": "one"}, {"text": "two"}]
