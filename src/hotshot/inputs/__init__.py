"""From texts, images or features to classes."""

from hotshot.inputs.classifier import InputClassifier
from hotshot.inputs.inputs import Columns

__all__ = ["Columns", "InputClassifier"]
