"""PT-MAP: a balanced transport plan between queries and class centres, which move to what they get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from hotshot.arrays import unit_vectors
from hotshot.classifiers.classifier import COUNT, POSITIVE, Interval, StrOptions, chosen, parameter
from hotshot.classifiers.rival import TransductiveClassifier
from hotshot.transport import solve
from hotshot.transport.costs import squared_euclidean


@dataclass(eq=False, repr=False, kw_only=True)
class PTMAPClassifier(TransductiveClassifier):
    r"""PT-MAP: a balanced transport plan between queries and class centres, which move to what they get [1]_.

    .. math::
        T = \arg\min_{T 1 = 1,\; T^\top 1 = Q/N} \sum_{qc} T_{qc} \lVert z_q - m_c \rVert^2
        - \tfrac{1}{\lambda} H(T), \quad
        m_c \leftarrow m_c + \alpha \left(
        \frac{\sum_{s \in c} z_s + \sum_q T_{qc} z_q}{K_c + \sum_q T_{qc}} - m_c \right)

    with the entropy H. The centres start at the means of the support. The method is told that all classes have as many
    queries. The published constants are power 0.5, lambda (``sharpness``) 10 and alpha 0.2, on features whose mean is
    subtracted from the support and from the queries separately, between scalings to unit norm (``normalize="task"``).
    Lambda 5 is better where the numbers of queries differ after all.

    References
    ----------
    .. [1] Hu, Gripon, Pateux: Leveraging the Feature Distribution in Transfer-Based Few-Shot Learning. ICANN 2021,
       arXiv:2006.03806.
    """

    normalize: str = chosen(("centre-l2", "task"), StrOptions({"task", "centre-l2"}))
    sharpness: float | str = chosen((5.0, 10.0), POSITIVE)
    alpha: float = parameter(0.2, Interval(Real, 0, 1, closed="right"))
    steps: int = parameter(20, COUNT)

    assumes_balance = True

    def _learn_z(self, z: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        # Subtracted after the first scaling, where `predict_batch` subtracts the mean of the queries.
        by_task = settings["normalize"] == "task"
        self.task_centre_ = z.mean(axis=0) if by_task else np.zeros(z.shape[1])
        super()._learn_z(unit_vectors(z - self.task_centre_) if by_task else z, labels, settings)

    def _score(self, z: np.ndarray) -> np.ndarray:
        by_task = self.fitted_settings()["normalize"] == "task"
        return super()._score(unit_vectors(z - self.task_centre_) if by_task else z)

    def _scores(self, z: np.ndarray, prototypes: np.ndarray, settings: Mapping[str, Any]) -> np.ndarray:
        return np.asarray(-settings["sharpness"] * squared_euclidean(z, prototypes))

    def _assigned(self, z: np.ndarray, settings: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        # The direction of a single query is all that it has.
        if settings["normalize"] == "task" and len(z) > 1:
            z = unit_vectors(z - z.mean(axis=0))
        counts = np.bincount(self.labels_)[:, None]
        sums, centres = counts * self.prototypes_, self.prototypes_
        for _ in range(settings["steps"]):
            plan = balanced_assignment(z, centres, settings["sharpness"])
            targets = (sums + plan.T @ z) / (counts + plan.sum(axis=0)[:, None])
            centres = centres + settings["alpha"] * (targets - centres)
        return balanced_assignment(z, centres, settings["sharpness"]), self._scores(z, centres, settings)


def balanced_assignment(z: np.ndarray, centres: np.ndarray, sharpness: float) -> np.ndarray:
    """Entropic transport of queries z (Q, V) to centres (N, V) at squared distances: rows sum to 1, columns to Q/N."""
    plan = solve(squared_euclidean(z, centres), epsilon=1 / sharpness, tolerance=1e-7).raise_for_status().plan
    return np.asarray(len(z) * plan)
