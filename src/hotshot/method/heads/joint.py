r"""One linear classifier for base and new classes: rows of base classes, trained once, and rows of new classes.

The rows of the B base classes ("old" classes) are trained on their samples. They do not change when new classes are
added, so that old classes are separated from each other as before. The rows of N new classes minimise

.. math::
    \sum_p n_p\, \ell_p + \sum_g n_g \log \sum_j \exp(m_j - m_y + v_j / 2) + \frac{1}{2C} \lVert W \rVert^2

where the cross-entropy :math:`\ell` of samples of base classes and of the support, and the bound of the expected one of
the calibrated Gaussians (see ``hotshot.method.heads.bound``), are over all B + N classes. The old classes enter the
loss of a sample only by their level, the log of their summed exponentials, which is computed once: the cost of a new
class is that of its own row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp, softmax

from hotshot.bank import PreparedBase
from hotshot.method import Method
from hotshot.method.calibration import CalibratedGaussians
from hotshot.method.heads.bound import INTERCEPT_CURVATURE, Metric, Point, minimise

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
# not depend on their start. Near their minimum, the curvature of each is computed.
ROUGH, NEAR, EXACT = 1e-5, 1e-3, {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-15}
# Points with a smaller share in the curvature of a class are left out of it.
SMALLEST_SHARE = 1e-4
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


@dataclass(frozen=True)
class NewGaussians:
    """G Gaussians of new classes: means (G, V + 1), variances (G, V), labels from 0 and counts (G,).

    ``old`` (B, V + 1) are the fixed rows, whose levels depend on the variances.
    """

    means: np.ndarray
    variances: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    old: np.ndarray

    def margins(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Exponents of the bound (G, B + N), all weights (B + N, V), and variances times those of the class (G, V)."""
        all_rows = np.concatenate([self.old, rows])
        weights, of_label = all_rows[:, :-1], rows[self.labels, :-1]
        scaled = self.variances * of_label
        variances = self.variances @ (weights * weights).T - 2 * scaled @ weights.T
        variances += np.sum(scaled * of_label, axis=1)[:, None]
        margins = self.means @ all_rows.T
        margins -= margins[np.arange(len(self.labels)), len(self.old) + self.labels][:, None]
        return margins + variances / 2, weights, scaled

    def objective(self, rows: np.ndarray) -> tuple[float, np.ndarray]:
        """The weighted bound, and its gradient (N, V + 1)."""
        counts, (margins, weights, scaled) = self.counts[:, None], self.margins(rows)
        probabilities = counts * softmax(margins, axis=1)
        new = probabilities[:, len(self.old) :]
        gradient = new.T @ self.means
        gradient[:, :-1] += (new.T @ self.variances) * rows[:, :-1] - new.T @ scaled
        np.add.at(gradient, self.labels, -counts * self.means)
        np.add.at(gradient[:, :-1], self.labels, counts * scaled - (probabilities @ weights) * self.variances)
        return float(self.counts @ logsumexp(margins, axis=1)), gradient


@dataclass(frozen=True)
class RowsProblem:
    """Training problem of N rows, next to fixed rows or alone.

    ``points`` (P, V + 1) are samples, with a last entry of 1; ``labels`` (P,) their classes, from 0 to N - 1, or -1 for
    those of old classes; ``counts`` and ``levels`` (P,) their weights, and the levels of the old classes there, which
    are minus infinity without old classes. ``C`` is the inverse strength of the penalty.
    """

    points: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    levels: np.ndarray
    n_classes: int
    C: float
    gaussians: NewGaussians | None = None

    @property
    def members(self) -> tuple[np.ndarray, np.ndarray]:
        """Points of new classes, and their classes."""
        rows = np.flatnonzero(self.labels >= 0)
        return rows, self.labels[rows]

    def minimum(self, start: np.ndarray, tolerance: float) -> tuple[np.ndarray, bool]:
        """The rows (N, V + 1) of the least loss, and whether they were reached.

        Near the minimum of rows with Gaussians each class has a metric of its own, which few steps remain with.
        """
        objective, metric = partial(rows_objective, self), self._shared_metric()
        if self.gaussians is not None and start.size * start.shape[1] <= MOST_ENTRIES:
            start = minimise(objective, metric, start[None], NEAR).theta[0]
            metric = self._class_metric(self.gaussians, start)
        minimum = minimise(objective, metric, start[None], tolerance)
        return minimum.theta[0], bool(minimum.converged[0])

    def _shared_metric(self) -> Metric:
        """One curvature for all classes: that at equal probabilities."""
        n_rows, variances = self.n_classes, np.zeros(self.points.shape[1] - 1)
        if self.gaussians is not None:
            n_rows += len(self.gaussians.old)
            variances = self.gaussians.counts.sum() / self.n_classes * self.gaussians.variances.mean(axis=0)
        inverse = self._inverse((self.points * (self.counts / n_rows)[:, None]).T @ self.points, variances)
        return lambda at, x: x @ inverse

    def _class_metric(self, gaussians: NewGaussians, rows: np.ndarray) -> Metric:
        """The curvature of each class at these rows, with the other rows fixed."""
        probabilities, counts = _probabilities(self, rows)[0], gaussians.counts[:, None]
        of_gaussians = softmax(gaussians.margins(rows)[0], axis=1)[:, -len(rows) :]
        variances = (counts * of_gaussians).T @ gaussians.variances
        np.add.at(variances, gaussians.labels, counts * gaussians.variances)
        shares = self.counts[:, None] * probabilities * (1 - probabilities)
        gaussian_shares = counts * of_gaussians * (1 - of_gaussians)
        inverses = np.empty((len(rows), *self.points.shape[1:] * 2), dtype=rows.dtype)
        for n, share in enumerate(shares.T):
            some = share > SMALLEST_SHARE * share.sum()
            points = np.concatenate([self.points[some], gaussians.means])
            points *= np.sqrt(np.concatenate([share[some], gaussian_shares[:, n]]))[:, None]
            inverses[n] = self._inverse(points.T @ points, variances[n])
        return lambda at, x: np.matmul(inverses, x[..., None])[..., 0]

    def _inverse(self, curvature: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """The inverse of a curvature (V + 1, V + 1) with these variances (V,) and the penalty on its diagonal."""
        added = np.append(variances + 1 / self.C, INTERCEPT_CURVATURE)
        return np.asarray(np.linalg.inv(curvature + np.diag(added)).astype(self.points.dtype))


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
    n_classes, dtype = int(labels[-1]) + 1, points.dtype
    nothing = np.full(len(points), -np.inf, dtype=dtype)
    problem = RowsProblem(_with_ones(points), labels, weights, nothing, n_classes, C)
    start = np.zeros((n_classes, points.shape[1] + 1), dtype=dtype) if start is None else start.astype(dtype)
    return problem.minimum(start, ROUGH)[0]


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
    support_weights = method.support_weight * shares[labels]
    counts = (method.n_generated / np.bincount(owners)[owners]).astype(dtype) * shares[owners]
    variances = gaussians.weights[0] @ base.variances
    if gaussians.variances is not None:
        variances = variances + gaussians.variances
    new = NewGaussians(_with_ones(gaussians.means[0]), variances, owners, counts, old.theta)
    problem = RowsProblem(
        points=_with_ones(np.concatenate([old.points, support])),
        labels=np.concatenate([np.full(len(old.points), -1), labels]),
        counts=np.concatenate([old.weights, support_weights]),
        levels=np.concatenate([old.levels_at_points, old.levels(support)]),
        n_classes=n_classes,
        C=method.C,
        gaussians=new,
    )
    start = np.zeros((n_classes, support.shape[1] + 1)) if start is None else start
    rows, converged = problem.minimum(start.astype(dtype), EXACT[np.dtype(dtype)])

    at_support = _probabilities(problem, rows)[0][len(old.points) :]
    at_support[np.arange(len(labels)), labels] -= 1
    at_means = softmax(new.margins(rows)[0], axis=1)
    at_means[np.arange(len(owners)), n_old + owners] -= 1
    slopes = np.concatenate([counts[:, None] * at_means[:, n_old:], support_weights[:, None] * at_support])
    beside = np.bincount(owners, counts * at_means[:, :n_old].sum(axis=1))
    return NewRows(rows, converged, slopes, beside, _shift_to_full_weight(problem, new, rows, shares))


def _shift_to_full_weight(problem: RowsProblem, gaussians: NewGaussians, rows: np.ndarray, shares: np.ndarray) -> float:
    """The common shift of the intercepts of new rows (N, V + 1) that minimises the loss at full weight of all classes.

    The classes have ``shares`` (N,) of their full weight in the problem.
    """
    counts, (members, labels) = problem.counts.astype(np.float64), problem.members
    counts[members] /= shares[labels]
    gaussian_counts = gaussians.counts / shares[gaussians.labels]
    of_old, of_new = np.split(gaussians.margins(rows)[0], [len(gaussians.old)], axis=1)
    # How far new classes lead: at the points, and at the Gaussians.
    leads = logsumexp(problem.points @ rows.T, axis=1).astype(np.float64) - problem.levels
    gaussian_leads = (logsumexp(of_new, axis=1) - logsumexp(of_old, axis=1)).astype(np.float64)

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
    if problem.gaussians is not None:
        of_gaussians, slope = problem.gaussians.objective(rows)
        value, gradient = value + of_gaussians, gradient + slope
    return Point(np.array([value]), gradient[None])


def _probabilities(problem: RowsProblem, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of the new classes at the points (P, N), and the loss of each point (P,)."""
    exponents = problem.points @ rows.T
    of_label = problem.levels.copy()
    of_label[problem.members[0]] = exponents[problem.members]
    # In place, because there are many points.
    peak = np.maximum(problem.levels, exponents.max(axis=1))
    exponents -= peak[:, None]
    np.exp(exponents, out=exponents)
    total = np.exp(problem.levels - peak) + exponents.sum(axis=1)
    exponents /= total[:, None]
    return exponents, peak + np.log(total) - of_label


def _with_ones(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.ones_like(x[:, :1])], axis=1)
