"""`evaluate` gives what the estimators give one task at a time, whoever computes it, and refuses what cannot work."""

from __future__ import annotations

import itertools
import json
import re
from typing import ClassVar

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import BaseClasses, CentroidClassifier, FreeLunchClassifier, HOTClassifier, evaluate, named_method
from hotshot.errors import HotshotError, InputError, ParameterError, RunError
from hotshot.evaluation import methods as running
from hotshot.evaluation.tasks import Episodes

BASE = ragged_bank(spread=0.8)
X, Y = make_bank(5, 12, 6, seed=1, spread=0.9)
SMALL = {"ways": 3, "shots": 2, "queries": 4}
NEAREST = KNeighborsClassifier(1)


def few(methods, X=X, y=Y, **request):
    """An evaluation in this process, of 7 tasks where nothing else is said."""
    return evaluate(methods, X, y, **{**SMALL, "tasks": 7, "n_jobs": 1, **request})


def one_by_one(estimator, tasks, X=X, y=Y, **request):
    """A fresh estimator for each task: its task, the fitted model, and the model's predictions."""
    for task in Episodes(y, **{**SMALL, **request}).take(tasks):
        model = clone(estimator).fit(X[task.support], task.support_labels)
        yield task, model, model.predict(X[task.query])


def plain_accuracies(estimator, tasks, **request):
    return [np.mean(predicted == task.query_labels) for task, _, predicted in one_by_one(estimator, tasks, **request)]


ESTIMATORS = {
    "hot": named_method("hot", BASE),
    "ot-cosine": named_method("ot-cosine", BASE),
    "ot-mean-cosine": named_method("ot-mean-cosine", BASE),
    "ot-euclidean-weighted": named_method("ot-euclidean-weighted", BASE),
    "per sample": HOTClassifier(BASE, per="sample"),
    "sampled": HOTClassifier(BASE, head="sampled", n_generated=30, random_state=5),
    "free-lunch": FreeLunchClassifier(BASE, n_generated=30, random_state=0),
    "logistic": named_method("logistic", None),
    "centroid": CentroidClassifier(BASE),
    "nearest": NEAREST,
    "pipeline": make_pipeline(StandardScaler(), NEAREST),
    "single": HOTClassifier(ragged_bank(spread=0.8, dtype=np.float32)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("shots", [1, 3])
def test_accuracies_are_those_of_the_estimator_used_one_task_at_a_time(name, shots):
    # Tasks of a second chunk are compared below.
    found = few({name: ESTIMATORS[name]}, tasks=9, shots=shots, seed=2)
    expected = plain_accuracies(ESTIMATORS[name], 9, shots=shots, seed=2)
    assert len(set(expected)) > 2
    assert np.array_equal(found[name, shots].accuracies, expected)


def test_transport_statuses_are_counted_over_all_tasks():
    found = few(["hot"], base=BASE, tasks=22)["hot", 2]
    counts: dict = {}
    for _, model, _ in one_by_one(HOTClassifier(BASE), 22):
        for status, count in model.status_counts_.items():
            counts[status] = counts.get(status, 0) + count
    assert found.statuses == counts
    assert sum(counts.values()) > 0


# Methods as names, lists, dicts, estimators


@pytest.mark.parametrize(
    ("methods", "names"),
    [
        ("hot", ["hot"]),
        (["ot-mean-cosine", "cosine"], ["ot-mean-cosine", "cosine"]),
        (("cosine", NEAREST), ["cosine", "KNeighborsClassifier"]),
        ({"ours": "hot", "theirs": NEAREST}, ["ours", "theirs"]),
        (NEAREST, ["KNeighborsClassifier"]),
        (HOTClassifier(BASE), ["HOTClassifier"]),
        (make_pipeline(StandardScaler(), NEAREST), ["Pipeline"]),
    ],
)
def test_methods_may_be_names_estimators_lists_and_dicts(methods, names):
    found = few(methods, base=BASE, tasks=3, shots=(2, 1))
    assert found.methods == names
    assert found.shots == [2, 1]
    assert [(r.method, r.shots) for r in found.results] == [(name, k) for k in (2, 1) for name in names]
    # Estimators that are given stay as they were.
    assert not any(hasattr(method, "classes_") for method in (methods, NEAREST))


# Statistics


def test_rows_hold_the_statistics_as_shares():
    found = few({"nearest": NEAREST, "ridge": RidgeClassifier()}, tasks=25)
    row = found.rows(threshold=0.7)[1]
    values = np.array(plain_accuracies(RidgeClassifier(), 25))
    assert row["method"] == "ridge"
    assert (row["ways"], row["shots"], row["tasks"]) == (3, 2, 25)
    assert row["accuracy"] == pytest.approx(values.mean()) == found["ridge", 2].accuracy.mean
    assert row["accuracy_half_width"] == pytest.approx(stats.t.ppf(0.975, 24) * stats.sem(values))
    assert row["share_below_threshold"] == np.mean(values < 0.7)
    assert row["reference"] == "nearest"
    gap = np.array(plain_accuracies(NEAREST, 25)) - values
    assert row["reference_minus_this"] == pytest.approx(gap.mean()) == found.difference("ridge", 2).mean
    assert row["milliseconds_per_task"] > 0
    assert found.difference("nearest", 2, "ridge").mean == pytest.approx(-gap.mean())


@pytest.mark.parametrize("name", ["hot", "per sample", "centroid"])
def test_calibration_error_is_the_mean_gap_of_confidence_and_accuracy_over_15_bins(name):
    confidence, right = [], []
    for task, model, predicted in one_by_one(ESTIMATORS[name], 27):
        confidence.extend(model.predict_proba(X[task.query]).max(axis=1))
        right.extend(predicted == task.query_labels)
    confidence, right = np.array(confidence), np.array(right)
    edges = np.linspace(0, 1, 16)
    error = 0.0
    for low, high in itertools.pairwise(edges):
        inside = (confidence >= low) & (confidence < high)
        if inside.any():
            error += inside.mean() * abs(confidence[inside].mean() - right[inside].mean())
    found = few({name: ESTIMATORS[name]}, tasks=27)[name, 2].calibration_error
    assert found == pytest.approx(error, abs=1e-6)
    assert found > 0.01


# Repeatability


@pytest.mark.parametrize("name", ["hot", "per sample", "free-lunch"])
def test_results_do_not_depend_on_how_many_tasks_fit_into_memory(name, monkeypatch):
    together = few({name: ESTIMATORS[name]}, tasks=20)
    # A task has at most 6 targets and 6 axes: three tasks or more at once, and never twenty.
    monkeypatch.setattr(running, "BATCH_ENTRIES", 3 * 6**3)
    apart = few({name: ESTIMATORS[name]}, tasks=20)
    assert np.array_equal(apart[name, 2].accuracies, together[name, 2].accuracies)
    assert apart[name, 2].statuses == together[name, 2].statuses


class Seeded(KNeighborsClassifier):
    """Nearest neighbour that tells with which random_state it was fitted."""

    seeds: ClassVar[list] = []

    def __init__(self, random_state=None):
        super().__init__(1)
        self.random_state = random_state

    def fit(self, X, y):
        self.seeds.append(self.random_state)
        return super().fit(X, y)


def seeds_used(estimator, **request):
    """Seeds of the tasks, without that of the fit which is only tried."""
    Seeded.seeds.clear()
    few({"seeded": estimator}, **request)
    return Seeded.seeds[1:]


def test_every_task_has_a_seed_of_its_own():
    seeds = seeds_used(Seeded(), tasks=25, seed=3)
    assert len(set(seeds)) == 25
    assert seeds_used(Seeded(), tasks=8, seed=3) == seeds[:8]
    assert seeds_used(make_pipeline(StandardScaler(), Seeded()), tasks=8, seed=3) == seeds[:8]
    assert not set(seeds_used(Seeded(), tasks=8, seed=4)) & set(seeds)
    assert seeds_used(Seeded(random_state=11), tasks=8) == [11] * 8


def test_fits_that_stop_early_are_counted_and_not_warned_of():
    hasty = LogisticRegression(max_iter=1)
    found = few({"hasty": hasty, "patient": LogisticRegression(max_iter=1000)}, tasks=21)
    assert found["hasty", 2].stopped_early == 21
    assert found["patient", 2].stopped_early == 0


def test_ending_early_says_nothing_of_joblib(recwarn):
    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        few(NEAREST, tasks=400, n_jobs=2, watch=stop)
    assert not recwarn.list


def test_results_are_json_for_every_reader_or_a_run_error(tmp_path):
    few(NEAREST, tasks=1, out=tmp_path)

    def refuse(constant):
        raise AssertionError(constant)

    json.loads((tmp_path / "results.json").read_text(), parse_constant=refuse)
    (tmp_path / "full" / "results.json").mkdir(parents=True)
    with pytest.raises(RunError, match="The run is complete, but"):
        few(NEAREST, out=tmp_path / "full")


# What cannot work

ABSOLUTE = BaseClasses.from_samples(np.abs(BASE.samples), BASE.labels)

REFUSED = [
    ({"ways": 6}, InputError, "6-way tasks need 6 classes, got 5"),
    ({"queries": 11}, InputError, "has 12 samples where 2 shots and 11 queries need 13"),
    ({"methods": "hott"}, ParameterError, "method must be one of hot, .*, got 'hott'"),
    ({"methods": []}, ParameterError, "methods is empty: name at least one of hot"),
    ({"methods": ["cosine", "hot"]}, ParameterError, "Method 'hot' needs base classes: pass base"),
    ({"methods": {1: NEAREST, "1": NEAREST}}, ParameterError, "give each its own name"),
    ({"methods": KNeighborsClassifier}, ParameterError, "must be an instance, got the class itself"),
    ({"methods": "hot", "base": BASE, "X": X[:, :5]}, InputError, "Method 'hot': .*5 features"),
    ({"y": Y[:-1]}, InputError, r"y_novel must hold one label per sample \(60\), got shape"),
    ({"reference": "best"}, ParameterError, "reference must be one of the methods KNeighborsClassifier, got 'best'"),
    ({"methods": [NEAREST, NEAREST]}, ParameterError, "methods has 'KNeighborsClassifier' more than once: pass a dict"),
    ({"methods": StandardScaler()}, ParameterError, "Method 'StandardScaler' must be"),
    ({"methods": {"m": HOTClassifier(BASE, random_state=np.random.RandomState(0))}}, ParameterError, "random_state of"),
    ({"methods": {"m": HOTClassifier(BASE, epsilon=-1)}}, ParameterError, "'m': The 'epsilon' parameter of HOTClassif"),
    ({"methods": {"m": KNeighborsClassifier(7)}}, InputError, "Method 'm' cannot be fitted to a task: Expected n_"),
    ({"methods": {"m": KNeighborsClassifier(5)}, "shots": (5, 1)}, InputError, "Method 'm' cannot be fitted to a task"),
    ({"methods": HOTClassifier(ABSOLUTE, power=0.5)}, InputError, r"negative entries.*pass power=1"),
]


@pytest.mark.parametrize(("change", "kind", "message"), REFUSED)
def test_what_cannot_work_is_refused_in_one_sentence_before_any_task(change, kind, message):
    seen = []
    request = {"methods": NEAREST, "watch": lambda *found: seen.append(found), **change}
    with pytest.raises(HotshotError, match=message) as error:
        few(request.pop("methods"), **request)
    assert isinstance(error.value, kind)
    assert not seen
    said = re.sub(r" Did you mean '.+'\?$", "", str(error.value))
    # What an estimator of scikit-learn says may end as it likes.
    assert said.endswith(".") or "cannot be fitted" in said
    assert not re.search(r"\. (?!Got )[A-Z]|\n", said)


class NoProbability(KNeighborsClassifier):
    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), np.nan)


def test_probabilities_that_are_not_finite_name_a_row():
    with pytest.raises(InputError, match=r"'m' has no finite probabilities for row \d+ of X_novel"):
        few({"m": NoProbability(1)})


# Spaces and powers
