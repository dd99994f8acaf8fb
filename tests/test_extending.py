"""An example of everything that can be added to hotshot, as listed in docs/architecture.md and CONTRIBUTING.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from conftest import make_bank
from few_shot_problems import ragged_bank
from hotshot import HOTClassifier, evaluate
from hotshot.bank.covariances import COVARIANCE_FORMS, diagonal
from hotshot.classifiers.named import METHODS
from hotshot.cli.app import app
from hotshot.evaluation.tables import Table
from hotshot.files import read_features, write_features
from hotshot.files.named_arrays import features_from_arrays
from hotshot.files.objects import read_object
from hotshot.files.opening import FORMATS, Format
from hotshot.images.decode import Picture
from hotshot.images.layouts import LAYOUTS, Layout, open_dataset
from hotshot.method.calibration import MEAN_RULES, MeanRule
from hotshot.method.heads import HEADS, Head
from hotshot.method.transfer import COSTS
from hotshot.paper import EXPERIMENTS, Experiment, FeatureSet, Findings, Setting

BANK = ragged_bank(spread=0.8)
X, Y = make_bank(5, 12, 6, seed=1, spread=0.9)
SUPPORT, LABELS = X[::12], Y[::12]


def test_the_cost_of_the_contributing_guide_works(monkeypatch):
    guide = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    monkeypatch.setitem(COSTS, "chebyshev", None)  # the example replaces it, and the end of the test removes it
    names = {"base": BANK, "X_support": SUPPORT, "y_support": LABELS}
    exec(example, names)
    model = names["model"]
    np.testing.assert_allclose(model.transfer_weights_.sum(axis=1), 1, atol=1e-6)
    near = HOTClassifier(BANK, cost="euclidean").fit(SUPPORT, LABELS)
    assert abs(model.transfer_weights_ - near.transfer_weights_).max() > 1e-3
    assert evaluate({"it": model}, X, Y, ways=3, shots=1, queries=4, tasks=5, n_jobs=1)["it", 1].accuracy.n == 5


def test_a_mean_rule_brings_its_own_share_to_the_explanation(monkeypatch):
    def own(base, lent, targets, shots, method):
        """Nothing is lent to the means."""
        return targets

    monkeypatch.setitem(MEAN_RULES, "own", MeanRule(own))
    model = HOTClassifier(BANK, mean_rule="own").fit(SUPPORT, LABELS)
    np.testing.assert_allclose(model.calibrated_means_, model.transform_(SUPPORT), atol=1e-12)
    assert "100% of its mean comes from its own samples" in str(model.explain())


def test_a_form_of_covariances_is_a_function_and_a_line(monkeypatch):
    def spherical(samples):
        """The same variance along all axes."""
        return diagonal(np.full_like(samples.means, samples.spectrum.mean()))

    monkeypatch.setitem(COVARIANCE_FORMS, "spherical", spherical)
    round_ones = HOTClassifier(BANK, covariance="spherical").fit(SUPPORT, LABELS)
    pooled = HOTClassifier(BANK, covariance="pooled").fit(SUPPORT, LABELS)
    np.testing.assert_allclose(round_ones.transfer_weights_, pooled.transfer_weights_, atol=1e-9)
    assert abs(round_ones.coef_ - pooled.coef_).max() > 1e-3


def test_a_head_is_a_function_and_a_line(monkeypatch):
    def fit_nearest_mean(training):
        """W = mu, c = -|mu|^2 / 2: the nearest calibrated mean."""
        means = training.gaussians.means
        intercepts = -np.sum(means**2, axis=2, keepdims=True) / 2
        return np.concatenate([means, intercepts], axis=2), np.ones(len(means), dtype=bool), None

    monkeypatch.setitem(HEADS, "nearest-mean", Head(fit_nearest_mean))
    model = HOTClassifier(BANK, head="nearest-mean").fit(SUPPORT, LABELS)
    distances = np.linalg.norm(model.transform_(X)[:, None] - model.calibrated_means_, axis=2)
    assert np.array_equal(model.predict(X), model.classes_[distances.argmin(axis=1)])
    # Without slopes the parts of a gap are not known.
    (reason,) = model.explain(X[:1]).reasons
    assert (reason.is_split, reason.own, reason.lent, reason.rest) == (False, 0, 0, reason.gap)
    assert "logits" not in reason.in_words(numbers=True)


def test_a_baseline_is_a_line(monkeypatch):
    monkeypatch.setitem(METHODS, "neighbour", lambda base: KNeighborsClassifier(1))
    found = evaluate(["hot", "neighbour"], X, Y, base=BANK, ways=3, shots=1, queries=4, tasks=5, n_jobs=1)
    assert found.methods == ["hot", "neighbour"]


def test_an_experiment_is_a_function_and_a_line(monkeypatch):
    def run(setting):
        found = setting.evaluate(["hot", "centroid"])
        return Findings(tables=(Table("Two methods", ("method",), tuple((name,) for name in found.methods)),))

    monkeypatch.setitem(EXPERIMENTS, "two", Experiment("two", "Two methods", "nowhere", run))
    setting = Setting(FeatureSet("made up", BANK, X, Y), ways=3, queries=4, tasks=4, n_jobs=1)
    (table,) = EXPERIMENTS["two"].run(setting).tables
    assert table.rows == (("hot",), ("centroid",))


def test_a_dataset_is_a_function_and_a_line(monkeypatch, tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name in ("red 1", "red 2", "blue 1"):
        image.new("RGB", (4, 4), name.split()[0]).save(tmp_path / f"{name}.png")

    def layout(tree, sure):
        """The class is the first word of a file's name."""
        classes = {}
        for path, file in tree.files.items():
            classes.setdefault(path.split()[0], []).append(Picture(file))
        return {"all": classes} if sure else None

    monkeypatch.setitem(LAYOUTS, "first-word", Layout(layout, "images called class number.png"))
    (split,) = open_dataset(tmp_path, "first-word").splits.values()
    assert split.names == ("blue", "red")
    assert split.labels.tolist() == [0, 1, 1]


def test_a_format_of_feature_files_is_two_functions_and_a_line(monkeypatch, tmp_path):
    def open_json(path, part):
        """{"X": [[…], …], "y": […]}"""
        found = read_object(path)
        return features_from_arrays({name: np.array(found[name]) for name in ("X", "y")}, path, part=part)

    def write_json(path, content):
        numbers = np.concatenate(list(content.blocks())).tolist()
        path.write_text(json.dumps({"X": numbers, "y": content.y.tolist()}))

    monkeypatch.setitem(FORMATS, "json", Format("JSON file", (".json",), open_json, write_json, start=b'{"X"'))
    path, copy = tmp_path / "features.json", tmp_path / "features.npz"
    write_features(path, (X, Y))
    app(["convert", str(path), str(copy)], standalone_mode=False)
    for file in (path, copy):
        found = read_features(file)
        np.testing.assert_array_equal(found.X, X)
        assert found.y.tolist() == Y.tolist()
