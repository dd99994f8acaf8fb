"""alpha-TIM: prototypes that maximise a mutual information between queries and classes, by steps of Adam."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
# Decay of the running means of Adam, as published.
MOMENTA = (0.9, 0.999)


@dataclass(eq=False, repr=False, kw_only=True)
class AlphaTIMClassifier(TransductiveClassifier):
    r"""alpha-TIM: prototypes that maximise the mutual information of queries and classes [1]_.

    .. math::
        \min_W\; \frac{1}{S} \sum_{s} -\log p_{s y_s}
        + \frac{1}{\alpha - 1} \left(\sum_c \bar p_c^\alpha - \frac{1}{Q} \sum_{qc} p_{qc}^\alpha\right), \quad
        p_{nc} \propto \exp\left(-\tfrac{\tau}{2} \lVert z_n - w_c \rVert^2\right)

    with the mean :math:`\bar p` of the probabilities of the queries. The second term is the conditional minus the
    marginal Tsallis entropy; at alpha = 1 both are Shannon's, which is TIM. A larger alpha punishes unequal classes
    less. The prototypes W start at the means of the support and take steps of Adam [2]_. The published constants are
    alpha 5, tau 15 and 1000 steps of 0.0001. On frozen features a smaller alpha and tau were better; of 30 to 200 steps
    of 0.001, 50 were enough. The published 1000 steps of 0.0001 were no better on banking77, and the minimum, by
    L-BFGS, was less accurate.

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

        def slope(prototypes: np.ndarray) -> np.ndarray:
            return information_slope(prototypes, self.support_, members, z, settings["alpha"], settings["tau"])

        prototypes = adam(slope, self.prototypes_, settings["learning_rate"], settings["steps"])
        scores = self._scores(z, prototypes, settings)
        return softmax(scores, axis=1), scores


def adam(slope: Callable[[np.ndarray], np.ndarray], start: np.ndarray, length: float, steps: int) -> np.ndarray:
    r""":math:`w \leftarrow w - \eta\, \hat m / (\sqrt{\hat v} + 10^{-8})`, from a start and for a number of steps.

    :math:`\hat m` and :math:`\hat v` are running means of the slopes and of their squares, without the bias of their
    start at zero.
    """
    w, first, second = start, np.zeros_like(start), np.zeros_like(start)
    for step in range(1, steps + 1):
        g = slope(w)
        first, second = MOMENTA[0] * first + (1 - MOMENTA[0]) * g, MOMENTA[1] * second + (1 - MOMENTA[1]) * g**2
        m, v = first / (1 - MOMENTA[0] ** step), second / (1 - MOMENTA[1] ** step)
        w = w - length * m / (np.sqrt(v) + 1e-8)
    return w


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
