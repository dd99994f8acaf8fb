r"""Transfer weights -> calibrated Gaussians, one per support sample or per novel class.

A calibrated Gaussian mixes the statistics of the base classes with what little is seen of the novel class.
Its covariance is kept as weights over the base covariances and made dense only where that is cheaper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotshot.arrays import Array, namespace, one_hot, small_identity
from hotshot.base import PreparedBase
from hotshot.base.covariances import Covariances, Dense, Diagonal, Joined

MIX, PRINTED, FREE_LUNCH = "mix", "printed", "free-lunch"
MEAN_RULES = (MIX, PRINTED, FREE_LUNCH)
ALPHA_RULES = ("entries", "diagonal")
# What the authors' program gives the base classes at one shot.
PRIOR_SHARE = 0.7


@dataclass(frozen=True)
class CalibratedGaussians:
    """Gaussians for a batch of tasks.

    Attributes
    ----------
    means : array (tasks, Gaussians, V)
    weights : array (tasks, Gaussians, B)
        Of the base covariances.
    shift_factor : array (V, r) or None
        F of what is added to every covariance, F F': alpha in every entry or on the diagonal of the features.
    labels : integer array (tasks, Gaussians)
        Class of each Gaussian, counted from 0.
    """

    means: Array
    weights: Array
    shift_factor: Array | None
    labels: Array

    @property
    def shift(self) -> Array | None:
        """What is added to every covariance (V, V)."""
        factor = self.shift_factor
        return None if factor is None else factor @ namespace(factor).matrix_transpose(factor)

    def mixed_covariances(self, base: PreparedBase) -> Array:
        """Dense mixtures of the base covariances (tasks, Gaussians, V, V), before the shift."""
        xp = namespace(self.weights)
        tasks, n_gaussians, n_classes = self.weights.shape
        mixed = base.covariances.mixtures(xp.reshape(self.weights, (tasks * n_gaussians, n_classes)))
        return xp.reshape(mixed, (tasks, n_gaussians, *mixed.shape[1:]))

    def covariances(self, base: PreparedBase) -> Array:
        """Dense covariances (tasks, Gaussians, V, V)."""
        mixed = self.mixed_covariances(base)
        return mixed if self.shift is None else mixed + self.shift


def class_targets(support: Array, labels: Array, n_classes: int) -> tuple[Array, Array]:
    """Mean of each class's support samples (tasks, classes, V), and their numbers (tasks, classes)."""
    xp = namespace(support)
    members = one_hot(labels, n_classes, support.dtype)
    shots = xp.sum(members, axis=2)
    return (members @ support) / shots[:, :, None], shots


def automatic_mix(shots: Array) -> Array:
    """M = 0.7 / (0.7 + 0.3 K): what the base classes say falls as K shots come in."""
    return PRIOR_SHARE / (PRIOR_SHARE + (1 - PRIOR_SHARE) * shots)


def calibrate(
    base: PreparedBase,
    targets: Array,
    labels: Array,
    transfer: Array,
    *,
    mean_rule: str = MIX,
    mix: Array | float = PRIOR_SHARE,
    alpha: float = 0.0,
    alpha_rule: str = "entries",
    k: int = 2,
) -> CalibratedGaussians:
    r"""Calibrated Gaussians from transfer weights, eq. 10 in one of its three readings.

    ============  =========================================================  ====================================
    mean_rule     mean                                                       covariance
    ============  =========================================================  ====================================
    "mix"         :math:`m \sum_b w_{bn} \mu_b + (1 - m) x_n`                :math:`\sum_b w_{bn} \Sigma_b + \alpha`
    "printed"     :math:`(\sum_b w_{bn} \mu_b + x_n) / (B + 1)`              :math:`\sum_b w_{bn} \Sigma_b / B + \alpha`
    "free-lunch"  :math:`(k \sum_b w_{bn} \mu_b + x_n) / (k + 1)`, eq. 3     :math:`\sum_b w_{bn} \Sigma_b + \alpha`
    ============  =========================================================  ====================================

    Parameters
    ----------
    targets : array (tasks, Gaussians, V)
        Support samples or class means in the space of the bank.
    labels : integer array (tasks, Gaussians)
    transfer : array (tasks, B, Gaussians)
        Transfer weights.
    mix : float or array (tasks, Gaussians)
        m above.
    alpha_rule : {"entries", "diagonal"}
        Whether alpha is added to every entry of the covariance, as published, or to its diagonal.
    k : int
        Number of lending classes in the "free-lunch" rule.
    """
    xp = namespace(targets, transfer)
    weights = xp.matrix_transpose(transfer)
    borrowed = weights @ base.means
    n_classes = base.means.shape[0]
    if mean_rule == PRINTED:
        means = (borrowed + targets) / (n_classes + 1)
        weights = weights / n_classes
    else:
        share = k / (k + 1) if mean_rule == FREE_LUNCH else mix
        if not isinstance(share, (int, float)):
            share = share[..., None]
        means = share * borrowed + (1 - share) * targets
    return CalibratedGaussians(means, weights, _shift_factor(base, alpha, alpha_rule), labels)


def _shift_factor(base: PreparedBase, alpha: float, alpha_rule: str) -> Array | None:
    if alpha == 0:
        return None
    if alpha_rule == "diagonal":
        return alpha**0.5 * small_identity(base.means.shape[1], base.means)
    return alpha**0.5 * base.ones[:, None]


def head_covariances(base: PreparedBase, gaussians: CalibratedGaussians) -> tuple[Covariances, Array | None]:
    """Covariances for a head to multiply with, and how the Gaussians mix them.

    Either one for each Gaussian, and None, or, where that would take more memory than the base covariances do, these
    (and the shift), and the weights (tasks, Gaussians, K).
    """
    lent, factor = base.covariances, gaussians.shift_factor
    xp = namespace(gaussians.weights)
    if isinstance(lent, Diagonal) and (factor is None or factor.shape[1] > 1):
        variances = gaussians.weights @ lent.variances
        return Diagonal(variances if factor is None else variances + xp.sum(factor * factor, axis=1)), None
    _, n_gaussians, n_classes = gaussians.weights.shape
    width = base.means.shape[1]
    if isinstance(lent, Diagonal) or n_gaussians * width**2 <= lent.size:
        return Dense(gaussians.covariances(base)), None
    if gaussians.shift is None:
        return lent, gaussians.weights
    both = Joined((lent, Dense(gaussians.shift[None, ...])), (np.arange(n_classes), np.array([n_classes])))
    return both, xp.concat([gaussians.weights, xp.ones_like(gaussians.weights[..., :1])], axis=2)
