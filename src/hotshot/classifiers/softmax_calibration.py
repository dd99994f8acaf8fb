"""Class means shifted towards the means of similar base classes, as in TEEN."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from hotshot.arrays import unit_vectors
from hotshot.classifiers.classifier import POSITIVE, SHARE, chosen, parameter
from hotshot.classifiers.rival import SpaceRival


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
