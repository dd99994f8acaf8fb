"""Texts: read with their labels, embedded as the reference does."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="extraction needs the extra images")

from hotshot.errors import InputError
from hotshot.files import read_features
from hotshot.images.extraction import extract_texts, read_texts


def lengths(texts):
    return np.array([[len(text), text.count("a"), 1.0] for text in texts], dtype=np.float32)


def test_texts_keep_their_order_and_labels(tmp_path):
    (tmp_path / "a.csv").write_text('Text,Category\n"so, a ""quote""",x\n\nüber,y\naaa,x\n', encoding="utf-8")
    texts, labels = read_texts(tmp_path / "a.csv")
    assert texts == ['so, a "quote"', "über", "aaa"]
    assert labels == ["x", "y", "x"]
    extract_texts(lengths, texts, labels, tmp_path / "a.safetensors", about={"extractor": "lengths"})
    found = read_features(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(found.X, lengths(texts))
    assert found.y.tolist() == labels
    assert found.about["extractor"] == "lengths"
    assert list(found.texts) == texts
    assert list(found.ids) == ["0", "1", "2"]


def test_ids_that_were_given_are_kept_and_labels_need_not_be(tmp_path):
    extract_texts(lengths, ["a", "b"], None, tmp_path / "a.safetensors", about={}, ids=["mail 7", "mail 9"])
    found = read_features(tmp_path / "a.safetensors", labelled=False)
    assert found.y is None
    assert list(found.ids) == ["mail 7", "mail 9"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must have the columns text and label, and has none"),
        (b"a,b\n1,2\n", "must have the columns text and label, and has a, b"),
        (b"text,label\n", "holds no text"),
        (b"text,label\nhello,\n", "no text or no label in row 2"),
        (b"text,label\nhello,x\nworld\n", "no text or no label in row 3"),
        (b"text,label\n\xff\xfe,x\n", "cannot be read as a CSV file of texts"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, content, message):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_texts(tmp_path / "a.csv")
    with pytest.raises(InputError, match="There is no file"):
        read_texts(tmp_path / "b.csv")
