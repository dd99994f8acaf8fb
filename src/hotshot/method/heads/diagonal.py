r"""The bound with a diagonal covariance for each Gaussian, whose cost is linear in the number of classes.

.. math::
    \min_W \sum_p n_p\, \ell_p + \sum_g n_g \log \sum_j \exp(m_j - m_y + v_j / 2) + \frac{1}{2C} \lVert W \rVert^2,
    \qquad v_j = \sum_v s_{gv} (W_{jv} - W_{yv})^2,

as in ``hotshot.method.heads.bound``. The cross-entropy :math:`\ell` of samples and the bound of Gaussians are over N
classes, whose rows W are trained, and any number of old ones, whose rows are fixed. The old classes enter the loss of a
sample only by their level, the log of their summed exponentials, which is computed once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotshot.method.heads.bound import INTERCEPT_CURVATURE, losses_and_probabilities
from hotshot.method.heads.optimiser import Metric, Point, minimise

# Near the minimum, at this tolerance, the curvature of each class is computed: few steps remain with it. Points with a
# smaller share in the curvature of a class are left out of it.
NEAR, SMALLEST_SHARE = 1e-3, 1e-4
# Most entries of the curvatures of all classes; beyond it they share one.
MOST_ENTRIES = 2**26


@dataclass(frozen=True)
class DiagonalProblem:
    """Training problem of N rows, next to those of B old classes or alone.

    ``points`` (P, V + 1) are samples, with a last entry of 1; ``labels`` (P,) their classes from 0, or N for those of
    old classes; ``counts`` and ``levels`` (P,) their weights, and the levels of the old classes there, which are minus
    infinity without old classes. ``means`` (G, V + 1), ``variances`` (G, V), ``mean_labels`` and ``mean_counts`` (G,)
    are Gaussians of the N classes; ``old`` (B, V + 1) are the fixed rows, whose levels there depend on the variances.
    ``C`` is the inverse strength of the penalty.
    """

    points: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    levels: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    mean_labels: np.ndarray
    mean_counts: np.ndarray
    old: np.ndarray
    C: float

    def minimum(self, start: np.ndarray, tolerance: float) -> tuple[np.ndarray, bool]:
        """The rows (N, V + 1) of the least loss, and whether they were reached."""
        theta, metric = start[None], self._shared_metric(len(start))
        if len(self.means) and start.size * start.shape[1] <= MOST_ENTRIES:
            theta = minimise(self.objective, metric, theta, NEAR).theta
            metric = self._class_metric(theta[0])
        minimum = minimise(self.objective, metric, theta, tolerance)
        return minimum.theta[0], bool(minimum.converged[0])

    def objective(self, theta: np.ndarray) -> Point:
        """Value and gradient at theta (1, N, V + 1)."""
        rows = theta[0]
        losses, probabilities = self.at_points(rows)
        slopes = self.counts[:, None] * less_labels(probabilities, self.labels)
        gradient = slopes[:, :-1].T @ self.points
        gradient[:, :-1] += rows[:, :-1] / self.C
        value = self.counts @ losses + np.sum(rows[:, :-1] * rows[:, :-1]) / (2 * self.C)
        # The derivatives of v_j / 2 in W_j and in W_y are s (W_j - W_y) and its negative.
        losses, probabilities = self.at_means(rows)
        slopes = self.mean_counts[:, None] * less_labels(probabilities, self.all_labels)
        of_new = slopes[:, len(self.old) :]
        gradient += of_new.T @ self.means
        gradient[:, :-1] += (of_new.T @ self.variances) * rows[:, :-1]
        gradient[:, :-1] -= of_new.T @ (self.variances * rows[self.mean_labels, :-1])
        weights = np.concatenate([self.old, rows])[:, :-1]
        np.add.at(gradient[:, :-1], self.mean_labels, -(slopes @ weights) * self.variances)
        return Point(np.array([value + self.mean_counts @ losses]), gradient[None])

    @property
    def all_labels(self) -> np.ndarray:
        """Classes of the Gaussians (G,), old classes counted first."""
        return len(self.old) + self.mean_labels

    def at_points(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses of the points (P,), and probabilities of the N classes and, together, the old ones (P, N + 1)."""
        margins = np.concatenate([self.points @ rows.T, self.levels[:, None]], axis=1)
        return _losses(margins, self.labels)

    def at_means(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the Gaussians (G,), and softmax of their exponents over old and new classes (G, B + N)."""
        return _losses(self.exponents(rows), self.all_labels)

    def exponents(self, rows: np.ndarray) -> np.ndarray:
        """m_j + v_j / 2 of the Gaussians for old and new classes (G, B + N)."""
        all_rows, of_label = np.concatenate([self.old, rows]), rows[self.mean_labels, :-1]
        weights, scaled = all_rows[:, :-1], self.variances * of_label
        variances = self.variances @ (weights * weights).T - 2 * scaled @ weights.T
        variances += np.sum(scaled * of_label, axis=1)[:, None]
        return np.asarray(self.means @ all_rows.T + variances / 2)

    def _shared_metric(self, n_classes: int) -> Metric:
        """One curvature for all classes: that at equal probabilities."""
        counts = self.counts / (n_classes + len(self.old))
        variances = self.mean_counts @ self.variances / n_classes
        inverse = self._inverse((self.points * counts[:, None]).T @ self.points, variances)
        return lambda at, x: x @ inverse

    def _class_metric(self, rows: np.ndarray) -> Metric:
        """The curvature of each class at these rows, with the other rows fixed."""
        counts, of_points = self.mean_counts[:, None], self.at_points(rows)[1][:, :-1]
        of_means = self.at_means(rows)[1][:, len(self.old) :]
        variances = (counts * of_means).T @ self.variances
        np.add.at(variances, self.mean_labels, counts * self.variances)
        shares = self.counts[:, None] * of_points * (1 - of_points)
        mean_shares = counts * of_means * (1 - of_means)
        inverses = np.empty((len(rows), *self.points.shape[1:] * 2), dtype=rows.dtype)
        for n, share in enumerate(shares.T):
            some = share > SMALLEST_SHARE * share.sum()
            points = np.concatenate([self.points[some], self.means])
            points *= np.sqrt(np.concatenate([share[some], mean_shares[:, n]]))[:, None]
            inverses[n] = self._inverse(points.T @ points, variances[n])
        return lambda at, x: np.matmul(inverses, x[..., None])[..., 0]

    def _inverse(self, curvature: np.ndarray, variances: np.ndarray) -> np.ndarray:
        """The inverse of a curvature (V + 1, V + 1) with these variances (V,) and the penalty on its diagonal."""
        added = np.append(variances + 1 / self.C, INTERCEPT_CURVATURE)
        return np.asarray(np.linalg.inv(curvature + np.diag(added)).astype(self.points.dtype))


def less_labels(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The derivatives of losses in their exponents: probabilities (n, classes), less 1 at the labels (n,)."""
    probabilities[np.arange(len(labels)), labels] -= 1
    return probabilities


def _losses(exponents: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The losses log sum_j exp(z_j - z_y) (n,) of exponents z (n, classes), and their softmax, in their memory."""
    exponents -= exponents[np.arange(len(labels)), labels][:, None]
    losses, probabilities = losses_and_probabilities(exponents)
    return losses[:, 0], probabilities
