"""From raw inputs to answers: texts, images or features in, classes out."""

from hotshot.inputs.classifier import InputClassifier

__all__ = ["InputClassifier"]
