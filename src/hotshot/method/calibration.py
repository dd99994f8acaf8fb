r"""From transfer weights to calibrated Gaussians, one per support sample or per novel class.

A calibrated Gaussian mixes the statistics of the base classes with the few samples of the novel class.
Its covariance is kept as weights over the base covariances and made dense only if that is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from hotshot.arrays import Array, namespace, one_hot, small_identity
from hotshot.bank import PreparedBase
from hotshot.bank.covariances import Covariances, Dense, Factored, Joined, diagonal
from hotshot.method.hierarchy import neighbours
from hotshot.method.parameters import Method
from hotshot.model.two_covariances import two_covariances

# Share of the base classes at one shot, in the authors' program.
PRIOR_SHARE = 0.7
# Share of direction-dependent shrinkage in the posterior rule; the rest is that of the "mix" rule.
POSTERIOR_SHARE = 0.75


@dataclass(frozen=True)
class CalibratedGaussians:
    """Gaussians for a batch of tasks.

    Attributes
    ----------
    means : array (tasks, Gaussians, V)
    own_share : array (tasks, Gaussians)
        Share of the support samples in each mean; the rest is lent.
    weights : array (tasks, Gaussians, B)
        Weights of the base covariances.
    shift : EntryShift, DiagonalShift or None
        What alpha adds to every covariance.
    labels : integer array (tasks, Gaussians)
        Class of each Gaussian, counted from 0.
    """

    means: Array
    own_share: Array
    weights: Array
    shift: Shift | None
    labels: Array

    def mixed_covariances(self, base: PreparedBase) -> Array:
        """Dense mixtures of the base covariances (tasks, Gaussians, V, V), before the shift."""
        xp = namespace(self.weights)
        tasks, n_gaussians, n_classes = self.weights.shape
        mixed = base.covariances.mixtures(xp.reshape(self.weights, (tasks * n_gaussians, n_classes)))
        return xp.reshape(mixed, (tasks, n_gaussians, *mixed.shape[1:]))

    def typical_spectrum(self, base: PreparedBase) -> tuple[Array, Array | None]:
        """Variances of a typical covariance along the axes (V,), and the ray (V + 1,) that a shift may add to it."""
        spectrum = base.spectrum * namespace(self.weights).sum(self.weights[0, 0, :])
        return (spectrum, None) if self.shift is None else self.shift.in_metric(spectrum)

    def covariances(self, base: PreparedBase) -> Array:
        """Dense covariances (tasks, Gaussians, V, V)."""
        mixed = self.mixed_covariances(base)
        return mixed if self.shift is None else mixed + self.shift.matrix


@dataclass(frozen=True)
class Borrowed:
    """Input of a mean rule: weights (tasks, G, B), lent means and targets (tasks, G, V), shots (tasks, G)."""

    weights: Array
    lent: Array
    targets: Array
    shots: Array


@dataclass(frozen=True)
class Joint:
    """Output of a mean rule: means, their own shares and weights of the covariances, as in ``CalibratedGaussians``."""

    means: Array
    own_share: Array
    weights: Array


def mix_rule(base: PreparedBase, borrowed: Borrowed, method: Method) -> Joint:
    r""":math:`m \sum_b w_{bn} \mu_b + (1 - m) x_n` with covariance :math:`\sum_b w_{bn} \Sigma_b + \alpha`."""
    if method.mix == "auto":
        share = automatic_mix(borrowed.shots, prior_certainty(base.means.shape[0]))
        return _average(borrowed, share[..., None], 1 - share)
    return _average(borrowed, float(method.mix), _constant(1 - float(method.mix), borrowed))


def posterior_rule(
    base: PreparedBase, borrowed: Borrowed, method: Method, *, share: float = POSTERIOR_SHARE, within: float = 0.2
) -> Joint:
    r""":math:`\bar\mu + A' (x_n - \bar\mu)` with :math:`\bar\mu = \sum_b w_{bn} \mu_b`: shrinkage by direction.

    :math:`A = S_b (S_b + S_w / K)^{-1}` gives the posterior mean of a class of K samples if class means vary by S_b
    around the lent mean and samples by S_w around their class mean. A' is a share of A, and for the rest the equal
    shrinkage of all directions in the "mix" rule; S_w is shrunk to its trace by ``within``. S_b is divided by
    ``prior_certainty``.
    """
    xp = namespace(borrowed.targets)
    two, certainty = two_covariances(base, within), prior_certainty(base.means.shape[0])
    difference = borrowed.targets - borrowed.lent
    kept = two.ratios / (two.ratios + certainty / borrowed.shots[..., None]) if certainty else 1.0
    shrunk = two.restored(two.rotated(difference) * kept)
    mixed = mix_rule(base, borrowed, method).means
    means = share * (borrowed.lent + shrunk) + (1 - share) * mixed
    length = xp.sum(difference * difference, axis=-1)
    own_part = xp.sum(difference * (means - borrowed.lent), axis=-1)
    return Joint(means, xp.where(length > 0, own_part / xp.where(length > 0, length, 1.0), 1.0), borrowed.weights)


def printed_rule(base: PreparedBase, borrowed: Borrowed, method: Method) -> Joint:
    r"""Eq. 10: :math:`(\sum_b w_{bn} \mu_b + x_n) / (B+1)`, covariance :math:`\sum_b w_{bn} \Sigma_b / B + \alpha`."""
    n_classes = base.means.shape[0]
    means = (borrowed.lent + borrowed.targets) / (n_classes + 1)
    return Joint(means, _constant(0.5, borrowed), borrowed.weights / n_classes)


def free_lunch_rule(base: PreparedBase, borrowed: Borrowed, method: Method) -> Joint:
    r"""Eq. 3: :math:`(k \sum_b w_{bn} \mu_b + x_n) / (k + 1)`, covariance :math:`\sum_b w_{bn} \Sigma_b + \alpha`."""
    k = neighbours(method.n_retrieved, base.means.shape[0])
    return _average(borrowed, k / (k + 1), _constant(1 / (k + 1), borrowed))


def _average(borrowed: Borrowed, share: Array | float, own_share: Array) -> Joint:
    means = share * borrowed.lent + (1 - share) * borrowed.targets
    return Joint(means, own_share, borrowed.weights)


def _constant(share: float, borrowed: Borrowed) -> Array:
    return namespace(borrowed.shots).full_like(borrowed.shots, share)


MEAN_RULES: dict[str, Callable[[PreparedBase, Borrowed, Method], Joint]] = {
    "mix": mix_rule,
    "posterior": posterior_rule,
    # All of A: for features whose noise differs little between directions.
    "posterior-whole": partial(posterior_rule, share=1.0, within=0.7),
    "printed": printed_rule,
    "free-lunch": free_lunch_rule,
}


def automatic_mix(shots: Array, certainty: float = 1.0) -> Array:
    """:math:`m = 0.7 q / (0.7 q + 0.3 K)`: share of base classes of certainty q, falling with the number of shots K."""
    return PRIOR_SHARE * certainty / (PRIOR_SHARE * certainty + (1 - PRIOR_SHARE) * shots)


def prior_certainty(n_classes: int) -> float:
    r"""Variance between classes, over that of a new class mean if it is estimated from B base classes.

    .. math::
        q = \frac{B (B - 3)}{(B + 1) (B - 1)}

    from Student's t distribution of B - 1 degrees of freedom; zero up to three classes, for which it has no variance.
    """
    return max(0.0, n_classes * (n_classes - 3) / (n_classes**2 - 1)) if n_classes > 1 else 0.0


@dataclass(frozen=True)
class EntryShift:
    """Alpha in every entry of the covariances of the raw features: d d' with d = sqrt(alpha) 1 in these axes (V,)."""

    direction: Array

    @property
    def factor(self) -> Array:
        """F (V, 1) of the shift F F'."""
        return self.direction[:, None]

    @property
    def matrix(self) -> Array:
        """The shift (V, V)."""
        return self.factor @ namespace(self.factor).matrix_transpose(self.factor)

    def in_metric(self, spectrum: Array) -> tuple[Array, Array | None]:
        """The shift in a metric: the spectrum unchanged, and one more ray (V + 1,)."""
        xp = namespace(spectrum)
        ray = xp.concat([self.direction, xp.zeros_like(self.direction[:1])], axis=0)
        return spectrum, xp.astype(ray, spectrum.dtype, copy=False)


@dataclass(frozen=True)
class DiagonalShift:
    """Alpha on the diagonal of the covariances, as the standard deviation that it adds along each axis (V,)."""

    deviations: Array

    @property
    def factor(self) -> Array:
        """F (V, V) of the shift F F'."""
        return self.deviations[:, None] * small_identity(self.deviations.shape[0], self.deviations)

    @property
    def variances(self) -> Array:
        """The shift of the variance along each axis (V,)."""
        return self.deviations * self.deviations

    @property
    def matrix(self) -> Array:
        """The shift (V, V)."""
        return self.variances[:, None] * small_identity(self.variances.shape[0], self.variances)

    def in_metric(self, spectrum: Array) -> tuple[Array, Array | None]:
        """The shift in a metric: added to the spectrum, without a ray."""
        return spectrum + namespace(spectrum).astype(self.variances, spectrum.dtype, copy=False), None


Shift = EntryShift | DiagonalShift
ALPHA_RULES: dict[str, Callable[[PreparedBase, float], Shift]] = {
    "entries": lambda base, alpha: EntryShift(alpha**0.5 * base.ones),
    "diagonal": lambda base, alpha: DiagonalShift(alpha**0.5 * namespace(base.ones).ones_like(base.ones)),
}


def class_targets(support: Array, labels: Array, n_classes: int) -> tuple[Array, Array]:
    """Mean of each class's support samples (tasks, classes, V), and their numbers (tasks, classes)."""
    xp = namespace(support)
    members = one_hot(labels, n_classes, support.dtype)
    shots = xp.sum(members, axis=2)
    return (members @ support) / shots[:, :, None], shots


def calibrate(
    base: PreparedBase, targets: Array, labels: Array, shots: Array, transfer: Array, method: Method
) -> CalibratedGaussians:
    """Calibrated Gaussians from transfer weights: eq. 10, by one of the ``MEAN_RULES``.

    Parameters
    ----------
    targets : array (tasks, Gaussians, V)
        Support samples or class means in the space of the bank.
    labels, shots : arrays (tasks, Gaussians)
        The class of each target, from 0, and the number of support samples of that class.
    transfer : array (tasks, B, Gaussians)
        Transfer weights.
    """
    weights = namespace(targets, transfer).matrix_transpose(transfer)
    borrowed = Borrowed(weights, weights @ base.means, targets, shots)
    joint = MEAN_RULES[method.mean_rule](base, borrowed, method)
    shift = None if method.alpha == 0 else ALPHA_RULES[method.alpha_rule](base, method.alpha)
    return CalibratedGaussians(joint.means, joint.own_share, joint.weights, shift, labels)


def own_parts(base: PreparedBase, targets: Array, shots: Array, transfer: Array, method: Method) -> Array:
    """The targets' own parts of calibrated means (tasks, Gaussians, V): the means if nothing were lent."""
    weights = namespace(targets, transfer).matrix_transpose(transfer)
    nothing = namespace(targets).zeros_like(targets)
    return MEAN_RULES[method.mean_rule](base, Borrowed(weights, nothing, targets, shots), method).means


def head_covariances(base: PreparedBase, gaussians: CalibratedGaussians) -> tuple[Covariances, Array | None]:
    """Covariances for a head to multiply with, and how the Gaussians mix them.

    Either one for each Gaussian, and None; or, if these would take more memory than the base covariances, the base
    covariances (and the shift), and the weights (tasks, Gaussians, K).
    """
    known, shift = base.covariances, gaussians.shift
    is_diagonal = isinstance(known, Factored) and known.is_diagonal
    if is_diagonal and (shift is None or isinstance(shift, DiagonalShift)):
        variances = gaussians.weights @ known.variances
        return diagonal(variances if shift is None else variances + shift.variances), None
    _, n_gaussians, n_classes = gaussians.weights.shape
    width = base.means.shape[1]
    if is_diagonal or n_gaussians * width**2 <= known.size:
        return Dense(gaussians.covariances(base)), None
    if shift is None:
        return known, gaussians.weights
    xp = namespace(gaussians.weights)
    both = Joined((known, Dense(shift.matrix[None, ...])), (np.arange(n_classes), np.array([n_classes])))
    return both, xp.concat([gaussians.weights, xp.ones_like(gaussians.weights[..., :1])], axis=2)
