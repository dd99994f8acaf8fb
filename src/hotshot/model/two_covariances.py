r"""The two-covariance model of classes (also called PLDA): one Gaussian of class means, one of samples around each.

.. math::
    \mu_c \sim N(m, S_b), \qquad x \sim N(\mu_c, S_w).

Both covariances are estimated from the base classes and made diagonal together, :math:`S_w = D D` and
:math:`S_b = D U \Lambda U^\top D`. In the axes of ``TwoCovariances.rotated``, where S_w is the identity and S_b is
diagonal with the entries ``ratios``, everything that the model says is a formula for each axis:

- ``posterior``: mean and variances of :math:`\mu_c` given the K samples of its class;
- ``predictive``: mean and variances of the next sample of that class;
- ``log_ratios``: whether a class explains a sample better than an unknown class does,
  :math:`\log p(x \mid c) - \log p(x)`. A sample that fits no class has a small ratio for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotshot.arrays import slices
from hotshot.bank import PreparedBase

# Shrinkage of S_w and of S_b to their mean variance, and factor of S_b, for outlier scores.
OUTLIER_SHRINKAGE = 0.7, 0.5, 0.5
# Least variance within classes, as a share of all variance.
LEAST_WITHIN = 1e-9
# Samples whose ratios are in memory together.
ROWS_AT_ONCE = 2**12


@dataclass(frozen=True)
class TwoCovariances:
    """The diagonal of D, deviations within classes (V,); U, a rotation (V, V); and the diagonal of Lambda (V,)."""

    deviations: np.ndarray
    axes: np.ndarray
    ratios: np.ndarray

    def rotated(self, x: np.ndarray) -> np.ndarray:
        """Features (..., V) in the axes where S_w is the identity and S_b is diagonal."""
        return np.asarray((x / self.deviations) @ self.axes)

    def restored(self, x: np.ndarray) -> np.ndarray:
        """The inverse of ``rotated``."""
        return np.asarray((x @ self.axes.T) * self.deviations)


def two_covariances(
    base: PreparedBase, within: float = 0.2, between: float = 0.5, scale: float = 0.5
) -> TwoCovariances:
    """The model of a bank by ``estimate``, computed once and kept with it."""
    key = within, between, scale
    models: dict[tuple[float, ...], TwoCovariances] = base.__dict__.setdefault("_two_covariances", {})
    if key not in models:
        models[key] = estimate(base.means, base.spectrum, base.counts, *key)
    return models[key]


def estimate(
    means: np.ndarray, spectrum: np.ndarray, counts: np.ndarray, within: float, between: float, scale: float
) -> TwoCovariances:
    """The model from class means (B, V) of J samples each (B,), in axes where the pooled covariance is diagonal (V,).

    S_w is the pooled covariance, shrunk to its mean variance by ``within``. S_b is the covariance of the class means,
    less the noise S_w / J of the means (down to zero), shrunk by ``between`` and multiplied by ``scale``.
    """
    inner = spectrum.astype(np.float64)
    inner = (1 - within) * inner + within * inner.mean()
    centred = (means - means.mean(axis=0)).astype(np.float64)
    outer = centred.T @ centred / max(len(means) - 1, 1)
    # If no class has two samples, S_w is not known and nothing is subtracted.
    if counts.max() > 1:
        variances, axes = np.linalg.eigh(outer - np.diag(np.mean(1 / counts) * spectrum))
        outer = (axes * np.maximum(variances, 0)) @ axes.T
    # Classes without any variance would be infinitely far apart.
    least = LEAST_WITHIN * (inner.mean() + np.trace(outer) / len(outer))
    deviations = np.sqrt(np.maximum(inner, max(least, float(np.finfo(np.float32).tiny))))
    outer = (1 - between) * outer + between * np.trace(outer) / len(outer) * np.eye(len(outer))
    ratios, axes = np.linalg.eigh(scale * outer / np.outer(deviations, deviations))
    return TwoCovariances(*(x.astype(means.dtype) for x in (deviations, axes, np.maximum(ratios, 0))))


def shrinkage(ratios: np.ndarray, shots: np.ndarray | float, certainty: float = 1.0) -> np.ndarray:
    r""":math:`\Lambda / (\Lambda + q / K)` (..., V): how far K samples (...,) move a class mean from its prior mean.

    The variance of class means around their prior means is that between base classes divided by the ``certainty`` q.
    """
    with np.errstate(divide="ignore"):
        # Without samples, the noise of their mean is infinite.
        noise = certainty / np.asarray(shots)[..., None]
    return np.asarray(ratios / (ratios + noise))


def posterior(
    ratios: np.ndarray, prior: np.ndarray, means: np.ndarray, shots: np.ndarray | float
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variances (..., V) of class means, of this prior mean (..., V), given the means of their samples."""
    variances = ratios / (np.asarray(shots)[..., None] * ratios + 1)
    return prior + shrinkage(ratios, shots) * (means - prior), variances


def predictive(
    ratios: np.ndarray, prior: np.ndarray, means: np.ndarray, shots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variances (..., V) of the next sample of each class."""
    expected, variances = posterior(ratios, prior, means, shots)
    return expected, 1 + variances


def log_ratios(
    ratios: np.ndarray, centre: np.ndarray, means: np.ndarray, shots: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """Log-likelihood of samples x (..., Q, V) in each class, less that in an unknown class: (..., Q, N).

    The classes have samples of these means (..., N, V) and numbers (..., N).
    """
    expected, variances = predictive(ratios, centre, means, shots)
    in_class = x * x @ np.swapaxes(1 / variances, -1, -2) - 2 * x @ np.swapaxes(expected / variances, -1, -2)
    constant = np.sum(expected * expected / variances + np.log(variances), axis=-1)
    off_centre = x - centre
    in_any = np.sum(off_centre * off_centre / (1 + ratios) + np.log(1 + ratios), axis=-1)
    return np.asarray((in_any[..., None] - in_class - constant[..., None, :]) / 2)


def support_fits(
    ratios: np.ndarray, centre: np.ndarray, means: np.ndarray, shots: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """How well support samples x (..., S, V) fit: (..., S).

    A sample of a class with several samples has its log-ratio for the other samples, as a query has. The only sample
    of a class is compared to the bank: (x - m)' (S_w + S_b)^-1 (x - m) / 2. ``means`` (..., S, V) and ``shots``
    (..., S) are of all samples of the class of each sample, including this one.
    """
    others = np.where(shots > 1, shots - 1, 1)
    rest = (shots[..., None] * means - x) / others[..., None]
    # Each sample with its own class, as a batch of one by one.
    fits = log_ratios(ratios, centre, rest[..., None, :], others[..., None], x[..., None, :])[..., 0, 0]
    alone = np.sum((x - centre) ** 2 / (1 + ratios), axis=-1) / 2
    return np.where(shots > 1, fits, alone)


@dataclass(frozen=True)
class KnownClasses:
    """Classes by the means (N, V) and numbers (N,) of their samples, in a model with this centre (V,)."""

    two: TwoCovariances
    centre: np.ndarray
    means: np.ndarray
    sizes: np.ndarray

    def ratios(self, x: np.ndarray) -> np.ndarray:
        """Log-ratios (n, N) of samples (n, V)."""
        centre, means, x = self._rotated(self.centre, self.means, x)
        return log_ratios(self.two.ratios, centre, means, self.sizes, x)

    def support_fits(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """How well samples (S, V) fit their own classes, given by index (S,), whose means include them: (S,)."""
        centre, means, x = self._rotated(self.centre, self.means, x)
        return support_fits(self.two.ratios, centre, means[labels], self.sizes[labels], x)

    def best(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Index of the class that each sample (n, V) fits best, and its log-ratio (n,)."""
        places, scores = np.empty(len(x), dtype=np.int64), np.empty(len(x))
        for rows in slices(len(x), ROWS_AT_ONCE):
            ratios = self.ratios(x[rows])
            places[rows], scores[rows] = ratios.argmax(axis=1), ratios.max(axis=1)
        return places, scores

    def _rotated(self, *parts: np.ndarray) -> list[np.ndarray]:
        return [self.two.rotated(x.astype(np.float64)) for x in parts]
