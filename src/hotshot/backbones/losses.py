"""A batch while training: its augmented images, and the losses of classes, manifold mixup and rotations (S2M2)."""

import random
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from hotshot.backbones.checkpoints import Recipe
from hotshot.backbones.networks import normalise

# How much brightness, contrast and saturation may be scaled, up or down.
COLOUR = 0.4
_GREY = (0.299, 0.587, 0.114)
ROTATIONS = 4
# The loss of logits (batch, classes) for labels.
Loss = Callable[[Tensor, Tensor], Tensor]


def augment(images: Tensor, size: int, generator: torch.Generator, *, flip: bool = True) -> Tensor:
    """Training images (batch, 3, size, size), normalised, from pixels (batch, 3, at least size, …) in uint8.

    Each image gets its own crop, is mirrored or not, and its brightness, contrast and saturation are scaled.
    """
    images = _random_crop(images, size, generator)
    if flip:
        flipped = torch.rand(len(images), generator=generator).to(images.device) < 0.5
        images = torch.where(flipped[:, None, None, None], images.flip(3), images)
    return normalise(_colour(images.float() / 255, generator))


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
    grey = torch.tensor(_GREY, device=images.device)[:, None, None]

    def light(of: Tensor) -> Tensor:
        return (of * grey).sum(dim=1, keepdim=True)

    images = images * brightness
    images = light(images).mean(dim=(2, 3), keepdim=True) * (1 - contrast) + images * contrast
    return (light(images) * (1 - saturation) + images * saturation).clamp(0, 1)


def batch_loss(
    recipe: Recipe, modules: dict[str, nn.Module], images: Tensor, labels: Tensor, rng: random.Random
) -> tuple[Tensor, int]:
    """Loss of a batch, and the number of correctly classified images; none with mixup."""
    network, classifier = modules["backbone"], modules["classifier"]
    loss_of = nn.CrossEntropyLoss(label_smoothing=recipe.label_smoothing)
    if recipe.mixup > 0:
        # A share from Beta(strength, strength), partners, and a point.
        share = rng.betavariate(recipe.mixup, recipe.mixup)
        partner = torch.tensor(rng.sample(range(len(images)), len(images)), device=images.device)
        point = rng.randrange(len(mixing_points(network)) + 1)
        logits = classifier(mixed_features(network, images, share, partner, point))
        loss = share * loss_of(logits, labels) + (1 - share) * loss_of(logits, labels[partner])
        correct = 0
    else:
        logits = classifier(network(images))
        loss = loss_of(logits, labels)
        correct = int((logits.argmax(dim=1) == labels).sum())
    if recipe.rotation:
        quarter = slice(max(1, len(images) // ROTATIONS))
        loss = loss + rotation_loss(network, classifier, modules["turns"], images[quarter], labels[quarter], loss_of)
    return loss, correct


def rotations(images: Tensor) -> tuple[Tensor, Tensor]:
    """Images rotated by 0, 90, 180 and 270 degrees (4 * batch, 3, size, size), and the rotation of each."""
    turned = torch.cat([torch.rot90(images, turn, dims=(2, 3)) for turn in range(ROTATIONS)])
    return turned, torch.arange(ROTATIONS, device=images.device).repeat_interleave(len(images))


def rotation_loss(
    network: nn.Module, classifier: nn.Module, turns: nn.Module, images: Tensor, labels: Tensor, loss_of: Loss
) -> Tensor:
    """Half the loss of the classes and half that of the rotations, over all four rotations of the images."""
    turned, turn = rotations(images)
    features = network(turned)
    of_classes = loss_of(classifier(features), labels.repeat(ROTATIONS))
    return 0.5 * of_classes + 0.5 * functional.cross_entropy(turns(features), turn)


def mixed_features(network: nn.Module, images: Tensor, share: float, partner: Tensor, point: int) -> Tensor:
    """Features of representations mixed with those of other images, at one point of the network (manifold mixup).

    An image has `share` of the representation, its partner (batch,) the rest. Point 0 mixes the images, p the output of
    the p-th of `mixing_points`.
    """

    def mixed(x: Tensor) -> Tensor:
        return share * x + (1 - share) * x[partner]

    if point == 0:
        return network(mixed(images))
    stage = mixing_points(network)[point - 1]
    with stage.register_forward_hook(lambda _, __, output: mixed(output)):
        return network(images)


def mixing_points(network: nn.Module) -> list[nn.Module]:
    """Stages whose outputs may be mixed: all of `stages`, or of `blocks`, but the last; none in other networks."""
    stages = getattr(network, "stages", getattr(network, "blocks", None))
    return list(stages)[:-1] if isinstance(stages, nn.Sequential) else []
