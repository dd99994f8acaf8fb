"""What the figures refuse, each in one sentence that says what was wrong."""

from __future__ import annotations

import figure_examples as examples
import numpy as np
import pytest

from hotshot.errors import ParameterError
from hotshot.paper import figures

LABELS = {"x_label": "n", "label": "accuracy"}


def embedding(**changes):
    return figures.embedding({"hot": {**examples.panel(1.0), **changes}}, list("abcd"))


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: figures.heatmap([1.0, 2.0], ["a"], ["b"], label=""), r"values must be an array \(B, N\).*\(2,\)"),
        (lambda: figures.heatmap(np.ones((0, 2)), [], ["a", "b"], label=""), r"values .*at least one.*\(0, 2\)"),
        (lambda: figures.heatmap(np.ones((2, 2)), ["a"], ["b", "c"], label=""), "rows must hold 2 names, got 1"),
        (lambda: figures.heatmap(np.ones((2, 2)), "ab", ["b", "c"], label=""), "rows must be a list.*got str"),
        (lambda: figures.heatmap([[1.0, np.nan]], ["a"], ["b", "c"], label=""), r"finite, got nan at \[0, 1\]"),
        (lambda: figures.heatmap([["1", "2"]], ["a"], ["b", "c"], label=""), "real numbers .*got list"),
        (lambda: figures.heatmap([[1.0], [1.0, 2.0]], ["a"], ["b"], label=""), "real numbers .*got list"),
        (lambda: figures.heatmap([[1j]], ["a"], ["b"], label=""), "real numbers"),
        (lambda: figures.grouped_bars([], {"a": []}, label=""), "groups must hold at least one name"),
        (lambda: figures.grouped_bars(["g"], {}, label=""), "series must be a dict .*got an empty one"),
        (lambda: figures.grouped_bars(["g"], [1], label=""), "series must be a dict .*got list"),
        (lambda: figures.grouped_bars(["g"], {"a": [(1, 2), (3, 4)]}, label=""), "'a'.* must hold 1 pairs.*got 2"),
        (lambda: figures.grouped_bars(["g"], {"a": [1.0]}, label=""), "must hold 1 pairs"),
        (lambda: figures.grouped_bars(["g"], {"a": 1.0}, label=""), "must hold 1 pairs"),
        (lambda: figures.grouped_bars(["g"], {"a": [("x", 1)]}, label=""), "must hold 1 pairs"),
        (lambda: figures.grouped_bars(["g"], {"a": [(1, -1)]}, label=""), "half widths of at least 0"),
        (lambda: figures.grouped_bars(["g"], {"a": [(np.inf, 1)]}, label=""), "finite means"),
        (lambda: figures.grouped_bars(["g"], {"a": [None]}, label=""), "at least one value"),
        (lambda: figures.grouped_bars(["g"], {1: [(1, 1)], "1": [(1, 1)]}, label=""), "different names"),
        (lambda: figures.lines([2, 1], {"a": [(1, 1)] * 2}, **LABELS), r"x must be increasing, got \[2.0, 1.0\]"),
        (lambda: figures.lines([0, 1], {"a": [(1, 1)] * 2}, log=True, **LABELS), "positive and increasing"),
        (lambda: figures.lines([1], {"a": [(1, 1)]}, limits={"b": np.nan}, **LABELS), r"limits\['b'\].*finite"),
        (lambda: figures.lines([1], {"a": [(1, 1)]}, x_names=["a", "b"], **LABELS), "x_names must hold 1 names"),
        (lambda: figures.histogram({"a": [1.0]}, edges=[0], **LABELS), "at least two increasing"),
        (lambda: figures.histogram({"a": [1.0]}, edges=[1, 0], **LABELS), "at least two increasing"),
        (lambda: figures.histogram({"a": [3.0]}, edges=[0, 1], **LABELS), "enclose all .*0 to 1.*3 to 3: widen"),
        (lambda: figures.weights([1, 2], {"a": [1]}, ["b", "c"]), "each of the 2 base classes, got 1"),
        (lambda: figures.weights([1, 2], {"a": [1, 2]}, ["b"]), "names must hold 2 names, got 1"),
        (lambda: figures.ranking(["a"], [1, 2], label=""), "names must hold 2 names, got 1"),
        (lambda: figures.ranking(["a"], None, label=""), "real numbers .*got NoneType"),
        (lambda: figures.sample_weights({"a": [[1.0]]}, label=""), r"panels\['a'\] must be an array \(J,\)"),
        (lambda: figures.sample_weights({}, label=""), "panels must be a dict"),
        (lambda: figures.embedding({"hot": {"support": [[1, 2]]}}, ["a"]), "'support' and 'support_labels'"),
        (lambda: figures.embedding({"hot": None}, ["a"]), "must be a dict with 'support'"),
        (lambda: embedding(generated=np.ones((80, 3))), r"must be \(80, 2\)"),
        (lambda: embedding(generated_labels=np.full(80, 4)), "indices into the 4 names, got 4 to 4"),
        (lambda: embedding(generated_labels=np.full(80, 0.5)), "indices into the 4 names"),
        (lambda: embedding(support_labels=[0, 1]), r"must be \(2, 2\), a place for each label"),
        (lambda: figures.plans({"a": [1.0]}, {"b": ["x"]}, label=""), r"every panel, got none for \['a'\]"),
        (lambda: figures.plans({"a": [1.0]}, {"a": ["x", "y"]}, label=""), "must hold 1 names, got 2"),
    ],
)
def test_wrong_input_is_refused_in_one_sentence(draw, message):
    with pytest.raises(ParameterError, match=message) as caught:
        draw()
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
