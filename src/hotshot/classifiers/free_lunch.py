"""Free-Lunch, the method H-OT builds on, as a scikit-learn classifier."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hotshot.bank import BaseClasses, Space
from hotshot.classifiers.calibrated import CalibratedClassifier
from hotshot.classifiers.classifier import (
    AUTO,
    CENTRED,
    COUNT,
    NOT_NEGATIVE,
    NUMBER,
    POSITIVE,
    POWERS,
    StrOptions,
    chosen,
    parameter,
)
from hotshot.classifiers.hot import AXES, HOTClassifier, published
from hotshot.method.calibration import ALPHA_RULES
from hotshot.method.heads import HEADS
from hotshot.method.transfer import NEAREST


@dataclass(eq=False, repr=False, kw_only=True)
class FreeLunchClassifier(CalibratedClassifier):
    r"""Distribution calibration from the two nearest base classes with equal weights, as published in [1]_.

    Each support sample borrows :math:`\mu' = (\sum_{i} \mu_i + x) / (k + 1)` and
    :math:`\Sigma' = \sum_i \Sigma_i / k + \alpha` from the k base classes with the nearest means (eq. 3 of the H-OT
    paper), and logistic regression is fitted to features drawn from these Gaussians. The published alpha and C depend
    on the scale of the features; ``normalize="centre-l2"`` with ``alpha=0`` does not.

    Parameters
    ----------
    base : BaseClasses or None
        Bank to borrow from. With None, plain logistic regression on power-transformed features.
    k : int or "auto"
        Number of base classes that lend to a support sample.
    alpha : float or "auto"
        Number added to the calibrated covariances. The choices of "auto" are for normalised features.
    power, normalize, n_components, alpha_rule, head, n_generated, support_weight, C, random_state
        As in ``HOTClassifier``, with the published values as defaults. Base features are transformed only if features
        are normalised.

    Notes
    -----
    Its attributes are those of ``HOTClassifier``; ``learned_cost_`` (B, targets) are squared distances to the means.

    References
    ----------
    .. [1] Yang, Liu, Xu: Free Lunch for Few-shot Learning: Distribution Calibration. ICLR 2021.
    """

    base: BaseClasses | None = parameter(None)
    k: int | str = parameter(2, COUNT, AUTO)
    power: float | str = parameter("auto", NUMBER, AUTO)
    normalize: str | None = published("normalize", CENTRED, None)
    n_components: float | int | None = published("n_components", *AXES)
    alpha: float | str = published("alpha", NOT_NEGATIVE, AUTO)
    alpha_rule: str = published("alpha_rule", StrOptions(set(ALPHA_RULES)))
    head: str = published("head", HEADS)
    n_generated: int = published("n_generated", COUNT, AUTO)
    support_weight: float = published("support_weight", NOT_NEGATIVE, AUTO)
    C: float = published("C", POSITIVE)
    random_state: Any = parameter(None, "random_state")

    _choices: ClassVar[Mapping[str, Sequence[Any]]] = {"k": (4, 2, 8), "alpha": (0.002, 0.0, 0.01)}

    def _as_hot(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        same = {name: value for name, value in settings.items() if name != "k"}
        different = {
            "power_on_base": settings["normalize"] is not None,
            "cost": NEAREST,
            "n_retrieved": settings["k"],
            "mean_rule": "free-lunch",
            "per": "sample",
        }
        parameters: dict[str, Any] = HOTClassifier(**same, **different).get_params(deep=False)
        return parameters


@dataclass(eq=False, repr=False, kw_only=True)
class TunedFreeLunchClassifier(CalibratedClassifier):
    """Free-Lunch on normalised features, with settings chosen on the base classes and a head without sampling.

    Further differences from ``FreeLunchClassifier``: alpha is added to the diagonal, a class has 100 virtual features,
    and a support sample counts as 5 of them.
    """

    base: BaseClasses | None = parameter(None)
    k: int | str = chosen((4, 2, 8), COUNT)
    alpha: float | str = chosen((0.002, 0.0, 0.01), NOT_NEGATIVE)
    power: float | str = chosen(POWERS, NUMBER)

    head, C, random_state = "bound", 1.0, None

    def _as_hot(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        same = FreeLunchClassifier(
            **settings, normalize=Space.normalize, n_components=Space.n_components, alpha_rule="diagonal",
            head=self.head, n_generated=100, support_weight=5.0, C=self.C,
        )  # fmt: skip
        return same._as_hot(same.get_params(deep=False))
