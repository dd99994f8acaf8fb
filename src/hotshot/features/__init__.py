"""Feature vectors: files of them, what is accepted, and how they are transformed before the method sees them."""

from hotshot.features.checks import check_features, check_labels
from hotshot.features.files import FeatureFile, FeatureSource, open_features, read_features, write_features
from hotshot.features.transform import FeatureTransform, choose_power, power_transform

__all__ = [
    "FeatureFile",
    "FeatureSource",
    "FeatureTransform",
    "check_features",
    "check_labels",
    "choose_power",
    "open_features",
    "power_transform",
    "read_features",
    "write_features",
]
