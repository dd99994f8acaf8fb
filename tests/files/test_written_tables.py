"""Written tables: whole in every format or not at all, and every value of a later row fits."""

from __future__ import annotations

import csv
import json
from contextlib import suppress

import pytest

from hotshot.errors import ParameterError
from hotshot.files.tables import format_of, writing

NONE = "none of these"
COLUMNS = {"text": ["one, two", "three"], "tags": [["a"], None], "class": ["x", NONE], "probability": [0.5, None]}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_written_answers_are_read_again(tmp_path, suffix):
    path = tmp_path / f"answers{suffix}"
    columns = COLUMNS
    with writing(path, format_of(path, None), ["probability"]) as write:
        write({name: own[:1] for name, own in columns.items()})
        write({name: own[1:] for name, own in columns.items()})
    if suffix == ".jsonl":
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert found == [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    elif suffix == ".parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        assert pq.read_table(path).to_pydict() == columns | {"tags": ['["a"]', None]}
    else:
        with open(path, newline="", encoding="utf-8") as file:
            found = list(csv.reader(file, delimiter="\t" if suffix == ".tsv" else ","))
        assert found == [list(columns), ["one, two", '["a"]', "x", "0.5"], ["three", "", NONE, ""]]


@pytest.mark.parametrize("later", ["n", 7, 2**70, [1, "a"], {"a": None}, "\ud800"])
def test_no_value_of_a_later_row_ends_a_parquet_file(tmp_path, later):
    pq = pytest.importorskip("pyarrow.parquet")
    with writing(tmp_path / "a.parquet", "parquet", ["probability"]) as write:
        write({"class": [NONE], "note": [None], "probability": [None]})
        write({"class": ["x"], "note": [later], "probability": [0.5]})
    found = pq.read_table(tmp_path / "a.parquet").to_pydict()
    written = later if later == "n" else "\\ud800" if later == "\ud800" else json.dumps(later)
    assert found == {"class": [NONE, "x"], "note": [None, written], "probability": [None, 0.5]}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_half_a_surrogate_pair_is_written_as_in_json(tmp_path, form):
    with writing(tmp_path / "a", form) as write:
        write({"path": ["\udce9.jpg"]})
    assert "\\udce9.jpg" in (tmp_path / "a").read_text(encoding="utf-8")


def test_nothing_is_left_of_a_file_that_was_not_finished(tmp_path):
    (tmp_path / "a.csv").write_text("before", encoding="utf-8")
    with suppress(KeyboardInterrupt), writing(tmp_path / "a.csv", "csv") as write:
        write({"class": ["x"] * 10000})
        raise KeyboardInterrupt
    assert (tmp_path / "a.csv").read_text(encoding="utf-8") == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"]


def test_invalid_formats_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="must end in"):
        format_of(tmp_path / "a.xlsx", None)
    with pytest.raises(ParameterError, match="must be one of"):
        format_of(None, "xlsx")
    with pytest.raises(ParameterError, match="cannot be written to standard output"):
        format_of(None, "parquet")
