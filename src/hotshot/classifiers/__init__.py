"""scikit-learn classifiers: H-OT, Free-Lunch and the baselines that scikit-learn lacks."""

from hotshot.classifiers.centroid import (
    CentroidClassifier,
    CosineClassifier,
    MatchingClassifier,
    SoftmaxCalibrationClassifier,
)
from hotshot.classifiers.discriminant import DiscriminantClassifier, TwoCovarianceClassifier
from hotshot.classifiers.free_lunch import FreeLunchClassifier, TunedFreeLunchClassifier
from hotshot.classifiers.hot import PARAMETER_SETS, HOTClassifier, load_parameters, parameter_set
from hotshot.classifiers.logistic import LogisticClassifier
from hotshot.classifiers.named import METHOD_NAMES, METHODS_WITHOUT_BASE, named_method
from hotshot.classifiers.transductive import (
    AlphaTIMClassifier,
    BDCSPNClassifier,
    LaplacianShotClassifier,
    PTMAPClassifier,
)

__all__ = [
    "METHODS_WITHOUT_BASE", "METHOD_NAMES", "PARAMETER_SETS", "AlphaTIMClassifier", "BDCSPNClassifier",
    "CentroidClassifier", "CosineClassifier", "DiscriminantClassifier", "FreeLunchClassifier", "HOTClassifier",
    "LaplacianShotClassifier", "LogisticClassifier", "MatchingClassifier", "PTMAPClassifier",
    "SoftmaxCalibrationClassifier", "TunedFreeLunchClassifier", "TwoCovarianceClassifier", "load_parameters",
    "named_method", "parameter_set",
]  # fmt: skip
