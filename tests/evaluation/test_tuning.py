"""Tuning: all candidates on the same tasks, the weak ones stopped early, the result a file that is accepted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hotshot import BaseClasses, HOTClassifier, evaluate, load_parameters, tune
from hotshot.errors import HotshotError, InputError, RunError
from hotshot.evaluation import Estimate, Tuning, runner
from hotshot.evaluation.tuning import DEFAULT, Candidate

GRID = {"epsilon": [0.005, 0.02, 0.2], "mix": ["auto", 0.0, 1.0]}
SIZES = {"ways": 4, "shots": (1, 3), "queries": 5, "tasks": 90, "n_jobs": 1}
OPTIONS = {"grid": GRID, **SIZES}


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(3)
    centres = rng.normal(size=(20, 6))
    y = np.repeat(np.arange(20), 30)
    X = centres[y] + 0.9 * rng.normal(size=(600, 6))
    base = BaseClasses.from_samples(X[y < 12], y[y < 12])
    return base, X[y >= 12], y[y >= 12]


@pytest.fixture(scope="module")
def found(classes):
    return tune(*classes, **OPTIONS)


def test_every_candidate_was_tried_and_the_defaults_lived_to_the_end(found):
    assert len(found.candidates) == 10
    by_name = {candidate.name: candidate for candidate in found.candidates}
    assert len(by_name[DEFAULT].accuracies) == 90
    assert by_name[DEFAULT].parameters == {"epsilon": "auto", "mix": "auto"}


def test_weak_candidates_stop_early_and_the_best_is_the_best_of_the_last(found):
    seen = [len(candidate.accuracies) for candidate in found.candidates]
    assert seen == sorted(seen, reverse=True)
    assert min(seen) < 90 == max(seen)
    last = [candidate for candidate in found.candidates if len(candidate.accuracies) == 90]
    assert found.best.accuracy.mean == max(candidate.accuracy.mean for candidate in last)
    default = next(c for c in found.candidates if c.name == DEFAULT)
    for candidate, n in zip(found.candidates, seen, strict=True):
        assert candidate.gain.n == n
        assert candidate.gain.mean == pytest.approx(np.mean(candidate.accuracies - default.accuracies[:n]))


def test_saved_parameters_are_accepted_by_the_estimator_and_by_evaluate(classes, found, tmp_path):
    base, X, y = classes
    path = tmp_path / "tuned.json"
    found.save(path)
    assert HOTClassifier(base, **load_parameters(path)).get_params()["mix"] == found.best.parameters["mix"]
    again = evaluate({"tuned": str(path)}, X, y, base=base, **SIZES)
    means = (again["tuned", 1].accuracies + again["tuned", 3].accuracies) / 2
    np.testing.assert_array_equal(means, found.best.accuracies)
    assert json.loads(path.read_text())["about"]["tasks"] == 90


def test_a_search_goes_on_where_it_stopped(classes, found, tmp_path):
    finished = []

    def stop_early(record, was_known, total):
        finished.append(was_known)
        if len(finished) == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(*classes, **OPTIONS, out=tmp_path, watch=stop_early)
    known = []
    again = tune(*classes, **OPTIONS, out=tmp_path, watch=lambda record, was_known, total: known.append(was_known))
    assert sum(known) == 12
    assert [c.name for c in again.candidates] == [c.name for c in found.candidates]
    np.testing.assert_array_equal(again.best.accuracies, found.best.accuracies)
    with pytest.raises(RunError, match="another request"):
        tune(*classes, **{**OPTIONS, "tasks": 100}, out=tmp_path)


def test_random_search_tries_as_many_as_asked_and_repeats_itself(classes):
    options = {"grid": GRID, "search": "random", "n_candidates": 3, "shots": 1, "ways": 3, "queries": 3, "tasks": 20}
    first, second = (tune(*classes, **options, n_jobs=1) for _ in range(2))
    assert [c.name for c in first.candidates] == [c.name for c in second.candidates]
    assert len(first.candidates) in (3, 4)  # the defaults are tried as well, drawn or not


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": {"wings": [2]}}, "'wings' cannot be tuned"),
        ({"grid": {"base": [None]}}, "cannot be tuned"),
        ({"grid": {"epsilon": []}}, "must be a list of values"),
        ({"grid": {"epsilon": [-1.0]}}, "epsilon"),
        ({"search": "greedy"}, "search must be one of"),
        ({"n_candidates": 3}, "n_candidates is for"),
        ({"search": "random", "n_candidates": "many"}, "n_candidates of a random search must be"),
        ({"factor": 10**23}, "factor must be"),
        ({"grid": {"epsilon": range(1, 10**5), "C": range(1, 10**5)}}, "combinations: leave values out"),
        ({"ways": 9}, "ask for fewer ways"),
    ],
)
def test_mistakes_are_one_sentence_before_anything_is_fitted(classes, change, message, monkeypatch):
    monkeypatch.setattr(runner, "make_runners", None)
    options = {"grid": {"epsilon": [0.01]}, "ways": 3, "shots": 1, "queries": 3, "tasks": 20, **change}
    with pytest.raises(HotshotError, match=message) as caught:
        tune(*classes, **options, n_jobs=1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[1]", '{"format": "other"}'])
def test_other_files_are_not_taken_for_parameters(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match="not a file of parameters"):
        load_parameters(path)


@pytest.mark.parametrize(
    ("gains", "significant"),
    [
        # Alone its interval leaves 0 out, but not as the best of ten.
        ([0.010] + [0.001] * 9, False),
        ([0.010], True),
        ([0.030] + [0.001] * 9, True),
        ([-0.010], False),
    ],
)
def test_the_best_is_called_better_only_where_it_is_significantly_so(gains, significant):
    accuracies = np.full(50, 0.5)
    found = [Candidate(str(i), {}, accuracies + gain, Estimate(gain, 0.009, 50)) for i, gain in enumerate(gains)]
    default = Candidate(DEFAULT, {}, accuracies, Estimate(0.0, 0.0, 50))
    early = Candidate("early", {}, accuracies[:20], Estimate(0.2, 0.001, 20))
    ranked = sorted([*found, default], key=lambda candidate: -candidate.gain.mean)
    tuning = Tuning((*ranked, early), {})
    assert tuning.is_significant == significant
    sentence = "No significant difference from the default."
    assert (sentence in tuning.table().notes) == (not significant and gains[0] > 0)
