r"""One linear classifier for base and new classes: rows of base classes, trained once, and rows of new classes.

The rows of the B base classes ("old" classes) are trained on their samples. They do not change when new classes are
added, so that old classes are separated from each other as before. The rows of N new classes minimise the bound of
``hotshot.method.heads.diagonal`` over all B + N classes, on samples of base classes, support samples and calibrated
Gaussians: the cost of a new class is that of its own row.
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
from hotshot.method.heads.diagonal import DiagonalProblem, less_labels

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
# not depend on their start.
ROUGH, EXACT = 1e-5, {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-15}


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
        if theta is None:
            theta = _old_rows(_with_ones(points), owners, weights, method.C, start)
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
    """Rows of classes (B, V + 1) trained on points (P, V + 1) with labels and weights (P,), from these or zeros."""
    nothing, dtype = points[:0], points.dtype
    problem = DiagonalProblem(
        points=points,
        labels=labels,
        counts=weights,
        levels=np.full(len(points), -np.inf, dtype=dtype),
        means=nothing,
        variances=nothing[:, :-1],
        mean_labels=labels[:0],
        mean_counts=weights[:0],
        old=nothing,
        C=C,
    )
    start = np.zeros((int(labels[-1]) + 1, points.shape[1])) if start is None else start
    return problem.minimum(start.astype(dtype), ROUGH)[0]


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
    problem = DiagonalProblem(
        points=_with_ones(np.concatenate([old.points, support])),
        labels=np.concatenate([np.full(len(old.points), n_classes), labels]),
        counts=np.concatenate([old.weights, method.support_weight * shares[labels]]),
        levels=np.concatenate([old.levels_at_points, old.levels(support)]),
        means=_with_ones(gaussians.means[0]),
        variances=variances if gaussians.variances is None else variances + gaussians.variances,
        mean_labels=owners,
        mean_counts=(method.n_generated / np.bincount(owners)[owners]).astype(dtype) * shares[owners],
        old=old.theta,
        C=method.C,
    )
    start = np.zeros((n_classes, support.shape[1] + 1)) if start is None else start
    rows, converged = problem.minimum(start.astype(dtype), EXACT[np.dtype(dtype)])

    at_points = problem.counts[:, None] * less_labels(problem.at_points(rows)[1], problem.labels)
    at_means = problem.mean_counts[:, None] * less_labels(problem.at_means(rows)[1], problem.all_labels)
    slopes = np.concatenate([at_means[:, n_old:], at_points[len(old.points) :, :-1]])
    beside = np.bincount(owners, at_means[:, :n_old].sum(axis=1))
    return NewRows(rows, converged, slopes, beside, _shift_to_full_weight(problem, rows, shares))


def _shift_to_full_weight(problem: DiagonalProblem, rows: np.ndarray, shares: np.ndarray) -> float:
    """The common shift of the intercepts of new rows (N, V + 1) that minimises the loss at full weight of all classes.

    The classes have ``shares`` (N,) of their full weight in the problem; the last are the old ones, which have all.
    """
    counts = problem.counts / np.append(shares, 1)[problem.labels].astype(np.float64)
    of_new = counts[problem.labels < len(rows)].sum()
    mean_counts = problem.mean_counts / shares[problem.mean_labels]
    # How far new classes lead: at the points, and at the Gaussians.
    leads = logsumexp(problem.points @ rows.T, axis=1).astype(np.float64) - problem.levels
    at_old, at_new = np.split(problem.exponents(rows), [len(problem.old)], axis=1)
    mean_leads = (logsumexp(at_new, axis=1) - logsumexp(at_old, axis=1)).astype(np.float64)

    def slope(shift: float) -> float:
        return float(counts @ expit(leads + shift) - of_new - mean_counts @ expit(-mean_leads - shift))

    low, high = FULL_WEIGHT_SHIFT
    if slope(low) >= 0 or slope(high) <= 0:
        return 0.0
    return float(brentq(slope, low, high, xtol=1e-9))


def balance(old: OldClasses, new: np.ndarray, base_loss: float | None, underrated: bool) -> float:
    """The shift of the intercepts of new rows (N, V + 1) that balances old and new classes.

    Old classes lose at most a share ``base_loss`` of their samples. Within it, the shift favours new classes until each
    takes one of ``LARGEST_SHARES`` of the samples of one class, the second if new classes are ``underrated``. The loss
    is measured on held-out samples of the old classes that were predicted correctly.
    """
    if base_loss is None or not len(old.held_out):
        return 0.0
    before = old.held_out_logits
    right = before.argmax(axis=1) == old.labels
    gaps = np.sort((logits(new, old.held_out).max(axis=1) - before.max(axis=1))[right])[::-1]

    def largest_shift(loss: float) -> float:
        lost = int(loss * len(old.labels))
        return LARGEST_SHIFT if lost >= len(gaps) else min(LARGEST_SHIFT, -float(gaps[lost]))

    favoured = min(base_loss, LARGEST_SHARES[underrated] * len(new) / len(old.theta))
    # If one held-out sample is more than the limit, nothing shows how far to go.
    in_favour = largest_shift(favoured) if base_loss * len(old.labels) >= 1 else 0.0
    return min(largest_shift(base_loss), max(0.0, in_favour))


def _with_ones(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.ones_like(x[:, :1])], axis=1)
