"""Samples of no class are rejected as often as asked for, old classes lose what was allowed, probabilities hold."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotshot import BaseClasses, HOTClassifier
from hotshot.classifiers import confidence
from hotshot.classifiers.confidence import LEVELS, SOFTER, SOFTER_BETWEEN, TEMPERATURES, fit_temperature
from hotshot.errors import InputError, OpenWorldWarning, ParameterError

WIDTH, OLD = 12, 24
# Settings that need no choosing.
SET = {"mean_rule": "posterior", "epsilon": 0.02, "n_generated": 300, "support_weight": 20.0}


def samples(classes, per_class, seed, spread=0.25):
    """Samples of classes around random centres, which depend on the class alone."""
    rng = np.random.default_rng(seed)
    centres = np.stack([np.random.default_rng([7, c]).normal(size=WIDTH) for c in classes])
    X = np.repeat(centres, per_class, axis=0) + spread * rng.normal(size=(len(centres) * per_class, WIDTH))
    return X, np.repeat([f"class {c:02d}" for c in classes], per_class)


def bank(dtype=np.float64, **kwargs):
    X, y = samples(range(OLD), 20, seed=0, **kwargs)
    return BaseClasses.from_samples(X.astype(dtype), y)


BANK, NEW = bank(), range(OLD, OLD + 6)


def test_one_class_or_none_of_these(tmp_path):
    """With a bank, a closed model may have one class: the question is whether a sample belongs to it."""
    X, y = samples([OLD], 3, seed=1)
    model = HOTClassifier(bank(), **SET).fit(X, y)
    own, strangers = samples([OLD], 40, seed=2)[0], samples(range(40, 60), 10, seed=3)[0]
    assert np.mean(model.predict(own, reject=0.05) == "class 24") > 0.8
    assert np.mean(model.predict(strangers, reject=0.05, unknown="?") == "?") > 0.8
    np.testing.assert_array_equal(model.predict_proba(own), 1)
    assert "There is no other class." in str(model.explain(own[:1]))
    assert "class 24 100%" in repr(model.suggest(own, 3))
    assert set(model.predict_batch(own)) == {"class 24"}
    model.save(tmp_path / "one.model")
    assert HOTClassifier.load(tmp_path / "one.model", base=model.base).add(*samples([OLD + 1], 2, 1)).classes_.size == 2
    with pytest.raises(InputError, match="at least 2 classes, got 1 class"):
        HOTClassifier().fit(X, y)


@pytest.mark.parametrize("limit", [0.0, 0.02, 0.2])
def test_old_classes_lose_at_most_what_was_allowed(limit):
    base = bank(spread=0.9)
    queries, labels = samples(range(OLD), 200, seed=3, spread=0.9)
    model = HOTClassifier(base, include_base=True, base_loss=limit, **SET).fit(*samples(NEW, 1, seed=1, spread=0.9))
    logits = model.decision_function(queries)
    alone = model.classes_[~model.is_new_][logits[:, ~model.is_new_].argmax(axis=1)] == labels
    together = model.predict(queries) == labels
    # Judged by 4 samples of each class, so not exactly.
    assert alone.mean() - together.mean() <= 1.5 * limit + 0.05
    free = HOTClassifier(base, include_base=True, base_loss=None, **SET).fit(*samples(NEW, 1, seed=1, spread=0.9))
    assert (model.balance_ < free.balance_) == (limit < 0.2)


@pytest.mark.parametrize("include_base", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_of_no_class_are_detected_and_rejected(include_base, dtype):
    X, y = samples(NEW, 3, seed=1)
    model = HOTClassifier(bank(dtype), include_base=include_base, **SET).fit(X.astype(dtype), y)
    queries, labels = samples(NEW, 40, seed=2)
    strangers, _ = samples(range(40, 60), 10, seed=3)
    queries, strangers = queries.astype(dtype), strangers.astype(dtype)
    known, strange = model.outlier_score(queries), model.outlier_score(strangers)
    assert np.mean(known[:, None] < strange) > 0.97
    answers = model.predict(queries, reject=0.05)
    assert np.mean([answer is None for answer in answers]) < 0.2
    kept = answers != None  # noqa: E711
    assert np.mean(answers[kept] == labels[kept]) > 0.95
    assert np.mean(model.predict(strangers, reject=0.05, unknown="?") == "?") > 0.8
    more = [np.mean(model.predict(queries, reject=share, unknown="?") == "?") for share in (0.01, 0.1, 0.5)]
    assert more == sorted(more)


LIKE_BASE_CLASSES = [(1, 1.0, 1.0), (2, 1.0, 1.0), (5, 1.0, 1.0)]
HARDER = [(2, 0.7, 1.0), (5, 0.7, 1.0), (2, 1.0, 1.4), (5, 1.0, 1.4)]


@pytest.mark.parametrize(("shots", "between", "within"), [*LIKE_BASE_CLASSES, *HARDER])
def test_false_alarms_are_those_asked_for_also_where_new_classes_are_harder(shots, between, within):
    """New classes lie `between` times as far from each other as base classes, and their samples vary `within` as much.

    A tenth is to be rejected: with thresholds as they are, and without their correction by the support.
    """
    base, as_is, uncorrected, deviations = bank(spread=0.5), [], [], []
    for seed in range(12):
        X, y = samples(range(30 + 6 * seed, 36 + 6 * seed), shots + 40, seed=seed, spread=0.5 * within / between)
        is_support = np.tile(np.arange(shots + 40) < shots, 6)
        model = HOTClassifier(base, **SET).fit(between * X[is_support], y[is_support])
        fits = -model.outlier_score(between * X[~is_support])
        usual = model.confidence().scores_at(6, shots, 0.0, 1)
        for alarms, scores in ((as_is, model.outliers_.thresholds[0]), (uncorrected, usual)):
            alarms.append(np.mean(fits < np.interp(0.1, LEVELS, scores)))
        deviations.append(model.outliers_.deviation)
    if (shots, between, within) in LIKE_BASE_CLASSES:
        assert 0.04 < np.mean(as_is) < 0.18
        assert abs(np.mean(as_is) - np.mean(uncorrected)) < 0.05
    else:
        assert np.mean(uncorrected) > 0.18
        assert abs(np.mean(as_is) - 0.1) < 0.9 * abs(np.mean(uncorrected) - 0.1)
        assert np.mean(deviations) < -1


UNLIKE, TRAINED = "differs from that of held-out base classes by", "was trained on the base classes"


def trained_on(*names):
    return {"about": {"network": {"trained_on": [*names]}}}


@pytest.mark.parametrize(
    ("declared", "shots", "within", "sentence"),
    [
        ({}, 5, 1, None),
        ({}, 5, 4, UNLIKE),
        ({"seen_in_training": True}, 2, 1, TRAINED),
        (trained_on("class 00"), 1, 1, TRAINED),
        (trained_on("class 00"), 2, 1, None),
        (trained_on("x"), 1, 1, None),
    ],
)
def test_rejecting_warns_where_there_may_be_more_false_alarms(declared, shots, within, sentence):
    base = BaseClasses.from_samples(*samples(range(OLD), 20, seed=0, spread=0.5), **declared)
    X, y = samples(NEW, shots, seed=1, spread=0.5 * within)
    model = HOTClassifier(base, **SET).fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(X, reject=0.05)
    said = " ".join(str(w.message) for w in caught if issubclass(w.category, OpenWorldWarning))
    assert [text for text in (UNLIKE, TRAINED) if text in said] == [sentence] * (sentence is not None)


def test_a_rejected_sample_gets_whatever_stands_for_unknown():
    model = HOTClassifier(BANK, **SET).fit(*samples(NEW, 2, seed=1))
    strangers, _ = samples(range(40, 60), 5, seed=3)
    for unknown in (("none", "of these"), [1], None, "?"):
        for predict in (model.predict, model.predict_batch):
            assert unknown in predict(strangers, reject=np.float32(0.25), unknown=unknown).tolist()


def test_rejecting_needs_a_bank_and_a_share():
    X, y = samples(NEW, 2, seed=1)
    few = BaseClasses.from_samples(*samples(range(6), 20, seed=0))
    with pytest.raises(ParameterError, match="at least 20 base classes"):
        HOTClassifier(few, **SET).fit(X, y).predict(X, reject=0.05)
    assert HOTClassifier(few, **SET).fit(X, y).outlier_score(X).shape == (12,)
    with pytest.raises(ParameterError, match="without base classes has no outlier scores"):
        HOTClassifier().fit(X, y).outlier_score(X)
    with pytest.raises(ParameterError, match="another head than 'sampled'"):
        HOTClassifier(BANK, **SET, head="sampled").fit(X, y).predict(X, reject=0.05)
    model = HOTClassifier(BANK, **SET).fit(X, y)
    for reject in (0, 1.0, -0.1, "much", float("nan")):
        with pytest.raises(ParameterError, match="reject must be a number"):
            model.predict(X, reject=reject)


def test_calibration_improves_probabilities(monkeypatch):
    monkeypatch.setattr(confidence, "SCORED_QUERIES", 4800)
    base = bank(spread=0.9)
    errors = {}
    for calibrated in (True, False):
        confident, right = [], []
        for seed in range(6):
            classes = range(30 + 6 * seed, 36 + 6 * seed)
            model = HOTClassifier(base, calibrate_probabilities=calibrated, **SET)
            model.fit(*samples(classes, 1, seed=seed, spread=0.9))
            queries, labels = samples(classes, 40, seed=100 + seed, spread=0.9)
            confident.append(model.predict_proba(queries).max(axis=1))
            right.append(model.predict(queries) == labels)
        errors[calibrated] = abs(np.mean(np.concatenate(confident)) - np.mean(np.concatenate(right)))
    assert errors[True] < errors[False]


def test_the_fitted_temperature_is_that_of_the_labels():
    """Labels drawn from softmax(logits / T) ask for T."""
    rng = np.random.default_rng(0)
    for temperature in (0.5, 1.0, 3.0):
        logits = 3 * rng.normal(size=(20000, 6))
        noise = rng.gumbel(size=logits.shape)
        labels = np.argmax(logits / temperature + noise, axis=1)
        margins = logits - logits[np.arange(len(labels)), labels][:, None]
        assert fit_temperature(margins) == pytest.approx(temperature, rel=0.05)
    always_right = -np.abs(rng.normal(size=(50, 3))) - 1
    always_right[:, 0] = 0
    assert fit_temperature(always_right) == pytest.approx(np.exp(TEMPERATURES[0]))
    assert fit_temperature(-always_right) == pytest.approx(np.exp(TEMPERATURES[1]))


@pytest.mark.parametrize("seen", [True, False, None])
def test_probabilities_are_softer_where_the_support_fits_worse_than_base_classes(seen):
    base = BaseClasses.from_samples(*samples(range(OLD), 20, seed=0), seen_in_training=seen)
    support, labels = samples(NEW, 2, seed=1)
    # Classes as close as base classes, and each of samples that are far from each other.
    like, unlike = (HOTClassifier(base, **SET).fit(support, own) for own in (labels, np.roll(labels, 1)))
    assert unlike.outliers_.deviation < -SOFTER_BETWEEN[1] < -SOFTER_BETWEEN[0] < like.outliers_.deviation
    ratio = unlike.probability_temperature_ / like.probability_temperature_
    assert ratio == pytest.approx(np.exp(SOFTER[0] + SOFTER[1] / 2))


@given(seed=st.integers(0, 2**31), shots=st.sampled_from([1, 3]))
def test_the_temperatures_of_tasks_are_those_of_models(seed, shots):
    model = HOTClassifier(BANK, **SET)
    base, rng = model.parts()[0], np.random.default_rng(seed)
    labels = np.stack([rng.permutation(np.repeat(range(3), shots)) for _ in range(2)])
    tasks = rng.normal(size=(2, 3, WIDTH))[np.arange(2)[:, None], labels] + rng.normal(size=(*labels.shape, WIDTH))
    found = model.confidence().temperatures_of(base, base.transform(tasks), labels)
    alone = [model.fit(own, at).probability_temperature_ for own, at in zip(tasks, labels, strict=True)]
    np.testing.assert_allclose(found, alone, rtol=1e-6)


def test_false_alarms_of_old_classes_of_few_samples_are_those_asked_for():
    rng = np.random.default_rng(1)
    centres, spread = rng.normal(size=(32, 40)), 0.9
    y, new, queries = np.repeat(np.arange(30), 10), np.repeat([30, 31], 3), np.repeat(np.arange(30), 30)
    X, support, asked = (centres[own] + spread * rng.normal(size=(len(own), 40)) for own in (y, new, queries))
    model = HOTClassifier(BaseClasses.from_samples(X, y), include_base=True).fit(support, new)
    rejected = np.mean([answer is None for answer in model.predict(asked, reject=0.05)])
    # With thresholds from samples that the means of their classes know, a fifth would be rejected.
    assert 0.01 < rejected < 0.1


@pytest.mark.filterwarnings("ignore::hotshot.errors.OpenWorldWarning")
def test_new_classes_that_lie_among_old_ones_are_not_rejected_more_often_than_asked_for():
    rng = np.random.default_rng(3)
    width, old, ways = 20, 60, 5
    centres = 0.39 * rng.normal(size=(old, width))
    X = np.repeat(centres, 25, axis=0) + 0.5 * rng.normal(size=(25 * old, width))
    base = BaseClasses.from_samples(X, np.repeat([f"old {c:02d}" for c in range(old)], 25))
    rejected = []
    for _ in range(8):
        new = 0.39 * rng.normal(size=(ways, width))
        support, queries = (new[:, None] + 0.5 * rng.normal(size=(ways, n, width)) for n in (1, 40))
        model = HOTClassifier(base, include_base=True, **SET).fit(support[:, 0], [f"new {c}" for c in range(ways)])
        rejected += [answer is None for answer in model.predict(queries.reshape(-1, width), reject=0.05)]
    # With thresholds of each kind of classes alone, a sixth would be rejected.
    assert 0.005 < np.mean(rejected) < 0.08
