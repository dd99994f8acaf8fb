"""Classifiers by cosine similarity: to class means, or to every support sample."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.arrays import unit_vectors
from hotshot.classifiers.classifier import AUTO, NUMBER, POSITIVE, FewShotClassifier, parameter
from hotshot.classifiers.rival import means_by_class, plain_transform


@dataclass(eq=False, repr=False, kw_only=True)
class CosineClassifier(FewShotClassifier):
    """Largest cosine similarity to a class mean, times a scale that sharpens the probabilities.

    Parameters
    ----------
    power : float or "auto"
        Power of the features; "auto" is 0.5 if no feature is negative, else 1.
    {scale}

    Attributes
    ----------
    {classes_}
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

    power: float | str = parameter("auto", NUMBER, AUTO)
    scale: float = parameter(10.0, POSITIVE)

    def _fit(self, X: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        self.power_ = float(settings["power"])
        self.directions_ = unit_vectors(means_by_class(self._placed(X), labels))

    def _placed(self, X: np.ndarray) -> np.ndarray:
        """Samples as unit vectors."""
        return np.asarray(plain_transform(self.power_)(X.astype(np.float64)))

    def _logits(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * self._placed(X) @ self.directions_.T)


class MatchingClassifier(CosineClassifier):
    """Soft nearest neighbour: every support sample votes by the softmax of its cosine similarity [1]_.

    Parameters
    ----------
    power : float or "auto"
        Power of the features; "auto" is 0.5 if no feature is negative, else 1.
    scale : float
        Factor of the similarities in the softmax.

    Attributes
    ----------
    {classes_}
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

    def _fit(self, X: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        self.power_ = float(settings["power"])
        self.support_, self.labels_ = self._placed(X), labels

    def _logits(self, X: np.ndarray) -> np.ndarray:
        # Relative to the largest possible similarity, so that nothing overflows; rounding may exceed it.
        votes = np.exp(self.scale * np.minimum(self._placed(X) @ self.support_.T - 1, 0))
        totals = votes @ np.eye(len(self.classes_))[self.labels_]
        return np.asarray(np.log(np.maximum(totals, np.finfo(np.float64).tiny)))
