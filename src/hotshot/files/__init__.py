"""Feature files: features and labels in many formats, read without running anything that is in them."""

from hotshot.files.kept import Kept
from hotshot.files.reading import FeatureFile, open_features, read_features
from hotshot.files.source import FeatureSource
from hotshot.files.writing import write_features

__all__ = ["FeatureFile", "FeatureSource", "Kept", "open_features", "read_features", "write_features"]
