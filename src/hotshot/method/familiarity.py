r"""How well a sample fits a class: a likelihood ratio under the two-covariance model of the bank.

.. math::
    \log \frac{N(x;\ m + A_c (\bar x_c - m),\ S_w + S_b - A_c S_b)}{N(x;\ m,\ S_w + S_b)}, \quad
    A_c = S_b (S_b + S_w / K_c)^{-1}

for a class with :math:`K_c` known samples of mean :math:`\bar x_c`, if class means vary by S_b around the mean m of the
base classes, and samples by S_w around their class mean. Above zero, the class explains the sample better than an
unknown class does. A sample that fits no class has a small ratio for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotshot.arrays import Array, namespace, slices
from hotshot.bank.statistics import TwoCovariances

# Shrinkage of S_w and of S_b, and factor of S_b, for `PreparedBase.two_covariances`.
SHRINKAGE = 0.7, 0.5, 0.5
# Samples whose ratios are in memory together.
ROWS_AT_ONCE = 2**12


def class_ratios(two: TwoCovariances, centre: Array, means: Array, shots: Array, x: Array) -> Array:
    """Logarithms of the ratio of samples x (…, Q, V) for each class: (…, Q, N).

    Parameters
    ----------
    centre : array (V,)
        m, the mean of the base classes.
    means, shots : arrays (…, N, V) and (…, N)
        Means of the known samples of each class, and their numbers.
    """
    return rotated_ratios(two.ratios, two.rotated(centre[None, :]), two.rotated(means), shots, two.rotated(x))


def rotated_ratios(ratios: Array, centre: Array, means: Array, shots: Array, x: Array) -> Array:
    """``class_ratios`` in axes where S_w is the identity and S_b is diagonal with the entries ``ratios`` (V,)."""
    xp = namespace(x)
    shots = shots[..., None]
    expected = centre + ratios / (ratios + 1 / shots) * (means - centre)
    variances = 1 + ratios / (shots * ratios + 1)
    precise = xp.matrix_transpose(1 / variances)
    own = x * x @ precise - 2 * x @ xp.matrix_transpose(expected / variances)
    constant = xp.sum(expected * expected / variances + xp.log(variances), axis=-1)
    off_centre = x - centre
    of_any = xp.sum(off_centre * off_centre / (1 + ratios) + xp.log(1 + ratios), axis=-1)
    return (of_any[..., None] - own - constant[..., None, :]) / 2


def support_fits(ratios: Array, centre: Array, means: Array, shots: Array, x: Array) -> Array:
    """How well support samples x (…, S, V) fit, in the axes of ``rotated_ratios``: (…, S).

    A sample of a class with several samples has the logarithm of its ratio for the other samples, as a query has. The
    only sample of a class is compared to the bank: (x - m)' (S_w + S_b)^-1 (x - m) / 2.

    Parameters
    ----------
    means, shots : arrays (…, S, V) and (…, S)
        Mean of all samples of the class of each sample, including this one, and their number.
    """
    xp = namespace(x)
    others = xp.where(shots > 1, shots - 1, xp.ones_like(shots))[..., None]
    rest = (shots[..., None] * means - x) / others
    # Each sample with its own class, as a batch of one by one.
    beside = rotated_ratios(ratios, centre, rest[..., None, :], others, x[..., None, :])[..., 0, 0]
    alone = xp.sum((x - centre) ** 2 / (1 + ratios), axis=-1) / 2
    return xp.where(shots > 1, beside, alone)


@dataclass(frozen=True)
class KnownClasses:
    """Classes by the means (N, V) and numbers (N,) of their samples, under a two-covariance model."""

    two: TwoCovariances
    centre: np.ndarray
    means: np.ndarray
    sizes: np.ndarray

    def ratios(self, x: np.ndarray) -> np.ndarray:
        """Logarithms of the ratio of samples (n, V) for each class (n, N)."""
        found: np.ndarray = class_ratios(self.two, self.centre, self.means, self.sizes, x.astype(np.float64))
        return found

    def support_fits(self, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """How well samples (S, V) fit their own classes, given by index (S,), whose means include them: (S,)."""
        centre, means, x = (self.two.rotated(part.astype(np.float64)) for part in (self.centre, self.means, x))
        fits: np.ndarray = support_fits(self.two.ratios, centre, means[labels], self.sizes[labels], x)
        return fits

    def best(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Index of the class that each sample (n, V) fits best, and the logarithm of its ratio (n,)."""
        places, scores = [np.empty(0, dtype=np.int64)], [np.empty(0)]
        for rows in slices(len(x), ROWS_AT_ONCE):
            ratios = self.ratios(x[rows])
            places.append(ratios.argmax(axis=1))
            scores.append(ratios.max(axis=1))
        return np.concatenate(places), np.concatenate(scores)
