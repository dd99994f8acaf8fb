"""Augmentation of a batch of images, on tensors: crop, flip, colour."""

from collections.abc import Sequence

import torch
from torch import Tensor

# Of ImageNet's pixels in [0, 1], as all published checkpoints have them.
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# How much brightness, contrast and saturation may be scaled, up or down.
COLOUR = 0.4
_GREY = (0.299, 0.587, 0.114)


def augment(images: Tensor, size: int, generator: torch.Generator, *, flip: bool = True) -> Tensor:
    """Training images (batch, 3, size, size), normalised, from pixels (batch, 3, at least size, …) in uint8.

    Each image gets its own crop, is mirrored or not, and its brightness, contrast and saturation are scaled.
    """
    images = _random_crop(images, size, generator)
    if flip:
        flipped = torch.rand(len(images), generator=generator).to(images.device) < 0.5
        images = torch.where(flipped[:, None, None, None], images.flip(3), images)
    return normalise(_colour(images.float() / 255, generator))


def as_input(images: Tensor, size: int, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION) -> Tensor:
    """Images for validation and extraction: the centre (batch, 3, size, size) of the pixels, normalised."""
    top, left = ((side - size) // 2 for side in images.shape[2:])
    middle = images[:, :, top : top + size, left : left + size]
    return normalise(middle.float() / 255, mean, deviation)


def normalise(images: Tensor, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION) -> Tensor:
    """Pixels in [0, 1], normalised with a mean and deviation, by default those of ImageNet."""
    middle, scale = (
        torch.tensor(x, dtype=torch.float32, device=images.device)[:, None, None] for x in (mean, deviation)
    )
    return (images - middle) / scale


def _random_crop(images: Tensor, size: int, generator: torch.Generator) -> Tensor:
    batch, _, height, width = images.shape
    top = torch.randint(height - size + 1, (batch,), generator=generator)
    left = torch.randint(width - size + 1, (batch,), generator=generator)
    rows = (top[:, None] + torch.arange(size)).to(images.device)
    columns = (left[:, None] + torch.arange(size)).to(images.device)
    which = torch.arange(batch, device=images.device)
    return images.permute(0, 2, 3, 1)[which[:, None, None], rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def _colour(images: Tensor, generator: torch.Generator) -> Tensor:
    factors = 1 + COLOUR * (2 * torch.rand(3, len(images), 1, 1, 1, generator=generator) - 1)
    brightness, contrast, saturation = factors.to(images.device)
    images = images * brightness
    grey = torch.tensor(_GREY, device=images.device)[:, None, None]
    light = (images * grey).sum(dim=1, keepdim=True)
    images = light.mean(dim=(2, 3), keepdim=True) * (1 - contrast) + images * contrast
    light = (images * grey).sum(dim=1, keepdim=True)
    return (light * (1 - saturation) + images * saturation).clamp(0, 1)
