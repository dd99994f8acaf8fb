"""Rivals that classify the queries of a task jointly: BD-CSPN, LaplacianShot, PT-MAP and alpha-TIM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import softmax

from hotshot.arrays import unit_vectors
from hotshot.classifiers.classifier import COUNT, NOT_NEGATIVE, POSITIVE, Interval, StrOptions, chosen, parameter
from hotshot.classifiers.rival import TransductiveClassifier
from hotshot.transport import solve
from hotshot.transport.costs import squared_euclidean

# Smallest probability whose logarithm and powers are taken.
TINY = 1e-300
# Of the running means that Adam keeps of slopes and of their squares, as published.
DECAY, SLOW_DECAY = 0.9, 0.999


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


@dataclass(eq=False, repr=False, kw_only=True)
class AlphaTIMClassifier(TransductiveClassifier):
    r"""alpha-TIM: prototypes that maximise the mutual information of queries and classes [1]_.

    .. math::
        \min_W\; \frac{1}{S} \sum_{s} -\log p_{s y_s}
        + \frac{1}{\alpha - 1} \left(\sum_c \bar p_c^\alpha - \frac{1}{Q} \sum_{qc} p_{qc}^\alpha\right), \quad
        p_{nc} \propto \exp\left(-\tfrac{\tau}{2} \lVert z_n - w_c \rVert^2\right)

    with the mean :math:`\bar p` of the probabilities of the queries. The second term is the conditional minus the
    marginal Tsallis entropy; at alpha = 1 both are Shannon's, which is TIM. The prototypes W start at the means of the
    support and take steps of Adam [2]_. The published constants are alpha 5, tau 15 and 1000 steps of 0.0001; on frozen
    features a smaller alpha and tau were better, and 50 steps of 0.001 were enough.

    References
    ----------
    .. [1] Veilleux, Boudiaf, Piantanida, Ben Ayed: Realistic Evaluation of Transductive Few-Shot Learning.
       NeurIPS 2021, arXiv:2204.11181.
    .. [2] Kingma, Ba: Adam: A Method for Stochastic Optimization. ICLR 2015, arXiv:1412.6980.
    """

    alpha: float | str = chosen((2.0, 1.0, 5.0), Interval(Real, 1, None, closed="left"))
    tau: float | str = chosen((8.0, 4.0, 15.0), POSITIVE)
    learning_rate: float = parameter(0.001, POSITIVE)
    steps: int = parameter(50, COUNT)

    def _scores(self, z: np.ndarray, prototypes: np.ndarray, settings: Mapping[str, Any]) -> np.ndarray:
        return np.asarray(-settings["tau"] / 2 * squared_euclidean(z, prototypes))

    def _assigned(self, z: np.ndarray, settings: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        members = np.eye(len(self.prototypes_))[self.labels_]
        prototypes = self.prototypes_
        first = second = np.zeros_like(prototypes)
        for step in range(1, settings["steps"] + 1):
            g = information_slope(prototypes, self.support_, members, z, settings["alpha"], settings["tau"])
            first, second = DECAY * first + (1 - DECAY) * g, SLOW_DECAY * second + (1 - SLOW_DECAY) * g**2
            # Without the bias of their start at zero.
            m, v = first / (1 - DECAY**step), second / (1 - SLOW_DECAY**step)
            prototypes = prototypes - settings["learning_rate"] * m / (np.sqrt(v) + 1e-8)
        scores = self._scores(z, prototypes, settings)
        return softmax(scores, axis=1), scores


def information_slope(
    prototypes: np.ndarray, support: np.ndarray, members: np.ndarray, queries: np.ndarray, alpha: float, tau: float
) -> np.ndarray:
    r"""The gradient of the loss at prototypes (N, V), for classes (S, N) of the support, one-hot.

    With :math:`g_{qc} = \frac{\alpha}{(\alpha - 1) Q} (\bar p_c^{\alpha - 1} - p_{qc}^{\alpha - 1})` for the
    probabilities of the queries, the slope of their logits is :math:`p (g - \sum_c p g)`.
    """
    halves = np.sum(prototypes**2, axis=1) / 2
    of_support = (softmax(tau * (support @ prototypes.T - halves), axis=1) - members) / len(support)
    p = np.maximum(softmax(tau * (queries @ prototypes.T - halves), axis=1), TINY)
    mean = p.mean(axis=0)
    if alpha == 1:
        g = (np.log(mean) - np.log(p)) / len(p)
    else:
        g = alpha / (alpha - 1) * (mean ** (alpha - 1) - p ** (alpha - 1)) / len(p)
    of_queries = p * (g - np.sum(p * g, axis=1, keepdims=True))
    gradient = of_support.T @ support + of_queries.T @ queries
    return np.asarray(tau * (gradient - (of_support.sum(axis=0) + of_queries.sum(axis=0))[:, None] * prototypes))
