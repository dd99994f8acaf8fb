"""A user's function as an encoder: from a list of str, or from uint8 images, to an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hotshot.encoders.encoder import IMAGES, TEXTS, Encoder, image_encoder, text_encoder
from hotshot.errors import ParameterError
from hotshot.user_code import required_arguments, short_name


def is_function(found: Any) -> bool:
    """Whether a named object is a function of the inputs, not a network or a factory of one."""
    return callable(found) and (
        hasattr(found, "kind") or (not isinstance(found, type) and len(required_arguments(found)) == 1)
    )


def function_kind(found: Any, name: str) -> str:
    """The kind of inputs of a named object: its attribute `kind`, by default images."""
    kind = getattr(found, "kind", IMAGES)
    if kind not in (TEXTS, IMAGES):
        raise ParameterError(f"{name}.kind must be 'texts' or 'images', got {kind!r:.40}: fix it.")
    return str(kind)


def text_function(name: str, full: str, found: Callable[[list[str]], Any]) -> Encoder:
    """The encoder of a function from a list of str to an array (texts, V)."""
    return text_encoder(full, short_name(name), found)


def image_function(name: str, full: str, found: Callable[[np.ndarray], Any], size: int, device: str) -> Encoder:
    """The encoder of a function from images in uint8 (n, size, size, 3) to an array (n, V)."""
    import torch

    from hotshot.images.extraction import Extractor, side_of, tried

    side_of(size)

    def network(pixels: torch.Tensor) -> torch.Tensor:
        images = pixels.permute(0, 2, 3, 1).cpu().numpy()
        return torch.from_numpy(np.array(found(images), dtype=np.float32))

    extractor = Extractor(short_name(name), network, lambda pixels: pixels, size, {"size": size})
    return image_encoder(full, tried(extractor, "cpu"), device)
