"""The centroid head: the nearest calibrated mean."""

import numpy as np
import pytest

from conftest import make_bank
from hotshot import BaseClasses, HOTClassifier

X, Y = make_bank(9, 20)
BASE = BaseClasses.from_samples(X[Y < 6], Y[Y < 6])
NOVEL, LABELS = X[Y >= 6], Y[Y >= 6]


@pytest.mark.parametrize("per", ["class", "sample"])
@pytest.mark.parametrize("mean_rule", ["mix", "posterior"])
def test_the_nearest_mean_of_the_calibrated_means_wins(per, mean_rule):
    support = np.isin(np.arange(len(LABELS)) % 20, [0, 1, 2])
    model = HOTClassifier(BASE, head="centroid", per=per, mean_rule=mean_rule).fit(NOVEL[support], LABELS[support])
    means = np.stack([model.calibrated_means_[model.target_labels_ == c].mean(axis=0) for c in model.classes_])
    distances = np.linalg.norm(model.transform_(NOVEL)[:, None] - means, axis=2)
    assert np.array_equal(model.predict(NOVEL), model.classes_[distances.argmin(axis=1)])
    assert model.converged_


def test_base_classes_without_variance_give_finite_logits():
    flat = BaseClasses.from_samples(np.repeat(X[:6], 2, axis=0), np.repeat(np.arange(6), 2))
    model = HOTClassifier(flat, head="centroid").fit(NOVEL[::20], LABELS[::20])
    assert np.isfinite(model.decision_function(NOVEL)).all()
