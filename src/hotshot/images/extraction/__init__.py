"""Features of images and texts by a trained or a pretrained network, as native feature files (extra `images`)."""

from hotshot.images.extraction.backbones import checkpoint_extractor, weights_extractor
from hotshot.images.extraction.extractor import Extractor
from hotshot.images.extraction.images import extract_split
from hotshot.images.extraction.modules import module_extractor
from hotshot.images.extraction.onnx_files import onnx_extractor
from hotshot.images.extraction.pretrained import MINILM, PRETRAINED, pretrained_extractor
from hotshot.images.extraction.texts import extract_texts, load_minilm, read_texts

__all__ = [
    "MINILM",
    "PRETRAINED",
    "Extractor",
    "checkpoint_extractor",
    "extract_split",
    "extract_texts",
    "load_minilm",
    "module_extractor",
    "onnx_extractor",
    "pretrained_extractor",
    "read_texts",
    "weights_extractor",
]
