"""`hotshot bank`: what its commands write and say, and what they refuse."""

from __future__ import annotations

import re

import numpy as np
import pytest

from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier
from hotshot.classifiers.confidence import CONFIDENCE, Confidence
from hotshot.classifiers.held_out import Choice, description, keep
from hotshot.errors import NoSamplesWarning

X, Y = make_bank(24, 10, 6, spread=0.9)
NOVEL, LABELS = make_bank(3, 8, 6, seed=9, spread=0.9)
SETTINGS = {"mean_rule": "mix", "power": 1.0, "epsilon": 0.05, "n_generated": 50, "support_weight": 5.0}


@pytest.fixture
def banks(tmp_path):
    """Two banks, of which the first knows what was chosen on it."""
    for name, mask in {"a": Y < 12, "b": Y >= 12}.items():
        BaseClasses.from_samples(X[mask], Y[mask]).save(tmp_path / f"{name}.bank")
    full = BaseClasses.from_samples(X, Y)
    key = description(HOTClassifier(full))
    keep(full, key, Choice(SETTINGS))
    scores = np.linspace(-9, 6, 117).reshape(1, 3, 3, 13)
    known = Confidence((5,), np.array([[0.7, 0.4]]), np.ones((1, 3, 2)), np.zeros((1, 3, 2)), scores, np.zeros((1, 3)))
    keep(full, CONFIDENCE + key, known)
    full.save(tmp_path / "full.bank")
    return tmp_path


def test_banks_are_merged(hotshot, banks):
    run = hotshot.succeeds("bank", "merge", "a.bank", "b.bank", "-o", "both.bank")
    said = run.said
    assert re.fullmatch(
        r"Wrote both\.bank: a bank of 24 classes, 240 samples, 6 features, with its samples, \S+ kB from \S+ kB\.", said
    )
    assert BaseClasses.load(banks / "both.bank").fingerprint == BaseClasses.from_samples(X, Y).fingerprint


def test_a_compact_bank_keeps_the_chosen_settings(hotshot, banks):
    run = hotshot.succeeds("bank", "compact", "full.bank", "-o", "small.bank")
    assert "without samples," in run.said
    assert "Note: without samples, cost='hierarchical' is replaced by 'mean-cosine'" in run.noted
    small, full = (BaseClasses.load(banks / f"{name}.bank") for name in ("small", "full"))
    assert small.samples is None
    with pytest.warns(NoSamplesWarning):
        model = HOTClassifier(small).fit(NOVEL[::4], LABELS[::4])
    expected = HOTClassifier(full).fit(NOVEL[::4], LABELS[::4])
    named = HOTClassifier(small, cost="mean-cosine").fit(NOVEL[::4], LABELS[::4])
    assert model.chosen_ == named.chosen_ == expected.chosen_ == SETTINGS
    assert model.probability_temperature_ == named.probability_temperature_ == expected.probability_temperature_ != 1
    np.testing.assert_array_equal(model.outliers_.thresholds, expected.outliers_.thresholds)
    np.testing.assert_array_equal(model.predict_proba(NOVEL), named.predict_proba(NOVEL))
    # The costs are alike but not the same.
    assert 0 < abs(model.predict_proba(NOVEL) - expected.predict_proba(NOVEL)).max() < 0.3
    np.testing.assert_allclose(model.outlier_score(NOVEL), expected.outlier_score(NOVEL), rtol=1e-9)
