"""Feature vectors: what is accepted, and how they are transformed before the method sees them."""

from hotshot.features.checks import check_features, check_labels
from hotshot.features.files import read_features
from hotshot.features.transform import FeatureTransform, choose_power, power_transform

__all__ = [
    "FeatureTransform",
    "check_features",
    "check_labels",
    "choose_power",
    "power_transform",
    "read_features",
]
