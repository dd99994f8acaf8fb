r"""Contributions of support samples and base classes to the difference of two logits.

At the minimum of a head's problem its gradient vanishes. With g_p the derivatives of the loss in the logits of point
p, a calibrated mean or a support sample, and with all covariances replaced by the typical one of the bank, which is
diag(s) in its axes, this gives, axis by axis,

.. math::
    W_{\cdot v} = -\sum_p (I / C + s_v L)^{-1} g_p\, x_{pv}, \qquad
    L = \sum_g \sum_{j \ne y_g} g_{gj} (e_j - e_{y_g})(e_j - e_{y_g})^\top .

L comes from the covariances: exactly for the bound head, approximately for the others. Every point has its own term in
W. That term times z - z_0, with z a query and z_0 the mean of the calibrated means, is the contribution of the point to
the logits of z. The difference of two logits is the sum of these contributions, of the same difference at z_0, and of
the error of the typical covariance.
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
        Contribution of each support sample to its calibrated mean, which is the average of these plus a lent part.
    weights, base_means : arrays (G, B) and (B, V)
        Transfer weights, and means of the base classes.
    slopes : array (G + S, N)
        Derivatives of the loss in the logits of the means and the support samples.
    spectrum : array (V,)
        Variances of the typical covariance.
    C : float
        Inverse strength of the penalty, for one vector per class.
    beside : array (N,)
        Slopes of the means in the logits of base classes that are predicted too, summed; 0 if there are none.
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
        """Contributions of support samples (S,) and base classes (B,) to logit ``first`` minus logit ``second``.

        Samples of other classes and loans to other classes count as 0. A class of -1 is a base class, whose logit
        does not depend on them.
        """
        vectors, inverse = self._inverse
        of_first, of_second = (vectors[c] if c >= 0 else np.zeros(len(vectors)) for c in (first, second))
        centre = self.means.mean(axis=0) if len(self.means) else self.support.mean(axis=0)
        # The query as it enters the weights of each class (N, V).
        projected = vectors @ ((of_first - of_second)[:, None] * inverse * (query - centre))
        of_means, of_support = np.split(self.slopes, [len(self.means)])
        samples = _contributions(of_support, self.support @ projected.T)
        if len(self.means):
            samples += _contributions(of_means[self._mean_index] * self._shares, self.own_parts @ projected.T)
        both = np.isin(self.mean_labels, (first, second))
        scales, remainders = self._lent
        contributions = -(self.base_means @ projected.T) @ of_means[both].T * scales[both]
        contributions += _contributions(of_means[both], remainders[both] @ projected.T)
        lenders = np.sum(contributions * self.weights[both].T, axis=1)
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
    def _mean_index(self) -> np.ndarray:
        """Index of the calibrated mean that each support sample is part of (S,)."""
        one_per_class = len(self.means) == self.slopes.shape[1]
        return np.argsort(self.mean_labels)[self.labels] if one_per_class else np.arange(len(self.labels))

    @property
    def _shares(self) -> np.ndarray:
        """Share of each support sample in its calibrated mean (S, 1)."""
        return 1 / np.bincount(self._mean_index)[self._mean_index, None]

    @cached_property
    def _lent(self) -> tuple[np.ndarray, np.ndarray]:
        """Lent parts of the means as multiples (G,) of the lent means, and the remainders (G, V).

        A rule may use more of some axes than of others: the remainder is divided by transfer weight.
        """
        lent = self.means.copy()
        if len(lent):
            np.add.at(lent, self._mean_index, -self.own_parts * self._shares)
        whole = self.weights @ self.base_means
        lengths = np.sum(whole * whole, axis=1)
        scales = np.sum(lent * whole, axis=1) / np.where(lengths > 0, lengths, 1.0)
        return scales, lent - scales[:, None] * whole


def _contributions(slopes: np.ndarray, projected: np.ndarray) -> np.ndarray:
    return np.asarray(-np.sum(slopes * projected, axis=1))
