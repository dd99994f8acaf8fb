"""Intervals cover what they should, also classes that nobody has seen; verdicts stand for any number of methods."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from few_shot_problems import drawn_classes
from hotshot.errors import InputError
from hotshot.evaluation import Estimate, class_interval, mean_interval, paired_difference
from hotshot.evaluation.results import AHEAD, UNDECIDED, verdict, verdicts


def random_effects(tasks, n, ways, of_classes, of_tasks, seed=0):
    """Values (tasks,) that deviate by their classes and by chance, and the classes."""
    rng = np.random.default_rng(seed)
    classes = drawn_classes(tasks, n, ways, seed)
    return (of_classes * rng.normal(size=n))[classes].mean(axis=1) + of_tasks * rng.normal(size=tasks), classes


# --- over tasks


def test_the_interval_over_tasks_is_students():
    values = np.random.default_rng(0).normal(size=20)
    found = mean_interval(values)
    low, high = stats.t.interval(0.95, 19, values.mean(), stats.sem(values))
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert mean_interval([0.5]).half_width == float("inf")


def test_what_is_no_list_of_numbers_is_refused():
    for values in ([], [[1.0]]):
        with pytest.raises(InputError, match="non-empty"):
            mean_interval(values)
    with pytest.raises(InputError, match="same tasks"):
        paired_difference([1.0, 2.0], [1.0])


# --- over classes: what holds for every draw


@given(
    st.integers(2, 60), st.integers(2, 40), st.integers(1, 9), st.floats(0, 3), st.floats(0, 3), st.integers(0, 10**6)
)
def test_it_is_never_narrower_than_the_interval_over_tasks(tasks, n, ways, of_classes, of_tasks, seed):
    values, classes = random_effects(tasks, n, min(ways, n), of_classes, of_tasks, seed)
    found, over_tasks = class_interval(values, classes), mean_interval(values)
    assert found.mean == over_tasks.mean
    assert found.n == len(np.unique(classes))
    assert found.half_width >= over_tasks.half_width * (1 - 1e-9)
    assert 0 <= found.p_value <= 1


@given(st.integers(3, 60), st.integers(6, 30), st.integers(0, 10**6))
def test_names_and_order_of_classes_and_tasks_do_not_matter(tasks, n, seed):
    values, classes = random_effects(tasks, n, 4, 1, 1, seed)
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(tasks), 3 * rng.permutation(n)
    found = class_interval(values, classes)
    other = class_interval(values[order], names[rng.permuted(classes, axis=1)][order])
    assert other.half_width == pytest.approx(found.half_width, rel=1e-6)
    scaled = class_interval(10 * values - 3, classes)
    assert scaled.half_width == pytest.approx(10 * found.half_width, rel=1e-6)


def test_tasks_of_fewer_classes_are_filled_up():
    values, classes = random_effects(80, 12, 4, 1, 1)
    wider = np.concatenate([classes, np.full((80, 3), -1)], axis=1)
    assert class_interval(values, wider) == class_interval(values, classes)
    wider[::2, 3] = -1
    unequal = class_interval(values, wider)
    assert np.isfinite(unequal.half_width)
    assert unequal.half_width > mean_interval(values).half_width


@pytest.mark.parametrize(("tasks", "n"), [(1, 20), (50, 5)], ids=["one task", "all classes in every task"])
def test_what_says_nothing_of_other_classes_has_an_infinite_interval(tasks, n):
    values, classes = random_effects(tasks, n, 5, 1, 1)
    found = class_interval(values, classes)
    assert found.half_width == float("inf")
    assert found.p_value == 1
    assert verdicts({"a": found}) == {"a": UNDECIDED}


@pytest.mark.parametrize("tasks", [2, 7, 30])
def test_tasks_that_share_no_class_have_the_interval_over_tasks(tasks):
    values = np.random.default_rng(0).normal(size=tasks)
    found = class_interval(values, np.arange(5 * tasks).reshape(tasks, 5))
    assert found.half_width == pytest.approx(mean_interval(values).half_width, rel=1e-6)


@pytest.mark.parametrize(("n", "ways"), [(12, 3), (6, 5), (9, 2)])
def test_where_classes_decide_all_it_is_students_interval_of_their_effects(n, ways):
    """On all tasks that there are, so that none of their draw is left."""
    effects = np.random.default_rng(0).normal(size=n)
    classes = np.array(list(itertools.combinations(range(n), ways)))
    found = class_interval(effects[classes].mean(axis=1), classes)
    assert found.half_width == pytest.approx(mean_interval(effects).half_width, rel=1e-9)
    assert found.degrees == pytest.approx(n - 1, rel=1e-9)


# --- coverage


def normal_coverage(n, ratio, repetitions=250, tasks=150, ways=5):
    """Share of intervals that hold 0 where the classes make `ratio` times the variance of the mean that tasks make."""
    held = [
        abs(found.mean) <= found.half_width
        for seed in range(repetitions)
        for found in [class_interval(*random_effects(tasks, n, ways, np.sqrt(ratio * n / tasks), 1, seed))]
    ]
    return np.mean(held)


@pytest.mark.parametrize("n", [8, 30])
@pytest.mark.parametrize("ratio", [0, 2, 20])
def test_it_covers_whether_classes_differ_much_or_not(n, ratio):
    """Fewer than the promised 95%, by more than three standard errors of 250 repetitions, would be a fault."""
    assert normal_coverage(n, ratio) > 0.905


# --- several comparisons


def test_p_values_are_below_a_twentieth_where_the_interval_leaves_zero_out():
    for mean in (0.0, 0.5, 0.999, 1.001, 2.0, -1.001):
        found = Estimate(mean, 1.0, 12)
        assert (found.p_value < 0.05) == (verdict(found) != UNDECIDED)
    assert Estimate(0.0, 0.0, 5).p_value == 1
    # Without spread it is the sign test: five equal differences are no evidence, fifty are.
    assert Estimate(0.1, 0.0, 5).p_value > 0.05 > Estimate(0.1, 0.0, 50).p_value


def test_holm_is_the_step_down_procedure():
    """p = 0.01, 0.02, 0.03: against 0.05/3, 0.05/2 and 0.05."""

    def with_p(p):
        return Estimate(stats.t.isf(p / 2, 29) / stats.t.ppf(0.975, 29), 1.0, 30)

    assert verdicts({"c": with_p(0.03), "a": with_p(0.01), "b": with_p(0.02)}) == dict.fromkeys("cab", AHEAD)
    stopped = verdicts({"c": with_p(0.04), "a": with_p(0.01), "b": with_p(0.03)})
    assert stopped == {"c": UNDECIDED, "a": AHEAD, "b": UNDECIDED}
