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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"factor": DIGITS}, "factor must be"),
        ({"search": "random", "n_candidates": 2, "seed": -1}, "seed must be"),
        ({"search": "random", "n_candidates": 0}, "n_candidates of a random search must be"),
        ({"search": "random", "n_candidates": "many"}, "n_candidates of a random search must be"),
        ({"grid": {"epsilon": range(1, 10**5), "C": range(1, 10**5)}}, "combinations: leave values out"),
    ],
)
def test_a_search_has_limits(wrong, message):
    X, y = make_bank()
    base = BaseClasses.from_samples(*make_bank(seed=1))
    with pytest.raises(ParameterError, match=message):
        tune(base, X, y, ways=2, shots=1, queries=2, tasks=1, n_jobs=1, **{"grid": {"epsilon": [0.1]}, **wrong})


def test_a_huge_number_of_jobs_starts_few_processes():
    most = MOST_PER_CORE * joblib.cpu_count()
    assert count_jobs(10**7) == count_jobs(DIGITS) == most
    assert [count_jobs(n) for n in (1, 2, -(10**9))] == [1, 2, 1]


# --- images


@pytest.mark.parametrize(
    "wrong",
    [{"size": 0}, {"batch_size": 1}, {"label_smoothing": 2}, {"seed": DIGITS}, {"epochs": DIGITS}, {"momentum": 1.5},
     {"learning_rate": 0.0}, {"learning_rate": math.nan}, {"weight_decay": -1.0}, {"mixup": 1e300}],
    ids=str,
)  # fmt: skip
def test_recipes_have_limits(wrong):
    training = pytest.importorskip("hotshot.backbones.checkpoints")
    (name,) = wrong
    with pytest.raises(ParameterError, match=f"^{name} must be"):
        training.Recipe(**wrong)


def test_a_batch_of_large_images_is_refused():
    training = pytest.importorskip("hotshot.backbones.checkpoints")
    with pytest.raises(ParameterError, match="128 images of size 4096 are too many for one step"):
        training.Recipe(size=4096)


@pytest.mark.parametrize("name", ["conv4", "resnet12"])
@pytest.mark.parametrize("filters", [0, 99999999999, 2.5, "4", None, [], [4, 0], [4] * 9], ids=str)
def test_networks_have_limits(name, filters):
    backbones = pytest.importorskip("hotshot.backbones")
    with pytest.raises(ParameterError, match=r"^filters must be"):
        backbones.create(name, filters=filters)


def test_filters_are_one_number_or_one_per_block():
    backbones = pytest.importorskip("hotshot.backbones")
    with pytest.raises(ParameterError, match=r"^filters must be an integer from 1 to 2,048, got \[4, 4\]\.$"):
        backbones.create("conv4", filters=[4, 4])
    with pytest.raises(ParameterError, match=r"^filters must be 1 to 8 numbers, such as .*, got 4\.$"):
        backbones.create("resnet12", filters=4)
    # The last stage has eight times as many.
    with pytest.raises(ParameterError, match=r"^filters must be an integer from 1 to 256, got 257\.$"):
        backbones.create("resnet10", filters=257)
