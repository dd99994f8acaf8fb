"""Strong and simple baselines on frozen features, with settings chosen on the base classes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from hotshot.arrays import cast, slices, unit_vectors
from hotshot.bank import PreparedBase, Space
from hotshot.bank.space import FeatureTransform
from hotshot.classifiers.baselines import NORMALIZE, POWERS, CentredClassifier, chosen_power, means_by_class
from hotshot.classifiers.fields import AUTO, NUMBER, POSITIVE, SHARE, parameter
from hotshot.classifiers.include_base import IncludeBaseClassifier
from hotshot.errors import InputError
from hotshot.method.heads.problem import softmax, symmetric_penalty
from hotshot.model.two_covariances import predictive, two_covariances
from hotshot.transport.costs import squared_euclidean

# Smallest variance, in units of the mean variance.
SMALLEST_VARIANCE = 1e-9
# Differences of samples and class means in memory at once.
MOST_DIFFERENCES = 2**24
# Samples of base classes to train logistic regression on: at most in total, at least per class.
MOST_POINTS, LEAST_POINTS = 2**13, 8


@dataclass(eq=False, repr=False, kw_only=True)
class LogisticClassifier(IncludeBaseClassifier, CentredClassifier):
    r"""Logistic regression on unit vectors.

    .. math::
        \min_{W, c} \sum_n \ell(W z_n + c, y_n) + \frac{1}{2C} \lVert W \rVert^2, \quad
        z = \frac{x^\lambda - m}{\lVert x^\lambda - m \rVert}

    with the cross-entropy :math:`\ell` and the mean m of the base samples. With unit vectors C does not depend on the
    scale of the features, and a weaker penalty than scikit-learn's default is better [1]_.

    Parameters
    ----------
    base : BaseClasses or None
        Bank whose mean is subtracted and on which "auto" is chosen; with None nothing is subtracted.
    power : float or "auto"
        Power of the features; "auto" is chosen on the base classes.
    normalize : {"centre-l2", "l2", "auto"}
        Subtract the mean of the base samples before scaling to unit norm, or scale alone.
    C : float or "auto"
        Inverse strength of the penalty, as in scikit-learn's LogisticRegression.
    include_base : bool
        Whether to predict base classes too. The classifier is then trained on their samples and the support together,
        with equal weights of all classes.

    Attributes
    ----------
    classes_ : array (N,)
        Labels of the classes, sorted.
    is_new_ : array (N,)
        With ``include_base``: which classes are new.
    coef_, intercept_ : arrays (N, V) and (N,)
        Weights and intercepts, for normalised features.
    centre_ : array (V,)
        The mean that is subtracted; zero if none is.
    power_ : float
        The power in use.
    converged_ : bool
        Whether the fit reached its minimum; if not, there was a ``ConvergenceWarning``.

    References
    ----------
    .. [1] Tian, Wang, Krishnan, Tenenbaum, Isola: Rethinking Few-Shot Image Classification: a Good Embedding Is All
       You Need? ECCV 2020.
    """

    C: float | str = parameter("auto", POSITIVE, AUTO)

    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {
        "C": (3.0, 1.0, 10.0, 100.0),
        "power": POWERS,
        "normalize": NORMALIZE,
    }

    def _fit(self, X: np.ndarray, labels: np.ndarray) -> None:
        settings = self._fit_units(X)
        z, weights, tolerance = self._units(X), None, 1e-14
        if self.include_base and self.base is not None:
            samples, of_base = self._base_samples(max(LEAST_POINTS, MOST_POINTS // len(self.base.names)))
            labels = np.concatenate([of_base, len(self.base.names) + labels])
            # From indices in base and new classes to indices in all classes, sorted.
            labels = np.argsort(self._join_base())[labels]
            z, tolerance = np.concatenate([self._units(samples), z]), 1e-9
            weights = (len(z) / len(self.classes_) / np.bincount(labels))[labels]
        # The penalty keeps the weights in the span of the samples, where the problem is small.
        axes, coordinates = np.linalg.qr(z.T)
        members = np.eye(len(self.classes_))[labels]
        penalty = symmetric_penalty(settings["C"], members.shape[1])
        theta, self.converged_ = fit_logistic(coordinates.T, members, penalty, weights, tolerance)
        if not self.converged_:
            warnings.warn(
                "The fit of LogisticClassifier stopped before its minimum: lower C.", ConvergenceWarning, stacklevel=3
            )
        self.coef_, self.intercept_ = theta[:, :-1] @ axes.T, theta[:, -1]

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self._units(X) @ self.coef_.T + self.intercept_)

    def _evidence(self, X: Any) -> np.ndarray:
        return self.predict_proba(X)


def fit_logistic(
    X: np.ndarray, members: np.ndarray, C: float, weights: np.ndarray | None = None, tolerance: float = 1e-14
) -> tuple[np.ndarray, bool]:
    r""":math:`\min_{W, c} \sum_n w_n \ell(W x_n + c, y_n) + \lVert W \rVert^2 / (2 C)`.

    scikit-learn's LogisticRegression has the same minimum and takes several times as long on a few samples.

    Parameters
    ----------
    X, members : arrays (samples, V) and (samples, N)
        Features and one-hot classes.
    weights : array (samples,), optional
        Weights of the samples, 1 by default.
    tolerance : float
        Smallest relative decrease of the objective in a step.

    Returns
    -------
    theta : array (N, V + 1)
        Weights and, last, intercepts.
    converged : bool
    """
    points = np.concatenate([X, np.ones((len(X), 1))], axis=1)
    shape = members.shape[1], points.shape[1]
    counts = np.ones((len(X), 1)) if weights is None else weights[:, None]
    members = counts * members

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = flat.reshape(shape)
        logits = points @ theta.T
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits)
        totals = exponentials.sum(axis=1, keepdims=True)
        penalty = theta / C
        penalty[:, -1] = 0
        value = (counts * np.log(totals)).sum() - np.vdot(logits, members) + np.vdot(penalty, theta) / 2
        return value, ((counts * (exponentials / totals) - members).T @ points + penalty).ravel()

    options = {"gtol": 1e-6, "ftol": tolerance, "maxcor": 20, "maxiter": 1000}
    found = minimize(objective, np.zeros(shape[0] * shape[1]), jac=True, method="L-BFGS-B", options=options)
    # As close as scikit-learn asks for; beyond that, rounding may end the search.
    return found.x.reshape(shape), bool(np.abs(found.jac).max() <= 1e-4 * len(X))


@dataclass(frozen=True)
class _ClassMeans:
    """Class means (N, axes) of normalised features, the samples (N,) of each, which are new, the bank, and settings."""

    means: np.ndarray
    shots: np.ndarray
    is_new: np.ndarray
    prepared: PreparedBase | None
    settings: Mapping[str, Any]


@dataclass(eq=False, repr=False, kw_only=True)
class _NormalisedClassifier(IncludeBaseClassifier):
    """Base of classifiers in the normalised space of ``HOTClassifier``; subclasses define ``_fit_means``.

    Without base classes features are only scaled to unit norm.
    """

    power: float | str = parameter("auto", NUMBER, AUTO)

    def _fit(self, X: np.ndarray, labels: np.ndarray) -> None:
        settings = self.settings()
        self.power_ = chosen_power(self.power, self.base, settings, X)
        prepared = None
        if self.base is None:
            self.transform_ = FeatureTransform(self.power_, 0.0, 1.0, np.zeros(X.shape[1]), None, unit=True)
        else:
            prepared = self.base.prepare(Space(power=self.power_))
            self.transform_ = prepared.transform
        means, counts = means_by_class(self._transformed(X), labels), np.bincount(labels)
        is_new = np.ones(len(means), dtype=bool)
        if self.include_base and self.base is not None and prepared is not None:
            order = self._join_base()
            means = np.concatenate([prepared.means.astype(np.float64), means])[order]
            counts, is_new = np.concatenate([self.base.counts, counts])[order], self.is_new_
        self._fit_means(_ClassMeans(means, counts, is_new, prepared, settings))

    def _transformed(self, X: np.ndarray) -> np.ndarray:
        dtype = np.asarray(self.transform_.centre).dtype
        return np.asarray(self.transform_(cast(X, dtype)), dtype=np.float64)

    def _fit_means(self, known: _ClassMeans) -> None:
        """Learn from the means of all classes."""
        raise TypeError(f"{type(self).__name__} must define _fit_means.")


@dataclass(eq=False, repr=False, kw_only=True)
class DiscriminantClassifier(_NormalisedClassifier):
    r"""Linear discriminant analysis with the covariance of the base classes.

    .. math::
        \mathrm{logit}_c(z) = -\tfrac{1}{2} (z - \bar z_c)^\top S^{-1} (z - \bar z_c), \quad
        S = (1 - s) S_w + s \frac{\mathrm{tr}\, S_w}{V} I

    with normalised features z, the mean :math:`\bar z_c` of the support of a class, and the pooled covariance
    :math:`S_w` within base classes, shrunk [1]_. Without base classes S is the identity.

    Parameters
    ----------
    base : BaseClasses or None
        The bank.
    power : float or "auto"
        Power of the features; "auto" is chosen on the base classes.
    shrinkage : float or "auto"
        How far the covariance is shrunk towards its mean variance, 0 to 1.
    include_base : bool
        Whether to predict base classes too, by the means of their samples.

    Attributes
    ----------
    classes_ : array (N,)
        Labels of the classes, sorted.
    is_new_ : array (N,)
        With ``include_base``: which classes are new.
    means_ : array (N, axes)
        Mean of the samples of each class, after ``transform_``.
    variances_ : array (axes,)
        The diagonal of S, in the axes of the pooled covariance.
    transform_ : FeatureTransform
        Transform of raw features to the space of the bank.
    power_ : float
        The power in use.

    References
    ----------
    .. [1] Friedman: Regularized Discriminant Analysis. Journal of the American Statistical Association 84, 1989.
    """

    shrinkage: float | str = parameter("auto", SHARE, AUTO)

    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {"shrinkage": (0.9, 0.5, 0.8, 0.97), "power": POWERS}

    def _fit_means(self, known: _ClassMeans) -> None:
        self.means_ = known.means
        self.variances_ = np.ones(known.means.shape[1])
        if known.prepared is not None:
            spectrum, share = _checked_spectrum(known.prepared), known.settings["shrinkage"]
            variances = (1 - share) * spectrum + share * spectrum.mean()
            self.variances_ = np.maximum(variances, SMALLEST_VARIANCE * spectrum.mean())

    def _logits(self, X: np.ndarray) -> np.ndarray:
        deviations = np.sqrt(self.variances_)
        return np.asarray(-squared_euclidean(self._transformed(X) / deviations, self.means_ / deviations) / 2)


@dataclass(eq=False, repr=False, kw_only=True)
class TwoCovarianceClassifier(_NormalisedClassifier):
    r"""Probabilistic linear discriminant analysis in its two-covariance form.

    .. math::
        \mathrm{logit}_c(z) = \log N\!\left(z;\ m + A_c (\bar z_c - m),\ S_w + S_b - A_c S_b\right), \quad
        A_c = S_b (S_b + S_w / K_c)^{-1}

    Means of classes are drawn from :math:`N(m, S_b)`, samples from :math:`N(\cdot, S_w)` around them [1]_ [2]_; a class
    with :math:`K_c` known samples has a Gaussian posterior, and the logit is the log density of its next sample up to
    a constant. m, S_b and S_w come from the base classes, S_b and S_w shrunk towards their mean variance. Without base
    classes it is the nearest class mean.

    Parameters
    ----------
    base, power
        As in ``DiscriminantClassifier``.
    within, between : float or "auto"
        How far S_w and S_b are shrunk, 0 to 1.
    scale : float or "auto"
        Factor of S_b: novel classes may differ less, or more, than base classes do.
    include_base : bool
        Whether to predict base classes too, as classes with many known samples.

    Attributes
    ----------
    classes_, is_new_, transform_, power_
        As in ``DiscriminantClassifier``.
    projection_ : array (axes, axes)
        From features after ``transform_`` to axes where S_w is the identity and S_b diagonal.
    means_, variances_ : arrays (N, axes)
        Mean and variances of the next sample of each class, in these axes.

    References
    ----------
    .. [1] Ioffe: Probabilistic Linear Discriminant Analysis. ECCV 2006.
    .. [2] Brümmer, de Villiers: The Speaker Partitioning Problem. Odyssey 2010.
    """

    within: float | str = parameter("auto", SHARE, AUTO)
    between: float | str = parameter("auto", SHARE, AUTO)
    scale: float | str = parameter("auto", POSITIVE, AUTO)

    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {
        "scale": (0.25, 0.5, 1.0),
        "within": (0.7, 0.5, 0.85),
        "between": (0.5, 0.2, 0.8),
        "power": POWERS,
    }

    def _fit_means(self, known: _ClassMeans) -> None:
        means, prepared = known.means, known.prepared
        if prepared is None:
            self.projection_ = np.eye(means.shape[1])
            self.means_, self.variances_ = means, np.ones_like(means)
            return
        _checked_spectrum(prepared)
        two = two_covariances(prepared, *(float(known.settings[name]) for name in ("within", "between", "scale")))
        self.projection_ = (two.axes / two.deviations[:, None]).astype(np.float64)
        ratios = two.ratios.astype(np.float64)
        centre = prepared.means.mean(axis=0, dtype=np.float64) @ self.projection_
        self.means_, self.variances_ = predictive(ratios, centre, means @ self.projection_, known.shots)

    def _logits(self, X: np.ndarray) -> np.ndarray:
        z = self._transformed(X) @ self.projection_
        found = []
        for rows in slices(len(z), max(1, MOST_DIFFERENCES // max(1, self.means_.size))):
            difference = z[rows, None] - self.means_
            found.append(-np.sum(difference**2 / self.variances_ + np.log(self.variances_), axis=2) / 2)
        return np.concatenate(found)


@dataclass(eq=False, repr=False, kw_only=True)
class SoftmaxCalibrationClassifier(_NormalisedClassifier):
    r"""Class means shifted towards the means of similar base classes, as in TEEN [1]_.

    .. math::
        c' = \alpha c + (1 - \alpha) \sum_b w_b \mu_b, \quad
        w_b = \frac{\exp(\tau \cos(c, \mu_b))}{\sum_{b'} \exp(\tau \cos(c, \mu_{b'}))}

    for the mean c of the normalised support of each class and the means :math:`\mu_b` of base classes; the logits are
    a multiple of :math:`\cos(z, c')`. The published constants are alpha 0.5 and tau 16, on features that are not
    centred; [2]_ applies the same shift. Without base classes nothing is shifted.

    Parameters
    ----------
    base, power
        As in ``DiscriminantClassifier``.
    alpha : float or "auto"
        Share of the support's own mean.
    tau : float or "auto"
        Sharpness of the softmax.
    scale : float
        Factor of the cosine in the logits.
    include_base : bool
        Whether to predict base classes too, by their own means.

    Attributes
    ----------
    classes_, is_new_, transform_, power_
        As in ``DiscriminantClassifier``.
    directions_ : array (N, axes)
        Direction of each class as a unit vector, after ``transform_``.

    References
    ----------
    .. [1] Wang, Zhou, Zhang, Zhan, Ye: Few-Shot Class-Incremental Learning via Training-Free Prototype Calibration.
       NeurIPS 2023, arXiv:2312.05229.
    .. [2] Goswami, Twardowski, van de Weijer: Calibrating Higher-Order Statistics for Few-Shot Class-Incremental
       Learning with Pre-trained Vision Transformers. CVPR Workshops 2024, arXiv:2404.06622.
    """

    alpha: float | str = parameter("auto", SHARE, AUTO)
    tau: float | str = parameter("auto", POSITIVE, AUTO)
    scale: float = parameter(10.0, POSITIVE)

    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {
        "alpha": (0.7, 0.3, 0.5, 0.9),
        "tau": (8.0, 4.0, 16.0, 32.0),
        "power": POWERS,
    }

    def _fit_means(self, known: _ClassMeans) -> None:
        means, share = known.means, known.settings["alpha"]
        if known.prepared is not None:
            lenders = known.prepared.means.astype(np.float64)
            cosines = unit_vectors(means) @ unit_vectors(lenders).T
            lent = softmax(known.settings["tau"] * cosines)[0] @ lenders
            means = np.where(known.is_new[:, None], share * means + (1 - share) * lent, means)
        self.directions_ = unit_vectors(means)

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * self._transformed(X) @ self.directions_.T)


def _checked_spectrum(prepared: PreparedBase) -> np.ndarray:
    """Variances within base classes (axes,); raise if they are only rounding errors."""
    rounding = float(np.finfo(prepared.spectrum.dtype).eps)
    spectrum = np.asarray(prepared.spectrum, dtype=np.float64)
    # Features have norm 1.
    if spectrum.max() <= (10 * rounding) ** 2:
        raise InputError("The samples of each base class are identical: pass base classes whose samples differ.")
    return spectrum
