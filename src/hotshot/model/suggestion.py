r"""Which unlabelled samples to label next: those whose labels say most about the classes of all the others.

Two parts are added, each as a share of its largest value over the candidates x (of 0.01 nats, if no candidate has as
much information):

.. math::
    \underbrace{\sum_k q_k(x) M_k \big( |\bar x_k - c_k|^2 - |\bar x_k^{+x} - c_k|^2 \big)}_{\text{typical}}, \qquad
    \underbrace{\frac 12 \sum_u \sum_{kl} G_k(x, u)\, G_l(x, u)\, F_{kl}(x)\, F_{kl}(u)}_{\text{informative}}

Typical: the mean :math:`\bar x_k` of the labelled samples of a class comes closer to the centre :math:`c_k` of the
samples that probably belong to it, :math:`M_k` in number. q and c are fitted to the pool together
(``joint_assignments``). Informative: the mutual information between the label of x and those of the pool samples u, to
second order, in the two-covariance model of the bank. :math:`G_k(x, u) = (x - e_k)^\top V_k (u - e_k) / T^2` is the
covariance of the logits of class k at x and at u if the class mean is distributed as N(e_k, V_k) given its labelled
samples, at the temperature T; :math:`F_{kl} = p_k \delta_{kl} - p_k p_l` is zero where the class is certain.

Arrays are in axes where S_w is the identity and S_b is diagonal with the entries ``ratios``, as in
``hotshot.model.two_covariances``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from hotshot.model.two_covariances import log_ratios, posterior

# A sample with all of one part and nothing of the other often exists for both: the typical one is then chosen.
TIE = 1e-6
# Information about the whole pool, in nats, below which it counts less than all of a part: nothing is left to ask.
LEAST_INFORMATION = 0.01
# Iterations of the joint assignment of the pool.
ITERATIONS = 10
# Logarithms of the smallest and the largest temperature.
TEMPERATURES = -3.0, 12.0
# Entries of the covariances of logits, as classes * samples * samples: in memory together, and over all suggestions.
MOST_ENTRIES, MOST_WORK = 2**22, 2**29
# Blocks of a large pool have at least so many samples for each that is chosen, as long as there are any.
SAMPLES_TO_CHOOSE_FROM = 4


@dataclass(frozen=True)
class Labelled:
    """Support samples (S, V) with labels (S,) from 0, in the axes of the two-covariance model.

    ``ratios`` (V,) are the variances between classes and ``centre`` (V,) is the mean of the base classes.
    """

    ratios: np.ndarray
    centre: np.ndarray
    support: np.ndarray
    labels: np.ndarray

    def totals(self, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
        """Sums (N, V) and numbers (N,) of the samples of each class."""
        sums = np.zeros((n_classes, self.support.shape[1]))
        np.add.at(sums, self.labels, self.support)
        return sums, np.bincount(self.labels, minlength=n_classes).astype(np.float64)

    def logits(self, sums: np.ndarray, sizes: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Log-likelihood ratios (n, N) of samples x (n, V) in classes of these totals."""
        return log_ratios(self.ratios, self.centre, sums / sizes[:, None], sizes, x)

    def covariances(self, total: np.ndarray, size: float, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """T^2 G_k (n, C) between samples (n, V) and those of these rows (C,), for a class of this total (V,)."""
        expected, variances = posterior(self.ratios, self.centre, total / size, size)
        off = x - expected
        return np.asarray((off * variances) @ off[rows].T)


@dataclass(frozen=True)
class Pool:
    """Unlabelled samples (U, V), with calibrated probabilities of the classes (U, N).

    ``weights`` (U,) are the probabilities of each sample to belong to one of the classes at all; ``candidates`` (C,)
    are the rows that may be chosen.
    """

    samples: np.ndarray
    probabilities: np.ndarray
    weights: np.ndarray
    candidates: np.ndarray


@dataclass(frozen=True)
class Picks:
    """Chosen rows of a pool in order, and the shares of both parts of their value, from 0 to 1."""

    rows: np.ndarray
    typical: np.ndarray
    informative: np.ndarray


def choose(labelled: Labelled, pool: Pool, n: int) -> Picks:
    """The n candidates with the largest sum of both parts, one after the other; each is then added with its class q.

    A large pool is divided into blocks, each spread over the whole pool, and every block gives its share of the n,
    which is at most the number of candidates.
    """
    n_classes = pool.probabilities.shape[1]
    sums, sizes = labelled.totals(n_classes)
    temperature = matching_temperature(labelled.logits(sums, sizes, pool.samples), pool.probabilities, pool.weights)
    assigned = joint_assignments(labelled, pool, temperature)
    mass = assigned.sum(axis=0) + sizes
    centres = (assigned.T @ pool.samples + sums) / mass[:, None]
    picked, shares = [], []
    blocks = _blocks(pool, n, n_classes)
    for number, some in enumerate(blocks):
        rows = np.searchsorted(some, np.intersect1d(some, pool.candidates))
        x, weights, probable = pool.samples[some], pool.weights[some], assigned[some]
        covariances = [labelled.covariances(sums[k], sizes[k], x, rows) / temperature**2 for k in range(n_classes)]
        is_free = np.ones(len(rows), dtype=bool)
        # The samples of a block stand for all.
        scale = len(pool.samples) / len(some) / 2
        for _ in range(number, n, len(blocks)):
            probabilities = softmax(labelled.logits(sums, sizes, x) / temperature, axis=1)
            typical = typical_gain(sums, sizes, centres, mass, x[rows], probable[rows])
            informative = scale * weights[rows] * (weights @ information(covariances, probabilities, rows))
            parts = np.stack([_share(is_free * typical, 0.0), _share(is_free * informative, LEAST_INFORMATION)])
            best = int(np.argmax(np.where(is_free, parts.sum(axis=0) + TIE * parts[0], -1)))
            picked.append(some[rows[best]])
            shares.append(parts[:, best])
            is_free[best] = False
            k = int(probable[rows[best]].argmax())
            sizes[k] += 1
            sums[k] += x[rows[best]]
            covariances[k] = labelled.covariances(sums[k], sizes[k], x, rows) / temperature**2
    typical, informative = np.array(shares).reshape(-1, 2).T
    return Picks(np.array(picked, dtype=np.int64), typical, informative)


def typical_gain(
    sums: np.ndarray, sizes: np.ndarray, centres: np.ndarray, mass: np.ndarray, x: np.ndarray, assigned: np.ndarray
) -> np.ndarray:
    r""":math:`\sum_k q_k(x) M_k (|\bar x_k - c_k|^2 - |\bar x_k^{+x} - c_k|^2)` of candidates x (C, V): (C,).

    Given are the sums (N, V) and numbers (N,) of the labelled samples of each class, the centres (N, V) and numbers M
    (N,) of all its samples, labelled or not, and the probabilities q (C, N) of the candidates.
    """
    off = sums / sizes[:, None] - centres
    before = np.sum(off * off, axis=1)
    # The mean with x is (sums + x) / (K + 1): its square distance from the centre, multiplied out.
    rest = sums / (sizes[:, None] + 1) - centres
    steps = 1 / (sizes + 1)
    squares = np.sum(x * x, axis=1)[:, None] * steps**2 + 2 * (x @ rest.T) * steps
    return np.asarray(np.sum(assigned * mass * (before - squares - np.sum(rest * rest, axis=1)), axis=1))


def information(covariances: list[np.ndarray], probabilities: np.ndarray, rows: np.ndarray) -> np.ndarray:
    r""":math:`\sum_{kl} G_k(x, u) G_l(x, u) F_{kl}(x) F_{kl}(u)` for samples u (U) and those of ``rows`` (C): (U, C).

    ``covariances`` are the N arrays G_k (U, C); ``probabilities`` (U, N) are p in :math:`F_{kl} = p_k \delta_{kl} - p_k
    p_l`.
    """
    total, squares = np.zeros_like(covariances[0]), np.zeros_like(covariances[0])
    for k, covariance in enumerate(covariances):
        p = probabilities[:, k]
        both = covariance * p[:, None] * p[rows]
        total += both
        # F_kk(x) F_kk(u) is the square of the product p_k(x) p_k(u) plus this.
        squares += both * covariance * (1 - p[:, None] - p[rows])
    return np.asarray(np.maximum(total * total + squares, 0))


def joint_assignments(labelled: Labelled, pool: Pool, temperature: float) -> np.ndarray:
    r""":math:`q_k(u) \propto M_k \exp(-|u - c_k|^2 / 2T)`, with centres c and masses M of pool and support: (U, N).

    Expectation maximisation from the calibrated probabilities; q is multiplied by the weights of the pool.
    """
    sums, sizes = labelled.totals(pool.probabilities.shape[1])
    assigned = pool.weights[:, None] * pool.probabilities
    for _ in range(ITERATIONS):
        mass = assigned.sum(axis=0) + sizes
        centres = (assigned.T @ pool.samples + sums) / mass[:, None]
        distances = np.sum(centres * centres, axis=1) - 2 * pool.samples @ centres.T
        assigned = pool.weights[:, None] * softmax(np.log(mass) - distances / (2 * temperature), axis=1)
    return np.asarray(assigned)


def matching_temperature(logits: np.ndarray, probabilities: np.ndarray, weights: np.ndarray) -> float:
    """The T by which softmax(logits / T) has the mean confidence of calibrated probabilities, both (U, N)."""

    def excess(log_temperature: float) -> float:
        sure = softmax(logits / np.exp(log_temperature), axis=1).max(axis=1) - probabilities.max(axis=1)
        return float(weights @ sure)

    low, high = TEMPERATURES
    if excess(low) <= 0 or excess(high) >= 0:
        return float(np.exp(low if excess(low) <= 0 else high))
    return float(np.exp(brentq(excess, low, high, xtol=1e-9)))


def similar_groups(labelled: Labelled, samples: np.ndarray, least: int) -> list[tuple[int, np.ndarray]]:
    """Groups of samples (n, V) that one class would explain: the row of each group's centre, and its rows.

    A group is all samples that a class with its centre as the only labelled sample explains better than an unknown
    class does. The largest group is first, its samples are in no other, and groups have at least ``least`` samples.
    """
    ones = np.ones(len(samples))
    ratios = log_ratios(labelled.ratios, labelled.centre, samples, ones, samples)
    similar = (ratios > 0) & (ratios.T > 0)
    groups: list[tuple[int, np.ndarray]] = []
    while True:
        sizes = similar.sum(axis=0)
        if not len(sizes) or sizes.max() < least:
            return groups
        # Of several with as many samples, the one that explains them best.
        tied = np.flatnonzero(sizes == sizes.max())
        centre = int(tied[np.argmax(np.sum(np.where(similar, ratios, 0), axis=0)[tied])])
        members = np.flatnonzero(similar[:, centre])
        groups.append((centre, members))
        similar[members] = False
        similar[:, members] = False


def _blocks(pool: Pool, n: int, n_classes: int) -> list[np.ndarray]:
    """Rows that are compared with one another, from which n are chosen in turn.

    They are all, or blocks of evenly spaced candidates along the last axis, which varies most.
    """
    most = max(1, int(np.sqrt(min(MOST_ENTRIES, MOST_WORK / max(n, 1)) / n_classes)))
    if len(pool.samples) <= most:
        return [np.arange(len(pool.samples))]
    order = pool.candidates[np.lexsort(pool.samples[pool.candidates, -2:].T)]
    n_blocks = max(1, math.ceil(min(SAMPLES_TO_CHOOSE_FROM * n, len(order)) / most))
    some = order[np.linspace(0, len(order) - 1, min(n_blocks * most, len(order))).astype(int)]
    return [np.sort(some[number::n_blocks]) for number in range(n_blocks)]


def _share(part: np.ndarray, least: float) -> np.ndarray:
    """A part as a share of its largest value, or of ``least`` if that is larger; 0 where it is negative."""
    largest = max(float(part.max(initial=0)), least)
    return np.maximum(part, 0) / largest if largest > 0 else np.zeros_like(part)
