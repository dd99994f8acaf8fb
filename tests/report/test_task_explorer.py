"""Tasks looked into: the numbers are those of the run, and the reasons those of `explain`."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import make_bank
from hotshot.bank import BaseClasses
from hotshot.classifiers import FreeLunchClassifier, HOTClassifier
from hotshot.evaluation import evaluate
from hotshot.evaluation.tasks import Episodes
from hotshot.report.explorer import explore, select_tasks

X_BASE, Y_BASE = make_bank(n_classes=12, seed=1, spread=1.0)
X, Y = make_bank(n_classes=6, seed=2, spread=1.0)
BASE = BaseClasses.from_samples(X_BASE, Y_BASE)


def episodes(shots=1, ways=4):
    return Episodes(Y, ways=ways, shots=shots, queries=5, seed=3)


@pytest.mark.parametrize(
    "estimator",
    [
        HOTClassifier(BASE),
        HOTClassifier(BASE, per="sample", cost="cosine"),
        FreeLunchClassifier(BASE, n_generated=20, random_state=0),
    ],
    ids=["hot", "per sample", "free lunch"],
)
@pytest.mark.parametrize("shots", [1, 3])
def test_accuracies_are_those_of_an_evaluation(estimator, shots):
    found = evaluate({"it": estimator}, X, Y, ways=4, shots=shots, queries=5, tasks=8, seed=3, n_jobs=1)
    tasks = [explore(estimator, X, episodes(shots), i) for i in range(8)]
    assert [task["right"] / task["asked"] for task in tasks] == [task["accuracy"] for task in tasks]
    assert [task["accuracy"] for task in tasks] == pytest.approx(found["it", shots].accuracies)
    for task in tasks:
        assert len(task["wrong"]) == task["asked"] - task["right"]
        assert sum(truth == chosen for *_, truth, chosen, _ in task["queries"]) == task["right"]


def test_rows_are_those_of_the_samples():
    drawn = episodes(3)
    task = explore(HOTClassifier(BASE), X, drawn, 2)
    assert sorted(row for own in task["classes"] for row in own["rows"]) == sorted(drawn[2].support)
    for own, name in zip(task["classes"], task["names"], strict=True):
        assert (Y[own["rows"]] == drawn.names[name]).all()
    assert [query[4] for query in task["queries"]] == drawn[2].query.tolist()
    assert all(Y[row] == drawn.names[task["names"][truth]] for *_, truth, _, row in task["queries"])


def test_reasons_are_those_of_explain_where_the_right_class_comes_second():
    estimator = HOTClassifier(BASE)
    drawn, checked = episodes(), 0
    for task in (explore(estimator, X, drawn, i) for i in range(10)):
        own = drawn[task["index"]]
        model = HOTClassifier(BASE).fit(X[own.support], own.support_labels)
        reasons = model.explain(X[own.query]).reasons
        for wrong in task["wrong"]:
            reason = reasons[wrong["query"]]
            assert wrong["chosen_probability"] == pytest.approx(reason.probability, abs=1e-3)
            if reason.rival != own.query_labels[wrong["query"]]:
                continue
            checked += 1
            assert wrong["parts"] == pytest.approx([reason.gap, reason.own, reason.lent, reason.rest], abs=1e-4)
            named = [BASE.names[b] for b, *_ in wrong["for_chosen"]["lenders"]]
            assert named == [lender.name for lender in reason.lenders[: len(named)]]
            given = {BASE.names[b]: numbers for b, *numbers in wrong["for_right"]["lenders"]}
            for lender in reason.lenders:
                if lender.name in given:
                    expected = lender.weight, lender.rival_weight, lender.contribution
                    assert given[lender.name] == pytest.approx(expected, abs=1e-4)
            for row, similarity, contribution in wrong["for_chosen"]["examples"] + wrong["for_right"]["examples"]:
                example = next(each for each in reason.examples if own.support[each.index] == row)
                assert (similarity, contribution) == pytest.approx((example.similarity, example.contribution), abs=1e-4)
    assert checked > 5


def test_the_nearest_examples_are_the_most_similar_support_samples():
    drawn = episodes(3)
    task = explore(HOTClassifier(BASE), X, drawn, 1)
    model = HOTClassifier(BASE).fit(X[drawn[1].support], drawn[1].support_labels)
    units = [
        x / np.linalg.norm(x, axis=1, keepdims=True)
        for x in map(model.transform_, (X[drawn[1].query], X[drawn[1].support]))
    ]
    for own, similarity in zip(task["nearest"], units[0] @ units[1].T, strict=True):
        assert [s for s, _ in own] == np.argsort(-similarity)[:3].tolist()
        assert [rounded for _, rounded in own] == pytest.approx(similarity[[s for s, _ in own]], abs=0.006)


@pytest.mark.parametrize("kind", ["examples", "lenders"])
def test_what_is_named_for_a_class_contributes_to_it(kind):
    for task in (explore(HOTClassifier(BASE), X, episodes(3), i) for i in range(10)):
        for wrong in task["wrong"]:
            gap, *parts = wrong["parts"]
            assert gap == pytest.approx(sum(parts), abs=1e-3)
            assert gap >= 0
            for sign, side in ((1, "for_chosen"), (-1, "for_right")):
                given = [sign * numbers[-1] for numbers in wrong[side][kind]]
                assert all(value > 0 for value in given)
                assert given == sorted(given, reverse=True)


@pytest.mark.parametrize("ways", [2, 3, 6])
def test_places_fill_the_plane(ways):
    for task in (explore(HOTClassifier(BASE), X, episodes(ways=ways), i) for i in range(2)):
        places = np.array([point[:2] for point in task["support"] + task["queries"]])
        assert places.min(axis=0) == pytest.approx([0, 0])
        assert places.max(axis=0) == pytest.approx([1, 1])


@pytest.mark.parametrize("most", [1, 2, 3, 4, 7, 24])
@pytest.mark.parametrize("tasks", [1, 2, 5, 23, 24, 100])
def test_chosen_tasks_are_different_and_in_order(most, tasks):
    accuracies = np.random.default_rng(tasks).integers(0, 5, tasks) / 5
    chosen = select_tasks(accuracies, most)
    assert len(chosen) == min(most, tasks)
    values = accuracies[list(chosen)]
    assert (np.diff(values) >= 0).all()
    if most >= 3 and tasks >= most:
        assert values[0] == accuracies.min()
        assert values[-1] == accuracies.max()
        assert np.median(accuracies) in [accuracies[i] for i, g in chosen.items() if g == "median"] or tasks % 2 == 0
