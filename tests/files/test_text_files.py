"""CSV and TSV: which column is what, and what is wrong in which row."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import real_data
from hotshot.errors import InputError
from hotshot.files import open_features, read_features


@pytest.fixture
def save(tmp_path):
    def saved(text, suffix=".csv"):
        path = tmp_path / f"features{suffix}"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return saved


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("label,a,b\nx,1,2\ny,3,4\n", id="label first"),
        pytest.param("a,b,label\n1,2,x\n3,4,y\n", id="label last"),
        pytest.param("a,Class,b\n1,x,2\n3,y,4", id="between, no end of line"),
        pytest.param("a,b,species\n1,2,x\n3,4,y\n", id="the one column of text"),
        pytest.param("label,a,b\n\nx,1,2\n\n\ny,3,4\n\n", id="empty lines"),
        pytest.param("label, a, b\nx, 1, 2\n y, 3 , 4\n", id="blanks"),
        pytest.param("label,0,1\nx,1,2\ny,3,4\n", id="columns counted from 0"),
        pytest.param("1,2,label\n1,2,x\n3,4,y\n", id="columns counted from 1"),
        pytest.param(",a,b,label\n0,1,2,x\n1,3,4,y\n", id="index of pandas"),
        pytest.param("time,key,label\n1,2,x\n3,4,y\n", id="numbers with names of times and places"),
        pytest.param("time,label,height\n1,x,2\n3,y,4\n", id="a time among other numbers"),
        pytest.param("file,label,a,offset\nq,x,1,2\nr,y,3,4\n", id="an offset beside a file"),
    ],
)
def test_layouts_of_columns(save, text):
    found = read_features(save(text))
    assert found.X.tolist() == [[1, 2], [3, 4]]
    assert found.y.tolist() == ["x", "y"]
    tabs = read_features(save(text.replace(",", "\t"), ".tsv"))
    np.testing.assert_array_equal(tabs.X, found.X)
    assert tabs.y.tolist() == found.y.tolist()


@pytest.mark.parametrize(
    ("labels", "read"),
    [
        (["1", "-2", "0"], [1, -2, 0]),
        ([str(2**63), "0", "1"], [2**63, 0, 1]),
        (["1", "2", "x"], ["1", "2", "x"]),
        (["01", "2", "3"], ["01", "2", "3"]),
        (["1.0", "2", "3"], ["1.0", "2", "3"]),
        (["-0", "1", "2"], ["-0", "1", "2"]),
        (["9" * 30, "1", "2"], ["9" * 30, "1", "2"]),
        ([str(2**63), "-1", "2"], [str(2**63), "-1", "2"]),
        (["1_0", "1", "2"], ["1_0", "1", "2"]),
        (['"a,""b"""', '"new\nline"', "é"], ['a,"b"', "new\nline", "é"]),
    ],
)
def test_labels_are_integers_only_if_all_look_like_integers(save, labels, read):
    found = read_features(save("label,a\n" + "".join(f"{label},1\n" for label in labels)))
    assert found.y.tolist() == read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("\n\n", "no rows", id="blank"),
        pytest.param("label,a\n", "no samples", id="names only"),
        pytest.param("1,2\n3,4\n", "one column of labels and has none among 'column 1', 'column 2'", id="no label"),
        pytest.param("a,b\n1,2\n", "none among 'a', 'b': rename exactly one column to 'label'", id="names, no label"),
        pytest.param("label,y,a\nx,1,2\n", "has 'label', 'y' among", id="two labels"),
        pytest.param("label,a\nx,1\ny\n", "1 cells in row 2 of the data, but the first row has 2", id="short row"),
        pytest.param("label,a\nx,1\ny,2,3\n", "3 cells in row 2", id="long row"),
        pytest.param("label,a\nx,1\ny,two\n", "text, not numbers, in column 'a' .row 2: 'two'", id="word"),
        pytest.param("label,a\nx,1\ny,\n", "nothing, not numbers, in column 'a' .row 2", id="empty cell"),
        pytest.param("label,a\nx,1\0\n", "NUL character in line 2", id="NUL"),
        pytest.param(b"label,a\nx,1\n\xff\xfe,2\n", "not UTF-8", id="not UTF-8"),
        pytest.param('label,a\n"x,1\ny,2\n', "not a valid table at line 3", id="open quote"),
        pytest.param("label,a\nx," + "1" * 2**24 + "\n", "more than 16777216 characters in line 2", id="long line"),
        pytest.param("label,,a\nx,1,2\n", "no name for column 2", id="column without a name"),
        pytest.param(",label,a\n7,x,1\n9,y,2\n", "does not number the rows", id="unnamed numbers"),
        pytest.param("label\nx\n", "no column of numbers, only 'label'|no names", id="labels only"),
        pytest.param("label;a\nx;1\n", "separate columns by commas", id="semicolons"),
        pytest.param("label,a\nx,1e999\n", "NaN or infinity", id="overflow"),
    ],
)  # fmt: skip
def test_errors_name_row_and_column(save, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read_features(save(text))
    assert len(str(caught.value)) < 500


def test_a_cell_holds_as_many_numbers_as_a_line(save):
    numbers = ",".join(["0.123456789"] * 20_000)
    found = read_features(save(f'label,embedding\nx,"{numbers}"\ny,"{numbers}"\n'))
    assert found.X.shape == (2, 20_000)


def test_values_are_read_exactly_and_as_float32_if_that_is_exact(save):
    short = np.float32(0.1)
    assert read_features(save(f"label,a\nx,{float(short)!r}\n")).X.dtype == np.float32
    found = read_features(save("label,a,b\nx,0.1,1e300\n")).X
    assert found.dtype == np.float64
    assert found.tolist() == [[0.1, 1e300]]
    assert open_features(save("label,a\nx,1\n")).dtype == np.float64


def test_one_long_label_cannot_fill_the_memory(save):
    text = "label,a\n" + "x" * 100_000 + ",1\n" + "y,1\n" * 5_000
    with pytest.raises(InputError, match="labels of 2 GB"):
        open_features(save(text))


def test_questions_are_text_and_not_features():
    with pytest.raises(
        InputError, match=r"no column of numbers, only 'text', 'category': extract features from texts first"
    ):
        read_features(real_data("banking77/train.csv"))
