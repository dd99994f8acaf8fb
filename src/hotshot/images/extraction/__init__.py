"""Extract features of images or texts with a network, as native feature files."""

from hotshot.images.extraction.extractor import (
    MINILM,
    PRETRAINED,
    Extractor,
    check_normalisation,
    checkpoint_extractor,
    pretrained_extractor,
    side_of,
    tried,
    weights_extractor,
)
from hotshot.images.extraction.onnx_networks import onnx_extractor
from hotshot.images.extraction.writing import extract_split, extract_texts, part_of

__all__ = [
    "MINILM", "PRETRAINED", "Extractor", "check_normalisation", "checkpoint_extractor", "extract_split",
    "extract_texts", "onnx_extractor", "part_of", "pretrained_extractor", "side_of", "tried",
    "weights_extractor",
]  # fmt: skip
