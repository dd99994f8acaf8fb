"""The one sentence that a report opens with is true whoever wins, in every setting, at any number of shots."""

from __future__ import annotations

import numpy as np
import pytest

from few_shot_problems import drawn_classes
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.evaluation.finding import finding
from hotshot.evaluation.tasks import CLOSED, GENERALISED, OPEN

TASKS = 200
RNG = np.random.default_rng(0)
MINE = RNG.uniform(0.6, 0.8, size=TASKS)


def apart(points, spread=0.005, tasks=TASKS):
    """Accuracies with a mean so many points above the reference's; undecided if the spread is large."""
    noise = RNG.normal(size=tasks)
    return MINE[:tasks] + points / 100 + spread * (noise - noise.mean())


LEVEL = {"points": 0, "spread": 0.05}


def evaluation(by_shots, setting=CLOSED, classes=None):
    """An evaluation of `mine` and of the others at each number of shots."""
    results = []
    for shots, others in by_shots.items():
        for name, accuracies in {"mine": MINE, **others}.items():
            values = np.asarray(accuracies)
            measures = {setting.compared: values} if setting.compared else {}
            drawn = drawn_classes(len(values)) if classes is None else classes
            results.append(MethodResult(name, shots, values, drawn, {}, None, {}, 0, 0.0, measures))
    return Evaluation(tuple(results), 5, len(results[-1].accuracies), "mine", setting)


WHOLE = np.tile(np.arange(5), (TASKS, 1))
SAME = {name: apart(**LEVEL) for name in "abc"}
MEAN = f"{100 * MINE.mean():.1f}%"


@pytest.mark.parametrize(
    ("by_shots", "sentence"),
    [
        (
            {1: {"a": apart(-1.3), "b": apart(-3)}, 5: {"a": apart(**LEVEL), "b": apart(-3)}},
            "best at one shot (+1.3 points over a), level with a at five shots.",
        ),
        ({1: {"a": apart(0.9), "b": apart(-3), "c": SAME["c"]}}, "behind a at one shot (by 0.9 points)."),
        (
            {1: {"a": apart(0.9), "b": apart(2)}, 5: {"a": apart(0.5), "b": apart(0.3)}},
            "behind b and a at one and five shots (by up to 2.0 points).",
        ),
        (
            {k: {"a": apart(-k), "b": apart(-9)} for k in (1, 5)},
            "best at one and five shots (+1.0 to +5.0 points over a).",
        ),
        (
            {1: {"a": apart(-1), "b": apart(-2)}, 5: {"a": apart(-2), "b": apart(-1)}},
            "best at one and five shots (+1.0 points over the runner-up).",
        ),
        ({1: {"a": apart(-1.3)}}, "ahead of a at one shot (+1.3 points)."),
        ({"1-10": {"a": apart(**LEVEL)}}, "level with a at 1 to 10 shots."),
        ({1: SAME}, "level with the other three methods at one shot."),
        # Equal answers in every task, and two tasks with one difference, whose interval of 0 is not certainty.
        ({1: {"a": MINE}}, "level with a at one shot."),
        ({1: {"mine": MINE[:2], "a": MINE[:2] - 0.1}}, "level with a at one shot."),
        ({1: {"a" * 99: apart(-0.034, spread=1e-5)}}, f"ahead of {'a' * 39}… at one shot (+0.034 points)."),
        ({k: {"a": apart(-k)} for k in range(1, 9)}, "ahead of a at all numbers of shots (+1.0 to +8.0 points)."),
    ],
)
def test_who_leads_at_which_number_of_shots(by_shots, sentence):
    assert finding(evaluation(by_shots)) == f"mine is {sentence}"


def test_significance_is_corrected_for_the_number_of_methods():
    noise = RNG.normal(size=TASKS)
    # An interval over tasks that leaves 0 out by a little: enough for one comparison, not for one of six.
    close = MINE - 0.05 * (noise - noise.mean()) - 1.1 * 1.972 * 0.05 * noise.std(ddof=1) / np.sqrt(TASKS)
    classes = np.arange(TASKS)[:, None]
    assert "ahead" in finding(evaluation({1: {"a": close}}, classes=classes))
    assert "level with" in finding(evaluation({1: dict.fromkeys("abcdef", close)}, classes=classes))


def test_without_intervals_over_classes_it_holds_for_these_classes():
    found = evaluation({1: {"a": apart(-1), "b": apart(-2)}}, classes=WHOLE)
    assert finding(found) == "On these classes, mine is best at one shot (+1.0 points over a)."


@pytest.mark.parametrize(("setting", "measure"), [(GENERALISED, "harmonic mean"), (OPEN, "AUROC")])
def test_other_settings_are_compared_by_their_measure(setting, measure):
    found = evaluation({1: {"a": apart(-1), "b": apart(-2)}, 5: {"a": apart(1), "b": apart(-2)}}, setting)
    assert finding(found) == (
        f"By {measure} on these classes, mine is best at one shot (+1.0 points over a), behind a at five shots (by 1.0 "
        "points)."
    )
    alone = finding(evaluation({1: {}}, setting))
    assert alone == f"mine has {'an' if setting is OPEN else 'a'} {measure} of {100 * MINE.mean():.1f}% at one shot."


def test_one_method_and_one_task():
    assert (
        finding(evaluation({1: {}, 5: {}})) == f"mine has an accuracy of {MEAN} at one shot and {MEAN} at five shots."
    )
    found = evaluation({1: {"mine": [1.0], "a": [0.5], "b": [0.5]}})
    assert finding(found) == "One task cannot show how mine compares with a and b."
    assert finding(evaluation({1: {"mine": [1.0]}})) == "mine has an accuracy of 100% at one shot."
    many = evaluation({k: {"mine": np.full(9, k / 10)} for k in range(1, 10)})
    assert finding(many) == "mine has an accuracy of 10% at one shot to 90% at nine shots."


def test_many_numbers_of_shots_make_no_long_sentence():
    names = "abcdefgh"
    by_shots = {k: {m: apart(1 if m == names[k % 8] else -1) for m in names} for k in range(1, 20)}
    by_shots |= {k: {m: apart(-1) for m in names} for k in (20, 21)}
    assert finding(evaluation(by_shots)) == (
        "mine is behind at least one other method at 19 of 21 numbers of shots (by up to 1.0 points), best at 20 and "
        "21 shots (+1.0 points over the runner-up)."
    )
