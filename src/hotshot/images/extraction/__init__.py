"""Features of images and texts by a trained or a pretrained network, as native feature files (extra `images`)."""

from hotshot.images.extraction.extractor import (
    MINILM,
    PRETRAINED,
    Extractor,
    checkpoint_extractor,
    load_minilm,
    pretrained_extractor,
    weights_extractor,
)
from hotshot.images.extraction.own_networks import module_extractor, onnx_extractor
from hotshot.images.extraction.writing import extract_split, extract_texts, part_of, read_texts

__all__ = [
    "MINILM", "PRETRAINED", "Extractor", "checkpoint_extractor", "extract_split", "extract_texts",
    "load_minilm", "module_extractor", "onnx_extractor", "part_of", "pretrained_extractor", "read_texts",
    "weights_extractor",
]  # fmt: skip
