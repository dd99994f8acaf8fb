"""Classifiers by cosine similarity: to class means, or to every support sample."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotshot.arrays import unit_vectors
from hotshot.classifiers.classifier import AUTO, NUMBER, POSITIVE, parameter
from hotshot.classifiers.rival import Rival, means_by_class


@dataclass(eq=False, repr=False, kw_only=True)
class CosineClassifier(Rival):
    """Largest cosine similarity to a class mean, times a scale that sharpens the probabilities.

    Parameters
    ----------
    {power}
    {scale}

    Attributes
    ----------
    {classes_}
    directions_ : array (N, V)
        Direction of each class mean, as a unit vector.

    Examples
    --------
    >>> from hotshot import CosineClassifier
    >>> model = CosineClassifier().fit([[2.0, 0.1], [0.1, 2.0]], ["east", "north"])
    >>> model.predict([[3.0, 1.0]])
    array(['east'], dtype='<U5')
    """

    power: float | str = parameter("auto", NUMBER, AUTO)
    scale: float = parameter(10.0, POSITIVE)

    def _learn_z(self, z: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        self.directions_ = unit_vectors(means_by_class(z, labels))

    def _score(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * z @ self.directions_.T)


class MatchingClassifier(CosineClassifier):
    """Soft nearest neighbour: every support sample votes by the softmax of its cosine similarity [1]_.

    Parameters
    ----------
    {power}
    {scale}

    References
    ----------
    .. [1] Vinyals, Blundell, Lillicrap, Kavukcuoglu, Wierstra: Matching Networks for One Shot Learning.
       NeurIPS 2016.
    """

    def _learn_z(self, z: np.ndarray, labels: np.ndarray, settings: Mapping[str, Any]) -> None:
        self.support_, self.labels_ = z, labels

    def _score(self, z: np.ndarray) -> np.ndarray:
        # Relative to the largest possible similarity, so that nothing overflows; rounding may exceed it.
        votes = np.exp(self.scale * np.minimum(z @ self.support_.T - 1, 0))
        totals = votes @ np.eye(len(self.classes_))[self.labels_]
        return np.asarray(np.log(np.maximum(totals, np.finfo(np.float64).tiny)))
