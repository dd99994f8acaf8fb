r"""Eqs. 3 and 10: from transfer weights to calibrated Gaussians, one per support sample or per novel class.

With the lent mean :math:`\bar\mu_n = \sum_b w_{bn} \mu_b`, a mean rule combines it with the target :math:`x_n`, and the
covariance is :math:`\sum_b w_{bn} \Sigma_b + \alpha`. It is kept as weights over the base covariances.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hotshot.arrays import one_hot
from hotshot.bank import PreparedBase
from hotshot.bank.space import LEAST_TO_CHOOSE
from hotshot.method import Method
from hotshot.method.transfer import neighbours
from hotshot.model.two_covariances import shrinkage, two_covariances

# Share of the base classes at one shot, in the authors' program.
PRIOR_SHARE = 0.7
# Share of direction-dependent shrinkage in the posterior rule; the rest is that of the "mix" rule.
POSTERIOR_SHARE = 0.75
# Fewer base classes, with usually fewer samples each, lend no mean.
FEW_CLASSES, FEW_SAMPLES = LEAST_TO_CHOOSE, 5
# Whether alpha is added to every entry of the covariances of the raw features, or to their diagonal.
ALPHA_RULES = ("entries", "diagonal")


@dataclass(frozen=True)
class CalibratedGaussians:
    """G Gaussians for each task: means (tasks, G, V), weights of base covariances (tasks, G, B), classes (tasks, G).

    ``ray`` (V,) is d of the matrix d d' that alpha in every entry adds to every covariance; ``variances`` (V,) are what
    alpha on the diagonal adds.
    """

    means: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    ray: np.ndarray | None = None
    variances: np.ndarray | None = None

    def mixed_covariances(self, base: PreparedBase) -> np.ndarray:
        """Dense mixtures of the base covariances (tasks, Gaussians, V, V), without alpha."""
        mixed = base.covariances.mixtures(self.weights.reshape(-1, self.weights.shape[2]))
        return np.asarray(mixed.reshape(*self.weights.shape[:2], *mixed.shape[1:]))

    @property
    def alpha_factor(self) -> np.ndarray | None:
        """F (V, 1) or (V, V) with F F' the matrix that alpha adds to every covariance."""
        if self.ray is not None:
            return self.ray[:, None]
        return None if self.variances is None else np.diag(np.sqrt(self.variances))

    def spectrum(self, base: PreparedBase) -> np.ndarray:
        """Variances of a typical covariance along the axes (V,), without the ray."""
        spectrum = base.spectrum * self.weights[0, 0].sum()
        return np.asarray(spectrum if self.variances is None else spectrum + self.variances)


# The mean of each Gaussian (tasks, G, V) from the bank, lent means and targets (tasks, G, V), the shots of their
# classes (tasks, G) and the method. It is linear in lent means and targets.
Rule = Callable[[PreparedBase, np.ndarray, np.ndarray, np.ndarray, Method], np.ndarray]


def mix_rule(
    base: PreparedBase, lent: np.ndarray, targets: np.ndarray, shots: np.ndarray, method: Method
) -> np.ndarray:
    r""":math:`m \bar\mu_n + (1 - m) x_n`."""
    share: Any = method.mix
    if share == "auto":
        # The share of base classes of certainty q falls with the number of shots K: 0.7 q / (0.7 q + 0.3 K).
        certainty = PRIOR_SHARE * prior_certainty(base.counts)
        share = certainty / (certainty + (1 - PRIOR_SHARE) * shots)
    share = np.asarray(share, dtype=targets.dtype)[..., None]
    return np.asarray(share * lent + (1 - share) * targets)


def posterior_rule(
    base: PreparedBase,
    lent: np.ndarray,
    targets: np.ndarray,
    shots: np.ndarray,
    method: Method,
    *,
    share: float = POSTERIOR_SHARE,
    within: float = 0.2,
) -> np.ndarray:
    r""":math:`\bar\mu_n + A' (x_n - \bar\mu_n)`: shrinkage by direction.

    :math:`A = S_b (S_b + S_w / K)^{-1}` gives the posterior mean of a class of K samples if class means vary by S_b
    around the lent mean and samples by S_w around their class mean. A' is a share of A, and for the rest the equal
    shrinkage of all directions in the "mix" rule; S_w is shrunk to its trace by ``within``. S_b is divided by
    ``prior_certainty``.
    """
    two, certainty = two_covariances(base, within), prior_certainty(base.counts)
    towards = shrinkage(two.ratios, shots, certainty) if certainty else 1.0
    shrunk = two.restored(two.rotated(targets - lent) * towards)
    return np.asarray(share * (lent + shrunk) + (1 - share) * mix_rule(base, lent, targets, shots, method))


def printed_rule(
    base: PreparedBase, lent: np.ndarray, targets: np.ndarray, shots: np.ndarray, method: Method
) -> np.ndarray:
    r"""Eq. 10: :math:`(\bar\mu_n + x_n) / (B+1)`."""
    return np.asarray((lent + targets) / (len(base.means) + 1))


def free_lunch_rule(
    base: PreparedBase, lent: np.ndarray, targets: np.ndarray, shots: np.ndarray, method: Method
) -> np.ndarray:
    r"""Eq. 3: :math:`(k \bar\mu_n + x_n) / (k + 1)`."""
    k = neighbours(method.n_retrieved, len(base.means))
    return k / (k + 1) * lent + 1 / (k + 1) * targets


@dataclass(frozen=True)
class MeanRule:
    """An entry of ``MEAN_RULES``; with ``is_printed`` the covariance is divided by B, as in eq. 10."""

    mean: Rule
    is_printed: bool = False


MEAN_RULES = {
    "mix": MeanRule(mix_rule),
    "posterior": MeanRule(posterior_rule),
    # All of A: for features whose noise differs little between directions.
    "posterior-whole": MeanRule(partial(posterior_rule, share=1.0, within=0.7)),
    "printed": MeanRule(printed_rule, is_printed=True),
    "free-lunch": MeanRule(free_lunch_rule),
}


def prior_certainty(counts: np.ndarray) -> float:
    r"""Variance between classes, over that of a new class mean if it is estimated from B base classes.

    .. math::
        q = \frac{B (B - 3)}{(B + 1) (B - 1)}

    from Student's t distribution of B - 1 degrees of freedom; zero up to three classes, for which it has no variance.
    It is also zero for few classes of few samples, ``counts`` (B,): these are as uncertain as new classes, and means
    that are drawn to theirs would take their samples.
    """
    n_classes = len(counts)
    if n_classes <= 3 or (n_classes < FEW_CLASSES and np.median(counts) < FEW_SAMPLES):
        return 0.0
    return n_classes * (n_classes - 3) / (n_classes**2 - 1)


def class_targets(support: np.ndarray, labels: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean of each class's support samples (tasks, classes, V), and their numbers (tasks, classes)."""
    members = one_hot(labels, n_classes, support.dtype)
    shots = members.sum(axis=2)
    return (members @ support) / shots[:, :, None], shots


def calibrate(
    base: PreparedBase, targets: np.ndarray, labels: np.ndarray, shots: np.ndarray, transfer: np.ndarray, method: Method
) -> CalibratedGaussians:
    """Calibrated Gaussians: eq. 10, by one of the ``MEAN_RULES``.

    Targets (tasks, G, V) are support samples or class means in the space of the bank, with their class and its number
    of support samples (tasks, G) and their transfer weights (tasks, B, G).
    """
    rule, weights = MEAN_RULES[method.mean_rule], transfer.swapaxes(1, 2)
    means = rule.mean(base, weights @ base.means, targets, shots, method)
    weights = weights / len(base.means) if rule.is_printed else weights
    in_entries = method.alpha_rule == "entries"
    ray = method.alpha**0.5 * base.ones if method.alpha and in_entries else None
    variances = np.full_like(base.ones, method.alpha) if method.alpha and not in_entries else None
    return CalibratedGaussians(means, weights, labels, ray, variances)


def own_parts(base: PreparedBase, samples: np.ndarray, shots: np.ndarray, method: Method) -> np.ndarray:
    """The samples' own parts of calibrated means (tasks, S, V): the means if nothing were lent."""
    return MEAN_RULES[method.mean_rule].mean(base, np.zeros_like(samples), samples, shots, method)


def own_shares(
    base: PreparedBase, targets: np.ndarray, shots: np.ndarray, transfer: np.ndarray, method: Method
) -> np.ndarray:
    """Share of the targets in their calibrated means (tasks, Gaussians), where these differ from the lent means."""
    mean, difference = MEAN_RULES[method.mean_rule].mean, targets - transfer.swapaxes(1, 2) @ base.means
    nothing = np.zeros_like(difference)
    own = np.sum(difference * mean(base, nothing, difference, shots, method), axis=2)
    whole = own + np.sum(difference * mean(base, difference, nothing, shots, method), axis=2)
    return np.where(whole > 0, own / np.where(whole > 0, whole, 1), 1)
