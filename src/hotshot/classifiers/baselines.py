"""Baselines on frozen features that scikit-learn lacks: nearest centroid, cosine, soft nearest neighbour."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from hotshot.arrays import unit_vectors
from hotshot.bank import BaseClasses, class_means
from hotshot.bank.space import choose_power, power_transform
from hotshot.classifiers.classifier import FewShotClassifier
from hotshot.classifiers.fields import AUTO, CENTRED, NUMBER, POSITIVE, parameter
from hotshot.classifiers.include_base import IncludeBaseClassifier, ScoredClassifier
from hotshot.transport.costs import squared_euclidean

# Choices if no feature is negative; otherwise the power is 1.
POWERS = (0.5, 1.0)
NORMALIZE = ("centre-l2", "l2")


def means_by_class(X: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Mean of the samples (samples, V) of each class, counted from 0: (N, V)."""
    order = np.argsort(labels, kind="stable")
    return class_means(X[order], np.bincount(labels))


def chosen_power(power: float | str, base: BaseClasses | None, settings: Mapping[str, Any], X: np.ndarray) -> float:
    """The power as passed; for "auto" the chosen one, and 1 for signed features."""
    if power != "auto":
        return float(power)
    by_sign = choose_power("auto", X.min()) if base is None else base.power("auto")
    return 1.0 if by_sign == 1 else float(settings["power"])


@dataclass(eq=False, repr=False, kw_only=True)
class CentredClassifier(ScoredClassifier):
    """Base of classifiers of unit vectors, from which "centre-l2" first subtracts the mean of the base samples."""

    base: BaseClasses | None = parameter(None)
    power: float | str = parameter("auto", NUMBER, AUTO)
    normalize: str = parameter("auto", StrOptions({*NORMALIZE, "auto"}))

    def _fit_units(self, X: np.ndarray) -> Mapping[str, Any]:
        """Set power and centre; return the settings."""
        settings = self.settings()
        self.power_ = chosen_power(self.power, self.base, settings, X)
        self.centre_ = np.zeros(X.shape[1])
        if self.base is not None and settings["normalize"] == "centre-l2":
            self.centre_ = np.asarray(self.base.centre(self.power_), dtype=np.float64)
        return settings

    def _units(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(unit_vectors(power_transform(X.astype(np.float64), self.power_) - self.centre_))


@dataclass(eq=False, repr=False, kw_only=True)
class CentroidClassifier(IncludeBaseClassifier):
    """Nearest class mean; with "centre-l2", after centring and scaling to unit norm as in SimpleShot [1]_.

    Parameters
    ----------
    base : BaseClasses or None
        Bank whose mean is subtracted; with None, the mean of the support is.
    power : float or "auto"
        Power of the features; "auto" is chosen on the base classes, as in ``HOTClassifier``.
    normalize : {"centre-l2", None}
        Subtract the mean, then scale to unit norm; None does neither.
    include_base : bool
        Whether to predict base classes too, by the means of their samples.

    Attributes
    ----------
    classes_ : array (N,)
        Labels of the classes, sorted.
    is_new_ : array (N,)
        With ``include_base``: which classes are new.
    centroids_ : array (N, V)
        Mean of each class, after normalisation.
    centre_ : array (V,)
        The mean that is subtracted; zero without normalisation.

    See Also
    --------
    HOTClassifier : Calibrated Gaussians in place of class means.

    References
    ----------
    .. [1] Wang, Chao, Weinberger, van der Maaten: SimpleShot. arXiv:1911.04623, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from hotshot import CentroidClassifier
    >>> model = CentroidClassifier().fit([[2.0, 0.1], [0.1, 2.0]], ["east", "north"])
    >>> model.predict([[3.0, 1.0]])
    array(['east'], dtype='<U5')
    """

    power: float | str = parameter("auto", NUMBER, AUTO)
    normalize: str | None = parameter("centre-l2", CENTRED, None)

    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {"power": POWERS}

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

    def _evidence(self, X: Any) -> np.ndarray:
        return np.asarray(unit_vectors(self._transformed(self._validated(X))) @ unit_vectors(self.centroids_).T)


@dataclass(eq=False, repr=False, kw_only=True)
class _DirectionClassifier(FewShotClassifier):
    """Base of classifiers that use only the directions of power-transformed features."""

    power: float | str = parameter("auto", NUMBER, AUTO)
    scale: float = parameter(10.0, POSITIVE)

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
        Power of the features; "auto" is 0.5 if no feature is negative, else 1.
    scale : float
        Factor of the cosine similarity in the logits.

    Attributes
    ----------
    classes_ : array (N,)
        Labels of the classes, sorted.
    directions_ : array (N, V)
        Direction of each class mean, as a unit vector.

    See Also
    --------
    CentroidClassifier : Euclidean distance to class means.

    Examples
    --------
    >>> import numpy as np
    >>> from hotshot import CosineClassifier
    >>> model = CosineClassifier().fit([[2.0, 0.1], [0.1, 2.0]], ["east", "north"])
    >>> model.predict([[3.0, 1.0]])
    array(['east'], dtype='<U5')
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
        Power of the features; "auto" is 0.5 if no feature is negative, else 1.
    scale : float
        Factor of the similarities in the softmax.

    Attributes
    ----------
    classes_ : array (N,)
        Labels of the classes, sorted.
    support_ : array (S, V)
        Support samples as unit vectors.
    labels_ : array (S,)
        Index of the class of each support sample.

    See Also
    --------
    CosineClassifier : Cosine similarity to class means.

    References
    ----------
    .. [1] Vinyals, Blundell, Lillicrap, Kavukcuoglu, Wierstra: Matching Networks for One Shot Learning.
       NeurIPS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from hotshot import MatchingClassifier
    >>> model = MatchingClassifier().fit([[2.0, 0.1], [0.1, 2.0]], ["east", "north"])
    >>> model.predict([[3.0, 1.0]])
    array(['east'], dtype='<U5')
    """

    def _fit_units(self, units: np.ndarray, labels: np.ndarray) -> None:
        self.support_, self.labels_ = units, labels

    def _logits(self, X: np.ndarray) -> np.ndarray:
        # Relative to the largest possible similarity, so that nothing overflows; rounding may exceed it.
        votes = np.exp(self.scale * np.minimum(self._units(X) @ self.support_.T - 1, 0))
        totals = votes @ np.eye(len(self.classes_))[self.labels_]
        return np.asarray(np.log(np.maximum(totals, np.finfo(np.float64).tiny)))
