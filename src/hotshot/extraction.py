"""Public names of `hotshot.images.extraction` and `hotshot.encoders`, under the path that README and docs use."""

from hotshot.encoders.modules import module_extractor
from hotshot.encoders.texts import load_minilm
from hotshot.images.extraction import (
    MINILM,
    PRETRAINED,
    Extractor,
    checkpoint_extractor,
    extract_split,
    extract_texts,
    onnx_extractor,
    part_of,
    pretrained_extractor,
    weights_extractor,
)

__all__ = [
    "MINILM", "PRETRAINED", "Extractor", "checkpoint_extractor", "extract_split", "extract_texts",
    "load_minilm", "module_extractor", "onnx_extractor", "part_of", "pretrained_extractor",
    "weights_extractor",
]  # fmt: skip
