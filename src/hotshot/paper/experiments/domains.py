"""Base classes that are not the dataset's own: those of another one, or a stand-in for them."""

from __future__ import annotations

import numpy as np

from hotshot.base import BaseClasses
from hotshot.errors import ParameterError
from hotshot.paper.experiments.setting import FeatureSet, Setting
from hotshot.transport.costs import cosine

NEARER, FARTHER = "the nearer half", "the farther half"


def fitting_others(setting: Setting) -> tuple[list[FeatureSet], list[str]]:
    """The other feature sets whose base classes can lend to the novel classes, and why the rest cannot."""
    own = setting.features
    reasons = {i: _unfit(other, own) for i, other in enumerate(setting.others)}
    return (
        [other for i, other in enumerate(setting.others) if not reasons[i]],
        [f"{other.name} was left out: {reasons[i]}." for i, other in enumerate(setting.others) if reasons[i]],
    )


def halves(features: FeatureSet) -> tuple[BaseClasses, BaseClasses]:
    """The base classes more and less like the novel ones, by the mean cosine between centred class means."""
    base = features.base
    if len(base.names) < 2:
        raise ParameterError("One base class cannot be halved: give another dataset with --other.")
    centre = base.centre(1.0)
    novel = np.stack([features.X[features.y == name].mean(axis=0) for name in np.unique(features.y)])
    distance = cosine(base.means - centre, novel - centre).mean(axis=1)
    order = np.argsort(distance, kind="stable")
    middle = (len(order) + 1) // 2
    return only(base, order[:middle]), only(base, order[middle:])


def only(base: BaseClasses, classes: np.ndarray) -> BaseClasses:
    """A bank of some of the classes."""
    if base.samples is None:
        raise ParameterError("A bank without samples cannot be halved: give another dataset with --other.")
    rows = np.isin(base.labels, classes)
    return BaseClasses.from_samples(base.samples[rows], base.names[base.labels[rows]])


def _unfit(other: FeatureSet, own: FeatureSet) -> str:
    """Why base classes of `other` cannot lend to the novel classes of `own`; empty where they can."""
    if other.base.n_features != own.base.n_features:
        return f"its features have {other.base.n_features} entries, those of {own.name} {own.base.n_features}"
    if other.backbone and own.backbone and other.backbone != own.backbone:
        return f"its features come from {other.backbone}, those of {own.name} from {own.backbone}"
    return ""
