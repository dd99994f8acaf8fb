"""Feature files: features and labels in many formats, read without running anything that is in them."""

from hotshot.files.opening import open_features, read_features
from hotshot.files.samples import FeatureSource, Samples
from hotshot.files.writing import write_features

__all__ = ["FeatureSource", "Samples", "open_features", "read_features", "write_features"]
