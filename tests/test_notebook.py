"""Evaluations in a notebook: the numbers of the tables, names that are only shown, readable figures."""

from __future__ import annotations

import re
from html import unescape

import matplotlib
import numpy as np
import pytest

from few_shot_problems import drawn_classes
from hotshot.errors import InputError
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.evaluation.tables import result_table

HOSTILE = "<script>$x$\x1b[2J"


def evaluation(**shifts):
    """Methods whose accuracies differ from those of the reference by so much in each task, and by the class."""
    rng = np.random.default_rng(0)
    values, classes = rng.uniform(0.4, 0.8, size=200), drawn_classes(200)
    results = []
    for shots in (1, 5):
        for method, shift in {"mine": 0.0, **shifts}.items():
            own = values + shift * (1 + 0.1 * rng.normal(size=200))
            results.append(MethodResult(method, shots, own, classes, {"a": 0.5}, 0.1, {}, 0, 0.01))
    return Evaluation(tuple(results), 5, 200, "mine")


def test_an_evaluation_shows_its_tables():
    found = evaluation(better=0.03, **{HOSTILE: -0.02})
    page = found._repr_html_()
    tags, texts = set(re.findall(r"<(\w+)", page)), [unescape(text) for text in re.split("<.*?>", page)]
    assert {"table", "td", "th", "div"} <= tags
    assert "script" not in tags
    for shots in (1, 5):
        for row in result_table(found, shots).entries:
            assert all(entry.text in texts for entry in row if entry.text)
    assert "5-way-5-shot, 200 tasks" in texts
    assert any("hold for new classes of the same kind" in text for text in texts)


def test_an_evaluation_plots_paired_differences_and_marks_the_significant_ones():
    found = evaluation(better=0.03, worse=-0.02, same=0.0, **{HOSTILE: -0.04})
    before = dict(matplotlib.rcParams)
    figure = found.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before
    left, right = figure.axes
    assert [panel.get_title(loc="left") for panel in (left, right)] == ["5-way-1-shot", "5-way-5-shot"]
    names = [label.get_text() for label in left.get_yticklabels()]
    assert names == [r"<script>$x$\x1b[2J", "worse", "same", "better"]
    dots = [line for line in left.lines if line.get_marker() == "o"]
    assert [dot.get_xdata()[0] for dot in dots] == [
        pytest.approx(100 * found.difference(method, 1).mean) for method in (HOSTILE, "worse", "same", "better")
    ]
    assert [dot.get_markerfacecolor() for dot in dots] == ["#0072B2", "#0072B2", "white", "#E69F00"]
    ends = [tuple(x for x, _ in segment) for bar in left.collections for segment in bar.get_segments()]
    lead = found.leads(1)["better"]
    assert (pytest.approx(100 * lead.low), pytest.approx(100 * lead.high)) in ends


def test_one_method_alone_has_no_differences_to_plot():
    with pytest.raises(InputError, match="there is only one"):
        evaluation().plot()
