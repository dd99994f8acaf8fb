"""Answers: the two likeliest classes and what fits none, written whole in every format or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.errors import ParameterError
from hotshot.inputs.answers import CLASS, OUTLIER, answer
from hotshot.inputs.samples import NONE


@pytest.fixture(scope="module")
def model():
    X, y = make_bank(24, 12, 10, spread=0.3)
    base = BaseClasses.from_samples(X, [f"old {c:02d}" for c in y])
    support, labels = make_bank(3, 2, 10, seed=1, spread=0.3)
    return HOTClassifier(base, include_base=True).fit(support, [f"new {c}" for c in labels])


def test_answers_equal_the_predictions_of_the_model(model):
    X = np.concatenate([make_bank(3, 9, 10, seed=1, spread=0.3)[0], 5 * np.eye(10)])
    found = answer(model, X, reject=0.05)
    assert found[CLASS] == model.predict(X, reject=0.05, unknown=NONE).tolist()
    assert NONE in found[CLASS]
    np.testing.assert_allclose(found[OUTLIER], model.outlier_score(X), atol=1e-6)
    probabilities = np.sort(model.predict_proba(X), axis=1)
    for i, name in enumerate(found[CLASS]):
        rejected = name == NONE
        assert (found["probability"][i] is None) == rejected
        likeliest = found["runner_up" if rejected else CLASS][i]
        assert likeliest == model.predict(X[i : i + 1])[0]
        best = found["runner_up_probability" if rejected else "probability"][i]
        assert best == pytest.approx(probabilities[i, -1], abs=1e-6)


def test_a_model_without_old_classes_cannot_reject(model):
    plain = HOTClassifier().fit(np.eye(10)[:4], ["a", "a", "b", "b"])
    assert OUTLIER not in answer(plain, np.eye(10))
    with pytest.raises(ParameterError, match="has no outlier scores"):
        answer(plain, np.eye(10), reject=0.05)
