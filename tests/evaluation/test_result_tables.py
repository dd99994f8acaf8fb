"""Tables of an evaluation: what stands in a cell, what it is sorted by, and that every reader gets the same."""

from __future__ import annotations

import numpy as np
import pytest

from few_shot_problems import drawn_classes
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.evaluation.tables import NO_SPREAD, Entry, Number, Table, detail_table, percent, result_table, unsolved
from hotshot.transport import Status

ACCURACIES = np.random.default_rng(0).uniform(0.4, 0.9, size=100)
# Of mean 0: differences to other methods are not the same in every task.
NOISE = 0.002 * np.tile([-1.0, 1.0], 50)


def result(method, accuracies, shots=1, **changes):
    recall = {"cat": 0.5, "a_class_with_a_rather_long_name_" * 3: 0.25}
    options = {"recall": recall, "calibration_error": 0.1234, "statuses": {}, "stopped_early": 0}
    values = np.asarray(accuracies)
    options["classes"] = drawn_classes(len(values))
    return MethodResult(method, shots, values, **{**options, "seconds_per_task": 0.005, **changes})


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


def test_cells_of_all_kinds_are_read_alike():
    table = Table("t", ("a", "b"), (("x|y", Number(68.57, published=True)), (None, Entry("5", 5, kind="k"))))
    assert table.numeric == [False, True]
    assert table.entries[0][1] == Entry("68.57", 68.57, note="published", kind="published")
    assert table.entries[1] == [Entry(), Entry("5", 5, kind="k")]
    assert table.to_markdown().splitlines()[2:] == ["| x\\|y | *68.57* |", "|  | 5 |"]
    assert Table("t", ("a", "b"), ()).numeric == [False, False]
    with pytest.raises(ValueError, match="needs 2 cells"):
        Table("t", ("a", "b"), (("x",),))
