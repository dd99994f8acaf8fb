r"""What a head minimises, eq. 12 with Jensen's closed form for generated features, and the method that minimises it.

.. math::
    \min_W \sum_g n_g \log \sum_j \exp(m_j - m_y + v_j / 2) + \sum_p n_p\, \ell_p + \frac{1}{2C} \lVert W \rVert^2,

because :math:`E[-\log p_y] = E \log \sum_j e^{z_j - z_y}` is at most the first term, with m the logits of the mean of
Gaussian g and v_j the variance of z_j - z_y, :math:`A_{jj} + A_{yy} - 2 A_{jy}` for the covariance
:math:`A = W \Sigma_g W^\top` of the logits. It is convex in the weights and needs no samples. The second term is the
cross-entropy of samples.

Next to the N classes, whose rows W are trained, there may be B old ones, whose rows are fixed. They enter the loss of a
sample only by their level, the log of their summed exponentials, which is computed once.

The minimum is found by a limited-memory quasi-Newton method (L-BFGS) around a metric, for many tasks at once, each with
its own line search. Theta is (tasks, N, V + 1): weights and, last, the intercept of every class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hotshot.arrays import choose
from hotshot.bank.covariances import Covariances

# The gradient (tasks, N, V) of sum_gj s_gj v_j / 2 for slopes s (tasks, G, N), which sum to 0 for each Gaussian.
GradientOf = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Mixtures:
    """Covariances of the Gaussians of N classes as mixtures: the cost grows with the square of N.

    ``members`` (tasks, G, N) are the one-hot classes of the Gaussians. There are K ``covariances``, for all tasks or
    for each. Gaussians mix them by ``mixing`` (tasks, G, K), which is None if each has its own; ``ray`` and
    ``variances`` (V,) are what alpha adds, as in ``CalibratedGaussians``.
    """

    members: np.ndarray
    covariances: Covariances
    mixing: np.ndarray | None
    ray: np.ndarray | None = None
    variances: np.ndarray | None = None

    def differences(self, weights: np.ndarray) -> tuple[np.ndarray, GradientOf]:
        """v_j (tasks, G, N) for weights (tasks, N, V), and a function that turns slopes into their gradient."""
        with_alpha, (of_base, gradient_of_base) = self._through_alpha(weights), self.covariances.quadratic(weights)
        covariances = _combine(self.mixing, of_base)
        covariances = covariances + (with_alpha @ weights.swapaxes(1, 2))[:, None]
        with_label = np.sum(covariances * self.members[..., None, :], axis=3)
        of_label = np.sum(with_label * self.members, axis=2, keepdims=True)
        variances = np.diagonal(covariances, axis1=2, axis2=3) + of_label - 2 * with_label

        def gradient(slopes: np.ndarray) -> np.ndarray:
            # The derivative of v_j in A is (e_j - e_y)(e_j - e_y)'.
            cross = slopes[..., :, None] * self.members[..., None, :]
            in_covariances = -(cross + cross.swapaxes(2, 3))
            np.einsum("tgnn->tgn", in_covariances)[...] += slopes
            in_covariances /= 2
            mixing = None if self.mixing is None else self.mixing.swapaxes(1, 2)
            of_alpha = 2 * in_covariances.sum(axis=1) @ with_alpha
            return np.asarray(gradient_of_base(_combine(mixing, in_covariances)) + of_alpha)

        return variances, gradient

    def _through_alpha(self, weights: np.ndarray) -> np.ndarray:
        """W times the matrix that alpha adds to every covariance (tasks, N, V)."""
        if self.ray is not None:
            return np.asarray((weights @ self.ray)[..., None] * self.ray)
        return np.asarray(weights * (0 if self.variances is None else self.variances))


@dataclass(frozen=True)
class Diagonals:
    """Diagonal covariances (tasks, G, V) of the Gaussians: the cost is linear in the number of classes.

    ``labels`` (tasks, G) are their classes, old ones counted first.
    """

    labels: np.ndarray
    variances: np.ndarray

    def differences(self, weights: np.ndarray) -> tuple[np.ndarray, GradientOf]:
        """v_j (tasks, G, N) for weights (tasks, N, V), and a function that turns slopes into their gradient."""
        rows = np.arange(len(self.labels))[:, None], self.labels
        of_label = weights[rows]
        scaled, transposed = self.variances * of_label, weights.swapaxes(1, 2)
        variances = self.variances @ (transposed * transposed) - 2 * scaled @ transposed
        variances += np.sum(scaled * of_label, axis=2, keepdims=True)

        def gradient(slopes: np.ndarray) -> np.ndarray:
            # The derivatives of v_j / 2 in W_j and in W_y are Sigma (W_j - W_y) and its negative.
            of_classes = slopes.swapaxes(1, 2)
            gradient = (of_classes @ self.variances) * weights - of_classes @ scaled
            np.add.at(gradient, rows, -(slopes @ weights) * self.variances)
            return np.asarray(gradient)

        return variances, gradient


@dataclass(frozen=True)
class Point:
    """Value (tasks,) and gradient (tasks, N, V + 1) at one theta.

    ``of_means`` (tasks, G, B + N) are the softmax of the exponents of the Gaussians, ``of_samples`` (tasks, P, N) the
    probabilities of samples; with old classes, these have one more column for all of them.
    """

    value: np.ndarray
    gradient: np.ndarray
    of_means: np.ndarray
    of_samples: np.ndarray


@dataclass(frozen=True)
class HeadProblem:
    """Training problem of a batch of tasks, with N classes and V axes.

    ``means`` (tasks, G, V + 1) are those of the Gaussians, with a last entry of 1 for the intercept, ``mean_labels``
    and ``mean_counts`` (tasks, G) their classes from 0 and their weights n_g, ``spread`` their covariances. ``samples``
    (tasks, P, V + 1), ``labels`` and ``counts`` (tasks, P) are the same for samples; the label N is for those of old
    classes. ``C`` is the inverse strength of the penalty, for one vector per class. ``old`` (B, V + 1) are the rows of
    old classes, and ``levels`` (tasks, P) their levels at the samples.
    """

    means: np.ndarray
    mean_labels: np.ndarray
    mean_counts: np.ndarray
    spread: Mixtures | Diagonals
    samples: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    C: float
    old: np.ndarray | None = None
    levels: np.ndarray | None = None

    @cached_property
    def n_old(self) -> int:
        """Number of old classes."""
        return 0 if self.old is None else len(self.old)

    @cached_property
    def _of_means(self) -> Places:
        return _places(self.n_old + self.mean_labels)

    @cached_property
    def _of_samples(self) -> Places:
        return _places(self.labels)

    def objective(self, theta: np.ndarray) -> Point:
        """Value and gradient at theta (tasks, N, V + 1)."""
        weights = theta[..., :-1]
        exponents, gradient_of = self.exponents(theta)
        losses, of_means = _losses_and_probabilities(exponents, self._of_means)
        value = np.sum(self.mean_counts * losses, axis=1) + np.sum(weights * weights, axis=(1, 2)) / (2 * self.C)
        slopes = self.mean_slopes(of_means)
        gradient = slopes[..., self.n_old :].swapaxes(1, 2) @ self.means
        gradient[..., :-1] += gradient_of(slopes)[:, self.n_old :] + weights / self.C

        logits = self.samples @ theta.swapaxes(1, 2)
        if self.levels is not None:
            logits = np.concatenate([logits, self.levels[..., None]], axis=2)
        losses, of_samples = _losses_and_probabilities(logits, self._of_samples)
        value += np.sum(self.counts * losses, axis=1)
        gradient += self.sample_slopes(of_samples)[..., : theta.shape[1]].swapaxes(1, 2) @ self.samples
        return Point(value, gradient, of_means, of_samples)

    def exponents(self, theta: np.ndarray) -> tuple[np.ndarray, GradientOf]:
        """m_j + v_j / 2 of old and new classes (tasks, G, B + N), and the function for the gradient of v_j / 2."""
        rows = theta if self.old is None else np.concatenate([self.old[None], theta], axis=1)
        variances, gradient_of = self.spread.differences(rows[..., :-1])
        return self.means @ rows.swapaxes(1, 2) + variances / 2, gradient_of

    def mean_slopes(self, of_means: np.ndarray) -> np.ndarray:
        """The derivatives of the loss in the logits at the means, old classes first."""
        return _slopes(of_means, self._of_means, self.mean_counts)

    def sample_slopes(self, of_samples: np.ndarray) -> np.ndarray:
        """The derivatives of the loss in the logits at the samples."""
        return _slopes(of_samples, self._of_samples, self.counts)


# Indices of the entries (tasks, n) of the labels in arrays (tasks, n, classes).
Places = tuple[np.ndarray, np.ndarray, np.ndarray]


def _places(labels: np.ndarray) -> Places:
    tasks, n = labels.shape
    return np.arange(tasks)[:, None], np.arange(n), labels


def _losses_and_probabilities(exponents: np.ndarray, places: Places) -> tuple[np.ndarray, np.ndarray]:
    """The losses log sum_j exp(z_j - z_y) (tasks, n), and the softmax of exponents z (tasks, n, N) in their memory."""
    exponents -= exponents[places][..., None]
    peak = exponents.max(axis=2, keepdims=True)
    exponents -= peak
    np.exp(exponents, out=exponents)
    totals = exponents.sum(axis=2, keepdims=True)
    exponents /= totals
    return (peak + np.log(totals))[..., 0], exponents


def _slopes(probabilities: np.ndarray, places: Places, counts: np.ndarray) -> np.ndarray:
    """The slopes n (p - e_y) for probabilities (tasks, n, N) and counts (tasks, n)."""
    slopes = np.asarray(probabilities * counts[..., None])
    slopes[places] -= counts
    return slopes


def _combine(coefficients: np.ndarray | None, matrices: np.ndarray) -> np.ndarray:
    """sum_k m_gk X_k of matrices (tasks, K, N, N), for coefficients (tasks, G, K)."""
    if coefficients is None:
        return matrices
    tasks, count, rows, columns = matrices.shape
    flat: np.ndarray = coefficients @ matrices.reshape(tasks, count, rows * columns)
    return flat.reshape(tasks, -1, rows, columns)


# --- the minimum, by L-BFGS

# Pairs of steps that are remembered, and settings of the line search.
MEMORY = 12
MAX_ITERATIONS = 500
SHORTEN = 0.3
SHORTEST = 1e-8
# Rounding noise of a value, and default tolerance.
SINGLE, DOUBLE = (3e-7, 1e-6), (1e-15, 1e-8)


@dataclass(frozen=True)
class Minimum:
    """Theta (tasks, N, V + 1), the point there, which tasks converged (tasks,), and the number of iterations."""

    theta: np.ndarray
    point: Point
    converged: np.ndarray
    iterations: int


Objective = Callable[[np.ndarray], Point]
# The inverse of a positive approximation of the Hessian at a point, times x (tasks, N, V + 1).
Metric = Callable[[Point, np.ndarray], np.ndarray]
# Steps, changes of the gradient, and the inverses of their products (tasks,).
Memory = list[tuple[np.ndarray, np.ndarray, np.ndarray]]


def minimise(objective: Objective, metric: Metric, theta: np.ndarray, tolerance: float | None = None) -> Minimum:
    """Minimise from ``theta``.

    A task has converged when the decrease that its metric predicts is below ``tolerance`` times its value
    (default 1e-8, or 1e-6 in single precision).
    """
    noise, usual_tolerance = SINGLE if theta.dtype == np.float32 else DOUBLE
    tolerance = usual_tolerance if tolerance is None else tolerance
    memory: Memory = []
    here = objective(theta)
    if not np.isfinite(here.value).all():
        raise FloatingPointError
    direction, slope, is_downhill = _direction(metric, here, memory)
    length = np.ones_like(slope)
    converged = is_downhill & (-slope <= tolerance * np.abs(here.value))
    stuck = np.zeros_like(converged)

    iteration = 0
    while iteration < MAX_ITERATIONS and not (converged | stuck).all():
        iteration += 1
        resting = converged | stuck
        step = np.where(resting, 0, length)[:, None, None] * direction
        there = objective(theta + step)
        is_enough = here.value - there.value >= -1e-4 * length * slope - noise * np.abs(here.value)
        accepted = is_enough & ~resting
        stuck |= ~is_enough & ~resting & (length < SHORTEST)

        change = there.gradient - here.gradient
        overlap = _dot(step, change)
        # A pair of a refused step, or one without curvature, is not used.
        is_curved = accepted & (overlap > 1e-12 * np.sqrt(_dot(step, step) * _dot(change, change)))
        if is_curved.any():
            inverse = np.where(is_curved, 1 / np.where(is_curved, overlap, 1), 0)
            memory = [*memory[-MEMORY + 1 :], (step, change, inverse)]
        theta = _where(accepted, theta + step, theta)
        here = there if accepted.all() else choose(np, accepted, there, here)
        next_direction, next_slope, is_downhill = _direction(metric, here, memory)
        direction = _where(accepted, next_direction, direction)
        slope = np.where(accepted, next_slope, slope)
        length = np.where(accepted, 1, length * SHORTEN).astype(theta.dtype)
        converged |= accepted & is_downhill & (-slope <= tolerance * np.abs(here.value))
    return Minimum(theta, here, converged, iteration)


def _direction(metric: Metric, here: Point, memory: Memory) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The direction of each task, its slope, and whether L-BFGS found it: one uphill gives way to the gradient.

    It is the two-loop recursion around the metric at this point.
    """
    direction, coefficients = -here.gradient, []
    for step, change, inverse in reversed(memory):
        coefficients.append(inverse * _dot(step, direction))
        direction = direction - coefficients[-1][:, None, None] * change
    direction = metric(here, direction)
    for (step, change, inverse), coefficient in zip(memory, reversed(coefficients), strict=True):
        direction = direction + (coefficient - inverse * _dot(change, direction))[:, None, None] * step
    slope = _dot(here.gradient, direction)
    is_downhill = slope <= 0
    if not is_downhill.all():
        direction = _where(is_downhill, direction, -here.gradient)
        slope = _dot(here.gradient, direction)
    return direction, slope, is_downhill


def _where(tasks: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Arrays (tasks, N, V + 1): x for the marked tasks, y for the others."""
    return x if tasks.all() else np.where(tasks[:, None, None], x, y)


def _dot(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(x * y, axis=(1, 2)))
