r"""One linear classifier for base and new classes: rows of base classes, trained once, and rows of new classes.

The rows of the B base classes ("old" classes) are trained on their samples. They do not change when new classes are
added, so that old classes are separated from each other as before. The rows of N new classes minimise

.. math::
    \sum_p n_p\, \ell_p + \sum_g n_g \log \sum_j \exp(m_j - m_y + v_j / 2) + \frac{1}{2C} \lVert W \rVert^2

where the cross-entropy :math:`\ell` of samples of base classes and of the support, and the bound of the expected one of
the calibrated Gaussians (see ``hotshot.method.heads.bound``), are over all B + N classes. The old classes enter the
loss of a sample only by the log of their summed exponentials, which is computed once: the cost of a new class is that
of its own row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from hotshot.bank import PreparedBase
from hotshot.method import Method
from hotshot.method.calibration import CalibratedGaussians
from hotshot.method.heads.minimise import Metric, Point, minimise

# Samples of base classes that rows are trained on, in all; of each class at least some.
MOST_POINTS, LEAST_POINTS = 2**14, 8
# Share of a class that is held out to measure how many of its samples new classes take.
HELD_OUT_SHARE = 0.2
# Weight of the calibrated Gaussian and the support sample of a one-shot class, relative to a classifier of new classes
# alone: a stronger penalty separates new classes from many others better. With K shots it is the K-th root of this. The
# intercepts are shifted to their minimum at full weight.
NEW_WEIGHT = 0.3
# Largest shift of intercepts in favour of new classes: a factor of e^3 in the odds.
LARGEST_SHIFT = 3.0
# A shift in favour of new classes ends where each takes so many samples of base classes, as a share of one class: the
# second if the extractor was trained on the base classes, so that new classes look like them.
LARGEST_SHARES = 0.06, 0.12
# Range of the shift to full weight.
FULL_WEIGHT_SHIFT = -10.0, 10.0
# Tolerances. Rows of base classes are trained once and shared, so a rough minimum is enough; rows of new classes must
# not depend on their start.
ROUGH = 1e-5
EXACT = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-15}
# Tolerance at which new rows are close enough to their minimum to compute the curvature.
NEAR = 1e-3
# Points with a smaller share in the curvature of a class are left out of it.
SMALLEST_SHARE = 1e-4
INTERCEPT_CURVATURE = 1e-3
# Most entries of the curvatures of all classes; beyond it they share one.
MOST_ENTRIES = 2**26


@dataclass(frozen=True)
class OldClasses:
    """The classifier of the base classes, with samples to train and to evaluate new rows.

    Attributes
    ----------
    theta : array (B, V + 1)
        Weights and, last, intercepts.
    points, weights : arrays (P, V) and (P,)
        Samples of all classes, and how many features each represents.
    held_out, labels : arrays (H, V) and (H,)
        Samples to evaluate with, and their classes.
    without_held_out : OldClasses or None
        The same, trained without the held-out samples; None if these are not among the points.
    """

    theta: np.ndarray
    points: np.ndarray
    weights: np.ndarray
    held_out: np.ndarray
    labels: np.ndarray
    without_held_out: OldClasses | None = None

    def levels(self, x: np.ndarray) -> np.ndarray:
        """Log of the summed exponentials of the old logits at samples (n, V): (n,)."""
        return _log_sum(logits(self.theta, x))

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
    """Rows of new classes, with the derivatives that explanations need.

    Attributes
    ----------
    theta : array (N, V + 1)
    converged : bool
    slopes : array (G + S, N)
        Derivatives of the loss in the logits of the new classes, at the means and at the support samples.
    beside : array (N,)
        Derivatives in the logits of old classes, summed over these and over the means of each new class.
    shift : float
        What to add to the intercepts, for new classes to have their full weight.
    """

    theta: np.ndarray
    converged: bool
    slopes: np.ndarray
    beside: np.ndarray
    shift: float


@dataclass(frozen=True)
class RowsProblem:
    """Training problem of N rows next to B fixed rows.

    Attributes
    ----------
    points : array (P, V + 1)
        Samples, with a last entry of 1.
    labels : array (P,)
        Classes of the points, from 0 to N - 1; -1 for those of old classes.
    counts, levels : arrays (P,)
        Their weights, and the log-sum-exp of the old logits there; minus infinity without old classes.
    means, variances : arrays (G, V + 1) and (G, V)
        Of the Gaussians.
    owners, gaussian_counts : arrays (G,)
        Their classes, from 0 to N - 1, and their weights.
    old : array (B, V + 1)
    n_classes : int
        N.
    C : float
    """

    points: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    levels: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    owners: np.ndarray
    gaussian_counts: np.ndarray
    old: np.ndarray
    n_classes: int
    C: float

    @property
    def members(self) -> tuple[np.ndarray, np.ndarray]:
        """Points of new classes, and their classes."""
        rows = np.flatnonzero(self.labels >= 0)
        return rows, self.labels[rows]


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
    away = (HELD_OUT_SHARE * np.asarray(counts)).astype(int)
    parts = list(zip(shuffled, away, strict=True))
    held_out, labels = _rows_of([own[:n][:most] for own, n in parts])
    apart = [own[n:][:most] for own, n in parts]
    # Those that are held out come last: they are used where there is no other sample.
    all_rows = [np.concatenate([own[n:], own[:n]])[:most] for own, n in parts]

    def trained(rows: list[np.ndarray], theta: np.ndarray | None, start: np.ndarray | None = None) -> OldClasses:
        places, owners = _rows_of(rows)
        points = base.transform(samples[places])
        weights = (method.n_generated / np.bincount(owners)[owners]).astype(points.dtype)
        theta = _old_rows(points, owners, weights, method, start) if theta is None else theta
        evaluated = base.transform(samples[held_out]) if len(held_out) else points[:0]
        return OldClasses(theta, points, weights, evaluated, labels)

    found = trained(all_rows, theta)
    if sum(map(len, all_rows)) == sum(map(len, apart)):
        return found
    return replace(found, without_held_out=trained(apart, None, found.theta))


def _rows_of(members: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sorted rows of each class, concatenated, and their classes."""
    return np.concatenate([np.sort(own) for own in members]), np.repeat(np.arange(len(members)), [*map(len, members)])


def _old_rows(
    points: np.ndarray, labels: np.ndarray, weights: np.ndarray, method: Method, start: np.ndarray | None
) -> np.ndarray:
    """Rows of classes (B, V + 1) trained on points (P, V) with labels and weights (P,), from these rows or zeros."""
    n_classes, width, dtype = int(labels[-1]) + 1, points.shape[1], points.dtype
    problem = RowsProblem(
        points=_with_ones(points),
        labels=labels,
        counts=weights,
        levels=np.full(len(points), -np.inf, dtype=dtype),
        means=np.empty((0, width + 1), dtype=dtype),
        variances=np.empty((0, width), dtype=dtype),
        owners=np.empty(0, dtype=np.int64),
        gaussian_counts=np.empty(0, dtype=dtype),
        old=np.empty((0, width + 1), dtype=dtype),
        n_classes=n_classes,
        C=method.C,
    )
    start = np.zeros((n_classes, width + 1), dtype=dtype) if start is None else start.astype(dtype)
    found = minimise(partial(rows_objective, problem), _shared_metric(problem), start[None], ROUGH)
    return np.asarray(found.theta[0])


def train_new(
    base: PreparedBase,
    old: OldClasses,
    gaussians: CalibratedGaussians,
    support: np.ndarray,
    labels: np.ndarray,
    method: Method,
    start: np.ndarray | None = None,
) -> NewRows:
    """Rows of new classes, from a batch of one task.

    Parameters
    ----------
    gaussians : CalibratedGaussians
        Of the new classes.
    support, labels : arrays (S, V) and (S,)
        Their samples, and classes from 0.
    start : array (N, V + 1), optional
        Start of the optimisation; the minimum does not depend on it.
    """
    owners, dtype = gaussians.labels[0], support.dtype
    n_classes = int(owners.max()) + 1
    shares = (NEW_WEIGHT ** (1 / np.bincount(labels))).astype(dtype)
    support_weights = method.support_weight * shares[labels]
    variances = gaussians.weights[0] @ base.variances
    if gaussians.variances is not None:
        variances = variances + gaussians.variances
    points = np.concatenate([old.points, support])
    problem = RowsProblem(
        points=_with_ones(points),
        labels=np.concatenate([np.full(len(old.points), -1), labels]),
        counts=np.concatenate([old.weights, support_weights]),
        levels=np.concatenate([old.levels_at_points, old.levels(support)]),
        means=_with_ones(gaussians.means[0]),
        variances=variances,
        owners=owners,
        gaussian_counts=(method.n_generated / np.bincount(owners)[owners]).astype(dtype) * shares[owners],
        old=old.theta,
        n_classes=n_classes,
        C=method.C,
    )
    if start is None:
        start = np.zeros((n_classes, support.shape[1] + 1), dtype=dtype)
        start = minimise(partial(rows_objective, problem), _shared_metric(problem), start[None], NEAR).theta[0]
    start = start.astype(dtype)
    many = n_classes * support.shape[1] ** 2 > MOST_ENTRIES
    metric = _shared_metric(problem) if many else _class_metric(problem, start)
    found = minimise(partial(rows_objective, problem), metric, start[None], EXACT[np.dtype(dtype)])
    rows = found.theta[0]
    at_points = _probabilities(problem, rows)[0][len(old.points) :]
    at_points[np.arange(len(labels)), labels] -= 1
    margins = _gaussian_margins(problem, rows)[0]
    at_means = np.exp(margins - _log_sum(margins)[:, None])
    at_means[np.arange(len(owners)), len(old.theta) + owners] -= 1
    slopes = np.concatenate(
        [problem.gaussian_counts[:, None] * at_means[:, len(old.theta) :], support_weights[:, None] * at_points]
    )
    beside = np.bincount(owners, problem.gaussian_counts * at_means[:, : len(old.theta)].sum(axis=1))
    return NewRows(rows, bool(found.converged[0]), slopes, beside, _shift_to_full_weight(problem, rows, shares))


def _shift_to_full_weight(problem: RowsProblem, rows: np.ndarray, shares: np.ndarray) -> float:
    """The common shift of the intercepts of new rows (N, V + 1) that minimises the loss at full weight of all classes.

    The classes have ``shares`` (N,) of their full weight in the problem.
    """
    counts, (members, owners) = problem.counts.astype(np.float64), problem.members
    counts[members] /= shares[owners]
    gaussian_counts = problem.gaussian_counts / shares[problem.owners]
    margins, n_old = _gaussian_margins(problem, rows)[0], len(problem.old)
    # How far new classes lead: at the points, and at the Gaussians.
    leads = (_log_sum(problem.points @ rows.T) - problem.levels).astype(np.float64)
    gaussian_leads = (_log_sum(margins[:, n_old:]) - _log_sum(margins[:, :n_old])).astype(np.float64)

    def slope(shift: float) -> float:
        of_points = counts @ expit(leads + shift) - counts[members].sum()
        return float(of_points - gaussian_counts @ expit(-gaussian_leads - shift))

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


def rows_objective(problem: RowsProblem, theta: np.ndarray) -> Point:
    """Value and gradient at theta (1, N, V + 1); the metric is not part of it."""
    rows = theta[0]
    weights = rows[:, :-1]
    probabilities, losses = _probabilities(problem, rows)
    value = problem.counts @ losses + np.sum(weights * weights) / (2 * problem.C)
    probabilities[problem.members] -= 1
    probabilities *= problem.counts[:, None]
    gradient = probabilities.T @ problem.points
    gradient[:, :-1] += weights / problem.C
    if len(problem.means):
        of_gaussians, slope = _gaussian_part(problem, rows)
        value, gradient = value + of_gaussians, gradient + slope
    return Point(np.array([value]), gradient[None])


def _probabilities(problem: RowsProblem, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of the new classes at the points (P, N), and the loss of each point (P,)."""
    found = problem.points @ rows.T
    own = problem.levels.copy()
    own[problem.members[0]] = found[problem.members]
    peak = np.maximum(problem.levels, found.max(axis=1))
    found -= peak[:, None]
    np.exp(found, out=found)
    total = np.exp(problem.levels - peak) + found.sum(axis=1)
    found /= total[:, None]
    return found, peak + np.log(total) - own


def _gaussian_margins(problem: RowsProblem, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Exponents of the bound (G, B + N), all weights (B + N, V), and own weights times variances (G, V)."""
    owners, variances = problem.owners, problem.variances
    all_rows = np.concatenate([problem.old, rows])
    weights, own = all_rows[:, :-1], rows[owners, :-1]
    scaled = variances * own
    relative = variances @ (weights * weights).T - 2 * scaled @ weights.T + np.sum(scaled * own, axis=1)[:, None]
    margins = problem.means @ all_rows.T
    margins -= margins[np.arange(len(owners)), len(problem.old) + owners][:, None]
    return margins + relative / 2, weights, scaled


def _gaussian_part(problem: RowsProblem, rows: np.ndarray) -> tuple[float, np.ndarray]:
    """Value and gradient (N, V + 1) of the bound under the Gaussians."""
    n_old, owners, counts = len(problem.old), problem.owners, problem.gaussian_counts[:, None]
    margins, weights, scaled = _gaussian_margins(problem, rows)
    level = _log_sum(margins)
    probabilities = counts * np.exp(margins - level[:, None])
    new = probabilities[:, n_old:]
    gradient = new.T @ problem.means
    np.add.at(gradient, owners, -counts * problem.means)
    gradient[:, :-1] += (new.T @ problem.variances) * rows[:, :-1] - new.T @ scaled
    np.add.at(gradient[:, :-1], owners, counts * scaled - (probabilities @ weights) * problem.variances)
    return float(problem.gaussian_counts @ level), gradient


def _shared_metric(problem: RowsProblem) -> Metric[Point]:
    """One curvature for all classes: that at equal probabilities."""
    share = 1 / (len(problem.old) + problem.n_classes)
    curvature = (problem.points * (share * problem.counts)[:, None]).T @ problem.points
    if len(problem.means):
        per_class = np.sum(problem.gaussian_counts) / problem.n_classes
        np.fill_diagonal(curvature[:-1, :-1], curvature.diagonal()[:-1] + per_class * problem.variances.mean(axis=0))
    inverse = np.linalg.inv(_with_penalty(problem, curvature)).astype(problem.points.dtype)
    return lambda at, x: x @ inverse


def _class_metric(problem: RowsProblem, rows: np.ndarray) -> Metric[Point]:
    """The curvature of each class at these rows, with the other rows fixed."""
    probabilities = _probabilities(problem, rows)[0]
    shares = problem.counts[:, None] * probabilities * (1 - probabilities)
    margins = _gaussian_margins(problem, rows)[0]
    own = problem.gaussian_counts[:, None] * np.exp(margins - _log_sum(margins)[:, None])[:, len(problem.old) :]
    variances = own.T @ problem.variances
    np.add.at(variances, problem.owners, problem.gaussian_counts[:, None] * problem.variances)
    own *= 1 - own / problem.gaussian_counts[:, None]
    inverses = np.empty((len(rows), *problem.points.shape[1:] * 2), dtype=rows.dtype)
    for n, share in enumerate(shares.T):
        kept = share > SMALLEST_SHARE * share.sum()
        points = np.concatenate([problem.points[kept], problem.means])
        points *= np.sqrt(np.concatenate([share[kept], own[:, n]]))[:, None]
        curvature = _with_penalty(problem, points.T @ points)
        np.fill_diagonal(curvature[:-1, :-1], curvature.diagonal()[:-1] + variances[n])
        inverses[n] = np.linalg.inv(curvature)
    return lambda at, x: np.matmul(inverses, x[..., None])[..., 0]


def _with_penalty(problem: RowsProblem, curvature: np.ndarray) -> np.ndarray:
    np.fill_diagonal(curvature[:-1, :-1], curvature.diagonal()[:-1] + 1 / problem.C)
    curvature[-1, -1] += INTERCEPT_CURVATURE
    return curvature


def _log_sum(x: np.ndarray) -> np.ndarray:
    """Log of the summed exponentials of each row (n,)."""
    peak = x.max(axis=1)
    return np.asarray(peak + np.log(np.sum(np.exp(x - peak[:, None]), axis=1)))


def _with_ones(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.ones_like(x[:, :1])], axis=1)
