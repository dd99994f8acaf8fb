"""Numbers that would take all memory or never end are refused where they enter the library, in one sentence."""

from __future__ import annotations

import math

import joblib
import numpy as np
import pytest

from conftest import make_bank
from hotshot.arrays import LIMITS, check_numbers
from hotshot.bank import BaseClasses
from hotshot.errors import ParameterError
from hotshot.evaluation import evaluate, tune
from hotshot.evaluation.runner import MOST_PER_CORE, count_jobs

DIGITS = 10**23


@pytest.mark.parametrize("name", LIMITS)
def test_limits_themselves_are_allowed_and_nothing_beyond(name):
    least, most = LIMITS[name]
    for allowed in (least, most, np.int64(most) if isinstance(most, int) else np.float64(most)):
        check_numbers(**{name: allowed})
    for wrong in (least - 1, most * 1.1 + 1, math.nan, math.inf, -math.inf, None, True, "1", [1], DIGITS**3):
        with pytest.raises(ParameterError, match=rf"^{name} must be an? (integer|number) from .* to .*, got .*\.$"):
            check_numbers(**{name: wrong})


@pytest.mark.parametrize(
    "wrong",
    [{"tasks": 10**14}, {"ways": 10**6}, {"queries": DIGITS}, {"seed": DIGITS}, {"shots": [1, 1]}, {"shots": []},
     {"shots": [1, 10**9]}, {"shots": range(1, 10**5)}, {"shots": 1.5}, {"n_jobs": 0}, {"n_jobs": True}],
    ids=str,
)  # fmt: skip
def test_evaluate_and_tune_refuse_numbers_beyond_limits(wrong):
    X, y = make_bank()
    base = BaseClasses.from_samples(*make_bank(seed=1))
    small = {"ways": 2, "shots": 1, "queries": 2, "tasks": 1, "n_jobs": 1, **wrong}
    (name,) = wrong
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        evaluate(["hot"], X, y, base=base, **small)
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        tune(base, X, y, grid={"epsilon": [0.1]}, **small)


def test_a_huge_number_of_jobs_starts_few_processes():
    most = MOST_PER_CORE * joblib.cpu_count()
    assert count_jobs(10**7) == count_jobs(DIGITS) == most
    assert [count_jobs(n) for n in (1, 2, -(10**9))] == [1, 2, 1]


# --- images


@pytest.mark.parametrize(
    "wrong", [{"size": 0}, {"label_smoothing": 2}, {"epochs": DIGITS}, {"learning_rate": math.nan}], ids=str
)
def test_recipes_have_limits(wrong):
    training = pytest.importorskip("hotshot.backbones.checkpoints")
    (name,) = wrong
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        training.Recipe(**wrong)
    with pytest.raises(ParameterError, match="128 images of size 4096 are too many for one step"):
        training.Recipe(size=4096)


@pytest.mark.parametrize(
    ("name", "filters", "message"),
    [
        *(("conv4", filters, "^filters must be") for filters in (0, 99999999999, 2.5, "4", None, [])),
        *(("resnet12", filters, "^filters must be") for filters in (0, 2.5, None, [4, 0], [4] * 9)),
        ("conv4", [4, 4], r"^filters must be an integer from 1 to 2,048, got \[4, 4\]\.$"),
        ("resnet12", 4, r"^filters must be 1 to 8 numbers, such as .*, got 4\.$"),
        # The last stage has eight times as many.
        ("resnet10", 257, r"^filters must be an integer from 1 to 256, got 257\.$"),
    ],
)
def test_networks_have_limits(name, filters, message):
    backbones = pytest.importorskip("hotshot.backbones")
    with pytest.raises(ParameterError, match=message):
        backbones.create(name, filters=filters)
