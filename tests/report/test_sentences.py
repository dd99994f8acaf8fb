"""Sentences say who is ahead, who is behind and what is not decided, whoever the reference is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from few_shot_problems import drawn_classes
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.report.run import all_converged, beyond_the_mean, summary
from hotshot.transport import Status

RNG = np.random.default_rng(0)
REFERENCE = RNG.uniform(0.5, 0.9, size=200)


def result(method, accuracies, statuses=None, stopped_early=0, seconds=0.01):
    values, recall = np.asarray(accuracies), {"cat": 0.5, "dog": 0.75}
    return MethodResult(
        method, 1, values, drawn_classes(len(values)), recall, 0.1, statuses or {}, stopped_early, seconds
    )


def evaluation(*results):
    return Evaluation(tuple(results), 5, len(results[0].accuracies), results[0].method)


def apart(points, spread=0.01):
    """Accuracies so many points from the reference's, and decidedly so where the spread is small."""
    noise = RNG.normal(size=200)
    return REFERENCE + points / 100 + spread * (noise - noise.mean())


def test_ahead_behind_and_undecided_have_a_sentence_each():
    found = evaluation(
        result("mine", REFERENCE),
        result("worse", apart(-2)),
        result("better", apart(+3)),
        result("level", apart(0.01, spread=0.05)),
    )
    text = summary(found, 1)
    assert text[1].startswith("Ahead of worse (by 2.00 ± 0.")
    assert text[2].startswith("Behind better (by 3.00 ± 0.")
    assert text[3].startswith("No significant difference from level (-0.01 ± ")
    assert text[4].startswith("The highest accuracy is that of better: ")
    assert len(text) == 5


def test_all_ahead_is_said_and_the_nearest_is_named_first():
    found = evaluation(result("mine", REFERENCE), *(result(f"m{i}", apart(-i)) for i in (5, 1, 3, 2, 4, 6)))
    text = summary(found, 1)
    assert len(text) == 2
    assert text[1].startswith("Ahead of the other six: m1 (by 1.00")
    assert text[1].endswith(" points) and 2 more.")
    assert text[1].index("m1") < text[1].index("m2") < text[1].index("m3") < text[1].index("m4")
    assert "m5" not in text[1]


@pytest.mark.parametrize(
    ("others", "tasks", "words"),
    [
        ((), 200, []),
        (("other",), 1, ["One task cannot show a difference between methods."]),
        (("a", "b"), 200, ["No significant difference from the other two: "]),
    ],
)
def test_what_is_not_different_is_said_once(others, tasks, words):
    found = evaluation(*(result(name, apart(0, spread=0.05)[:tasks]) for name in ("mine", *others)))
    assert [text[: len(start)] for text, start in zip(summary(found, 1)[1:], words, strict=False)] == words


def test_tasks_of_all_classes_show_differences_on_these_alone():
    whole = np.tile(np.arange(5), (200, 1))
    found = evaluation(
        *(replace(result(name, own), classes=whole) for name, own in (("a", REFERENCE), ("b", apart(-9))))
    )
    text = summary(found, 1)
    assert text[1] == "Every task has all classes: these differences hold for these classes only."
    assert text[2].startswith("Ahead of b (by 9.00 ± 0.")


@pytest.mark.parametrize(
    ("accuracies", "words"),
    [
        ([0.6, 0.7], "no task of mine is below 50%"),
        ([0.4, 0.7], "1 of 2 tasks of mine is below 50%"),
        ([0.4, 0.3], "2 of 2 tasks of mine are below 50%"),
    ],
)
def test_bad_tasks_are_counted(accuracies, words):
    text = beyond_the_mean(evaluation(result("mine", accuracies)), 0.5)[0]
    assert words in text
    assert "worst class is “cat”: 50% of its queries are right" in text


def test_problems_that_failed_are_named_with_their_remedy():
    mine = result("mine", REFERENCE, {Status.CONVERGED: 90, Status.MAX_ITERATIONS: 10}, stopped_early=3)
    text = " ".join([*beyond_the_mean(evaluation(mine), 0.5), *all_converged(evaluation(mine))])
    assert "10 of 100 transport problems ended as MAX_ITERATIONS" in text
    assert "raise epsilon" in text
    assert "3 of 200 fits stopped before they converged" in text
    assert "problems of the run converged" not in text


def test_that_all_converged_is_said_once():
    results = [result(name, REFERENCE, {Status.CONVERGED: 50}) for name in ("a", "b")]
    assert all_converged(evaluation(*results)) == ["All 100 transport problems of the run converged."]


def test_the_fastest_is_named_unless_it_is_the_reference():
    slow, fast = result("slow", REFERENCE, seconds=0.2), result("fast", REFERENCE, seconds=0.0004)
    assert (
        "slow takes 200 ms per task on one core; the fastest method, fast, takes 0.40 ms"
        in beyond_the_mean(evaluation(slow, fast), 0.5)[1]
    )
    assert "less than any other method" in beyond_the_mean(evaluation(fast, slow), 0.5)[1]
