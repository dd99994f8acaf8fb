"""A network is tried on made-up images before it is trusted with all of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from hotshot.errors import InputError, ParameterError
from hotshot.images.extraction.extractor import Extractor
from hotshot.images.training.recipe import MARGIN

# Side of an input in pixels, beyond which a number is a mistake, or the file that says it is damaged.
LARGEST = 4096


def side_of(size: int) -> int:
    """Side of the decoded images whose middle is the input, as in training."""
    if not 1 <= size <= LARGEST:
        raise ParameterError(f"size must be from 1 to {LARGEST}, got {size}.")
    return round(size * (1 + MARGIN))


def checked(name: str, network: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    """`network` with its maps averaged; what it raises, and outputs that are no features, in one sentence."""

    def features(inputs: Tensor) -> Tensor:
        shape = tuple(inputs.shape)
        try:
            output = network(inputs)
        except Exception as error:
            raise InputError(
                f"{name} fails on images {shape} ({reason(error)}): give the size it is made for, or correct it."
            ) from None
        if isinstance(output, Tensor) and output.is_floating_point() and output.numel():
            found = output.mean(dim=(2, 3)) if output.ndim == 4 else output
            if found.ndim == 2 and len(found) == len(inputs):
                return found
        got = f"{output.dtype} {tuple(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
        raise InputError(
            f"{name} must give features (batch, V) or maps (batch, V, h, w) of floating point and gave {got} for "
            f"images {shape}: wrap it in a network that does."
        )

    return features


def tried(extractor: Extractor, device: str) -> Extractor:
    """`extractor` after it has taken two made-up images and one, with a fingerprint of their features.

    An interrupted extraction goes on only where the fingerprint is the same: nothing else tells that the code and
    the weights of a network that anyone may change are still those it began with.
    """
    generator = torch.Generator().manual_seed(0)
    side = extractor.size
    pixels = torch.randint(256, (2, 3, side, side), dtype=torch.uint8, generator=generator).to(device)
    with torch.no_grad():
        inputs = extractor.prepare(pixels)
        features = extractor.network(inputs).float().cpu().contiguous()
        # The last batch of a dataset may be a single image, which a careless squeeze takes the axis of.
        extractor.network(inputs[:1])
    digest = hashlib.sha256(features.numpy().data).hexdigest()
    return replace(extractor, about={**extractor.about, "fingerprint": f"sha256:{digest}"})


def reason(error: BaseException) -> str:
    """What an error of somebody else's says, on one line and not at length."""
    text = " ".join(str(error).split())[:160].rstrip(". ")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
