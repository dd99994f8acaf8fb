r"""How the difference of two logits splits into what each support sample and each base class gives to it.

At the minimum of a head's problem its gradient vanishes. With g_p the derivatives of the loss in the logits of point
p, a calibrated mean or a support sample, and with all covariances taken for the typical one of the bank, which is
diag(s) in its axes, that reads, axis by axis,

.. math::
    W_{\cdot v} = -\sum_p (I / C + s_v L)^{-1} g_p\, x_{pv}, \qquad
    L = \sum_g \sum_{j \ne y_g} g_{gj} (e_j - e_{y_g})(e_j - e_{y_g})^\top .

L is what the covariances bring in, exactly so for the bound head and nearly so for the others. Every point has its own
term in W. Times z - z_0, with z a query and z_0 the mean of the calibrated means, it is what the point gives to the
logits of z. The difference of two logits is the sum of these terms, of the same difference at z_0, and of what the
typical covariance leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class TrainedOn:
    """What one head was trained on: S support samples, G calibrated means, B base classes, N classes, V axes.

    Attributes
    ----------
    support, labels : arrays (S, V) and (S,)
        Support samples in the space of the bank, and their classes from 0.
    means, mean_labels : arrays (G, V) and (G,)
        Calibrated means: one per class, one per support sample in the same order, or none.
    own_parts : array (S, V)
        What a support sample gives to its calibrated mean, which is the average of these and a lent part.
    weights, base_means : arrays (G, B) and (B, V)
        Transfer weights, and the means that are lent.
    slopes : array (G + S, N)
        Derivatives of the loss in the logits of the means and the support samples.
    spectrum : array (V,)
        Variances of the typical covariance.
    C : float
        Of the penalty for one vector per class.
    beside : array (N,)
        Slopes of the means in the logits of old classes that stand beside these N, summed; 0 where there are none.
    """

    support: np.ndarray
    labels: np.ndarray
    means: np.ndarray
    mean_labels: np.ndarray
    own_parts: np.ndarray
    weights: np.ndarray
    base_means: np.ndarray
    slopes: np.ndarray
    spectrum: np.ndarray
    C: float
    beside: np.ndarray

    def split(self, query: np.ndarray, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
        """What each support sample (S,) and base class (B,) gives to logit `first` minus logit `second` of a query.

        Samples of other classes, and what is lent to other classes, count as 0. A class of -1 is an old one, whose
        logit none of them changes.
        """
        vectors, inverse = self._inverse
        of_first, of_second = (vectors[c] if c >= 0 else np.zeros(len(vectors)) for c in (first, second))
        centre = self.means.mean(axis=0) if len(self.means) else self.support.mean(axis=0)
        # The query as each class's weights see it (N, V).
        seen = vectors @ ((of_first - of_second)[:, None] * inverse * (query - centre))
        of_means, of_support = np.split(self.slopes, [len(self.means)])
        samples = _products(of_support, self.support @ seen.T)
        if len(self.means):
            of_own = of_means[self._mean_of] / np.bincount(self._mean_of)[self._mean_of, None]
            samples += _products(of_own, self.own_parts @ seen.T)
        both = np.isin(self.mean_labels, (first, second))
        scales, remainders = self._lent
        given = -(self.base_means @ seen.T) @ of_means[both].T * scales[both]
        given += _products(of_means[both], remainders[both] @ seen.T)
        lenders = np.sum(given * self.weights[both].T, axis=1)
        return np.where(np.isin(self.labels, (first, second)), samples, 0.0), lenders

    @cached_property
    def _inverse(self) -> tuple[np.ndarray, np.ndarray]:
        """Eigenvectors of L (N, N), and 1 / (1 / C + s_v l) for each of its eigenvalues (N, V)."""
        between = np.zeros((self.slopes.shape[1], self.slopes.shape[1]))
        np.add.at(between, self.mean_labels, self.slopes[: len(self.means)])
        between = between + between.T
        np.fill_diagonal(between, 0)
        values, vectors = np.linalg.eigh(np.diag(between.sum(axis=0) + self.beside) - between)
        return vectors, 1 / (1 / self.C + np.maximum(values, 0)[:, None] * self.spectrum)

    @cached_property
    def _mean_of(self) -> np.ndarray:
        """Which calibrated mean a support sample is part of (S,)."""
        one_per_class = len(self.means) == self.slopes.shape[1]
        return np.argsort(self.mean_labels)[self.labels] if one_per_class else np.arange(len(self.labels))

    @cached_property
    def _lent(self) -> tuple[np.ndarray, np.ndarray]:
        """Lent parts of the means as multiples (G,) of the lent means, and what is left of them (G, V).

        A rule may take more along some axes than along others: that is left over, and shared by transfer weight.
        """
        own = np.zeros_like(self.means)
        if len(own):
            np.add.at(own, self._mean_of, self.own_parts / np.bincount(self._mean_of)[self._mean_of, None])
        lent, whole = self.means - own, self.weights @ self.base_means
        lengths = np.sum(whole * whole, axis=1)
        scales = np.sum(lent * whole, axis=1) / np.where(lengths > 0, lengths, 1.0)
        return scales, lent - scales[:, None] * whole


def _products(slopes: np.ndarray, seen: np.ndarray) -> np.ndarray:
    return np.asarray(-np.sum(slopes * seen, axis=1))
