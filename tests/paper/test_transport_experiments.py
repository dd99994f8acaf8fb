"""The experiments on transport measure what their names say, on features where the answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_table_experiments import feature_set

from conftest import make_bank
from hotshot import BaseClasses, FreeLunchClassifier, evaluate
from hotshot.bank import class_covariances
from hotshot.bank.embedded import load_bank
from hotshot.evaluation.tables import Number
from hotshot.paper import EXPERIMENTS, FeatureSet, Setting, ablations, transport
from hotshot.paper.transport import effective_number

REQUEST = {"ways": 3, "queries": 4, "tasks": 6, "seed": 3, "n_jobs": 1}


def features_of(base_X, base_y, name="toys"):
    return replace(feature_set(name), base=BaseClasses.from_samples(base_X, base_y))


@pytest.fixture
def setting():
    return Setting(feature_set(), **REQUEST)


def run(name, setting):
    return EXPERIMENTS[name].run(setting)


def column(table, index):
    return {row[0]: row[index] for row in table.rows}


def test_where_every_weight_is_equal_all_costs_coincide():
    X, _ = make_bank(1, 14, 6)
    # All base classes hold the same samples, so that whatever the cost, none is nearer than another.
    same = features_of(np.tile(X - X.min(), (5, 1)), np.repeat(np.arange(5), 14))
    found = run("costs", Setting(same, **REQUEST)).tables[0]
    accuracies = column(found, 1)
    free_lunch = accuracies.pop("Free-Lunch")
    assert len(accuracies) == 8
    assert len(set(accuracies.values())) == 1
    differences = column(found, 2)
    assert all(differences[label] == Number(0.0, 0.0, signed=True) for label in accuracies if label != "H-OT")
    assert differences["Free-Lunch"].mean == pytest.approx(accuracies["H-OT"].mean - free_lunch.mean)


def test_all_base_classes_retrieved_is_the_method_itself(setting):
    table = run("retrieved", setting).tables[0]
    features = setting.features
    methods = {
        "H-OT": "hot",
        "High-level OT, Euclidean": "ot-euclidean",
        "Free-Lunch": FreeLunchClassifier(features.base, k=8, random_state=0),
        "two": "free-lunch",
    }
    found = evaluate(methods, features.X, features.y, base=features.base, shots=1, **REQUEST)
    every = column(table, len(table.columns) - 1)
    for label in ("H-OT", "High-level OT, Euclidean", "Free-Lunch"):
        assert every[label].mean == pytest.approx(100 * found[label, 1].accuracy.mean)
    assert table.columns == ("method", "nearest 1", "nearest 2", "nearest 5", "all")
    assert column(table, 2)["Free-Lunch"].mean == pytest.approx(100 * found["two", 1].accuracy.mean)
    assert every["H-OT, in the paper (CUB)"] == Number(81.23, 0.35, published=True)


def test_generated_features_stand_beside_the_closed_form(setting, monkeypatch):
    monkeypatch.setattr(ablations, "NUMBERS", (5, 20000))
    monkeypatch.setattr(ablations, "FEW", 5)
    found = run("generated", setting)
    for label in ("H-OT", "Free-Lunch"):
        many, limit = (column(found.tables[0], i)[label].mean for i in (2, 3))
        # Four queries in 72 may fall on the other side.
        assert many == pytest.approx(limit, abs=6)
    for hot, free_lunch, ahead in zip(*(row[1:] for row in found.tables[0].rows), strict=True):
        assert ahead.mean == pytest.approx(hot.mean - free_lunch.mean)


@pytest.mark.parametrize("name", ["banking77", "omniglot"])
def test_transport_finds_known_weights_better_than_free_lunch(name):
    bank = load_bank(name)
    features = FeatureSet(name, bank.base, bank.X_novel, bank.y_novel)
    table = run("toy-weights", Setting(features, tasks=40, n_jobs=1)).tables[0]
    correlations, errors = column(table, 1), column(table, 2)
    for method in (transport.OT_SCALED, transport.OT_PUBLISHED):
        low = correlations[method].mean - correlations[method].half_width
        assert low > correlations["Free-Lunch"].mean + correlations["Free-Lunch"].half_width
        assert errors[method].mean < errors["Free-Lunch"].mean
    assert errors[transport.OT_SCALED].mean < errors["Equal weights"].mean


def test_weights_are_scored_by_correlation_and_distance():
    truth = np.array([[0.5, 1.0], [0.5, 0.0]])
    assert transport.correlation(truth, truth) == pytest.approx(0.5)  # A column of equal weights counts as 0.
    assert transport.total_error(truth, truth) == 0
    assert transport.total_error(truth, truth[::-1]) == pytest.approx(1.0)


def test_mixtures_are_of_the_means_and_weights_are_distributions():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(30, 5))
    classes, truth, learned = transport.draw_mixture(means, 4, rng)
    assert truth.shape == (20, 4)
    assert len(set(classes)) == 20
    for weights in (truth, *learned.values()):
        np.testing.assert_allclose(weights.sum(axis=0), 1, atol=1e-5)
        assert (weights >= 0).all()


def test_a_plan_is_described_by_its_number_of_lenders():
    weights = np.array([[0.25] * 4, [1.0, 0, 0, 0], [0.5, 0.5, 0, 0]])
    np.testing.assert_allclose(effective_number(weights), [4, 1, 2])


def test_plan_is_compared_across_domains_of_one_width(setting):
    X, y = make_bank(5, 14, 6, seed=9)
    wide, wide_y = make_bank(5, 14, 7)
    others = (features_of(X - X.min(), y, "birds"), features_of(wide - wide.min(), wide_y, "wide"))
    alone = run("plan", setting)
    both = run("plan", Setting(setting.features, others, **REQUEST))
    assert [row[0] for row in alone.tables[0].rows] == ["toys, in-domain", "the nearer half", "the farther half"]
    assert set(both.figures) == {"plan", "plan-across-domains"}
    assert [row[0] for row in both.tables[0].rows] == ["toys, in-domain", "birds"]
    models = [setting.fitted_hot(index) for index in range(6)]
    effective = np.mean([effective_number(model.transfer_weights_) for model in models])
    assert alone.tables[0].rows[0][2].mean == pytest.approx(effective)


def test_cost_is_least_where_the_table_says(setting):
    found = run("cost", setting)
    model = setting.fitted_hot()
    for row, label, own in zip(found.tables[0].rows, model.classes_, model.learned_cost_.T, strict=True):
        assert row[:2] == (str(label), str(model.base_names_[own.argmin()]))
        assert row[2].mean == pytest.approx(3 * own.min())
    # With one target the plan is a softmax of the cost but for the marginal of the base classes.
    assert found.claims[0].verdict == "holds"


def test_nearest_are_the_largest_lenders(setting):
    found = run("nearest", setting)
    model = setting.fitted_hot()
    for row, weights in zip(found.tables[0].rows, model.transfer_weights_, strict=True):
        lender = model.base_names_[weights.argmax()]
        assert row[1] == f"{lender} {100 * weights.max():.0f}%"


def test_sample_weights_are_distributions_over_the_samples_of_the_largest_lender(setting):
    name, classes, weights = transport.sample_weights(setting)
    assert list(classes) == sorted(set(setting.task().support_labels))
    assert weights.shape == (3, 14)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-4)
    model = setting.fitted_hot()
    assert name == str(model.base_names_[model.transfer_weights_[0].argmax()])
    assert f"within {name}, 14 samples" in run("sample-weights", setting).tables[0].title
    # The mean over targets of a coupling is the weight of the sample: the same for all here.
    np.testing.assert_allclose(weights.mean(axis=0), 1 / 14, atol=1e-4)


def test_sample_weights_are_of_the_class_that_is_named(setting):
    """The logarithm of a plan is the similarity but for a number per row and per column."""
    task, model = setting.task(), setting.fitted_hot()
    assert list(task.support_labels) != sorted(task.support_labels)
    base = setting.features.base
    samples = model.transform_(base.samples[base.labels == model.transfer_weights_[0].argmax()])
    support = model.transform_(setting.features.X[task.support[np.argsort(task.support_labels)]])
    weights = np.log(transport.sample_weights(setting)[2].T)
    centred = [x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean() for x in (weights, samples @ support.T)]
    assert np.corrcoef(*(x.ravel() for x in centred))[0, 1] > 0.99


def test_generated_features_have_the_calibrated_covariance_with_alpha_in_it_once(setting, monkeypatch):
    monkeypatch.setattr(transport, "PER_CLASS", 100_000)
    model = FreeLunchClassifier(setting.features.base)
    found, _ = transport.generate(setting, model, 0)
    task = setting.task()
    model.fit(setting.features.X[task.support], task.support_labels)
    base = setting.features.base
    lent = np.einsum("nb,bvw->nvw", model.transfer_weights_, class_covariances(base.samples, base.counts))
    for label, calibrated in enumerate(lent + model.alpha):
        # Rotated back from the axes of the method.
        features = found["generated"][found["generated_labels"] == label] @ model.transform_.axes.T
        drawn = np.cov(features, rowvar=False)
        # Of so many features, the error is about 0.01; alpha is 0.21.
        np.testing.assert_allclose(drawn, calibrated, atol=0.1)


@pytest.mark.parametrize(("spread", "low", "high"), [(0.05, 0.6, 1.0), (5.0, -0.2, 0.1)])
def test_generated_classes_lie_apart_where_base_classes_are_narrow(spread, low, high, monkeypatch):
    monkeypatch.setattr(transport, "MOST_TASKS", 2)
    monkeypatch.setattr(transport, "PER_CLASS", 20)
    X, y = make_bank(12, 14, 6, spread=spread)
    features = FeatureSet("toys", BaseClasses.from_samples(X[y < 8], y[y < 8]), X[y >= 8], y[y >= 8])
    rows = run("tsne", Setting(features, **REQUEST)).tables[0].rows
    assert [row[0] for row in rows] == ["Free-Lunch", "H-OT"]
    assert low < rows[1][1].mean < high


def test_generated_features_stand_beside_the_accuracy_of_their_method(setting, monkeypatch):
    monkeypatch.setattr(transport, "MOST_TASKS", 1)
    monkeypatch.setattr(transport, "PER_CLASS", 20)
    accuracy = run("tsne", setting).tables[0].rows[1][2].mean
    task = setting.task()
    predicted = setting.fitted_hot().predict(setting.features.X[task.query])
    assert accuracy == pytest.approx(100 * np.mean(predicted == task.query_labels))


def test_an_evaluation_is_done_once_for_all_experiments(tmp_path):
    seen = []
    watched = Setting(feature_set(), **REQUEST, out=tmp_path, watch=lambda record, known, total: seen.append(known))
    first = watched.evaluate(("hot", "centroid"))
    assert not any(seen)
    again = watched.evaluate({"centroid": "centroid", "hot": "hot"})
    assert all(seen[len(seen) // 2 :])
    assert np.array_equal(first["hot", 1].accuracies, again["hot", 1].accuracies)
    assert again.reference == "centroid"


def test_evaluations_of_other_data_have_other_folders(tmp_path):
    one = feature_set()
    other = FeatureSet(one.name, one.base, one.X + 0.01, one.y)
    for features in (one, other):
        Setting(features, **REQUEST, out=tmp_path).evaluate(["hot"])
    assert len(list((tmp_path / "evaluations").iterdir())) == 2
