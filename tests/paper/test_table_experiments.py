"""The tables of `accuracy`, `backbones`, `cross-domain`, `speed` and `histogram` hold what `evaluate` gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conftest import make_bank
from few_shot_problems import drawn_classes
from hotshot import BaseClasses, HOTClassifier, evaluate, named_method, parameter_set
from hotshot.errors import ParameterError
from hotshot.evaluation import Evaluation, MethodResult
from hotshot.evaluation.tables import Number, percent
from hotshot.paper import EXPERIMENTS, FeatureSet, Setting, accuracy, cross_domain
from hotshot.paper import setting as settings
from hotshot.paper.findings import gap
from hotshot.paper.published import published, published_systems

REQUEST = {"ways": 3, "queries": 4, "tasks": 8, "seed": 3, "n_jobs": 1}


def feature_set(name="toys", seed=0, width=6, backbone="", positive=True):
    """Base and novel classes around random centres."""
    X, y = make_bank(12, 14, width, seed=seed, spread=0.7)
    X = X - X.min() if positive else X
    return FeatureSet(name, BaseClasses.from_samples(X[y < 8], y[y < 8]), X[y >= 8], y[y >= 8], backbone)


def setting_of(*sets, **changes):
    return Setting(sets[0], tuple(sets[1:]), **{**REQUEST, **changes})


def evaluated(features, methods, **changes):
    """Straight from `evaluate`, which knows nothing of experiments."""
    request = {**REQUEST, "shots": (1, 5), **changes}
    return evaluate(methods, features.X, features.y, base=features.base, **request)


@pytest.fixture
def few(monkeypatch):
    """Slow methods are evaluated on 5 of the 8 tasks."""
    monkeypatch.setattr(settings, "LEAST_TASKS", 5)
    return 5


def numbers_in(findings):
    return [cell for table in findings.tables for row in table.rows for cell in row if isinstance(cell, Number)]


def setting_with(results):
    """A setting whose evaluations are given: accuracies, or seconds per task, by method and shots."""

    class GivenResults(Setting):
        def evaluate(self, methods, *, shots=(1,), features=None, tasks=None):
            found = []
            for name in methods:
                for k in shots:
                    values = np.atleast_1d(results[name, k]).astype(float)
                    found.append(
                        MethodResult(name, k, values, drawn_classes(len(values)), {}, None, {}, 0, float(values[0]))
                    )
            return Evaluation(tuple(found), self.ways, len(found[0].accuracies), next(iter(methods)))

    return GivenResults


# Comparison


def result(*accuracies):
    values = np.array(accuracies, dtype=float)
    return MethodResult("any", 1, values, drawn_classes(len(values)), {}, None, {}, 0, 0.0)


def test_differences_are_over_the_tasks_that_both_have():
    long, short = result(0.9, 0.8, 0.1, 0.2), result(0.5, 0.6)
    assert gap(long, short).mean == pytest.approx(30)
    assert gap(short, long).mean == pytest.approx(-30)


@pytest.mark.parametrize(
    ("name", "positive", "power"),
    [("toys", True, 0.5), ("CIFAR-FS", True, 0.8), ("cub", True, 1.0), ("CIFAR-FS", False, 1.0)],
)
def test_the_authors_set_takes_the_power_of_the_dataset(name, positive, power):
    model = accuracy.hot_as_published(feature_set(name, positive=positive), head="bound")
    expected = {**parameter_set("authors"), "power": power, "head": "bound"}
    assert {key: value for key, value in model.get_params().items() if key in expected} == expected


# Accuracy


@pytest.fixture(scope="module")
def measured():
    """Two feature sets, slow methods on 5 of the 8 tasks, and what `accuracy` found."""
    sets = feature_set(), feature_set("cifar-fs", seed=1, backbone="ResNet12")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings, "LEAST_TASKS", 5)
        return sets, accuracy.run_accuracy(setting_of(*sets))


def test_accuracies_are_those_of_evaluate_on_the_same_tasks(measured):
    (toys, _), findings = measured
    table = findings.tables[0]
    slow = {name for name, _ in accuracy.SLOW}
    methods = {name: named_method(name, toys.base) for name in accuracy.METHODS if name != accuracy.AUTHORS}
    methods[accuracy.AUTHORS] = HOTClassifier(toys.base, **parameter_set("authors", head="bound"))
    found = evaluated(toys, {name: method for name, method in methods.items() if name != accuracy.AUTHORS})
    some = evaluated(toys, {name: methods[name] for name in ("hot", *slow)}, tasks=5)
    assert [row[0] for row in table.rows] == list(accuracy.METHODS.values())
    for name, row in zip(accuracy.METHODS, table.rows, strict=True):
        for k, own, difference in ((1, *row[1:3]), (5, *row[3:5])):
            source = some if (name, k) in accuracy.SLOW else found
            assert own == percent(source[name, k].accuracy)
            if name == "hot":
                assert difference is None
            else:
                assert difference == percent(source.difference(name, k, reference="hot"), signed=True)
    assert any("first 5 tasks" in note for note in table.notes)


def test_published_systems_stand_below_the_measured_methods_of_the_papers_datasets_only(measured):
    _, findings = measured
    ours, theirs = findings.tables
    count = len(accuracy.METHODS)
    assert len(ours.rows) == count
    for row in (*ours.rows, *theirs.rows[:count]):
        assert not any(cell.published for cell in row if isinstance(cell, Number))
    for row, (name, backbone, _, accuracies) in zip(theirs.rows[count:], published_systems("CIFAR-FS"), strict=True):
        assert (row[0], row[5]) == (name, backbone)
        assert [row[1], row[3]] == accuracies
        assert row[1].published
        assert row[2] is row[4] is None
    assert len(theirs.notes) == len(ours.notes) + 1
    assert list(findings.figures) == ["accuracy", "accuracy-differences", "accuracy-2", "accuracy-differences-2"]


# Backbones


def test_backbones_hold_paired_differences_beside_the_papers():
    sets = [
        feature_set("mini-ImageNet", backbone="conv4"),
        feature_set("miniImageNet", seed=1, width=5, backbone="ResNet50"),
        feature_set("CUB", seed=2, backbone="Conv6"),
    ]
    findings = accuracy.run_backbones(setting_of(*sets))
    rows = findings.tables[0].rows
    assert [(row[0], str(row[1])) for row in rows] == [("conv4", "6"), ("ResNet50", "5")]
    for features, row in zip(sets, rows, strict=False):
        found = evaluated(features, ["hot", "free-lunch"], shots=1)
        assert row[2:5] == (
            percent(found["free-lunch", 1].accuracy),
            percent(found["hot", 1].accuracy),
            percent(found.difference("free-lunch", 1), signed=True),
        )
        assert f"{row[0]} {row[4]}" in findings.claims[0].measured
    assert rows[0][5:] == (published(4, "Conv4", "free-lunch"), published(4, "Conv4", "hot"))
    assert rows[1][5:] == (None, None)
    assert not findings.sentences


def test_one_backbone_says_how_to_add_others_and_has_published_numbers_on_the_papers_dataset_only():
    findings = accuracy.run_backbones(setting_of(feature_set("CUB", backbone="Conv4"), tasks=3))
    assert len(findings.tables[0].rows) == 1
    assert not any(number.published for number in numbers_in(findings))
    assert "--other" in findings.sentences[0]


# Cross-domain


def test_the_same_base_classes_lose_nothing():
    toys = feature_set()
    twin = replace(feature_set(), name="twin")
    inside, outside = cross_domain.run_cross_domain(setting_of(toys, twin)).tables[0].rows
    assert inside[1:5] == outside[1:5]
    assert inside[5] is inside[6] is None
    assert outside[5] == outside[6] == Number(0.0, 0.0, signed=True)


def test_other_base_classes_are_evaluated_on_the_tasks_of_the_main_set(few):
    toys, other = feature_set(), feature_set("other", seed=5)
    findings = cross_domain.run_cross_domain(setting_of(toys, other))
    inside, outside = findings.tables[0].rows
    methods = {"in": HOTClassifier(toys.base), "out": HOTClassifier(other.base)}
    own = evaluated(toys, methods, shots=1)
    lunches = {"in": named_method("free-lunch", toys.base), "out": named_method("free-lunch", other.base)}
    some = evaluated(toys, {**lunches, "hot": methods["out"]}, shots=1, tasks=few)
    all_lunches = evaluated(toys, lunches, shots=1)
    assert inside[2:4] == (percent(own["in", 1].accuracy), percent(all_lunches["in", 1].accuracy))
    assert outside[2:4] == (percent(own["out", 1].accuracy), percent(some["out", 1].accuracy))
    assert outside[4] == percent(some.difference("out", 1, reference="hot"), signed=True)
    assert outside[5] == percent(own.difference("out", 1), signed=True)
    assert outside[6] == percent(some.difference("out", 1), signed=True)
    assert any(f"first {few} tasks" in note for note in findings.tables[0].notes)


def test_sets_of_another_width_or_extractor_are_left_out_with_the_reason():
    toys = feature_set(backbone="Conv4")
    wide, foreign = feature_set("wide", width=9), feature_set("foreign", backbone="ResNet10")
    findings = cross_domain.run_cross_domain(setting_of(toys, wide, foreign, tasks=2))
    for words, name in zip(findings.sentences, ("wide", "foreign"), strict=False):
        assert words == f"{name} was left out: its features come from another extractor."
    assert "the half least like them" in findings.sentences[2]
    assert [row[1].mean for row in findings.tables[0].rows] == [8, 4, 4]


def test_the_nearer_half_holds_the_base_classes_around_the_novel_ones():
    rng = np.random.default_rng(0)
    names = np.array(["far", "near", "farther", "nearer", "nearest"])
    angles = np.array([2.0, 0.6, 3.0, 0.3, 0.0])
    y = np.repeat(names, 20)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    X = np.repeat(directions, 20, axis=0) + 0.01 * rng.normal(size=(100, 2))
    novel = np.repeat([[1.0, -0.1], [1.0, 0.1]], 10, axis=0)
    features = FeatureSet("angles", BaseClasses.from_samples(X, y), novel, np.repeat(["a", "b"], 10))
    near, far = cross_domain.halves(features).values()
    assert list(near.names) == ["near", "nearer", "nearest"]
    assert list(far.names) == ["far", "farther"]
    assert np.array_equal(near.samples[:20], X[y == "near"])


@pytest.mark.parametrize("kind", ["one class", "no samples"])
def test_a_bank_that_cannot_be_halved_needs_another_dataset(kind, tmp_path):
    toys = feature_set()
    toys.base.save(tmp_path / "bank", samples=False, covariance="diagonal")
    one = cross_domain.subset(toys.base, np.array([0]))
    base = one if kind == "one class" else BaseClasses.load(tmp_path / "bank")
    with pytest.raises(ParameterError, match="cannot be halved: give another dataset with --other"):
        cross_domain.run_cross_domain(setting_of(replace(toys, base=base)))


# Speed


def test_ratios_of_speed_are_those_of_the_seconds():
    seconds = {
        ("Free-Lunch, as published, timed", 1): 0.25,
        ("Free-Lunch, as published, timed", 5): 0.5,
        ("H-OT, as published, timed", 1): 0.6,
        ("H-OT, as published, timed", 5): 0.8,
        ("H-OT, timed", 1): 0.02,
        ("H-OT, timed", 5): 0.5,
    }
    findings = accuracy.run_speed(setting_with(seconds)(feature_set("CUB")))
    milliseconds = [[number and number.mean for number in row[1:]] for row in findings.tables[0].rows]
    assert milliseconds == [[250, 500, 2110, 8240], [600, 800, 2600, 11120], [20, 500, None, None]]
    assert [number.published for number in findings.tables[0].rows[1][1:]] == [False, False, True, True]
    assert [claim.measured for claim in findings.claims] == ["2.40 times as long", "1.60 times as long"]


def test_speed_is_measured_in_this_process_on_few_tasks(monkeypatch):
    asked = []
    plain = Setting.evaluate

    def watched(self, methods, **request):
        asked.append((next(iter(methods.values())), request["tasks"], self.n_jobs))
        return plain(self, methods, **request)

    monkeypatch.setattr(Setting, "evaluate", watched)
    monkeypatch.setattr(accuracy, "FEW", 2)
    monkeypatch.setattr(accuracy, "MORE", 4)
    findings = accuracy.run_speed(setting_of(feature_set(), n_jobs=2))
    assert [(method.head, tasks, jobs) for method, tasks, jobs in asked] == [
        ("sampled", 2, 1),
        ("sampled", 2, 1),
        ("bound", 4, 1),
    ]
    assert all(number.mean > 0 and not number.published for number in numbers_in(findings))


# Histogram


def test_tasks_are_counted_at_their_accuracies():
    found = {("hot", 1): [0.6, 0.7, 0.29, 1.0, 0.59], ("free-lunch", 1): [0.58, 0.58, 0.3, 0.1, 0.0]}
    findings = EXPERIMENTS["histogram"].run(setting_with(found)(feature_set(), tasks=5))
    counts, below = findings.tables
    found = {row[0]: " ".join(map(str, row[1:])) for row in counts.rows}
    assert {tasks: both for tasks, both in found.items() if both != "0 0"} == {
        "0 to 10": "0 1",
        "10 to 20": "0 1",
        "20 to 30": "1 0",
        "30 to 40": "0 1",
        "50 to 60": "1 2",
        "60 to 70": "1 0",
        "70 to 80": "1 0",
        "90 to 100": "1 0",
    }
    assert below.rows[0][1].mean == pytest.approx(40)
    assert below.rows[1][1].mean == pytest.approx(100)
    assert below.rows[1][2].mean == pytest.approx(60)
    assert below.rows[1][2].signed


# All


def test_a_single_task_has_no_interval_and_nothing_is_decided():
    findings = accuracy.run_accuracy(setting_of(feature_set(), tasks=1))
    assert all(number.half_width is None for number in numbers_in(findings))
    assert {claim.verdict for claim in findings.claims} == {"undecided"}
