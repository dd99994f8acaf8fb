"""Backbones from scratch: images of base classes in, a network for features out (extra `images`)."""

from hotshot.images.training.checkpoints import Recipe, load_backbone
from hotshot.images.training.loop import Epoch, features_of, train

__all__ = ["Epoch", "Recipe", "features_of", "load_backbone", "train"]
