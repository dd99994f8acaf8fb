"""Encoders by name: from texts or images to features. Their libraries are imported when an encoder is loaded."""

import os

from hotshot.encoders.encoder import Encoder
from hotshot.encoders.extraction import Extraction, extract
from hotshot.encoders.loading import encoder_kind, load_encoder, runs_code
from hotshot.encoders.own import module_encoder
from hotshot.images.decode import read_images, thumbnails

# OpenMP looks once, when PyTorch is imported. By default its threads spin while they wait for each other, and where
# another process wants one of the cores, most of the time goes to that.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

__all__ = [
    "Encoder", "Extraction", "encoder_kind", "extract", "load_encoder", "module_encoder", "read_images", "runs_code",
    "thumbnails",
]  # fmt: skip
