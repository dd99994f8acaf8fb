"""Tables of an evaluation: what stands in a cell, what it is sorted by, and that every reader gets the same."""

from __future__ import annotations

import re
from html import unescape

import matplotlib
import numpy as np
import pytest

from few_shot_problems import drawn_classes
from hotshot.errors import InputError
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.evaluation.tables import NO_SPREAD, Entry, Number, Table, detail_table, percent, result_table, unsolved
from hotshot.transport import Status

ACCURACIES = np.random.default_rng(0).uniform(0.4, 0.9, size=100)
# Of mean 0: differences to other methods are not the same in every task.
NOISE = 0.002 * np.tile([-1.0, 1.0], 50)
HOSTILE = "<script>$x$\x1b[2J"


def result(method, accuracies, shots=1, **changes):
    values = np.asarray(accuracies)
    usual = {
        "classes": drawn_classes(len(values)), "recall": {"cat": 0.5}, "calibration_error": 0.1234, "statuses": {},
        "stopped_early": 0, "seconds_per_task": 0.005,
    }  # fmt: skip
    return MethodResult(method, shots, values, **{**usual, **changes})


def evaluation(*results):
    return Evaluation(tuple(results), 5, len(results[0].accuracies), results[0].method)


FOUND = evaluation(
    result("mine", ACCURACIES, statuses={Status.CONVERGED: 1900, Status.MAX_ITERATIONS: 100}, stopped_early=3),
    result("worse", ACCURACIES - 0.02 + NOISE, calibration_error=None),
    result("better", ACCURACIES + 0.03 - NOISE),
)


def texts(table, column):
    return [row[table.columns.index(column)].text for row in table.entries]


def test_accuracies_stand_in_the_order_asked_for_with_the_lead_of_the_reference():
    table = result_table(FOUND, 1)
    assert table.title == "5-way-1-shot, 100 tasks"
    assert table.numeric == [False, True, True, True, True]
    assert table.columns[1:] == ("accuracy %", "over tasks", "lead of mine", "paired, over tasks")
    assert "lead of mine: accuracy of mine minus that of the method, in points, paired task by task." in table.notes[0]
    assert texts(table, "method") == ["mine", "worse", "better"]
    assert texts(table, table.columns[2]) == [f"± {100 * FOUND['mine', 1].accuracy.half_width:.2f}"] * 3
    assert texts(table, table.columns[4]) == ["", "± 0.04", "± 0.04"]
    leads = [row[3] for row in table.entries]
    width = f"{100 * FOUND.difference_over_classes('worse', 1).half_width:.2f}"
    assert [lead.text for lead in leads] == ["reference", f"+2.00 ± {width}", f"-3.00 ± {width}"]
    assert [lead.kind for lead in leads] == ["reference", "ahead", "behind"]
    assert leads[0].value is None


def test_with_a_threshold_the_best_comes_first_and_details_follow():
    table, plain, details = result_table(FOUND, 1, 0.5), result_table(FOUND, 1), detail_table(FOUND, 0.5)
    assert texts(table, "method") == ["better", "mine", "worse"]
    for other, columns in ((plain, plain.columns), (details, details.columns[2:])):
        for column in columns:
            cells = dict(zip(texts(table, "method"), texts(table, column), strict=True))
            assert cells == dict(zip(texts(other, "method"), texts(other, column), strict=True))


def test_a_single_task_has_no_interval():
    found = evaluation(result("mine", [0.5]), result("other", [0.75]))
    table = result_table(found, 1, 0.5)
    assert table.title == "5-way-1-shot, 1 task"
    assert [row[1].text for row in table.entries] == ["75.00", "50.00"]
    assert texts(table, "lead of mine") == ["-25.00", "reference"]
    assert table.notes == ("A single task has no interval.",)


def test_tasks_of_all_classes_have_no_interval_over_classes_and_say_so():
    whole = np.tile(np.arange(5), (100, 1))
    found = evaluation(result("mine", ACCURACIES, classes=whole), result("other", ACCURACIES - 0.1, classes=whole))
    table = result_table(found, 1)
    assert texts(table, "accuracy %") == [f"{100 * found[name, 1].accuracy.mean:.2f}" for name in ("mine", "other")]
    # The lead has the interval over tasks instead, and the verdict by it.
    assert table.entries[1][3].text == str(percent(found.difference("other", 1), signed=True))
    assert found.leads(1) == {"other": found.difference("other", 1)}
    assert "Every task has all 5 classes" in table.notes[0]


def test_an_interval_of_zero_is_no_certainty():
    """All alike in every task, such as all right, has no interval, and a note says why."""
    found = evaluation(*(result(name, np.full(100, value)) for name, value in (("mine", 1), ("half", 0.5))))
    table = result_table(found, 1, 0.5)
    assert [row[1].text for row in table.entries] == ["100.00", "50.00"]
    assert texts(table, "over tasks") == ["", ""]
    assert NO_SPREAD in table.notes
    assert "± 0.00" not in str(table) + str(found)
    assert NO_SPREAD not in result_table(FOUND, 1, 0.5).notes


def test_what_did_not_end_well_is_said_with_its_remedy():
    first, second = unsolved(FOUND)
    assert first.startswith("mine at 1 shot: 100 of 2,000 transport problems ended as MAX_ITERATIONS. ")
    assert second == "mine at 1 shot: 3 of 100 fits stopped before they converged."
    assert unsolved(evaluation(result("a", [0.5], statuses={Status.CONVERGED: 5}))) == []


def test_printing_an_evaluation_shows_its_tables():
    title, head, *lines = str(FOUND).splitlines()
    table = result_table(FOUND, 1)
    assert (title, head.split()[0]) == (table.title, "method")
    for line, row in zip(lines, table.entries, strict=True):
        assert all(entry.text in line for entry in row)
    assert len({line.index("±") for line in lines}) == 1
    assert "±" not in str(evaluation(result("mine", [0.5])))


def of_notebook():
    """Differences that are significant, or not, beside a name that is hostile."""
    shifts = {"mine": 0 * NOISE, "better": 0.03 - NOISE, "worse": NOISE - 0.02, "same": NOISE, HOSTILE: NOISE - 0.04}
    return evaluation(*(result(name, ACCURACIES + shift, k) for k in (1, 5) for name, shift in shifts.items()))


def test_a_notebook_shows_the_tables():
    found = of_notebook()
    page = found._repr_html_()
    tags, texts = set(re.findall(r"<(\w+)", page)), [unescape(text) for text in re.split("<.*?>", page)]
    assert {"table", "td", "th", "div"} <= tags
    assert "script" not in tags
    for shots in (1, 5):
        for row in result_table(found, shots).entries:
            assert all(entry.text in texts for entry in row if entry.text)
    assert "5-way-5-shot, 100 tasks" in texts
    assert any("hold for new classes of the same kind" in text for text in texts)


def test_a_notebook_plots_paired_differences_and_marks_the_significant_ones():
    found, before = of_notebook(), dict(matplotlib.rcParams)
    figure = found.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before
    left, right = figure.axes
    assert [panel.get_title(loc="left") for panel in (left, right)] == ["5-way-1-shot", "5-way-5-shot"]
    names = [label.get_text() for label in left.get_yticklabels()]
    assert names == [r"<script>$x$\x1b[2J", "worse", "same", "better"]
    dots = [line for line in left.lines if line.get_marker() == "o"]
    means = [100 * found.difference(method, 1).mean for method in (HOSTILE, "worse", "same", "better")]
    assert [dot.get_xdata()[0] for dot in dots] == pytest.approx(means)
    assert [dot.get_markerfacecolor() for dot in dots] == ["#0072B2", "#0072B2", "white", "#E69F00"]
    ends = [tuple(x for x, _ in segment) for bar in left.collections for segment in bar.get_segments()]
    lead = found.leads(1)["better"]
    assert (pytest.approx(100 * lead.low), pytest.approx(100 * lead.high)) in ends
    with pytest.raises(InputError, match="there is only one"):
        evaluation(result("mine", ACCURACIES)).plot()


def test_cells_of_all_kinds_are_read_alike():
    table = Table("t", ("a", "b"), (("x|y", Number(68.57, published=True)), (None, Entry("5", 5, kind="k"))))
    assert table.numeric == [False, True]
    assert table.entries[0][1] == Entry("68.57", 68.57, note="published", kind="published")
    assert table.entries[1] == [Entry(), Entry("5", 5, kind="k")]
    assert table.to_markdown().splitlines()[2:] == ["| x\\|y | *68.57* |", "|  | 5 |"]
    assert Table("t", ("a", "b"), ()).numeric == [False, False]
    with pytest.raises(ValueError, match="needs 2 cells"):
        Table("t", ("a", "b"), (("x",),))
