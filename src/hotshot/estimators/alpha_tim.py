"""alpha-TIM: prototypes that maximise a mutual information between queries and classes, by quasi-Newton steps."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from hotshot.base import BaseClasses
from hotshot.estimators.baselines import POWER, POWERS
from hotshot.estimators.transductive import AUTO, NORMALIZE, POSITIVE, TransductiveClassifier
from hotshot.method.heads.problem import softmax
from hotshot.transport.costs import squared_euclidean

# Smallest probability whose logarithm and powers are taken.
TINY = 1e-300


class AlphaTIMClassifier(TransductiveClassifier):
    r"""alpha-TIM: prototypes that maximise the mutual information of queries and classes [1]_.

    .. math::
        \min_W\; \frac{1}{S} \sum_{s} -\log p_{s y_s}
        + \frac{1}{\alpha - 1} \left(\sum_c \bar p_c^\alpha - \frac{1}{Q} \sum_{qc} p_{qc}^\alpha\right), \quad
        p_{nc} \propto \exp\left(-\tfrac{\tau}{2} \lVert z_n - w_c \rVert^2\right)

    with the mean :math:`\bar p` of the probabilities of the queries. The second term is the conditional minus the
    marginal Tsallis entropy; at alpha = 1 both are Shannon's, which is TIM. A larger alpha punishes unequal classes
    less. The prototypes W start at the means of the support. The published tau is 15, the optimiser Adam with 1000
    small steps; here L-BFGS goes on to the minimum.

    Parameters
    ----------
    base : BaseClasses or None
        Bank whose mean is subtracted and on which "auto" is chosen; with None nothing is subtracted.
    power : float or "auto"
        Power of the features; "auto" is chosen on the base classes.
    normalize : {"centre-l2", "l2", "auto"}
        Subtract the mean of the base samples before scaling to unit norm, or scale alone.
    alpha : float or "auto"
        Order of the entropies, at least 1.
    tau : float or "auto"
        Factor of the squared distance in the logits.

    Attributes
    ----------
    classes_ : array (N,)
        Labels of the classes, sorted.
    support_, labels_ : arrays (S, V) and (S,)
        Normalised support samples and the indices of their classes.
    prototypes_ : array (N, V)
        Means of the normalised support of each class.
    centre_ : array (V,)
        The mean that is subtracted; zero if none is.
    power_ : float
        The power in use.

    References
    ----------
    .. [1] Veilleux, Boudiaf, Piantanida, Ben Ayed: Realistic Evaluation of Transductive Few-Shot Learning.
       NeurIPS 2021, arXiv:2204.11181.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "base": "no_validation",
        "power": POWER,
        "normalize": [StrOptions({*NORMALIZE, "auto"})],
        "alpha": [Interval(Real, 1, None, closed="left"), AUTO],
        "tau": POSITIVE,
    }
    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {
        "alpha": (5.0, 2.0, 3.0),
        "tau": (15.0, 8.0, 30.0),
        "normalize": NORMALIZE,
        "power": POWERS,
    }

    def __init__(
        self,
        base: BaseClasses | None = None,
        *,
        power: float | str = "auto",
        normalize: str = "auto",
        alpha: float | str = "auto",
        tau: float | str = "auto",
    ) -> None:
        self.base = base
        self.power = power
        self.normalize = normalize
        self.alpha = alpha
        self.tau = tau

    def _scores(self, z: np.ndarray, prototypes: np.ndarray) -> np.ndarray:
        return np.asarray(-self._settled()["tau"] / 2 * squared_euclidean(z, prototypes))

    def _assigned(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        settings = self._settled()
        # Prototypes stay in the span of all samples, where the problem is smaller.
        axes, coordinates = np.linalg.qr(np.concatenate([self.support_, z]).T)
        support, queries = np.split(coordinates.T, [len(self.support_)])
        start = self.prototypes_ @ axes
        prototypes, converged = informative_prototypes(
            support, self.labels_, queries, start, settings["alpha"], settings["tau"]
        )
        if not converged:
            warnings.warn(
                "AlphaTIMClassifier stopped before its minimum: lower tau or alpha.", ConvergenceWarning, stacklevel=4
            )
        scores = self._scores(queries, prototypes)
        return softmax(scores)[0], scores


def informative_prototypes(
    support: np.ndarray, labels: np.ndarray, queries: np.ndarray, start: np.ndarray, alpha: float, tau: float
) -> tuple[np.ndarray, bool]:
    """Prototypes (N, V) at the minimum of ``information_loss`` that is reached from a start, and whether it is one."""
    arguments = (support, np.eye(len(start))[labels], queries, start.shape, alpha, tau)
    options = {"gtol": 1e-6, "ftol": 1e-12, "maxcor": 20, "maxiter": 1000}
    found = minimize(information_loss, start.ravel(), arguments, "L-BFGS-B", jac=True, options=options)
    return found.x.reshape(start.shape), bool(np.abs(found.jac).max() <= 1e-3)


def information_loss(
    flat: np.ndarray,
    support: np.ndarray,
    members: np.ndarray,
    queries: np.ndarray,
    shape: tuple[int, int],
    alpha: float,
    tau: float,
) -> tuple[float, np.ndarray]:
    r"""The loss of alpha-TIM and its gradient, both at prototypes (N * V,).

    With :math:`g_{qc} = \frac{\alpha}{(\alpha - 1) Q} (\bar p_c^{\alpha - 1} - p_{qc}^{\alpha - 1})` for the
    probabilities of the queries, the slope of their logits is :math:`p (g - \sum_c p g)`.
    """
    prototypes = flat.reshape(shape)
    halves = np.sum(prototypes**2, axis=1) / 2
    logits = tau * (support @ prototypes.T - halves)
    own, totals = softmax(logits)
    value = np.mean(totals - np.sum(members * logits, axis=1))
    slopes_support = (own - members) / len(support)
    p = np.maximum(softmax(tau * (queries @ prototypes.T - halves))[0], TINY)
    mean = p.mean(axis=0)
    if alpha == 1:
        value += np.sum(mean * np.log(mean)) - np.sum(p * np.log(p)) / len(p)
        g = (np.log(mean) - np.log(p)) / len(p)
    else:
        value += (np.sum(mean**alpha) - np.sum(p**alpha) / len(p)) / (alpha - 1)
        g = alpha / (alpha - 1) * (mean ** (alpha - 1) - p ** (alpha - 1)) / len(p)
    slopes = p * (g - np.sum(p * g, axis=1, keepdims=True))
    gradient = slopes_support.T @ support + slopes.T @ queries
    gradient -= (slopes_support.sum(axis=0) + slopes.sum(axis=0))[:, None] * prototypes
    return float(value), tau * gradient.ravel()
