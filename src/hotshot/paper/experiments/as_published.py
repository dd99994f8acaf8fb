"""H-OT with the parameters of its authors' program."""

from __future__ import annotations

from typing import Any

from hotshot.estimators import HOTClassifier, parameter_set
from hotshot.paper.experiments.published import published_power
from hotshot.paper.experiments.setting import FeatureSet


def as_published(features: FeatureSet, **changes: Any) -> HOTClassifier:
    """The authors' set with the power that the paper took for the dataset; 0.5 where it has none.

    Features with negative entries have no such power and stay as they are.
    """
    power = features.base.power("auto")
    if power != 1:
        power = published_power(features.name) or power
    return HOTClassifier(features.base, **parameter_set("authors", power=power, **changes))
