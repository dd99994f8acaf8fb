"""Statistics of base classes, eq. 2: means, covariances and sample weights, summed in float64; padded batches."""

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from hotshot.arrays import Array
from hotshot.errors import ParameterError

# Samples whose products are summed together.
ROWS_IN_PRODUCT = 2**13
# Classes share a padded batch if the smallest has at least this share of the samples of the largest.
SMALLEST_SHARE_OF_BUCKET = 0.5


def class_means(x: np.ndarray, counts: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    r""":math:`\mu_b = \sum_j p_j x_j` with :math:`p_j = 1/J_b` unless given (eq. 2), summed in float64: (B, V)."""
    means = np.empty((len(counts), x.shape[1]), dtype=x.dtype)
    for b, rows in enumerate(class_rows(counts)):
        group = x[rows].astype(np.float64)
        means[b] = group.mean(axis=0) if weights is None else weights[rows].astype(np.float64) @ group
    return means


def class_covariances(x: np.ndarray, counts: np.ndarray) -> np.ndarray:
    r""":math:`\Sigma_b = \sum_j (x_j - \mu_b)(x_j - \mu_b)^\top / (J_b - 1)` (eq. 2), summed in float64: (B, V, V).

    A class of one sample gets the pooled covariance.
    """
    width = x.shape[1]
    covariances = np.empty((len(counts), width, width), dtype=x.dtype)
    for b, rows in enumerate(class_rows(counts)):
        covariances[b] = _scatter(x[rows]) / max(counts[b] - 1, 1)
    if (counts == 1).any():
        covariances[counts == 1] = pooled_covariance(x, counts)
    return covariances


def pooled_covariance(x: np.ndarray, counts: np.ndarray) -> np.ndarray:
    r""":math:`\sum_b (J_b - 1) \Sigma_b / \sum_b (J_b - 1)`: covariance within classes (V, V).

    If no class has two samples, it is the covariance of all samples together.
    """
    freedom = int((counts - 1).sum())
    if freedom == 0:
        return _scatter(x) / max(len(x) - 1, 1)
    total = np.zeros((x.shape[1], x.shape[1]))
    # Many classes in one product: class by class it takes several times as long.
    ends = np.cumsum(counts)
    cuts = np.searchsorted(ends, np.arange(0, len(x), ROWS_IN_PRODUCT))
    for some in np.split(np.arange(len(counts)), np.unique(cuts[1:])):
        if not len(some):
            continue
        first = ends[some[0]] - counts[some[0]]
        group = x[first : ends[some[-1]]].astype(np.float64)
        means = np.add.reduceat(group, np.cumsum(counts[some]) - counts[some], axis=0) / counts[some][:, None]
        group -= np.repeat(means, counts[some], axis=0)
        total += group.T @ group
    return total / freedom


def class_rows(counts: np.ndarray) -> list[slice]:
    """Slice of the samples of each class."""
    return [slice(end - count, end) for end, count in zip(np.cumsum(counts), counts, strict=True)]


def _scatter(group: np.ndarray) -> np.ndarray:
    """Sum of products of deviations from the mean (V, V), in float64."""
    centred = group - group.mean(axis=0, dtype=np.float64)
    return np.asarray(centred.T @ centred)


def classifier_weights(x: np.ndarray, labels: np.ndarray, temperature: float) -> np.ndarray:
    r""":math:`p_j = \mathrm{softmax}_j(s_j / t)` over each class, s_j the base classifier's probability of the class.

    The classifier is a multinomial logistic regression on all base samples (below eq. 7).
    """
    if not temperature > 0:
        raise ParameterError(f"temperature must be positive, got {temperature!r}.")
    if labels[0] == labels[-1]:
        return np.full(len(x), 1.0 / len(x))
    with warnings.catch_warnings():
        # Nearly converged probabilities are good enough for weights.
        warnings.simplefilter("ignore", ConvergenceWarning)
        classifier = LogisticRegression(max_iter=300).fit(x, labels)
    probability = classifier.predict_proba(x)[np.arange(len(x)), labels]
    largest = np.zeros(labels[-1] + 1)
    np.maximum.at(largest, labels, probability)
    weights = np.exp((probability - largest[labels]) / temperature)
    return np.asarray(weights / np.bincount(labels, weights)[labels])


@dataclass(frozen=True)
class Bucket:
    """Base classes of similar size, padded with samples of no mass to one size J.

    ``classes`` (b,) are their indices in the bank, ``units`` (b, J, V) their samples as unit vectors, ``mass``
    (b, J) the sample weights, which sum to 1 for each class.
    """

    classes: np.ndarray
    units: Array
    mass: Array


def make_buckets(units: np.ndarray, weights: np.ndarray, counts: np.ndarray) -> tuple[Bucket, ...]:
    """Classes grouped by size and padded with zero mass, the largest first."""
    rows = class_rows(counts)
    order = np.argsort(-counts, kind="stable")
    buckets = []
    while len(order):
        size = counts[order[0]]
        members = order[counts[order] >= SMALLEST_SHARE_OF_BUCKET * size]
        order = order[len(members) :]
        members = np.sort(members)
        if len(members) == len(counts) and (counts == size).all():
            shape = (len(members), size)
            buckets.append(Bucket(members, units.reshape(*shape, -1), weights.reshape(shape)))
            continue
        padded = np.zeros((len(members), size, units.shape[1]), dtype=units.dtype)
        mass = np.zeros((len(members), size), dtype=units.dtype)
        for i, b in enumerate(members):
            padded[i, : counts[b]] = units[rows[b]]
            mass[i, : counts[b]] = weights[rows[b]]
        buckets.append(Bucket(members, padded, mass))
    return tuple(buckets)
