"""alpha-TIM: prototypes that maximise a mutual information between queries and classes, by steps of Adam."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import softmax

from hotshot.classifiers.classifier import COUNT, POSITIVE, Interval, chosen, parameter
from hotshot.classifiers.rival import TransductiveClassifier
from hotshot.transport.costs import squared_euclidean

# Smallest probability whose logarithm and powers are taken.
TINY = 1e-300
# Of the running means that Adam keeps of slopes and of their squares, as published.
DECAY, SLOW_DECAY = 0.9, 0.999


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
