"""Features of images and texts by a trained or a pretrained network, as native feature files (extra `images`)."""

from hotshot.extraction.images import Extractor, checkpoint_extractor, extract_split, weights_extractor
from hotshot.extraction.pretrained import PRETRAINED, pretrained_extractor

__all__ = [
    "PRETRAINED",
    "Extractor",
    "checkpoint_extractor",
    "extract_split",
    "pretrained_extractor",
    "weights_extractor",
]
