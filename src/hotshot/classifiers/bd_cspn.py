"""BD-CSPN: prototypes rectified by pseudo-labelled queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from hotshot.arrays import unit_vectors
from hotshot.classifiers.classifier import POSITIVE, chosen, parameter
from hotshot.classifiers.rival import TransductiveClassifier


@dataclass(eq=False, repr=False, kw_only=True)
class BDCSPNClassifier(TransductiveClassifier):
    r"""BD-CSPN: means of the classes rectified by pseudo-labelled queries, after a shift of all queries [1]_.

    .. math::
        z_q \leftarrow z_q + \bar z_S - \bar z_Q, \quad
        m'_c = \sum_{x \in S_c \cup Q_c} w_x z_x, \quad
        w_x \propto \exp(\epsilon \cos(z_x, m_c))

    with the queries :math:`Q_c` whose nearest mean :math:`m_c` by cosine is that of class c, and weights that sum to 1
    in each class. The logits are ``scale`` times :math:`\cos(z, m'_c)`. The published epsilon is 10 and queries are
    shifted; on frozen features a smaller epsilon is better, and the shift only where classes have as many queries each.

    References
    ----------
    .. [1] Liu, Song, Qin: Prototype Rectification for Few-Shot Learning. ECCV 2020, arXiv:1911.10713.
    """

    epsilon: float | str = chosen((3.0, 1.0, 10.0), POSITIVE)
    shift: bool | str = chosen((False, True), "boolean")
    scale: float | str = parameter(10.0, POSITIVE)

    def _scores(self, z: np.ndarray, prototypes: np.ndarray, settings: Mapping[str, Any]) -> np.ndarray:
        return np.asarray(settings["scale"] * unit_vectors(z) @ unit_vectors(prototypes).T)

    def _assigned(self, z: np.ndarray, settings: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        z, prototypes = self._rectified(z, settings)
        scores = self._scores(z, prototypes, settings)
        return softmax(scores, axis=1), scores

    def _rectified(self, z: np.ndarray, settings: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Queries (Q, V), shifted if the settings say so, and rectified prototypes (N, V)."""
        support = self.support_
        if settings["shift"]:
            z = z + support.mean(axis=0) - z.mean(axis=0)
        directions, samples = unit_vectors(self.prototypes_), np.concatenate([support, z])
        cosines = unit_vectors(samples) @ directions.T
        members = np.concatenate([self.labels_, cosines[len(support) :].argmax(axis=1)])
        # Every class has its support, so that no sum is zero; cosines are at most 1.
        is_member = members[:, None] == np.arange(len(directions))
        weights = np.where(is_member, np.exp(settings["epsilon"] * (cosines - 1)), 0)
        return z, (weights / weights.sum(axis=0)).T @ samples
