"""scikit-learn classifiers: H-OT, Free-Lunch and the baselines that scikit-learn lacks."""

from hotshot.estimators.baselines import CentroidClassifier, CosineClassifier, MatchingClassifier
from hotshot.estimators.free_lunch import FreeLunchClassifier
from hotshot.estimators.hot import HOTClassifier
from hotshot.estimators.named import METHOD_NAMES, METHODS_WITHOUT_BASE, named_method
from hotshot.estimators.parameters import PARAMETER_SETS, load_parameters, parameter_set

__all__ = [
    "METHODS_WITHOUT_BASE", "METHOD_NAMES", "PARAMETER_SETS", "CentroidClassifier", "CosineClassifier",
    "FreeLunchClassifier", "HOTClassifier", "MatchingClassifier", "load_parameters", "named_method",
    "parameter_set",
]  # fmt: skip
