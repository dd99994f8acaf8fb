"""Discriminants in the covariances of the base classes: linear, and with Gaussian class means (PLDA)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.arrays import slices
from hotshot.bank import PreparedBase
from hotshot.classifiers.classifier import POSITIVE, SHARE, chosen
from hotshot.classifiers.rival import SpaceRival
from hotshot.errors import InputError
from hotshot.model.two_covariances import predictive, two_covariances
from hotshot.transport.costs import squared_euclidean

# Smallest variance, in units of the mean variance.
SMALLEST_VARIANCE = 1e-9
# Differences of samples and class means in memory at once.
MOST_DIFFERENCES = 2**24


@dataclass(eq=False, repr=False, kw_only=True)
class DiscriminantClassifier(SpaceRival):
    r"""Linear discriminant analysis with the covariance of the base classes.

    .. math::
        \mathrm{logit}_c(z) = -\tfrac{1}{2} (z - \bar z_c)^\top S^{-1} (z - \bar z_c), \quad
        S = (1 - s) S_w + s \frac{\mathrm{tr}\, S_w}{V} I

    with normalised features z, the mean :math:`\bar z_c` of the support of a class, and the pooled covariance
    :math:`S_w` within base classes, shrunk [1]_ by s, ``shrinkage``. Without base classes S is the identity.

    References
    ----------
    .. [1] Friedman: Regularized Discriminant Analysis. Journal of the American Statistical Association 84, 1989.
    """

    shrinkage: float | str = chosen((0.9, 0.5, 0.8, 0.97), SHARE)

    def _learn_means(self, means: np.ndarray, shots: np.ndarray, settings: Mapping[str, Any]) -> None:
        self.means_, self.variances_ = means, np.ones(means.shape[1])
        if self.base is not None:
            spectrum, share = checked_spectrum(self._prepared()), settings["shrinkage"]
            variances = (1 - share) * spectrum + share * spectrum.mean()
            self.variances_ = np.maximum(variances, SMALLEST_VARIANCE * spectrum.mean())

    def _score(self, z: np.ndarray) -> np.ndarray:
        deviations = np.sqrt(self.variances_)
        return np.asarray(-squared_euclidean(z / deviations, self.means_ / deviations) / 2)


@dataclass(eq=False, repr=False, kw_only=True)
class TwoCovarianceClassifier(SpaceRival):
    r"""Probabilistic linear discriminant analysis in its two-covariance form.

    .. math::
        \mathrm{logit}_c(z) = \log N\!\left(z;\ m + A_c (\bar z_c - m),\ S_w + S_b - A_c S_b\right), \quad
        A_c = S_b (S_b + S_w / K_c)^{-1}

    Means of classes are drawn from :math:`N(m, S_b)`, samples from :math:`N(\cdot, S_w)` around them [1]_ [2]_; a class
    with :math:`K_c` known samples has a Gaussian posterior, and the logit is the log density of its next sample up to
    a constant. m, S_b and S_w come from the base classes, shrunk towards their mean
    variance by ``between`` and ``within``, and S_b times ``scale``. Without base classes it is the nearest class mean.

    References
    ----------
    .. [1] Ioffe: Probabilistic Linear Discriminant Analysis. ECCV 2006.
    .. [2] Brümmer, de Villiers: The Speaker Partitioning Problem. Odyssey 2010.
    """

    # Novel classes may differ less, or more, than base classes do.
    scale: float | str = chosen((0.25, 0.5, 1.0), POSITIVE)
    within: float | str = chosen((0.7, 0.5, 0.85), SHARE)
    between: float | str = chosen((0.5, 0.2, 0.8), SHARE)

    def _learn_means(self, means: np.ndarray, shots: np.ndarray, settings: Mapping[str, Any]) -> None:
        self.projection_ = np.eye(means.shape[1])
        self.means_, self.variances_ = means, np.ones_like(means)
        if self.base is not None:
            prepared = self._prepared()
            checked_spectrum(prepared)
            two = two_covariances(prepared, *(float(settings[name]) for name in ("within", "between", "scale")))
            self.projection_ = (two.axes / two.deviations[:, None]).astype(np.float64)
            centre = prepared.means.mean(axis=0, dtype=np.float64) @ self.projection_
            ratios = two.ratios.astype(np.float64)
            self.means_, self.variances_ = predictive(ratios, centre, means @ self.projection_, shots)

    def _score(self, z: np.ndarray) -> np.ndarray:
        z, blocks = z @ self.projection_, []
        for rows in slices(len(z), max(1, MOST_DIFFERENCES // max(1, self.means_.size))):
            difference = z[rows, None] - self.means_
            blocks.append(-np.sum(difference**2 / self.variances_ + np.log(self.variances_), axis=2) / 2)
        return np.concatenate(blocks)


def checked_spectrum(base: PreparedBase) -> np.ndarray:
    """Variances within base classes (axes,); raise if they are only rounding errors."""
    spectrum = base.spectrum
    # Features have norm 1.
    if spectrum.max() <= (10 * float(np.finfo(spectrum.dtype).eps)) ** 2:
        raise InputError("The samples of each base class are identical: pass base classes whose samples differ.")
    return np.asarray(spectrum, dtype=np.float64)
