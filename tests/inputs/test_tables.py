"""Tables of a person's own: columns are found or named, rows are as written, and what is wrong is named."""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotshot.errors import InputError, ParameterError
from hotshot.files.tables import open_table
from hotshot.inputs.inputs import BY_NAME, TEXTS, Columns, open_inputs
from hotshot.inputs.samples import readable


def rows_of(path, columns=BY_NAME):
    opened = open_inputs(path, TEXTS, columns)
    batches = list(opened.batches(2))
    return opened, [x for b in batches for x in b.X], [x for b in batches for x in b.y or []]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'text,label\n"one, two",x\nthree,y\n'),
        ("a.tsv", "label\tutterance\nx\tone, two\ny\tthree\n"),
        ("semicolons.csv", "Question;Category\none, two;x\nthree;y\n"),
        ("a.jsonl", '{"text": "one, two", "label": "x"}\n\n{"label": "y", "text": "three"}\n'),
        ("bom.csv", '\ufeffid,sentence,intent\r\n7,"one, two",x\r\n8,three,y\r\n'),
        ("late.csv", '\n\ntext,label\n\n"one, two",x\n\nthree,y\n'),
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
    assert all({*opened.columns} <= {*batch.columns} for batch in opened.batches(1))


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
    [
        "one\ntwo, or three\n",
        'text\none\n"two, or three"\n',
        'id,text\n1,one\n2,"two, or three"\n',
        '{"text": "one"}\n{"text": "two, or three"}\n',
    ],
)
def test_standard_input_is_a_table_json_lines_or_bare_lines(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content.encode())))
    assert rows_of(Path("-"))[1] == ["one", "two, or three"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "", "is empty"),
        ("a.csv", "text,label\n", "no rows"),
        ("a.csv", "text,text\none,two\n", "two columns 'text'"),
        ("a.csv", "text,\none,two\n", "without a name"),
        ("a.csv", "colour,size\nred,1\n", r"name it with columns=Columns\(text=…\) \(in the shell --text\)"),
        ("a.csv", "text,label,intent\none,x,y\n", r"name one with columns=Columns\(label=…\) \(in the shell --label\)"),
        ("a.csv", 'text,label\nzero,x\n"one,x\n"two",y\n', "not a valid table"),
        ("a.txt", "\n \n\n", "no rows"),
        ("a.jsonl", 'nothing\n{"text": "one"}\n', "no JSON object in line 1"),
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
    assert list(table.rows()) == list(table.rows()) == [({"text": "one"}, ""), ({"text": "two"}, "")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "text,label\none,x\ntwo,y,z\nthree,x\n", "line 3 has 3 cells"),
        ("a.csv", "text,label\none,x\ntwo\nthree,x\n", "line 3 has 1 cells"),
        ("a.csv", 'text,label\none,x\n"two" or so,y\nthree,x\n', "line 3 is not valid"),
        ("a.csv", "text,label\none,x\n ,x\nthree,x\n", "no text"),
        ("a.jsonl", '{"text": "one"}\nnothing\n{"text": "three"}\n', "line 2 is not a JSON object"),
        ("a.jsonl", '{"text": "one"}\n{"text": "two", "more": 1}\n{"text": "three"}\n', "the key 'more'"),
        ("a.jsonl", '{"text": "one"}\n{"text": 7}\n{"text": "three"}\n', "no text"),
        ("a.jsonl", '{"text": "one"}\n{"text": null}\n{"text": "three"}\n', "no text"),
        ("a.jsonl", '{"text": "one"}\n{"text": "\\ud800"}\n{"text": "three"}\n', "surrogate"),
    ],
)
def test_a_bad_row_stays_in_its_place_with_the_reason(tmp_path, name, content, said):
    (tmp_path / name).write_text(content, encoding="utf-8")
    rows = next(open_inputs(tmp_path / name, TEXTS).batches(10))
    assert [rows.X[row] for row in readable(rows)] == ["one", "three"]
    assert list(rows.errors) == [1]
    assert said in rows.errors[1]


def test_cells_are_as_long_as_a_letter_may_be(tmp_path):
    (tmp_path / "a.csv").write_text("text\n" + "word " * 100_000 + "\n", encoding="utf-8")
    assert len(rows_of(tmp_path / "a.csv")[1][0]) == 500_000


def test_many_columns_take_no_time_that_grows_with_their_square(tmp_path):
    names = [f"c{i}" for i in range(40_000)]
    (tmp_path / "a.csv").write_text(f"text,{','.join(names)}\none{',1' * len(names)}\n", encoding="utf-8")
    start = time.perf_counter()
    assert rows_of(tmp_path / "a.csv")[1] == ["one"]
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize("columns", [Columns(text="words"), Columns(text="words", label="kind")])
def test_the_column_that_the_user_names_is_in_the_header_of_standard_input(monkeypatch, columns):
    content = "words\none\ntwo\n" if columns.label is None else "words;kind\none;x\ntwo;y\n"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content.encode())))
    opened, texts, _ = rows_of(Path("-"), columns)
    assert (opened.columns[0], texts) == ("words", ["one", "two"])
