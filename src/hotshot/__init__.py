"""Few-shot classification by hierarchical optimal transport, on features from any extractor."""

from hotshot.base import BaseClasses
from hotshot.estimators import (
    CentroidClassifier,
    CosineClassifier,
    FreeLunchClassifier,
    HOTClassifier,
    MatchingClassifier,
    load_parameters,
    named_method,
    parameter_set,
)
from hotshot.evaluation import evaluate, tune
from hotshot.evaluation.tasks import freeze_tasks
from hotshot.files import read_features
from hotshot.version import __version__

__all__ = [
    "BaseClasses", "CentroidClassifier", "CosineClassifier", "FreeLunchClassifier", "HOTClassifier",
    "MatchingClassifier", "__version__", "evaluate", "freeze_tasks", "load_parameters", "named_method",
    "parameter_set", "read_features", "tune",
]  # fmt: skip
