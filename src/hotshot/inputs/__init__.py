"""From texts, images or features to classes."""

from hotshot.inputs.classifier import InputClassifier
from hotshot.inputs.rows import Columns

__all__ = ["Columns", "InputClassifier"]
