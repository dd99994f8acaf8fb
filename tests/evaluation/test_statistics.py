"""Intervals cover what they should, and pairing takes out what the methods share."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hotshot.errors import InputError
from hotshot.evaluation import mean_interval, paired_difference


def test_interval_is_students():
    values = np.random.default_rng(0).normal(size=20)
    low, high = stats.t.interval(0.95, 19, values.mean(), stats.sem(values))
    found = mean_interval(values)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_pairing_takes_out_the_difficulty_of_tasks():
    rng = np.random.default_rng(0)
    difficulty = rng.normal(size=100)
    found = paired_difference(difficulty + 0.1 + 0.01 * rng.normal(size=100), difficulty)
    assert found.mean == pytest.approx(0.1, abs=0.01)
    assert found.half_width < 0.01


def test_one_value_has_no_interval():
    assert mean_interval([0.5]).half_width == float("inf")


@pytest.mark.parametrize("values", [[], [[1.0]]])
def test_values_must_be_a_list(values):
    with pytest.raises(InputError, match="non-empty"):
        mean_interval(values)


def test_pairs_come_from_the_same_tasks():
    with pytest.raises(InputError, match="same tasks"):
        paired_difference([1.0, 2.0], [1.0])
