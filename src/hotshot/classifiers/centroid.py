"""Nearest class means: plain, centred, by cosine similarity, shifted to base classes; and matching to each sample."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import softmax

from hotshot.arrays import unit_vectors
from hotshot.bank.space import FeatureTransform
from hotshot.classifiers.classifier import AUTO, CENTRED, NUMBER, POSITIVE, SHARE, chosen, parameter
from hotshot.classifiers.rival import MeansRival, Rival, SpaceRival, means_by_class, require_samples
from hotshot.transport.costs import squared_euclidean


@dataclass(eq=False, repr=False, kw_only=True)
class CentroidClassifier(MeansRival):
    """Nearest class mean; with "centre-l2", after centring and scaling to unit norm as in SimpleShot [1]_.

    Parameters
    ----------
    base : BaseClasses or None
        Bank whose mean is subtracted; with None, the mean of the support is.
    {power}
    normalize : {"centre-l2", None}
        Subtract the mean, then scale to unit norm; None does neither.
    {include_base}

    Attributes
    ----------
    {classes_}
    centroids_ : array (N, V)
        Mean of each class, after normalisation.

    References
    ----------
    .. [1] Wang, Chao, Weinberger, van der Maaten: SimpleShot. arXiv:1911.04623, 2019.

    Examples
    --------
    >>> from hotshot import CentroidClassifier
    >>> model = CentroidClassifier().fit([[2.0, 0.1], [0.1, 2.0]], ["east", "north"])
    >>> model.predict([[3.0, 1.0]])
    array(['east'], dtype='<U5')
    """

    normalize: str | None = parameter("centre-l2", CENTRED, None)

    def _transform(self, X: np.ndarray, settings: Mapping[str, Any]) -> FeatureTransform:
        transform = super()._transform(X, settings)
        if self.normalize is None:
            return replace(transform, unit=False)
        return transform if self.base is not None else replace(transform, centre=_mean_of_powers(X, transform))

    def _base_means(self) -> np.ndarray:
        assert self.base is not None
        return means_by_class(self._placed(require_samples(self.base)), self.base.labels)

    def _learn_means(self, means: np.ndarray, shots: np.ndarray, settings: Mapping[str, Any]) -> None:
        self.centroids_ = means

    def _score(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(-squared_euclidean(z, self.centroids_))

    def _evidence(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(unit_vectors(self._placed(X)) @ unit_vectors(self.centroids_).T)


def _mean_of_powers(X: np.ndarray, transform: FeatureTransform) -> np.ndarray:
    return np.asarray(replace(transform, unit=False)(X.astype(np.float64)).mean(axis=0))


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


@dataclass(eq=False, repr=False, kw_only=True)
class SoftmaxCalibrationClassifier(SpaceRival):
    r"""Class means shifted towards the means of similar base classes, as in TEEN [1]_.

    .. math::
        c' = \alpha c + (1 - \alpha) \sum_b w_b \mu_b, \quad
        w_b = \frac{\exp(\tau \cos(c, \mu_b))}{\sum_{b'} \exp(\tau \cos(c, \mu_{b'}))}

    for the mean c of the normalised support of each class and the means :math:`\mu_b` of base classes; the logits are
    ``scale`` times :math:`\cos(z, c')`. The published constants are alpha 0.5 and tau 16, on features that are not
    centred; [2]_ applies the same shift. Without base classes nothing is shifted.

    References
    ----------
    .. [1] Wang, Zhou, Zhang, Zhan, Ye: Few-Shot Class-Incremental Learning via Training-Free Prototype Calibration.
       NeurIPS 2023, arXiv:2312.05229.
    .. [2] Goswami, Twardowski, van de Weijer: Calibrating Higher-Order Statistics for Few-Shot Class-Incremental
       Learning with Pre-trained Vision Transformers. CVPR Workshops 2024, arXiv:2404.06622.
    """

    alpha: float | str = chosen((0.7, 0.3, 0.5, 0.9), SHARE)
    tau: float | str = chosen((8.0, 4.0, 16.0, 32.0), POSITIVE)
    scale: float = parameter(10.0, POSITIVE)

    def _learn_means(self, means: np.ndarray, shots: np.ndarray, settings: Mapping[str, Any]) -> None:
        if self.base is not None:
            lenders, share = self._base_means(), settings["alpha"]
            lent = softmax(settings["tau"] * unit_vectors(means) @ unit_vectors(lenders).T, axis=1) @ lenders
            means = np.where(self.new_classes[:, None], share * means + (1 - share) * lent, means)
        self.directions_ = unit_vectors(means)

    def _score(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * z @ self.directions_.T)
