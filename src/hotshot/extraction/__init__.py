"""Features of images and texts by a trained or a pretrained network, as native feature files (extra `images`)."""

from hotshot.extraction.images import Extractor, checkpoint_extractor, extract_split, weights_extractor
from hotshot.extraction.pretrained import MINILM, PRETRAINED, pretrained_extractor
from hotshot.extraction.texts import extract_texts, load_minilm, read_texts

__all__ = [
    "MINILM",
    "PRETRAINED",
    "Extractor",
    "checkpoint_extractor",
    "extract_split",
    "extract_texts",
    "load_minilm",
    "pretrained_extractor",
    "read_texts",
    "weights_extractor",
]
