"""Public names for feature files and checks, from ``hotshot.files``, ``hotshot.arrays`` and ``hotshot.bank``."""

from hotshot.arrays import check_features
from hotshot.bank.space import FeatureTransform, choose_power, power_transform
from hotshot.files import FeatureFile, FeatureSource, Kept, open_features, read_features, write_features
from hotshot.labels import check_labels

__all__ = [
    "FeatureFile", "FeatureSource", "FeatureTransform", "Kept", "check_features", "check_labels", "choose_power",
    "open_features", "power_transform", "read_features", "write_features",
]  # fmt: skip
