r"""One linear classifier for base and new classes: rows of base classes, trained once, and rows of new classes.

The rows of the B base classes ("old" classes) are trained on their samples. They do not change when new classes are
added, so that old classes are separated from each other as before. The rows of N new classes minimise the loss of
``hotshot.method.heads.problem`` over all B + N classes, on samples of base classes, support samples and calibrated
Gaussians with diagonal covariances: the cost of a new class is that of its own row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp

from hotshot.bank import PreparedBase
from hotshot.method import Method
from hotshot.method.calibration import CalibratedGaussians
from hotshot.method.heads.bound import INTERCEPT_CURVATURE, with_ones
from hotshot.method.heads.problem import Diagonals, HeadProblem, Metric, Minimum, minimise

# Samples of base classes that rows are trained on, in all; of each class at least some.
MOST_POINTS, LEAST_POINTS = 2**14, 8
# Share of a class that is held out to measure how many of its samples new classes take.
HELD_OUT_SHARE = 0.2
# Weight of the calibrated Gaussian and the support sample of a one-shot class, relative to a classifier of new classes
# alone: a stronger penalty separates new classes from many others better. With K shots it is the K-th root of this. The
# intercepts are shifted to their minimum at full weight.
NEW_WEIGHT = 0.3
# Range of that shift.
FULL_WEIGHT_SHIFT = -10.0, 10.0
# Largest shift of intercepts in favour of new classes: a factor of e^3 in the odds.
LARGEST_SHIFT = 3.0
# A shift in favour of new classes ends where each takes so many samples of base classes, as a share of one class: the
# second if the extractor was trained on the base classes, so that new classes look like them.
LARGEST_SHARES = 0.06, 0.12
# Tolerances. Rows of base classes are trained once and shared, so a rough minimum is enough; rows of new classes must
# not depend on their start. Near their minimum, the curvature of each is computed, and few steps remain.
ROUGH, NEAR, EXACT = 1e-5, 1e-3, {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-15}
# Samples with a smaller share in the curvature of a class are left out of it.
SMALLEST_SHARE = 1e-4
# Most entries of the curvatures of all classes; beyond it they share one.
MOST_ENTRIES = 2**26


@dataclass(frozen=True)
class OldClasses:
    """The classifier of the base classes, theta (B, V + 1), with samples to train and to evaluate new rows.

    ``points`` (P, V) are samples of all classes, ``weights`` (P,) how many features each represents; ``held_out``
    (H, V) and ``labels`` (H,) are samples to evaluate with. ``without_held_out`` is the same trained without these;
    None if they are not among the points.
    """

    theta: np.ndarray
    points: np.ndarray
    weights: np.ndarray
    held_out: np.ndarray
    labels: np.ndarray
    without_held_out: OldClasses | None = None

    def levels(self, x: np.ndarray) -> np.ndarray:
        """Log of the summed exponentials of the old logits at samples (n, V): (n,)."""
        return np.asarray(logsumexp(logits(self.theta, x), axis=1))

    @cached_property
    def levels_at_points(self) -> np.ndarray:
        """The levels of the points (P,)."""
        return self.levels(self.points)

    @cached_property
    def held_out_logits(self) -> np.ndarray:
        """Logits of the held-out samples (H, B)."""
        return logits(self.theta, self.held_out)


@dataclass(frozen=True)
class NewRows:
    """Rows (N, V + 1) of new classes, with the derivatives that explanations need.

    ``slopes`` (G + S, N) are the derivatives of the loss in the logits of the new classes, at the means and at the
    support samples; ``beside`` (N,) those in the logits of old classes, summed over these and over the means of each
    new class. ``shift`` added to the intercepts gives new classes their full weight.
    """

    theta: np.ndarray
    converged: bool
    slopes: np.ndarray
    beside: np.ndarray
    shift: float


def logits(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Logits (n, classes) of samples (n, V)."""
    return np.asarray(x @ theta[:, :-1].T + theta[:, -1])


def train_old(
    base: PreparedBase, samples: np.ndarray, counts: np.ndarray, method: Method, theta: np.ndarray | None = None
) -> OldClasses:
    """Rows of the base classes, from their features (sum(counts), features), class by class.

    Large classes give some of their samples to train, and others to hold out. Small classes are trained on all samples,
    and from there on without the held-out ones. With ``theta`` (B, V + 1), rows of the former that were trained before,
    only the latter are trained.
    """
    rng = np.random.default_rng(0)
    most = max(LEAST_POINTS, MOST_POINTS // len(counts))
    shuffled = [end - 1 - rng.permutation(count) for end, count in zip(np.cumsum(counts), counts, strict=True)]
    n_held_out = (HELD_OUT_SHARE * np.asarray(counts)).astype(int)
    parts = [np.split(rows, [n]) for rows, n in zip(shuffled, n_held_out, strict=True)]
    places, labels = _sorted_rows([away[:most] for away, _ in parts])
    held_out = base.transform(samples[places]) if len(places) else np.empty((0, len(base.spectrum)), base.means.dtype)

    def trained(rows: list[np.ndarray], theta: np.ndarray | None, start: np.ndarray | None = None) -> OldClasses:
        places, owners = _sorted_rows(rows)
        points = base.transform(samples[places])
        weights = (method.n_generated / np.bincount(owners)[owners]).astype(points.dtype)
        theta = _old_rows(points, owners, weights, method.C, start) if theta is None else theta
        return OldClasses(theta, points, weights, held_out, labels)

    # Those that are held out come last: they are used where there is no other sample.
    old = trained([np.concatenate([rest, away])[:most] for away, rest in parts], theta)
    others = [rest[:most] for _, rest in parts]
    if len(old.points) == sum(map(len, others)):
        return old
    return replace(old, without_held_out=trained(others, None, old.theta))


def _sorted_rows(members: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sorted rows of each class, concatenated, and their classes."""
    return np.concatenate([np.sort(rows) for rows in members]), np.repeat(np.arange(len(members)), [*map(len, members)])


def _old_rows(
    points: np.ndarray, labels: np.ndarray, weights: np.ndarray, C: float, start: np.ndarray | None
) -> np.ndarray:
    """Rows of classes (B, V + 1) trained on points (P, V) with labels and weights (P,), from these rows or zeros."""
    samples, n_classes = with_ones(points)[None], int(labels[-1]) + 1
    nothing = samples[:, :0]
    problem = HeadProblem(
        means=nothing,
        mean_labels=labels[None, :0],
        mean_counts=weights[None, :0],
        spread=Diagonals(labels[None, :0], nothing[..., :-1]),
        samples=samples,
        labels=labels[None],
        counts=weights[None],
        C=C,
    )
    start = np.zeros((n_classes, samples.shape[2])) if start is None else start
    theta = start[None].astype(points.dtype)
    return np.asarray(minimise(problem.objective, _shared_metric(problem, n_classes), theta, ROUGH).theta[0])


def train_new(
    base: PreparedBase,
    old: OldClasses,
    gaussians: CalibratedGaussians,
    support: np.ndarray,
    labels: np.ndarray,
    method: Method,
    start: np.ndarray | None = None,
) -> NewRows:
    """Rows of new classes, from their Gaussians and samples (S, V) with classes from 0 (S,): a batch of one task.

    The minimum does not depend on the start (N, V + 1) of the optimisation.
    """
    owners, dtype, n_old = gaussians.labels[0], support.dtype, len(old.theta)
    n_classes = int(owners.max()) + 1
    shares = (NEW_WEIGHT ** (1 / np.bincount(labels))).astype(dtype)
    variances = gaussians.weights[0] @ base.variances
    if gaussians.variances is not None:
        variances = variances + gaussians.variances
    problem = HeadProblem(
        means=with_ones(gaussians.means),
        mean_labels=gaussians.labels,
        mean_counts=(method.n_generated / np.bincount(owners)[owners]).astype(dtype)[None] * shares[gaussians.labels],
        spread=Diagonals(n_old + gaussians.labels, variances[None]),
        samples=with_ones(np.concatenate([old.points, support]))[None],
        labels=np.concatenate([np.full(len(old.points), n_classes), labels])[None],
        counts=np.concatenate([old.weights, method.support_weight * shares[labels]])[None],
        C=method.C,
        old=old.theta,
        levels=np.concatenate([old.levels_at_points, old.levels(support)])[None],
    )
    start = np.zeros((n_classes, support.shape[1] + 1)) if start is None else start
    minimum = _exact_minimum(problem, start[None].astype(dtype))
    at_means = problem.mean_slopes(minimum.point.of_means)[0]
    at_support = problem.sample_slopes(minimum.point.of_samples)[0, len(old.points) :, :-1]
    slopes = np.concatenate([at_means[:, n_old:], at_support])
    beside = np.bincount(owners, at_means[:, :n_old].sum(axis=1))
    shift = _shift_to_full_weight(problem, minimum.theta, shares)
    return NewRows(minimum.theta[0], bool(minimum.converged[0]), slopes, beside, shift)


def _exact_minimum(problem: HeadProblem, theta: np.ndarray) -> Minimum:
    """The minimum from theta (1, N, V + 1), near which each class has a metric of its own."""
    metric = _shared_metric(problem, theta.shape[1])
    if theta.size * theta.shape[2] <= MOST_ENTRIES:
        near = minimise(problem.objective, metric, theta, NEAR)
        theta, metric = near.theta, _class_metric(problem, near)
    return minimise(problem.objective, metric, theta, EXACT[theta.dtype])


def _shared_metric(problem: HeadProblem, n_classes: int) -> Metric:
    """One curvature for all classes of a task: that at equal probabilities."""
    samples, counts = problem.samples[0], problem.counts[0] / (n_classes + problem.n_old)
    assert isinstance(problem.spread, Diagonals)
    variances = problem.mean_counts[0] @ problem.spread.variances[0] / n_classes
    inverse = _inverse(problem, (samples * counts[:, None]).T @ samples, variances)
    return lambda at, x: x @ inverse


def _class_metric(problem: HeadProblem, near: Minimum) -> Metric:
    """The curvature of each class of a task near the minimum, with the other rows fixed."""
    assert isinstance(problem.spread, Diagonals)
    gaussians, samples, means = problem.spread.variances[0], problem.samples[0], problem.means[0]
    counts, p_means = problem.mean_counts[0, :, None], near.point.of_means[0, :, problem.n_old :]
    p_samples = near.point.of_samples[0, :, : p_means.shape[1]]
    variances = (counts * p_means).T @ gaussians
    np.add.at(variances, problem.mean_labels[0], counts * gaussians)
    shares = problem.counts[0, :, None] * p_samples * (1 - p_samples)
    mean_shares = counts * p_means * (1 - p_means)
    inverses = np.empty((shares.shape[1], *samples.shape[1:] * 2), dtype=samples.dtype)
    for n, share in enumerate(shares.T):
        some = share > SMALLEST_SHARE * share.sum()
        points = np.concatenate([samples[some], means])
        points *= np.sqrt(np.concatenate([share[some], mean_shares[:, n]]))[:, None]
        inverses[n] = _inverse(problem, points.T @ points, variances[n])
    return lambda at, x: np.matmul(inverses, x[..., None])[..., 0]


def _inverse(problem: HeadProblem, curvature: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """The inverse of a curvature (V + 1, V + 1) with these variances (V,) and the penalty on its diagonal."""
    added = np.append(variances + 1 / problem.C, INTERCEPT_CURVATURE)
    return np.asarray(np.linalg.inv(curvature + np.diag(added)).astype(curvature.dtype))


def _shift_to_full_weight(problem: HeadProblem, theta: np.ndarray, shares: np.ndarray) -> float:
    """The common shift of the intercepts of new rows (1, N, V + 1) of the least loss at full weight of all classes.

    The classes have ``shares`` (N,) of their full weight in the problem; the last are the old ones, which have all.
    """
    counts = problem.counts / np.append(shares, 1)[problem.labels].astype(np.float64)
    of_new = counts[problem.labels < len(shares)].sum()
    mean_counts = problem.mean_counts / shares[problem.mean_labels]
    # How far new classes lead: at the samples, and at the Gaussians.
    leads = logsumexp(problem.samples @ theta.swapaxes(1, 2), axis=2).astype(np.float64) - problem.levels
    at_old, at_new = np.split(problem.exponents(theta)[0], [problem.n_old], axis=2)
    mean_leads = (logsumexp(at_new, axis=2) - logsumexp(at_old, axis=2)).astype(np.float64)

    def slope(shift: float) -> float:
        return float(np.sum(counts * expit(leads + shift)) - of_new - np.sum(mean_counts * expit(-mean_leads - shift)))

    low, high = FULL_WEIGHT_SHIFT
    if slope(low) >= 0 or slope(high) <= 0:
        return 0.0
    return float(brentq(slope, low, high, xtol=1e-9))


def balance(old: OldClasses, new: np.ndarray, base_loss: float | None, underrated: bool) -> float:
    """The shift of the intercepts of new rows (N, V + 1) that balances old and new classes.

    Old classes lose at most a share ``base_loss`` of their samples. Within it, the shift favours new classes until each
    takes one of ``LARGEST_SHARES`` of the samples of one class, the second if new classes are ``underrated``. The loss
    is measured on held-out samples of the old classes that were predicted correctly. Where one of them is more than
    ``base_loss``, unless that is 0, they are too few to show anything.
    """
    if base_loss is None or not len(old.labels) or 0 < base_loss * len(old.labels) < 1:
        return 0.0
    before = old.held_out_logits
    right = before.argmax(axis=1) == old.labels
    gaps = np.sort((logits(new, old.held_out).max(axis=1) - before.max(axis=1))[right])[::-1]

    def largest_shift(loss: float) -> float:
        lost = int(loss * len(old.labels))
        return LARGEST_SHIFT if lost >= len(gaps) else min(LARGEST_SHIFT, -float(gaps[lost]))

    favoured = min(base_loss, LARGEST_SHARES[underrated] * len(new) / len(old.theta))
    return min(largest_shift(base_loss), max(0.0, largest_shift(favoured)))
