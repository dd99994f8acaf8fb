"""An inspection as a person reads it, and as a document for programs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspected_files import TABLES, classes, codes, inspected

from hotshot.evaluation.inspection import document, facts
from hotshot.evaluation.inspection.printed import filled
from hotshot.evaluation.inspection.problems import similar_names
from hotshot.formatting import shortened


@given(st.text(max_size=80), st.integers(2, 60))
def test_names_are_shown_on_one_printable_line(name, longest):
    for text in (shortened(name, longest), shortened(name, longest, keep="end")):
        assert text.isprintable()
        assert len(text) <= longest
    if name.isprintable() and len(name) <= longest:
        assert shortened(name, longest) == name


@pytest.mark.parametrize(
    ("sentence", "value", "text"),
    [
        ("{n}", 1234, "1,234"),
        ("{n}", 0.03256, "0.0326"),
        ("{n:2}", 0.03256, "0.033"),
        ("{n:%}", 0.0123, "1.2%"),
        ("{n:sample}", 2, "2 samples"),
        ("{n:class is|classes are}", 1, "1 class is"),
        ("{n:name}", "a\nb", r"a\nb"),
        ("{n[x]:.0f}", {"x": 2.6}, "3"),
    ],
)
def test_sentences_are_filled(sentence, value, text):
    assert filled(sentence, {"n": value}) == text


def test_facts_have_a_line_for_each_measure_whatever_is_missing():
    X, y = classes()
    whole, empty = (facts(inspected((x, y)).files[0]) for x in (X, np.full_like(X, np.nan)))
    assert list(whole) == list(empty)
    assert "–" not in {whole[name] for name in whole if name not in ("NaN", "infinity")}
    assert empty["norms"] == empty["entries"] == empty["effective number of lenders"] == "–"
    assert empty["NaN"] == "7,200 entries in 360 samples"


def test_similar_names():
    assert similar_names(["a b", "A_B", "ab"], ["a b", "A_B", "ab"]) == [("a b", "A_B")]
    assert similar_names(["cat", "dog"], ["Cat", "dog", "bird"]) == [("cat", "Cat")]


KEYS = {
    "file", "role", "samples", "features", "dtype", "about", "classes", "entries", "duplicates", "constant_features",
    "norms", "deviation_within_classes", "ranks", "power", "costs",
}  # fmt: skip


def test_the_document_has_the_keys_it_promises():
    X, y = classes()
    X[3, 3] = np.nan
    found = json.loads(json.dumps(document(inspected((X, y, {"extractor": "clip"}))), allow_nan=False))
    assert set(found) == {"format", "ok", "verdict", "files", "findings", "methods"}
    (file,) = found["files"]
    assert set(file) == KEYS
    assert file["about"] == {"extractor": "clip"}
    assert file["entries"]["nan"] == {
        "count": 1, "samples": 1, "features": 1, "row": 3, "column": 3, "class": "class 0",
    }  # fmt: skip
    assert file["classes"]["smallest"] == {"name": "class 0", "samples": 30}
    assert file["power"] == {"auto": 0.5, "half": True, "log": True}
    assert file["costs"]["plan"] == "selective"
    assert [set(finding) for finding in found["findings"]] == [{"severity", "code", "sentence", "file", "role"}]
    assert all(set(row) == {"methods", "verdict", "sentence"} for row in found["methods"])
    for key in KEYS | set(found) | set(file["entries"]) | set(file["costs"]) | set(file["classes"]):
        assert f"`{key}`" in document.__doc__


@given(TABLES)
def test_any_file_can_be_inspected_and_written_down(table):
    X, y = table
    found = inspected((X, y))
    json.dumps(document(found), allow_nan=False)
    assert found.ok == (not {"nan", "infinity", "all-constant"} & codes(found))


def test_headers_of_strangers_do_not_break_the_document():
    about = {"loss": float("nan"), "path": Path("x"), "nested": [float("inf")]}
    text = json.dumps(document(inspected((*classes(), about))), allow_nan=False)
    assert json.loads(text)["files"][0]["about"] == {"loss": "NaN", "path": "x", "nested": ["Infinity"]}
