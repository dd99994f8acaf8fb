"""LaplacianShot: the nearest prototype, where queries that are near each other should agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from hotshot.classifiers.bd_cspn import BDCSPNClassifier
from hotshot.classifiers.classifier import COUNT, NOT_NEGATIVE, POSITIVE, chosen, parameter
from hotshot.transport.costs import squared_euclidean


@dataclass(eq=False, repr=False, kw_only=True)
class LaplacianShotClassifier(BDCSPNClassifier):
    r"""LaplacianShot: the nearest prototype, where queries that are near each other should agree [1]_.

    .. math::
        y_q \leftarrow \mathrm{softmax}_c\left(-\gamma \lVert z_q - m'_c \rVert^2
        + \lambda \sum_{q'} w_{qq'} y_{q'c}\right)

    with the prototypes m' of BD-CSPN, :math:`w_{qq'} = 1` if q' is one of the k nearest other queries of q, else 0, and
    repeated to a fixed point. The published constants are k 3 and gamma (``scale``) 1; lambda (``agreement``), from 0.1
    to 1.5, was chosen on validation classes.

    References
    ----------
    .. [1] Ziko, Dolz, Granger, Ben Ayed: Laplacian Regularized Few-Shot Learning. ICML 2020, arXiv:2006.15486.
    """

    agreement: float | str = chosen((0.7, 0.3, 1.5), NOT_NEGATIVE)
    scale: float | str = chosen((10.0, 3.0), POSITIVE)
    k: int = parameter(3, COUNT)
    steps: int = parameter(20, COUNT)

    def _scores(self, z: np.ndarray, prototypes: np.ndarray, settings: Mapping[str, Any]) -> np.ndarray:
        return np.asarray(-settings["scale"] * squared_euclidean(z, prototypes))

    def _assigned(self, z: np.ndarray, settings: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        z, prototypes = self._rectified(z, settings)
        scores = self._scores(z, prototypes, settings)
        return smoothed(scores, neighbours(z, settings["k"]), settings["agreement"], settings["steps"]), scores


def neighbours(z: np.ndarray, k: int) -> np.ndarray:
    """1 where q' is one of the k nearest other rows of row q of z, else 0: (Q, Q)."""
    distances = squared_euclidean(z, z)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, : min(k, len(z) - 1)]
    affinity = np.zeros((len(z), len(z)))
    np.put_along_axis(affinity, nearest, 1.0, axis=1)
    return affinity


def smoothed(scores: np.ndarray, affinity: np.ndarray, agreement: float, steps: int) -> np.ndarray:
    """Y = softmax(scores + agreement * affinity y), by iteration from softmax(scores): (Q, N)."""
    y = softmax(scores, axis=1)
    for _ in range(steps):
        before, y = y, softmax(scores + agreement * affinity @ y, axis=1)
        if np.abs(y - before).max() < 1e-6:
            break
    return np.asarray(y)
