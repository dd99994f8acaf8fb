"""Few-shot classification by hierarchical optimal transport, on features from any extractor."""

from hotshot.base import BaseClasses
from hotshot.estimators import (
    CentroidClassifier,
    CosineClassifier,
    FreeLunchClassifier,
    HOTClassifier,
    MatchingClassifier,
    named_method,
    parameter_set,
)
from hotshot.evaluation import evaluate
from hotshot.version import __version__

__all__ = [
    "BaseClasses",
    "CentroidClassifier",
    "CosineClassifier",
    "FreeLunchClassifier",
    "HOTClassifier",
    "MatchingClassifier",
    "__version__",
    "evaluate",
    "named_method",
    "parameter_set",
]
