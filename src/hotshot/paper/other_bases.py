"""Base classes that are not the dataset's own: those of another one, or a stand-in for them."""

from __future__ import annotations

import numpy as np

from hotshot.base import BaseClasses
from hotshot.errors import ParameterError
from hotshot.paper.setting import FeatureSet, Setting
from hotshot.transport.costs import cosine

NEARER, FARTHER = "the nearer half", "the farther half"


def other_bases(setting: Setting) -> tuple[dict[str, BaseClasses], list[str]]:
    """Banks of the other feature sets by name, or else the two halves of the dataset's own, and words on the choice.

    Feature sets that do not fit are left out. There is no bank where a bank cannot be halved: it needs two classes
    and their samples.
    """
    own = setting.features
    banks, sentences = {}, []
    for other in setting.others:
        reason = _unfit(other, own)
        if reason:
            sentences.append(f"{other.name} was left out: {reason}.")
        else:
            banks[other.title] = other.base
    if not banks and own.base.samples is not None and len(own.base.names) > 1:
        banks = dict(zip((NEARER, FARTHER), halves(own), strict=True))
        sentences.append(
            "There is no other dataset from the same extractor (--other adds one). Instead, the base classes are split "
            "into the half most like the novel classes and the half least like them."
        )
    return banks, sentences


def halves(features: FeatureSet) -> tuple[BaseClasses, BaseClasses]:
    """The base classes more and less like the novel ones, by the mean cosine between centred class means."""
    base = features.base
    centre = base.centre(1.0)
    novel = np.stack([features.X[features.y == name].mean(axis=0) for name in np.unique(features.y)])
    distance = cosine(base.means - centre, novel - centre).mean(axis=1)
    order = np.argsort(distance, kind="stable")
    middle = (len(order) + 1) // 2
    return only(base, order[:middle]), only(base, order[middle:])


def only(base: BaseClasses, classes: np.ndarray) -> BaseClasses:
    """A bank of some of the classes."""
    if base.samples is None:
        raise ParameterError("A bank without samples cannot be divided: give another dataset with --other.")
    rows = np.isin(base.labels, classes)
    return BaseClasses.from_samples(base.samples[rows], base.names[base.labels[rows]])


def _unfit(other: FeatureSet, own: FeatureSet) -> str:
    """Why base classes of `other` cannot lend to the novel classes of `own`; empty where they can."""
    if other.base.n_features != own.base.n_features:
        return f"its features have {other.base.n_features} entries, those of {own.name} {own.base.n_features}"
    if other.backbone and own.backbone and other.backbone != own.backbone:
        return f"its features come from {other.backbone}, those of {own.name} from {own.backbone}"
    return ""
