"""scikit-learn classifiers: H-OT, Free-Lunch and the baselines that scikit-learn lacks."""

from hotshot.estimators.alpha_tim import AlphaTIMClassifier
from hotshot.estimators.baselines import CentroidClassifier, CosineClassifier, MatchingClassifier
from hotshot.estimators.free_lunch import FreeLunchClassifier, TunedFreeLunchClassifier
from hotshot.estimators.hot import HOTClassifier
from hotshot.estimators.laplacian_shot import LaplacianShotClassifier
from hotshot.estimators.named import METHOD_NAMES, METHODS_WITHOUT_BASE, named_method
from hotshot.estimators.parameters import PARAMETER_SETS, load_parameters, parameter_set
from hotshot.estimators.rivals import (
    DiscriminantClassifier,
    LogisticClassifier,
    SoftmaxCalibrationClassifier,
    TwoCovarianceClassifier,
)
from hotshot.estimators.transductive import BDCSPNClassifier, PTMAPClassifier

__all__ = [
    "METHODS_WITHOUT_BASE", "METHOD_NAMES", "PARAMETER_SETS", "AlphaTIMClassifier", "BDCSPNClassifier",
    "CentroidClassifier", "CosineClassifier", "DiscriminantClassifier", "FreeLunchClassifier", "HOTClassifier",
    "LaplacianShotClassifier", "LogisticClassifier", "MatchingClassifier", "PTMAPClassifier",
    "SoftmaxCalibrationClassifier", "TunedFreeLunchClassifier", "TwoCovarianceClassifier", "load_parameters",
    "named_method", "parameter_set",
]  # fmt: skip
