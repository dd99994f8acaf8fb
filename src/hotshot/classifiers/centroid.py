"""Nearest class mean."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.arrays import unit_vectors
from hotshot.classifiers.parameters import CENTRED, parameter
from hotshot.classifiers.rival import JoinableRival, means_by_class, plain_transform, require_samples
from hotshot.transport.costs import squared_euclidean


@dataclass(eq=False, repr=False, kw_only=True)
class CentroidClassifier(JoinableRival):
    """Nearest class mean; with "centre-l2", after centring and scaling to unit norm as in SimpleShot [1]_.

    Parameters
    ----------
    base : BaseClasses or None
        Bank whose mean is subtracted; with None, the mean of the support is.
    {power}
    normalize : {"centre-l2", None}
        Subtract the mean, then scale to unit norm; None does neither.
    include_base : bool
        Whether to predict base classes too, by the means of their samples.

    Attributes
    ----------
    {classes_}
    is_new_ : array (N,) or None
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

    normalize: str | None = parameter("centre-l2", CENTRED, None)

    def _fit(self, X: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        self._set_transform(X, settings)
        if self.base is None and self.normalize is not None:
            self.centre_ = plain_transform(self.power_, unit=False)(X).mean(axis=0)
        self.centroids_ = means_by_class(self._placed(X), labels)
        if self.include_base and self.base is not None:
            old = means_by_class(self._placed(require_samples(self.base)), self.base.labels)
            self.centroids_ = np.concatenate([old, self.centroids_])[self._join_base()]

    def _placed(self, X: np.ndarray) -> np.ndarray:
        transform = plain_transform(self.power_, self.centre_, unit=self.normalize is not None)
        return np.asarray(transform(X.astype(np.float64)))

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(-squared_euclidean(self._placed(X), self.centroids_))

    def _evidence(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(unit_vectors(self._placed(X)) @ unit_vectors(self.centroids_).T)
