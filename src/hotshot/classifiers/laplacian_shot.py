"""LaplacianShot: rectified prototypes, and neighbouring queries that should agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hotshot.classifiers.baselines import NORMALIZE, POWERS
from hotshot.classifiers.fields import AUTO, COUNT, NOT_NEGATIVE, POSITIVE, parameter
from hotshot.classifiers.transductive import TransductiveClassifier, rectified
from hotshot.method.heads.problem import softmax
from hotshot.transport.costs import squared_euclidean


@dataclass(eq=False, repr=False, kw_only=True)
class LaplacianShotClassifier(TransductiveClassifier):
    r"""LaplacianShot: the nearest prototype, where queries that are near each other should agree [1]_.

    .. math::
        y_q \leftarrow \mathrm{softmax}_c\left(-\gamma \lVert z_q - m'_c \rVert^2
        + \lambda \sum_{q'} w_{qq'} y_{q'c}\right)

    with the prototypes m' of BD-CSPN, :math:`w_{qq'} = 1` if q' is one of the k nearest other queries of q, else 0, and
    repeated to a fixed point. The published constants are k 3 and gamma 1; lambda, from 0.1 to 1.5, was chosen on
    validation classes.

    Parameters
    ----------
    base, power, normalize
        As in ``BDCSPNClassifier``.
    agreement : float or "auto"
        The factor lambda.
    epsilon : float or "auto"
        Factor of the cosine in the weights of the prototypes, as in ``BDCSPNClassifier``.
    scale : float or "auto"
        The factor gamma.
    shift : bool or "auto"
        Whether to shift the queries to the mean of the support.
    k : int
        Number of neighbours.
    steps : int
        Largest number of steps.

    Attributes
    ----------
    classes_, support_, labels_, prototypes_, centre_, power_
        As in ``BDCSPNClassifier``.

    References
    ----------
    .. [1] Ziko, Dolz, Granger, Ben Ayed: Laplacian Regularized Few-Shot Learning. ICML 2020, arXiv:2006.15486.
    """

    agreement: float | str = parameter("auto", NOT_NEGATIVE, AUTO)
    epsilon: float | str = parameter("auto", POSITIVE, AUTO)
    scale: float | str = parameter("auto", POSITIVE, AUTO)
    shift: bool | str = parameter("auto", "boolean", AUTO)
    k: int = parameter(3, COUNT)
    steps: int = parameter(20, COUNT)

    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {
        "agreement": (0.7, 0.3, 1.5),
        "scale": (10.0, 3.0),
        "epsilon": (3.0, 1.0, 10.0),
        "shift": (False, True),
        "normalize": NORMALIZE,
        "power": POWERS,
    }

    def _scores(self, z: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
        return np.asarray(-self._settled()["scale"] * squared_euclidean(z, prototypes))

    def _assigned(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        settings = self._settled()
        z, prototypes = rectified(self.support_, self.labels_, z, settings["epsilon"], bool(settings["shift"]))
        scores = self._scores(z, prototypes)
        return smoothed(scores, neighbours(z, settings["k"]), settings["agreement"], settings["steps"]), scores


def neighbours(z: np.ndarray, k: int) -> np.ndarray:
    """1 where q' is one of the k nearest other rows of row q of z, else 0: (Q, Q)."""
    distances = squared_euclidean(z, z)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, : min(k, len(z) - 1)]
    found = np.zeros((len(z), len(z)))
    np.put_along_axis(found, nearest, 1.0, axis=1)
    return found


def smoothed(scores: np.ndarray, affinity: np.ndarray, agreement: float, steps: int) -> np.ndarray:
    """Y = softmax(scores + agreement * affinity y), by iteration from softmax(scores): (Q, N)."""
    y = softmax(scores)[0]
    for _ in range(steps):
        before, y = y, softmax(scores + agreement * affinity @ y)[0]
        if np.abs(y - before).max() < 1e-6:
            break
    return np.asarray(y)
