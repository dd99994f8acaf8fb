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


@dataclass(frozen=True)
class Pool:
    """Unlabelled samples (U, V).

    Attributes
    ----------
    samples : array (U, V)
    probabilities : array (U, N)
        Calibrated probabilities of the classes.
    weights : array (U,)
        Probability of each sample to belong to one of the classes at all.
    candidates : integer array (C,)
        Rows that may be chosen.
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


@dataclass
class _Means:
    """Numbers (N,) and sums (N, V) of the labelled samples of each class, which grow by each pick."""

    ratios: np.ndarray
    centre: np.ndarray
    sizes: np.ndarray
    sums: np.ndarray

    def expected(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Mean e_k (V,) and variances V_k (V,) of the mean of class k, given its labelled samples."""
        return posterior(self.ratios, self.centre, self.sums[k] / self.sizes[k], self.sizes[k])

    def logits(self, x: np.ndarray) -> np.ndarray:
        """Log-likelihood ratios (n, N) of samples (n, V)."""
        means = self.sums / self.sizes[:, None]
        return np.asarray(log_ratios(self.ratios, self.centre, means, self.sizes, x))

    def covariances(self, k: int, x: np.ndarray, rows: np.ndarray, temperature: float) -> np.ndarray:
        """G_k (n, C) between samples (n, V) and those of these rows (C,)."""
        expected, variances = self.expected(k)
        off = (x - expected) / temperature
        return np.asarray((off * variances) @ off[rows].T)


def choose(labelled: Labelled, pool: Pool, n: int) -> Picks:
    """The n candidates with the largest sum of both parts, one after the other; each is then added with its class q.

    A large pool is divided into blocks, each spread over the whole pool, and every block gives its share of the n.

    Parameters
    ----------
    labelled : Labelled
    pool : Pool
    n : int
        At most the number of candidates.
    """
    n_classes = pool.probabilities.shape[1]
    means = _class_means(labelled, n_classes)
    temperature = matching_temperature(means.logits(pool.samples), pool.probabilities, pool.weights)
    assigned = joint_assignments(labelled, pool, temperature)
    mass = assigned.sum(axis=0) + means.sizes
    centres = (assigned.T @ pool.samples + means.sums) / mass[:, None]
    picked, shares = [], []
    blocks = _blocks(pool, n, n_classes)
    for number, some in enumerate(blocks):
        rows = np.searchsorted(some, np.intersect1d(some, pool.candidates))
        x, weights, probable = pool.samples[some], pool.weights[some], assigned[some]
        covariances = [means.covariances(k, x, rows, temperature) for k in range(n_classes)]
        free = np.ones(len(rows), dtype=bool)
        # The samples of a block stand for all.
        scale = len(pool.samples) / len(some) / 2
        for _ in range(number, n, len(blocks)):
            probabilities = softmax(means.logits(x) / temperature, axis=1)
            typical = typical_gain(means.sums, means.sizes, centres, mass, x[rows], probable[rows])
            informative = scale * weights[rows] * (weights @ information(covariances, probabilities, rows))
            parts = np.stack([_share(free * typical, 0.0), _share(free * informative, LEAST_INFORMATION)])
            best = int(np.argmax(np.where(free, parts.sum(axis=0) + TIE * parts[0], -1)))
            picked.append(some[rows[best]])
            shares.append(parts[:, best])
            free[best] = False
            own = int(probable[rows[best]].argmax())
            means.sizes[own] += 1
            means.sums[own] += x[rows[best]]
            covariances[own] = means.covariances(own, x, rows, temperature)
    typical, informative = np.array(shares).reshape(-1, 2).T
    return Picks(np.array(picked, dtype=np.int64), typical, informative)


def typical_gain(
    sums: np.ndarray, sizes: np.ndarray, centres: np.ndarray, mass: np.ndarray, x: np.ndarray, assigned: np.ndarray
) -> np.ndarray:
    r""":math:`\sum_k q_k(x) M_k (|\bar x_k - c_k|^2 - |\bar x_k^{+x} - c_k|^2)` of candidates x (C, V): (C,).

    Parameters
    ----------
    sums, sizes : arrays (N, V) and (N,)
        Sums and numbers of the labelled samples of each class.
    centres, mass : arrays (N, V) and (N,)
        Centres of all samples of each class, labelled or not, and their numbers.
    assigned : array (C, N)
        q, the probability of each candidate to belong to each class.
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

    Parameters
    ----------
    covariances : list of N arrays (U, C)
        G_k, covariances of the logits of class k.
    probabilities : array (U, N)
        p, whose :math:`F_{kl} = p_k \delta_{kl} - p_k p_l`.
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
    means = _class_means(labelled, pool.probabilities.shape[1])
    found = pool.weights[:, None] * pool.probabilities
    for _ in range(ITERATIONS):
        mass = found.sum(axis=0) + means.sizes
        centres = (found.T @ pool.samples + means.sums) / mass[:, None]
        distances = np.sum(centres * centres, axis=1) - 2 * pool.samples @ centres.T
        found = pool.weights[:, None] * softmax(np.log(mass) - distances / (2 * temperature), axis=1)
    return np.asarray(found)


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


def _class_means(labelled: Labelled, n_classes: int) -> _Means:
    sums = np.zeros((n_classes, labelled.support.shape[1]))
    np.add.at(sums, labelled.labels, labelled.support)
    sizes = np.bincount(labelled.labels, minlength=n_classes).astype(np.float64)
    return _Means(labelled.ratios, labelled.centre, sizes, sums)


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
