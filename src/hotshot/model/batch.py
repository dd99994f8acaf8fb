r"""Many queries at once: they show where the classes are, and in which proportions.

A batch of queries is transported to the classes. With calibrated logits :math:`l`, proportions :math:`\pi` and weights
:math:`v` of the queries, the plan T solves

.. math::
    \min_{T 1 = v} \; -\sum_{qk} T_{qk} (l_{qk} + \log \pi_k) + \sum_{qk} T_{qk} \log T_{qk}
    + \rho \, KL(T^\top 1 \,|\, \textstyle\sum_q v_q \, \pi),

so that query q belongs to class k with :math:`r_{qk} \propto \pi_k e^{l_{qk} + h_k}`, where the potential h lowers
classes that got more than their proportion. Two updates alternate with it:

- The proportions are the expected ones given the numbers of queries :math:`n_k = \sum_q v_q r_{qk}`, under a Dirichlet
  prior :math:`Dir(\alpha, \dots, \alpha)` whose :math:`\alpha` is itself unknown: queries that are spread evenly raise
  it, and a batch of few classes lowers it. The strength :math:`\rho` follows it. Base classes and new classes have
  each their own prior, and any share of the batch: how even the queries of base classes are says nothing about how
  many belong to new ones. Without queries, all classes are alike.
- The mean of each class moves to :math:`(P_k c_k + \sum_q w_{qk} z_q) / (P_k + \sum_q w_{qk})`, from the calibrated
  mean c, which counts as P samples (fewer in an even batch), by queries that count :math:`w_{qk} = v_q r_{qk}^2`: those
  between two classes count little, so that a class without queries keeps its mean.

A query says nothing about itself: it is left out of the means that it is compared to, and the numbers of queries are
those of the others, on average. A query alone is therefore answered as without a batch.

Means enter the logits as in a linear discriminant, :math:`l_{qk} = l^0_{qk} + s (z_q^\top (m_k - c_k) - (\lVert m_k
\rVert^2 - \lVert c_k \rVert^2) / 2)`: without a move they are those of the model. The scale s is that of the model's
own logits, by regression.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, softmax

from hotshot.transport import solve

ROUNDS = 10
# Samples that a calibrated mean counts as beside its own, for a ratio of 1 between the variances between and within
# classes: in an uneven batch and in an even one. By the two-covariance model it is 1; but in an uneven batch queries
# of a large class are assigned to other classes, all with the same error.
PRIOR_SAMPLES, EVEN_PRIOR_SAMPLES = 4.0, 1.0
# The relaxation is at most so much. It is halved if there are only so many queries for each class, which say little
# about the classes as a whole, and again if alpha is only its median, because proportions may then be unequal.
LARGEST_RELAXATION, FEW_QUERIES = 2.0, 4.0
# Median of alpha and standard deviation of its logarithm, and the values that are summed over.
MEDIAN_ALPHA, SPREAD_ALPHA = 10.0, 2.0
ALPHAS = np.geomspace(0.01, 1e4, 25)
# Probabilities in an even batch are sharper by this power of (1 + 1/K) / (1 + 1/(K + n)), for n samples that the batch
# adds to K.
SHARPENING = 0.8
# Factor of the doubt whether an uneven batch is of the classes that it seems to be of.
DOUBT = 2.0
# Range of the factor of the logits, and steps to find it.
SHARPNESS = 0.02, 1.0
BISECTIONS = 30
# Smallest share of the queries in a class, to take its logarithm.
LEAST_SHARE = 1e-12


@dataclass(frozen=True)
class BatchSolution:
    """Joint inference over the queries of a batch of tasks: probabilities (tasks, Q, N), and what they follow from.

    ``proportions`` (tasks, N) are the expected shares of the classes in the batch, ``means`` (tasks, N, V) where the
    means of the classes moved to.
    """

    probabilities: np.ndarray
    proportions: np.ndarray
    means: np.ndarray


def joint_inference(
    logits: np.ndarray,
    queries: np.ndarray,
    means: np.ndarray,
    shots: np.ndarray,
    weights: np.ndarray,
    *,
    ratio: float,
    groups: Sequence[np.ndarray] | None = None,
) -> BatchSolution:
    """Classify the queries (tasks, Q, V) of each task jointly, in the space of the model.

    The softmax of the calibrated ``logits`` (tasks, Q, N) gives the probabilities of each query alone. ``means``
    (tasks, N, V) are the calibrated means of the classes, from so many ``shots`` (tasks, N). ``weights`` (tasks, Q) of
    the queries are 0 to 1: a query that fits no class has weight 0 and changes nothing. ``ratio`` is that of the
    variances between and within classes; ``groups`` are the places of the base classes and of the new ones.
    """
    n_queries, n_classes = logits.shape[1:]
    largest = LARGEST_RELAXATION * (n_queries - 1) / (n_queries - 1 + FEW_QUERIES * n_classes)
    total = np.sum(weights, axis=1, keepdims=True)
    # Without any query that fits, all count alike, and none moves a mean.
    masses = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / n_queries)
    # The share of the batch that is not the query itself.
    others = 1 - np.sum(masses * masses, axis=1, keepdims=True)
    scores = _scores(queries, means)
    scale = _scale_of_logits(logits, scores, masses)
    moved_logits = logits
    assigned = softmax(logits, axis=2)
    for _ in range(ROUNDS):
        proportions, evenness = expected_proportions(others * np.sum(weights[:, :, None] * assigned, axis=1), groups)
        offsets = _offsets(moved_logits, masses, proportions, largest * evenness)
        assigned = softmax(moved_logits + offsets[:, None, :], axis=2)
        counted = weights[:, :, None] * assigned * assigned
        counts = np.sum(counted, axis=1)
        prior = PRIOR_SAMPLES + evenness * (EVEN_PRIOR_SAMPLES - PRIOR_SAMPLES)
        # If base means do not differ at all, means hardly move.
        worth = prior[:, None] / max(ratio, LEAST_SHARE) + shots
        sums = worth[:, :, None] * means + counted.swapaxes(1, 2) @ queries
        change = _scores_without_own(queries, sums, worth + counts, counted) - scores
        moved_logits = logits + scale[:, None, None] * change
    final_logits = moved_logits + offsets[:, None, :]
    labels = _expected_labels(logits, offsets, shots, masses, evenness)
    # On average, n is smaller by the count of the query itself.
    added = counts - np.sum(counted * counted, axis=1) / np.maximum(counts, LEAST_SHARE)
    surer = np.mean((1 + 1 / shots) / (1 + 1 / (shots + added)), axis=1) ** (SHARPENING * evenness)
    sharpness = np.minimum(_sharpness(final_logits, labels, masses) * surer, SHARPNESS[1])
    probabilities = softmax(sharpness[:, None, None] * final_logits, axis=2)
    return BatchSolution(probabilities, proportions, sums / (worth + counts)[:, :, None])


def _scores(queries: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Inner product minus m' m / 2 (tasks, Q, N): the logits of equal covariances, apart from their scale."""
    return queries @ means.swapaxes(1, 2) - np.sum(means * means, axis=2)[:, None, :] / 2


def _scores_without_own(queries: np.ndarray, sums: np.ndarray, totals: np.ndarray, counted: np.ndarray) -> np.ndarray:
    """Scores (tasks, Q, N) with means of which each query is left out.

    ``sums`` (tasks, N, V) and ``totals`` (tasks, N) are of all samples of each class and all queries, in which each
    query counts ``counted`` (tasks, Q, N).
    """
    rest = totals[:, None, :] - counted
    lengths = np.sum(queries * queries, axis=2)[:, :, None] * counted
    products = queries @ sums.swapaxes(1, 2)
    squares = np.sum(sums * sums, axis=2)[:, None, :] - counted * (2 * products - lengths)
    return (products - lengths) / rest - squares / (2 * rest * rest)


def _scale_of_logits(logits: np.ndarray, scores: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """The factor (tasks,) of the scores that is closest to the logits, apart from a constant for each query."""
    logits = (logits - np.mean(logits, axis=2, keepdims=True)) * masses[:, :, None]
    scores = scores - np.mean(scores, axis=2, keepdims=True)
    length = np.sum(scores * scores * masses[:, :, None], axis=(1, 2))
    factor = np.sum(logits * scores, axis=(1, 2)) / np.where(length > 0, length, 1.0)
    return np.where((length > 0) & (factor > 0), factor, 0)


def expected_proportions(
    counts: np.ndarray, groups: Sequence[np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""Expected shares of the classes (tasks, N) given how many queries each has (tasks, N), and how even they are.

    .. math::
        E[\pi_k | n] = \frac{n_g + G N_g / N}{Q + G} \sum_\alpha p(\alpha | n) \frac{n_k + \alpha}{n_g + N_g \alpha},
        \qquad p(\alpha | n) \propto p(\alpha) \frac{\Gamma(N_g \alpha)}{\Gamma(N_g \alpha + n_g)}
        \prod_{k \in g} \frac{\Gamma(n_k + \alpha)}{\Gamma(\alpha)}

    for class k of N, of group g, one of G, with :math:`N_g` classes and :math:`n_g` queries. The evenness (tasks,) is
    :math:`E[\alpha / (\alpha + 10) | n]`, the mean over groups by their shares: 0 if all queries are of one class, 1 if
    there are as many of each.
    """
    n_classes = counts.shape[1]
    groups = [np.arange(n_classes)] if groups is None else groups
    proportions, evenness = np.empty_like(counts), np.zeros(len(counts))
    for group in groups:
        within, evenness_within = _proportions_within(counts[:, group])
        share = counts[:, group].sum(axis=1) + len(groups) * len(group) / n_classes
        share /= counts.sum(axis=1) + len(groups)
        proportions[:, group] = share[:, None] * within
        evenness += share * evenness_within
    return proportions, evenness


def _proportions_within(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Expected proportions (tasks, N) of the classes of one group, and their evenness (tasks,)."""
    n = counts[:, None, :]
    alpha, ways, total = ALPHAS[:, None], n.shape[-1], n.sum(axis=-1)
    evidence = gammaln(ways * ALPHAS) - gammaln(ways * ALPHAS + total)
    evidence = evidence + np.sum(gammaln(n + alpha) - gammaln(alpha), axis=-1)
    evidence -= (np.log(ALPHAS / MEDIAN_ALPHA) / SPREAD_ALPHA) ** 2 / 2
    weights = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    proportions = np.sum(weights[..., None] * (n + alpha) / (total[..., None] + ways * alpha), axis=1)
    return proportions, np.sum(weights * ALPHAS / (ALPHAS + MEDIAN_ALPHA), axis=1)


def _offsets(logits: np.ndarray, masses: np.ndarray, proportions: np.ndarray, relaxation: np.ndarray) -> np.ndarray:
    """Sum of log pi and h (tasks, N): what the transport adds to the logits of each class."""
    prior = np.log(np.maximum(proportions, LEAST_SHARE))
    if logits.shape[1] == 1:
        # There are no others to share the classes with.
        return prior
    cost = -(logits + prior[:, None, :])
    plan = solve(cost, masses, proportions, epsilon=1.0, relaxation=relaxation, tolerance=1e-7).raise_for_status().plan
    shares = np.maximum(np.sum(plan, axis=1), LEAST_SHARE)
    return prior - relaxation[:, None] * (np.log(shares) - prior)


def _expected_labels(
    logits: np.ndarray, offsets: np.ndarray, shots: np.ndarray, masses: np.ndarray, evenness: np.ndarray
) -> np.ndarray:
    """Probabilities of the labels (tasks, Q, N) before the means moved, by which the final ones are calibrated.

    They are those with the offsets, mixed with those of each query alone as far as the offsets are in doubt. An uneven
    batch seems to be of the wrong class if the mean of that class is wrong, and then its queries err together: with K
    samples for each mean, 1 / (K + 1) of their error is shared.
    """
    alone = softmax(logits, axis=2)
    best = np.argmax(alone, axis=2)
    shared = 1 / (1 + np.take_along_axis(shots, best, axis=1))
    doubt = DOUBT * (1 - evenness) * np.sum(masses * (1 - np.max(alone, axis=2)) * shared, axis=1)
    doubt = np.minimum(doubt, 1)[:, None, None]
    return doubt * alone + (1 - doubt) * softmax(logits + offsets[:, None, :], axis=2)


def _sharpness(logits: np.ndarray, labels: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """The factor (tasks,) of the logits (tasks, Q, N) that fits labels drawn with these probabilities best.

    Queries that moved a mean towards themselves look surer than they are.
    """
    centred = logits - np.mean(logits, axis=2, keepdims=True)
    weighted = centred * masses[:, :, None]
    wanted = np.sum(labels * weighted, axis=(1, 2))
    low, high = (np.full_like(wanted, end) for end in np.log(SHARPNESS))
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        reached = np.sum(softmax(np.exp(middle)[:, None, None] * centred, axis=2) * weighted, axis=(1, 2))
        low, high = np.where(reached < wanted, middle, low), np.where(reached < wanted, high, middle)
    return np.exp((low + high) / 2)
