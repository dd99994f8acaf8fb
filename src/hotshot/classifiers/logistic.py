"""Logistic regression on unit vectors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hotshot.bank import BaseClasses
from hotshot.classifiers.classifier import NUMBER, POSITIVE, POWERS, StrOptions, chosen, joined_classes, parameter
from hotshot.classifiers.rival import NORMALIZE, BankRival, require_samples
from hotshot.method.heads.sampled import fit_logistic

# Samples of base classes to train on: at most in total, at least per class.
MOST_POINTS, LEAST_POINTS = 2**13, 8


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticClassifier(BankRival):
    r"""Logistic regression on unit vectors.

    .. math::
        \min_{W, c} \sum_n \ell(W z_n + c, y_n) + \frac{1}{2C} \lVert W \rVert^2, \quad
        z = \frac{x^\lambda - m}{\lVert x^\lambda - m \rVert}

    with the cross-entropy :math:`\ell` and the mean m of the base samples. With unit vectors C does not depend on the
    scale of the features, and a weaker penalty than scikit-learn's default is better [1]_. With ``include_base`` it is
    trained on base samples and the support together, with equal weights of all classes.

    References
    ----------
    .. [1] Tian, Wang, Krishnan, Tenenbaum, Isola: Rethinking Few-Shot Image Classification: a Good Embedding Is All
       You Need? ECCV 2020.
    """

    C: float | str = chosen((3.0, 1.0, 10.0, 100.0), POSITIVE)
    power: float | str = chosen(POWERS, NUMBER)
    normalize: str = chosen(NORMALIZE, StrOptions({*NORMALIZE}))
    include_base: bool = parameter(False, "boolean")

    def _learn_z(self, z: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        weights = None
        if self.include_base and self.base is not None:
            samples, of_base = some_samples(self.base, max(LEAST_POINTS, MOST_POINTS // len(self.base.names)))
            labels = np.concatenate([of_base, len(self.base.names) + labels])
            self.classes_, self.is_new_, order = joined_classes(self.base.names, self.classes_)
            # From indices in base and new classes to indices in all classes, sorted.
            labels = np.argsort(order)[labels]
            z = np.concatenate([self._placed(samples), z])
            weights = (len(z) / len(self.classes_) / np.bincount(labels))[labels]
        # The penalty keeps the weights in the span of the samples, where the problem is small.
        axes, coordinates = np.linalg.qr(z.T)
        theta, self.converged_ = fit_logistic(coordinates.T, labels, weights, C=settings["C"], tol=1e-8)
        if not self.converged_:
            warnings.warn(
                "The fit of LogisticClassifier stopped before its minimum: lower C.", ConvergenceWarning, stacklevel=5
            )
        self.coef_, self.intercept_ = theta[:, :-1] @ axes.T, theta[:, -1]

    def _score(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(z @ self.coef_.T + self.intercept_)

    def _evidence(self, X: np.ndarray) -> np.ndarray:
        return self._probabilities(self._finite_logits(X))


def some_samples(bank: BaseClasses, most: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many random samples of each class of a bank (n, V), and their classes (n,)."""
    samples, labels = require_samples(bank), bank.labels
    if bank.counts.max() <= most:
        return samples, labels
    order = np.random.default_rng(0).permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    starts = np.cumsum(bank.counts) - bank.counts
    rows = np.sort(order[np.arange(len(labels)) - starts[labels] < most])
    return samples[rows], labels[rows]
