"""Encoders by name: from texts or images to features. Their libraries are imported when an encoder is loaded."""

from hotshot.encoders.encoder import Encoder
from hotshot.encoders.extraction import Extraction, extract
from hotshot.encoders.loading import encoder_kind, load_encoder, runs_code
from hotshot.encoders.own import module_encoder
from hotshot.images.decode import read_images, thumbnails

__all__ = [
    "Encoder", "Extraction", "encoder_kind", "extract", "load_encoder", "module_encoder", "read_images", "runs_code",
    "thumbnails",
]  # fmt: skip
