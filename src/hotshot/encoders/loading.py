"""Encoders by name."""

from hotshot.encoders.encoder import IMAGES, TEXTS, Encoder, image_encoder
from hotshot.errors import ParameterError
from hotshot.formatting import did_you_mean

MINILM, EFFICIENTNET = "minilm", "efficientnet-lite0"
NAMES = (MINILM, EFFICIENTNET)


def encoder_kind(name: str) -> str:
    """Whether the encoder of this name takes "texts" or "images"."""
    return TEXTS if name == MINILM else IMAGES


def load_encoder(name: str, device: str = "cpu") -> Encoder:
    """The encoder of this name, ready to encode on a PyTorch device."""
    if name == MINILM:
        from hotshot.encoders.texts import minilm

        return minilm(device)
    if name == EFFICIENTNET:
        from hotshot.images.extraction import pretrained_extractor

        return image_encoder(name, pretrained_extractor(name, device), device)
    raise ParameterError(f"encoder must be one of {', '.join(NAMES)}, got {name!r:.80}.{did_you_mean(name, NAMES)}")
