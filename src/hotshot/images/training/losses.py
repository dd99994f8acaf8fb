"""What a backbone is trained on: classes of images, of mixed hidden representations, and of rotations (S2M2)."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn import functional

ROTATIONS = 4


def rotations(images: Tensor) -> tuple[Tensor, Tensor]:
    """Images turned by 0, 90, 180 and 270 degrees (4 * batch, 3, size, size), and which turn each has had."""
    turned = torch.cat([torch.rot90(images, turn, dims=(2, 3)) for turn in range(ROTATIONS)])
    return turned, torch.arange(ROTATIONS, device=images.device).repeat_interleave(len(images))


def rotation_loss(
    network: nn.Module,
    classifier: nn.Module,
    turns: nn.Module,
    images: Tensor,
    labels: Tensor,
    smoothing: float,
) -> Tensor:
    """Half the loss of the classes and half that of the rotations, over all four turns of the images."""
    turned, turn = rotations(images)
    features = network(turned)
    of_classes = functional.cross_entropy(
        classifier(features), labels.repeat(ROTATIONS), label_smoothing=smoothing
    )
    return 0.5 * of_classes + 0.5 * functional.cross_entropy(turns(features), turn)


def mixup_loss(
    network: nn.Module,
    classifier: nn.Module,
    images: Tensor,
    labels: Tensor,
    *,
    share: float,
    partner: Tensor,
    point: int,
    smoothing: float,
) -> Tensor:
    """Loss of representations mixed with those of other images, at one point of the network (manifold mixup).

    Parameters
    ----------
    share : float
        Of the image itself; its partner has the rest, in the representation and in the loss.
    partner : integer tensor (batch,)
    point : int
        0 mixes the images, p the output of the p-th of `mixing_points`.
    """
    if point == 0:
        features = network(_mixed(images, share, partner))
    else:
        with mixing(mixing_points(network)[point - 1], share, partner):
            features = network(images)
    logits = classifier(features)
    own = functional.cross_entropy(logits, labels, label_smoothing=smoothing)
    other = functional.cross_entropy(logits, labels[partner], label_smoothing=smoothing)
    return share * own + (1 - share) * other


def mixing_points(network: nn.Module) -> list[nn.Module]:
    """Stages whose outputs may be mixed: the parts of `stages` or `blocks` but the last; none in other networks."""
    stages = getattr(network, "stages", None) or getattr(network, "blocks", None)
    return list(stages)[:-1] if isinstance(stages, nn.Sequential) else []


def draw_mix(
    network: nn.Module, batch: int, strength: float, rng: random.Random
) -> tuple[float, Tensor, int]:
    """A share from Beta(strength, strength), partners, and a point."""
    share = rng.betavariate(strength, strength)
    partner = torch.tensor(rng.sample(range(batch), batch))
    return share, partner, rng.randrange(len(mixing_points(network)) + 1)


@contextmanager
def mixing(stage: nn.Module, share: float, partner: Tensor) -> Iterator[None]:
    """While this lasts, the stage gives its output mixed with that of the partners."""
    handle = stage.register_forward_hook(lambda _, __, output: _mixed(output, share, partner))
    try:
        yield
    finally:
        handle.remove()


def _mixed(x: Tensor, share: float, partner: Tensor) -> Tensor:
    return share * x + (1 - share) * x[partner]
