"""What a hurried evaluation gets wrong: requests that look alike, early ends, odd methods, changed bytes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import HOTClassifier, evaluate
from hotshot.bank import BaseClasses
from hotshot.errors import InputError, RunError
from hotshot.evaluation.methods import make_runner
from hotshot.evaluation.tasks import Episodes

BASE = ragged_bank(spread=0.8)
X, Y = make_bank(5, 12, 6, seed=1, spread=0.9)
NEAREST = KNeighborsClassifier(1)


def few(methods, X=X, y=Y, **request):
    return evaluate(methods, X, y, **{"ways": 3, "shots": 2, "queries": 4, "tasks": 7, "n_jobs": 1, **request})


def test_plans_hold_the_samples_in_their_own_space():
    positive = BaseClasses.from_samples(np.abs(BASE.samples), BASE.names[BASE.labels])
    novel, transformed, kept = np.abs(X), [], []
    trial = Episodes(Y, ways=3, shots=1, queries=3)[0]
    for i in range(40):
        method = HOTClassifier(positive, cost="mean-cosine", power=0.3 + i / 100)
        plan = make_runner("m", method, novel, [trial], 0, transformed)
        kept.append(plan)
        assert np.array_equal(plan.novel, plan.base.transform(novel)), i


def test_a_nested_bank_belongs_to_the_request(tmp_path):
    few({"p": make_pipeline(StandardScaler(), HOTClassifier(BASE))}, out=tmp_path)
    with pytest.raises(RunError, match="methods"):
        few({"p": make_pipeline(StandardScaler(), HOTClassifier(ragged_bank(seed=9)))}, out=tmp_path)


def test_a_method_is_tried_at_every_number_of_shots():
    seen = []
    with pytest.raises(InputError, match="Method 'far' cannot be fitted"):
        few({"far": KNeighborsClassifier(5)}, shots=(5, 1), watch=lambda *a: seen.append(a))
    assert not seen


def test_results_that_cannot_be_written_are_a_run_error(tmp_path):
    (tmp_path / "results.json").mkdir()
    with pytest.raises(RunError):
        few(NEAREST, out=tmp_path)


def test_results_are_json_for_every_reader(tmp_path):
    few(NEAREST, tasks=1, out=tmp_path)

    def refuse(constant):
        raise AssertionError(constant)

    json.loads((tmp_path / "results.json").read_text(), parse_constant=refuse)


def test_ending_early_says_nothing_of_joblib(recwarn):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        few(NEAREST, tasks=400, n_jobs=2, watch=stop)
    assert not recwarn.list


class NoProbability(KNeighborsClassifier):
    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), np.nan)


def test_probabilities_that_are_not_finite_name_a_row():
    with pytest.raises(InputError, match=r"'m' has no finite probabilities for row \d+ of X_novel"):
        few({"m": NoProbability(1)})
