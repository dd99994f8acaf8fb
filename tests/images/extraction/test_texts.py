"""Texts are written as features with their labels, ids and the texts themselves."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="extraction needs the extra images")

from hotshot.files import read_features
from hotshot.images.extraction import extract_texts


def lengths(texts):
    return np.array([[len(text), text.count("a"), 1.0] for text in texts], dtype=np.float32)


def test_texts_keep_their_order_and_labels(tmp_path):
    texts, labels = ['so, a "quote"', "über", "aaa"], ["x", "y", "x"]
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
