"""Encoders by name: from texts or images to features. Their libraries are imported when an encoder is loaded."""

from hotshot.encoders.encoder import Encoder
from hotshot.encoders.loading import encoder_kind, load_encoder, runs_code
from hotshot.encoders.pictures import read_images, thumbnails

__all__ = ["Encoder", "encoder_kind", "load_encoder", "read_images", "runs_code", "thumbnails"]
