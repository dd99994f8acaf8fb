"""scikit-learn classifiers: H-OT, Free-Lunch and the baselines that scikit-learn lacks."""

from hotshot.classifiers.alpha_tim import AlphaTIMClassifier
from hotshot.classifiers.baselines import CentroidClassifier, CosineClassifier, MatchingClassifier
from hotshot.classifiers.free_lunch import FreeLunchClassifier, TunedFreeLunchClassifier
from hotshot.classifiers.hot import HOTClassifier
from hotshot.classifiers.laplacian_shot import LaplacianShotClassifier
from hotshot.classifiers.named import METHOD_NAMES, METHODS_WITHOUT_BASE, named_method
from hotshot.classifiers.parameters import PARAMETER_SETS, load_parameters, parameter_set
from hotshot.classifiers.rivals import (
    DiscriminantClassifier,
    LogisticClassifier,
    SoftmaxCalibrationClassifier,
    TwoCovarianceClassifier,
)
from hotshot.classifiers.transductive import BDCSPNClassifier, PTMAPClassifier

__all__ = [
    "METHODS_WITHOUT_BASE", "METHOD_NAMES", "PARAMETER_SETS", "AlphaTIMClassifier", "BDCSPNClassifier",
    "CentroidClassifier", "CosineClassifier", "DiscriminantClassifier", "FreeLunchClassifier", "HOTClassifier",
    "LaplacianShotClassifier", "LogisticClassifier", "MatchingClassifier", "PTMAPClassifier",
    "SoftmaxCalibrationClassifier", "TunedFreeLunchClassifier", "TwoCovarianceClassifier", "load_parameters",
    "named_method", "parameter_set",
]  # fmt: skip
