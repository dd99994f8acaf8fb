"""The generalised and the open setting: known answers, the same tasks for all, resumed runs, and what is refused."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from few_shot_problems import assert_same
from hotshot import BaseClasses, HOTClassifier, evaluate
from hotshot.classifiers import DiscriminantClassifier
from hotshot.errors import HotshotError, InputError, ParameterError
from hotshot.evaluation.methods import auroc, harmonic_mean
from hotshot.evaluation.stored import load_run
from hotshot.evaluation.tables import result_table
from hotshot.evaluation.tasks import Episodes, JointEpisodes, OpenEpisodes, split_base

WIDTH, N_BASE, N_NOVEL = 10, 14, 6
METHODS = ["hot", "centroid-cl2n", "logistic-tuned", "lda", "plda", "softmax-calibration"]


def separated(spread, seed=0):
    """A bank, and samples of novel classes with their labels, around random centres."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(N_BASE + N_NOVEL, WIDTH))
    labels = np.repeat(np.arange(N_BASE + N_NOVEL), 12)
    X = centres[labels] + spread * rng.normal(size=(len(labels), WIDTH))
    names = np.array([f"{'base' if c < N_BASE else 'novel'} {c}" for c in range(N_BASE + N_NOVEL)])[labels]
    old = labels < N_BASE
    return BaseClasses.from_samples(X[old], names[old]), X[~old], names[~old]


EASY = separated(0.03)
HARD = separated(0.9)


def small(methods, data=HARD, **request):
    base, X, y = data
    numbers = {"shots": 1, "queries": 5, "tasks": 3, "n_jobs": 1, "base": base}
    if request.get("setting") == "open":
        numbers["ways"] = 3
    return evaluate(methods, X, y, **{**numbers, **request})


class Scored(KNeighborsClassifier):
    """Nearest neighbour with the same outlier score for all samples."""

    def __init__(self, value=0.0):
        super().__init__(1)
        self.value = value

    def outlier_score(self, X):
        return np.full(len(X), self.value)


# Tasks


def test_a_fifth_of_each_base_class_becomes_queries_and_the_rest_the_bank():
    counts = {"a": 4, "b": 5, "c": 14, "d": 20}
    y = np.repeat(list(counts), list(counts.values()))
    X = np.arange(2.0 * len(y)).reshape(-1, 2)
    base = BaseClasses.from_samples(X, y, seen_in_training=True)
    rest, held, labels = split_base(base, seed=3)
    assert {name: int(np.sum(labels == name)) for name in counts} == {"a": 0, "b": 1, "c": 2, "d": 4}
    assert dict(zip(rest.names, rest.counts, strict=True)) == {"a": 4, "b": 4, "c": 12, "d": 16}
    assert rest.seen_in_training is True
    assert sorted([*map(tuple, rest.samples), *map(tuple, held)]) == sorted(map(tuple, X))
    again = split_base(base, seed=3)[1]
    assert np.array_equal(held, again)
    assert not np.array_equal(held, split_base(base, seed=4)[1])


def test_generalised_tasks_have_all_new_classes_and_queries_of_both_kinds():
    y, y_base = np.repeat(list("vwxyz"), [4, 9, 9, 9, 9]), np.repeat(["a", "b"], [2, 8])
    tasks = JointEpisodes(y, y_base, ways=None, shots=2, queries=5, seed=0)
    everyone = np.concatenate([y, y_base])
    for task in (tasks[i] for i in range(10)):
        assert sorted(set(task.support_labels)) == list("vwxyz")
        assert np.array_equal(everyone[task.query], task.query_labels)
        assert np.array_equal(everyone[task.others], task.other_labels)
        assert not set(task.query) & set(task.support)
        assert np.unique(task.query_labels, return_counts=True)[1].tolist() == [2, 5, 5, 5, 5]
        assert np.unique(task.other_labels, return_counts=True)[1].tolist() == [2, 5]
    fewer = JointEpisodes(y, y_base, ways=3, shots=2, queries=5, seed=0)
    assert len(np.unique(fewer[0].support_labels)) == 3


@pytest.mark.parametrize(("ways", "queries"), [(3, 4), (5, 4), ("2-4", 4), (3, "dirichlet:1:2")])
def test_open_tasks_are_closed_ones_with_queries_of_other_classes(ways, queries):
    y = np.repeat(list("uvwxyz"), 12)
    sizes = {"ways": ways, "shots": 1, "queries": queries, "seed": 5}
    for index in range(12):
        closed, task = Episodes(y, **sizes)[index], OpenEpisodes(y, **sizes)[index]
        for part in ("support", "support_labels", "query", "query_labels"):
            assert np.array_equal(getattr(task, part), getattr(closed, part))
        assert np.array_equal(y[task.others], task.other_labels)
        assert not set(task.other_labels) & set(task.support_labels)
        assert len(set(task.others)) == min(len(task.query), 12 * (6 - len(set(task.support_labels))))


# Measures


@pytest.mark.parametrize("method", METHODS)
def test_well_separated_classes_are_all_told_apart(method):
    found = small(method, EASY, setting="generalised", shots=(1, 3), tasks=2)
    for k in (1, 3):
        measures = found[method, k].measures
        assert {name: values.mean() for name, values in measures.items()} == {
            "base_accuracy": 1, "novel_accuracy": 1, "harmonic_mean": 1, "base_alone": 1, "base_loss": 0,
        }  # fmt: skip
    found = small(method, EASY, setting="open", tasks=2)[method, 1]
    assert found.accuracy.mean == found.measures["auroc"].mean() == 1
    assert "false_alarms" not in found.measures


def test_base_accuracy_alone_is_that_of_a_model_of_base_classes():
    base, X, y = HARD
    found = small("lda", setting="generalised", tasks=4)["lda", 1].measures
    rest, held, labels = split_base(base, 0)
    settled = DiscriminantClassifier(rest).settings()
    # With include_base and one class far away, nothing but base classes is answered.
    model = DiscriminantClassifier(rest, shrinkage=settled["shrinkage"], include_base=True)
    model.fit(X[:1], y[:1])
    answers = model.classes_[~model.is_new_][model.decision_function(held)[:, ~model.is_new_].argmax(axis=1)]
    assert found["base_alone"] == pytest.approx(np.mean(answers == labels))
    assert found["base_loss"] == pytest.approx(found["base_alone"] - found["base_accuracy"])
    assert (found["base_loss"] >= 0).all()


def test_the_rate_of_the_outlier_score_is_known():
    assert auroc(np.array([0, 1]), np.array([2, np.inf])) == 1
    assert auroc(np.array([2, 3]), np.array([0, 1])) == 0
    assert auroc(np.zeros(4), np.zeros(3)) == 0.5
    assert auroc(np.array([0.0, 2.0]), np.array([1.0, 2.0])) == 0.625
    assert harmonic_mean(0.0, 0.0) == 0
    assert harmonic_mean(0.5, 1.0) == pytest.approx(2 / 3)
    found = small({"same": Scored(0.0)}, setting="open")["same", 1]
    assert (found.measures["auroc"] == 0.5).all()


def test_the_accuracy_of_open_tasks_is_that_of_closed_ones():
    closed, opened = (small(["hot", "lda"], setting=s, ways=3, tasks=25) for s in ("closed", "open"))
    for method in ("hot", "lda"):
        assert np.array_equal(closed[method, 1].accuracies, opened[method, 1].accuracies)
        assert closed[method, 1].calibration_error == pytest.approx(opened[method, 1].calibration_error, abs=1e-6)
    assert not closed["hot", 1].measures


def test_methods_that_can_reject_are_measured_by_it():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(30), 14)
    X = 3 * rng.normal(size=(30, 8))[labels] + rng.normal(size=(len(labels), 8))
    base = BaseClasses.from_samples(X[: 22 * 14], labels[: 22 * 14])
    found = evaluate(
        {"hot": HOTClassifier(base)}, X[22 * 14 :], labels[22 * 14 :], setting="open", ways=4, shots=2, queries=10,
        tasks=20, n_jobs=1,
    )["hot", 2]  # fmt: skip
    assert found.measures.keys() == {"auroc", "false_alarms", "found"}
    assert found.measures["false_alarms"].mean() < 0.2 < found.measures["found"].mean()


# Results


def test_rows_and_tables_have_the_measures():
    found = small(["hot", "lda"], setting="generalised")
    hot, lda = found.rows()
    difference = found.difference("lda", 1, measure="harmonic_mean")
    assert hot["setting"] == "generalised"
    assert lda["harmonic_mean"] == pytest.approx(found["lda", 1].measures["harmonic_mean"].mean())
    assert lda["reference_minus_this_harmonic_mean"] == pytest.approx(difference.mean)
    assert lda["reference_minus_this_harmonic_mean_half_width"] == pytest.approx(difference.half_width)
    assert json.dumps(found.rows())
    table = result_table(found, 1)
    assert table.columns[:4] == ("method", "base", "novel", "harmonic mean")
    assert (table.columns[4], table.rows[0][4].text) == ("lead of hot", "reference")
    assert "harmonic mean" in str(found)
    opened = small(["hot", "lda"], setting="open")
    assert result_table(opened, 1).columns[1:3] == ("accuracy", "AUROC")
    assert "setting" not in small("lda", ways=3).rows()[0]


# Runs


@pytest.mark.parametrize("setting", ["generalised", "open"])
def test_runs_resume_and_do_not_depend_on_the_number_of_processes(setting, tmp_path):
    request = {"setting": setting, "tasks": 23 if setting == "open" else 4}
    whole = small(["hot", "lda"], out=tmp_path / "whole", **request)
    assert_same(small(["hot", "lda"], n_jobs=2, **request), whole)
    cut = shutil.copytree(tmp_path / "whole", tmp_path / "cut")
    lines = (cut / "journal.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == (8 if setting == "generalised" else 4)
    (cut / "journal.jsonl").write_bytes(b"".join(lines[1:3]))
    seen = []
    found = small(["hot", "lda"], out=cut, watch=lambda record, known, total: seen.append(known), **request)
    assert_same(found, whole)
    assert sum(seen) == 2
    stored = load_run(tmp_path / "whole")
    assert stored.evaluation.rows() == whole.rows()
    assert stored.evaluation.setting.name == setting
    with pytest.raises(HotshotError, match=r"differs in .*setting"):
        small(["hot", "lda"], out=cut, ways=3, tasks=4)


# What cannot work

OPEN = {"setting": "open"}
REFUSED = [
    ({"setting": "half-open"}, ParameterError, "setting must be one of closed, generalised, open, got 'half"),
    ({"methods": "cosine"}, ParameterError, "Method 'cosine' cannot answer base classes too"),
    ({"methods": "free-lunch"}, ParameterError, "Method 'free-lunch' cannot answer base classes too"),
    ({"methods": {"x": HOTClassifier()}}, ParameterError, "Method 'x' cannot answer base classes too"),
    ({"methods": {"x": HOTClassifier(EASY[0])}}, ParameterError, "needs one bank for all methods, got 2"),
    ({**OPEN, "methods": {"knn": KNeighborsClassifier(1)}}, ParameterError, "Method 'knn' has no outlier_score"),
    ({**OPEN, "methods": "logistic"}, ParameterError, "HOTClassifier without base classes has no outlier scores"),
    ({**OPEN, "methods": {"x": Scored(np.nan)}}, InputError, "Method 'x': outlier_score must"),
    ({**OPEN, "ways": 6}, InputError, "6-way tasks in the open setting need more than 6 classes"),
    ({"ways": 7}, InputError, "7-way tasks need 7 classes, got 6"),
    ({"shots": 12}, InputError, "has 12 samples where 12 shots and 1 queries need 13"),
    ({"queries": "dirichlet:2"}, ParameterError, "queries must be a number in the generalised setting"),
    ({"seed": -1}, ParameterError, "seed must be"),
]


@pytest.mark.parametrize(("change", "kind", "message"), REFUSED)
def test_what_cannot_work_is_refused_in_one_sentence_before_any_task(change, kind, message):
    seen = []
    request = {"methods": "lda", "setting": "generalised", **change}
    with pytest.raises(HotshotError, match=message) as error:
        small(request.pop("methods"), watch=lambda *found: seen.append(found), **request)
    assert isinstance(error.value, kind)
    assert "\n" not in str(error.value)
    assert not seen


def test_banks_without_base_queries_are_refused(tmp_path):
    base, X, y = HARD
    rows = [row for label in range(len(base.names)) for row in np.flatnonzero(base.labels == label)[:4]]
    few = BaseClasses.from_samples(base.samples[rows], base.names[base.labels[rows]])
    with pytest.raises(InputError, match="No base class has 5 samples"):
        small("lda", (few, X, y), setting="generalised")
    base.save(tmp_path / "bank", samples=False, covariance="diagonal")
    with pytest.raises(ParameterError, match="needs a bank with samples"):
        small("lda", (BaseClasses.load(tmp_path / "bank"), X, y), setting="generalised")
