"""Queries classified jointly: who does it, on which rows, what it is compared with, and what a run folder keeps."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.base import clone

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import CentroidClassifier, evaluate
from hotshot.classifiers import BDCSPNClassifier, LaplacianShotClassifier
from hotshot.errors import ParameterError, RunError
from hotshot.evaluation.journal import REQUEST
from hotshot.evaluation.results import paired_difference
from hotshot.evaluation.stored import load_run
from hotshot.evaluation.tables import result_table
from hotshot.evaluation.tasks import Episodes, JointEpisodes, OpenEpisodes, joint_samples

BASE = ragged_bank(spread=0.8)
X, Y = make_bank(7, 24, 6, seed=1, spread=1.2)
NEW = Y + 100
SIZES = {"ways": 3, "shots": (1, 2), "queries": "dirichlet:1:4", "tasks": 23, "n_jobs": 1}
RECTIFIED = BDCSPNClassifier(BASE, epsilon=3.0, shift=False)


class Both(CentroidClassifier):
    """Nearest centroid, and jointly nearest centroid after the queries are centred."""

    def predict_proba_batch(self, X):
        """The distances to centroids without the mean of each class over the rows, as probabilities."""
        logits = 5 * self._checked_logits(X)
        logits = logits - logits.mean(axis=0)
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)

    def predict_batch(self, X):
        """The most probable classes."""
        return self.classes_[self.predict_proba_batch(X).argmax(axis=1)]


def small(methods, **request):
    return evaluate(methods, X, Y, **{**SIZES, **request})


METHODS = {"both": Both(BASE), "rectified": RECTIFIED}


@pytest.fixture(scope="module")
def found():
    return small({**METHODS, "centroid": CentroidClassifier(BASE)}, batch=True)


# --- what is evaluated


def test_the_reference_is_evaluated_both_ways_on_the_same_tasks(found):
    assert found.methods == ["both", "both one by one", "rectified", "centroid"]
    assert found.jointly == ("both", "rectified")
    alone = small({"both": Both(BASE), "centroid": CentroidClassifier(BASE)})
    for shots in SIZES["shots"]:
        by_one = found["both one by one", shots]
        assert np.array_equal(by_one.accuracies, alone["both", shots].accuracies)
        assert by_one.calibration_error == alone["both", shots].calibration_error
        assert np.array_equal(found["centroid", shots].accuracies, alone["centroid", shots].accuracies)
        expected = paired_difference(found["both", shots].accuracies, by_one.accuracies)
        assert found.difference("both one by one", shots) == expected
        assert expected.mean != 0


@pytest.mark.parametrize("name", ["both", "rectified"])
def test_accuracies_and_confidence_are_those_of_all_queries_of_a_task_together(found, name):
    for shots in SIZES["shots"]:
        expected, confidence = [], []
        sizes = {key: SIZES[key] for key in ("ways", "queries")}
        for task in Episodes(Y, shots=shots, **sizes).take(SIZES["tasks"]):
            model = clone(METHODS[name]).fit(X[task.support], task.support_labels)
            expected.append(np.mean(model.predict_batch(X[task.query]) == task.query_labels))
            confidence.append(model.predict_proba_batch(X[task.query]).max(axis=1).mean())
        result = found[name, shots]
        assert np.array_equal(result.accuracies, expected)
        # Were all confidence in one bin, this would be the error; it is never less.
        assert result.calibration_error >= abs(np.mean(confidence) - np.mean(expected)) - 1e-9


def test_only_the_reference_has_a_second_row_and_only_if_it_has_both():
    methods = {"rectified": RECTIFIED, "both": Both(BASE), "centroid": CentroidClassifier(BASE)}
    few = {"tasks": 2, "shots": 1, "batch": True}
    assert small(methods, **few).methods == ["rectified", "both", "centroid"]
    assert small(methods, **few, reference="centroid").methods == ["rectified", "both", "centroid"]
    assert small(methods, **few, reference="both").methods == ["rectified", "both", "both one by one", "centroid"]


def test_in_the_open_setting_strangers_are_in_the_batch():
    request = {"ways": 3, "shots": 1, "queries": 4}
    found = small({"both": Both(BASE)}, setting="open", batch=True, **{**request, "tasks": 9})
    expected, without = [], []
    for task in OpenEpisodes(Y, **request).take(9):
        model = Both(BASE).fit(X[task.support], task.support_labels)
        rows = np.concatenate([task.query, task.others])
        expected.append(np.mean(model.predict_batch(X[rows])[: len(task.query)] == task.query_labels))
        without.append(np.mean(model.predict_batch(X[task.query]) == task.query_labels))
    assert np.array_equal(found["both", 1].accuracies, expected)
    assert expected != without
    assert np.array_equal(found["both", 1].measures["auroc"], found["both one by one", 1].measures["auroc"])


def test_in_the_generalised_setting_old_and_new_classes_are_in_one_batch():
    request = {**SIZES, "shots": 1, "queries": 4, "tasks": 3, "setting": "generalised", "batch": True}
    found = evaluate({"both": Both(BASE)}, X, NEW, **request)
    rest, everything, y_base = joint_samples(BASE, X, NEW, 0)
    for index, task in enumerate(JointEpisodes(NEW, y_base, ways=3, shots=1, queries=4, seed=0).take(3)):
        model = Both(rest, include_base=True).fit(everything[task.support], task.support_labels)
        answers = model.predict_batch(everything[np.concatenate([task.query, task.others])])
        for measure, own, labels in (
            ("novel_accuracy", answers[: len(task.query)], task.query_labels),
            ("base_accuracy", answers[len(task.query) :], task.other_labels),
        ):
            expected = np.mean([np.mean(own[labels == name] == name) for name in np.unique(labels)])
            assert found["both", 1].measures[measure][index] == pytest.approx(expected)
    alone = found["both one by one", 1].measures
    assert not np.array_equal(alone["base_accuracy"], found["both", 1].measures["base_accuracy"])
    assert np.array_equal(alone["base_alone"], found["both", 1].measures["base_alone"])


# --- what a person reads


def test_tables_rows_and_text_say_that_queries_were_classified_jointly(found):
    table = result_table(found, 1)
    assert table.title == "3-way-1-shot, 23 tasks, queries classified jointly"
    assert (
        table.notes[0] == "both and rectified classified the queries of a task jointly, the other methods one by one."
    )
    assert [row["batch"] for row in found.rows()] == 2 * [True, False, True, False]
    alone = small({"both": Both(BASE)}, tasks=2, shots=1)
    assert "jointly" not in result_table(alone, 1).title
    assert "batch" not in alone.rows()[0]


# --- run folders


def test_a_run_is_read_again_and_is_not_mixed_with_one_by_one(tmp_path, found):
    out, chunks = tmp_path / "run", []
    again = small(METHODS, batch=True, out=out, watch=lambda record, was_known, total: chunks.append(total))
    assert chunks == [138] * 12
    for other in (again, load_run(out).evaluation):
        assert other.jointly == ("both", "rectified")
        for result in other.results:
            assert np.array_equal(result.accuracies, found[result.method, result.shots].accuracies)
    assert json.loads((out / REQUEST).read_text())["request"]["batch"] == ["both", "rectified"]
    with pytest.raises(RunError, match="methods"):
        small({"both": Both(BASE)}, out=out)


# --- what is refused


@pytest.mark.parametrize(
    ("methods", "request_", "message"),
    [
        ({"shot": LaplacianShotClassifier(BASE)}, {}, "Method 'shot' classifies the queries of a task jointly: pass"),
        ({"a": CentroidClassifier(BASE)}, {"batch": True}, "No method of a has predict_batch: leave out batch"),
        ({"r": RECTIFIED}, {"batch": True, "setting": "generalised"}, "Method 'r' cannot answer base classes too"),
        ({"m": Both(BASE), "m one by one": Both(BASE)}, {"batch": True}, "methods has 'm one by one', which batch"),
    ],
    ids=["no batch", "no method", "generalised", "name"],
)
def test_what_cannot_be_is_one_sentence(methods, request_, message):
    with pytest.raises(ParameterError, match=message) as error:
        small(methods, **request_)
    assert str(error.value).count(". ") == 0
