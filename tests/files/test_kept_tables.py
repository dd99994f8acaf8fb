"""Tables of other programs: files, times, ids and texts beside the features are kept, and are never features."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from children import no_child  # noqa: F401
from hotshot.errors import InputError
from hotshot.files import Samples, open_features, read_features, write_features

X = np.array([[0.5, 1.5], [2.5, -3.0], [0.25, 7.0]], np.float32)
IDS = ["XC1.wav 0.0-3.0", "XC1.wav 3.0-6.0", "b/XC 2.wav 0.0-3.0"]
FILES, STARTS, ENDS = ["XC1.wav", "XC1.wav", "b/XC 2.wav"], ["0.0", "3.0", "0.0"], ["3.0", "6.0", "3.0"]


@pytest.fixture
def save(tmp_path):
    """Write a text and give its path."""

    def saved(text, name="a.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return saved


def table(head, *columns, separator=","):
    return "\n".join(separator.join(row) for row in [head, *zip(*columns, strict=True)]) + "\n"


FEATURES = [[str(x) for x in column] for column in X.T]
VECTORS = [f'"{a},{b}"' for a, b in X.tolist()]


@pytest.mark.parametrize(
    ("head", "columns", "name"),
    [
        (("file_path", "start", "end", "embedding"), (FILES, STARTS, ENDS, VECTORS), "birdnet.csv"),
        (("Filename", "Start (s)", "End (s)", "f0", "f1"), (FILES, STARTS, ENDS, *FEATURES), "a.csv"),
        (("f0", "recording", "f1", "Begin Time", "end"), (FEATURES[0], FILES, FEATURES[1], STARTS, ENDS), "a.csv"),
        (("start", "f0", "f1", "end", "file"), (STARTS, *FEATURES, ENDS, FILES), "a.tsv"),
    ],
)  # fmt: skip
def test_files_and_times_make_the_id(save, head, columns, name):
    path = save(table(head, *columns, separator="\t" if name.endswith("tsv") else ","), name)
    found = read_features(path, labelled=False)
    np.testing.assert_array_equal(found.X, X)
    assert found.y is None
    assert list(found.ids) == IDS
    kept = {values for values, column in zip(head, columns, strict=True) if column in (FILES, STARTS, ENDS)}
    assert set(found.columns) == kept | {"id"}
    assert [list(v) for n, v in found.columns.items() if n.lower().startswith("start")] in ([STARTS], [])
    with pytest.raises(InputError, match="must have one column of labels and has none"):
        read_features(path)


@pytest.mark.parametrize(("name", "role"), [("text", "texts"), ("Utterance", "texts"), ("weather", None)])
def test_another_column_of_text_is_kept_beside_labels_with_a_name(save, name, role):
    path = save(table(("label", name, "a", "b"), list("uvu"), ["so", '"a, b"', "ü"], *FEATURES))
    found = read_features(path)
    values = found.texts if role else found.columns[name]
    assert list(values) == ["so", "a, b", "ü"]
    np.testing.assert_array_equal(found.X, X)


def test_a_column_of_features_that_starts_with_a_word_is_not_lost(save):
    """A damaged number in the first row must not make a text of its column."""
    with pytest.raises(InputError, match="text in row 1 and a number in row 2 of column 'a'"):
        read_features(save("label,a,b\nx,oops,1\ny,2,3\n"))
    with pytest.raises(InputError, match="nothing, not numbers, in column 'a'"):
        read_features(save("label,a,b\nx,,1\ny,2,3\n"))


def test_birdnets_lines_without_names_are_read(save):
    path = save("0.0\t3.0\t0.5,1.5\n3.0\t6.0\t2.5,-3\n", "soundscape.birdnet.embeddings.txt")
    found = read_features(path, labelled=False)
    np.testing.assert_array_equal(found.X, X[:2])
    assert list(found.ids) == ["0.0-3.0", "3.0-6.0"]
    with pytest.raises(InputError, match="3 features in row 2 of the data, but its first row has 2"):
        read_features(save("0.0\t3.0\t0.5,1.5\n3.0\t6.0\t2.5,-3,1\n", "a.txt"), labelled=False)
    with pytest.raises(InputError, match=r"text, not numbers, in column 'embedding' .row 2: 'x'"):
        read_features(save("0.0\t3.0\t0.5,1.5\n3.0\t6.0\t2.5,x\n", "a.txt"), labelled=False)


@pytest.mark.parametrize("head", ["0,1,2\n", "a,b,c\n", ",0,1,2\n", "id,0,1,2\n", ""])
def test_numbers_without_labels_are_features(save, head):
    start = [f"{row}," if head.count(",") > 2 else "" for row in range(2)]
    found = read_features(save(f"{head}{start[0]}1,2,3.5\n{start[1]}4,5,6\n"), labelled=False)
    assert found.X.tolist() == [[1, 2, 3.5], [4, 5, 6]]
    assert list(found.ids) == ["0", "1"]


USUAL = {"id": ["a", "", "ü"], "text": ['so "b"', "7", "x\ny"], "thumbnail": [b"\xff", b"", b"a"], "file": FILES}
TIMES, WEATHER = {**USUAL, "start": STARTS}, {**USUAL, "weather": ["1", "2", "3"]}


@pytest.mark.parametrize(("y", "given"), [(["u", "v", "u"], TIMES), ([2, 7, 2], WEATHER), (None, TIMES)])
@pytest.mark.parametrize("suffix", [".safetensors", ".npz", ".parquet", ".csv", ".tsv"])
def test_columns_are_read_again_from_every_format_that_stores_them(tmp_path, suffix, y, given):
    path = tmp_path / f"a{suffix}"
    write_features(path, Samples(X, y, given))
    found = read_features(path, labelled=False)
    np.testing.assert_array_equal(found.X, X)
    assert (None if found.y is None else found.y.tolist()) == y
    stored = {".npz": ("id", "text"), ".safetensors": given, ".parquet": given}
    wanted = stored.get(suffix, [name for name in given if name != "thumbnail"])
    assert {name: list(values) for name, values in found.columns.items()} == {name: given[name] for name in wanted}
    again = tmp_path / f"again{suffix}"
    write_features(again, open_features(path, labelled=False))
    for same in (read_features(again, labelled=False), pickle.loads(pickle.dumps(found))):
        assert list(same.ids) == given["id"]
        assert list(same.columns) == list(found.columns)


@pytest.mark.parametrize(
    ("y", "columns"),
    [(None, {"weather": list("abc")}), (["u", "v", "u"], {"class": list("abc")}), ([" u", "v", "u"], {})],
)
def test_what_a_table_would_give_another_meaning_is_not_written(tmp_path, y, columns):
    with pytest.raises(InputError, match="cannot hold"):
        write_features(tmp_path / "a.csv", Samples(X, y, columns))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("suffix", "text", "message"),
    [
        (".csv", "a\0b", "cannot hold texts with NUL"),
        (".csv", "x" * 9_000_000, "cannot hold texts with NUL characters or of more than 8388608"),
        (".npz", "a\0", "or end in a NUL character: write .safetensors"),
        (".npz", "x" * 2**25, "cannot hold texts that are too long"),
        (".parquet", "\ud800", "cannot hold"),
        (".csv", "\ud800", "cannot hold"),
        (".npz", "\ud800", "cannot hold"),
    ],
)  # fmt: skip
def test_texts_that_a_format_cannot_hold_are_refused(tmp_path, suffix, text, message):
    with pytest.raises(InputError, match=message) as caught:
        write_features(tmp_path / f"a{suffix}", Samples(X, [1, 2, 1], {"id": list("abc"), "text": [text, "", ""]}))
    assert len(str(caught.value)) < 500
    assert not list(tmp_path.iterdir())


def test_arrays_of_ids_and_texts_are_kept(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=X, y=[1, 2, 1], id=[7, 8, 9], texts=np.array(["a", "b", "ü"]).astype("U3"))
    found = read_features(path)
    assert list(found.ids) == ["7", "8", "9"]
    assert list(found.texts) == ["a", "b", "ü"]
    np.savez(path, X_base=X, y_base=[1, 2, 1], ids_base=list("abc"), X_novel=X[:1], y_novel=[1], ids_novel=["d"])
    assert list(read_features(f"{path}:novel").ids) == ["d"]
    # Something else of this name, such as one per class, is left alone.
    np.savez(path, X=X, y=[0, 1, 0], ids=["n01", "n02"], names=["wren", "kite"])
    found = read_features(path)
    assert list(found.ids) == ["0", "1", "2"]
    assert found.y.tolist() == ["wren", "kite", "wren"]
