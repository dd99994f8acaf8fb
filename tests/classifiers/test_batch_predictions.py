"""Joint predictions of estimators: closed and open sets of classes, saved models, and what cannot be predicted."""

import numpy as np
import pytest

from hotshot import BaseClasses, HOTClassifier
from hotshot.classifiers import CentroidClassifier
from hotshot.errors import InputError, ParameterError

WIDTH, NOISE = 16, 1.6


@pytest.fixture(scope="module")
def world():
    """A bank of 24 classes, and the centres and samples of 4 new ones with noise that makes one shot unreliable."""
    rng = np.random.default_rng(0)
    centres = 1.2 * rng.normal(size=(28, WIDTH))
    samples = centres[:, None] + NOISE * rng.normal(size=(28, 60, WIDTH))
    names = np.array([f"old {i:02}" for i in range(24)])
    base = BaseClasses.from_samples(samples[:24].reshape(-1, WIDTH), np.repeat(names, 60))
    return base, samples[24:], samples[:24], names


def support(samples, shots, seed=0):
    rows = np.random.default_rng(seed).permutation(samples.shape[1])
    X = samples[:, rows[:shots]].reshape(-1, WIDTH)
    queries = samples[:, rows[shots:]].reshape(-1, WIDTH)
    names = np.array(["a", "b", "c", "d"])
    return X, np.repeat(names, shots), queries, np.repeat(names, samples.shape[1] - shots)


def test_a_batch_is_answered_better_than_its_samples(world):
    base, samples, *_ = world
    gains = []
    for seed in range(8):
        X, y, queries, labels = support(samples, 1, seed)
        model = HOTClassifier(base).fit(X, y)
        gains.append(np.mean(model.predict_batch(queries) == labels) - np.mean(model.predict(queries) == labels))
    assert np.mean(gains) > 0.03


def test_proportions_are_not_assumed(world):
    base, samples, *_ = world
    for seed in range(4):
        X, y, queries, labels = support(samples, 5, seed)
        model = HOTClassifier(base).fit(X, y)
        own = queries[labels == "b"]
        assert np.mean(model.predict_batch(own) == "b") >= np.mean(model.predict(own) == "b")


@pytest.mark.parametrize("parameters", [{}, {"per": "sample"}, {"include_base": True}])
def test_answers_and_probabilities_agree(world, parameters):
    base, samples, *_ = world
    X, y, queries, _ = support(samples, 3)
    model = HOTClassifier(base, **parameters).fit(X, y)
    probabilities = model.predict_proba_batch(queries)
    assert probabilities.shape == (len(queries), len(model.classes_))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    answers = model.predict_batch(queries)
    assert (answers == model.classes_[probabilities.argmax(axis=1)]).all()
    found, _, rejected = model.answers(queries, batch=True)
    np.testing.assert_array_equal(found, probabilities)
    assert not rejected.any()
    order = np.random.default_rng(1).permutation(len(queries))
    np.testing.assert_allclose(model.predict_proba_batch(queries[order]), probabilities[order], atol=1e-5)


def test_old_and_new_classes_in_one_batch(world):
    base, samples, old, names = world
    X, y, queries, labels = support(samples, 3)
    model = HOTClassifier(base, include_base=True).fit(X, y)
    mixed = np.concatenate([queries[::3], old[:6, :20].reshape(-1, WIDTH)])
    truth = np.concatenate([labels[::3], np.repeat(names[:6], 20)])
    jointly, alone = (np.mean(predict(mixed) == truth) for predict in (model.predict_batch, model.predict))
    assert jointly >= alone
    # Means of old classes are worth their many samples and hardly move.
    moved = model._solved(*model._placed_and_logits(mixed)).means[0] - model.outliers_.known.means
    assert np.abs(moved[~model.is_new_]).max() < 0.1 * np.abs(moved[model.is_new_]).max()


def test_samples_of_no_class_are_rejected_and_weigh_less(world):
    base, samples, *_ = world
    X, y, queries, _ = support(samples, 3)
    model = HOTClassifier(base).fit(X, y)
    strangers = 4 * np.random.default_rng(2).normal(size=(60, WIDTH))
    both = np.concatenate([queries, strangers])
    answers = model.predict_batch(both, reject=0.05)
    assert answers.dtype == object
    rejected = np.array([answer is None for answer in answers])
    assert rejected[: len(queries)].mean() < 0.2 < rejected[len(queries) :].mean()
    weights = model.outliers_.weights(model._in_space(both))
    assert weights.min() >= 0
    assert weights.max() == 1
    assert weights[len(queries) :].mean() < 0.9 * weights[: len(queries)].mean()


def test_what_cannot_be_predicted_jointly(world):
    base, samples, *_ = world
    X, y, queries, _ = support(samples, 1)
    with pytest.raises(ParameterError, match="without base classes cannot predict a batch jointly"):
        HOTClassifier().fit(X, y).predict_batch(queries)
    model = HOTClassifier(base).fit(X, y)
    with pytest.raises(ParameterError, match="reject must be"):
        model.predict_batch(queries, reject=2)
    with pytest.raises(InputError, match="NaN"):
        model.predict_batch(np.full((2, WIDTH), np.nan))
    assert not hasattr(CentroidClassifier(), "predict_batch")
