"""Baselines on frozen features that scikit-learn lacks: nearest centroid, cosine, soft nearest neighbour."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from hotshot.arrays import unit_vectors
from hotshot.base import BaseClasses, class_means
from hotshot.base.space import choose_power, power_transform
from hotshot.estimators.beside_base import BesideBase
from hotshot.estimators.classifier import FewShotClassifier
from hotshot.transport.costs import squared_euclidean

POWER = [Interval(Real, None, None, closed="neither"), StrOptions({"auto"})]
# To choose from where no feature is negative; others have the power 1 alone.
POWERS = (0.5, 1.0)


def means_by_class(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean of the samples (samples, V) of each class, counted from 0: (N, V)."""
    order = np.argsort(labels, kind="stable")
    return class_means(X[order], np.bincount(labels))


class CentroidClassifier(BesideBase):
    """Nearest class mean; with "centre-l2", after centring and scaling to unit norm as in SimpleShot [1]_.

    Parameters
    ----------
    base : BaseClasses or None
        Whose samples are the centre; without it the support's are.
    power : float or "auto"
        Of the power transform; "auto" is chosen on the base classes, as in `HOTClassifier`.
    normalize : {"centre-l2", None}
    include_base : bool
        Whether base classes are answered too, by the means of their samples.

    Attributes
    ----------
    classes_ : array (N,)
    is_new_ : array (N,)
        With `include_base`: which classes are new.
    centroids_ : array (N, V)
    centre_ : array (V,)
        Zero without normalisation.

    References
    ----------
    .. [1] Wang, Chao, Weinberger, van der Maaten: SimpleShot. arXiv:1911.04623, 2019.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "base": "no_validation",
        "power": POWER,
        "normalize": [StrOptions({"centre-l2"}), None],
        "include_base": ["boolean"],
    }
    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {"power": POWERS}

    def __init__(
        self,
        base: BaseClasses | None = None,
        *,
        power: float | str = "auto",
        normalize: str | None = "centre-l2",
        include_base: bool = False,
    ) -> None:
        self.base = base
        self.power = power
        self.normalize = normalize
        self.include_base = include_base

    def _fit(self, X: np.ndarray, labels: np.ndarray) -> None:
        if self.base is None:
            self.power_ = choose_power(self.power, X.min())
            centre = power_transform(X, self.power_).mean(axis=0)
        else:
            self.power_ = float(self.settings()["power"])
            centre = self.base.centre(self.power_)
        self.centre_ = np.zeros(X.shape[1]) if self.normalize is None else centre
        self.centroids_ = means_by_class(self._transformed(X), labels)
        if self.include_base:
            samples, of_base = self._base_samples()
            old = means_by_class(self._transformed(samples), of_base)
            self.centroids_ = np.concatenate([old, self.centroids_])[self._join_base()]

    def _transformed(self, X: np.ndarray) -> np.ndarray:
        X = power_transform(X.astype(np.float64), self.power_) - self.centre_
        return unit_vectors(X) if self.normalize is not None else X

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(-squared_euclidean(self._transformed(X), self.centroids_))

    def outlier_score(self, X: Any) -> np.ndarray:
        """Minus the largest cosine similarity to a centroid (samples,): the larger, the rather of no class."""
        z = self._transformed(self._validated(X))
        return np.asarray(-(unit_vectors(z) @ unit_vectors(self.centroids_).T).max(axis=1))


class _DirectionClassifier(FewShotClassifier):
    """What classifiers share that look at the directions of power-transformed features alone."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "power": POWER,
        "scale": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(self, *, power: float | str = "auto", scale: float = 10.0) -> None:
        self.power = power
        self.scale = scale

    def _fit(self, X: np.ndarray, labels: np.ndarray) -> None:
        self.power_ = choose_power(self.power, X.min())
        self._fit_units(self._units(X), labels)

    def _units(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(unit_vectors(power_transform(X.astype(np.float64), self.power_)))

    def _fit_units(self, units: np.ndarray, labels: np.ndarray) -> None:
        raise TypeError(f"{type(self).__name__} must define _fit_units.")


class CosineClassifier(_DirectionClassifier):
    """Largest cosine similarity to a class mean, times a scale that sharpens the probabilities.

    Parameters
    ----------
    power : float or "auto"
        Of the power transform, as in `HOTClassifier`.
    scale : float
        Logits are scale * cos(x, mean).

    Attributes
    ----------
    classes_ : array (N,)
    directions_ : array (N, V)
        Unit vectors.
    """

    def _fit_units(self, units: np.ndarray, labels: np.ndarray) -> None:
        self.directions_ = unit_vectors(means_by_class(units, labels))

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * self._units(X) @ self.directions_.T)


class MatchingClassifier(_DirectionClassifier):
    """Soft nearest neighbour: every support sample votes by the softmax of its cosine similarity [1]_.

    Parameters
    ----------
    power : float or "auto"
        Of the power transform, as in `HOTClassifier`.
    scale : float
        Of the similarities in the softmax.

    Attributes
    ----------
    classes_ : array (N,)
    support_ : array (S, V)
        Unit vectors.
    labels_ : array (S,)
        Index of each one's class.

    References
    ----------
    .. [1] Vinyals, Blundell, Lillicrap, Kavukcuoglu, Wierstra: Matching Networks for One Shot Learning.
       NeurIPS 2016.
    """

    def _fit_units(self, units: np.ndarray, labels: np.ndarray) -> None:
        self.support_, self.labels_ = units, labels

    def _logits(self, X: np.ndarray) -> np.ndarray:
        # Relative to the largest similarity there is, so that nothing overflows; rounding may exceed it.
        votes = np.exp(self.scale * np.minimum(self._units(X) @ self.support_.T - 1, 0))
        totals = votes @ np.eye(len(self.classes_))[self.labels_]
        return np.asarray(np.log(np.maximum(totals, np.finfo(np.float64).tiny)))
