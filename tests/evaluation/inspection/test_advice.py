"""What follows from a file for the methods."""

from __future__ import annotations

import pytest
from inspected_files import classes, inspected

from hotshot.bank import BaseClasses
from hotshot.classifiers import METHOD_NAMES, METHODS_WITHOUT_BASE, HOTClassifier, parameter_set
from hotshot.errors import InputError
from hotshot.evaluation.inspection.advice import WITH_BASE, WITHOUT_BASE
from hotshot.evaluation.tasks import Episodes


def test_every_method_is_advised_on():
    advised = set(WITH_BASE + WITHOUT_BASE)
    assert {name for name in advised if "(" not in name} == set(METHOD_NAMES)
    assert set(WITHOUT_BASE) == set(METHODS_WITHOUT_BASE)
    named = [method for advice in inspected(classes()).advice for method in advice.methods]
    assert sorted(named) == sorted([*advised, "hotshot evaluate"])


def verdicts(found):
    return {method: advice.verdict for advice in found.advice for method in advice.methods}


@pytest.mark.parametrize(("scale", "expected"), [(1e-4, "with care"), (1.0, "fine"), (1e5, "with care")])
def test_a_penalty_needs_a_usual_norm_and_distances_do_not(scale, expected):
    X, y = classes()
    found = verdicts(inspected((scale * X, y)))
    assert {found[name] for name in ("logistic", "ridge", "svm", "free-lunch")} == {expected}
    assert {found[name] for name in ("hot", "centroid-cl2n", "centroid", "cosine")} == {"fine"}


def test_large_banks_are_slow_to_weigh(monkeypatch):
    monkeypatch.setattr("hotshot.evaluation.inspection.advice.SLOW_CLASSIFIER", 1e4)
    found = verdicts(inspected(classes()))
    slow = {name for name, verdict in found.items() if verdict == "with care"}
    assert slow == {
        "ot-cosine-weighted", "ot-euclidean-weighted", "parameter_set('paper')", "parameter_set('authors')",
    }  # fmt: skip


def test_published_sets_are_refused_where_they_refuse():
    X, y = classes()
    for shift in (0, 1):
        model = HOTClassifier(BaseClasses.from_samples(X - shift, y), **parameter_set("paper"), random_state=0)
        advice = next(a for a in inspected((X - shift, y)).advice if "parameter_set('paper')" in a.methods)
        if shift:
            assert advice.verdict == "refused"
            with pytest.raises(InputError, match="power"):
                model.fit(X[:60:30] - shift, ["a", "b"])
        else:
            assert advice.verdict == "fine"
            model.fit(X[:60:30] - shift, ["a", "b"])


@pytest.mark.parametrize(("per_class", "shots"), [(30, 15), (16, 1)])
def test_the_tasks_promised_can_be_drawn_and_no_larger(per_class, shots):
    found = inspected(classes(per_class=per_class))
    advice = next(a for a in found.advice if "hotshot evaluate" in a.methods)
    assert f"up to 12 ways, and up to {shots} shot" in advice.sentence
    y = classes(per_class=per_class)[1]
    assert Episodes(y, ways=12, shots=shots)[0] is not None
    with pytest.raises(InputError, match="samples"):
        Episodes(y, ways=12, shots=shots + 1)


def test_small_novel_classes_allow_fewer_queries():
    advice = next(a for a in inspected(classes(per_class=8)).advice if "hotshot evaluate" in a.methods)
    assert "--queries 7" in advice.sentence
    assert Episodes(classes(per_class=8)[1], ways=5, shots=1, queries=7)[0] is not None
