"""Training losses of a backbone: classes of images, manifold mixup, and rotations (S2M2)."""

import random

import torch
from torch import Tensor, nn
from torch.nn import functional

from hotshot.images.training.checkpoints import Recipe

ROTATIONS = 4


def batch_loss(
    recipe: Recipe, modules: dict[str, nn.Module], images: Tensor, labels: Tensor, rng: random.Random
) -> tuple[Tensor, int]:
    """Loss of a batch, and the number of correctly classified images; none with mixup."""
    network, classifier, smoothing = modules["backbone"], modules["classifier"], recipe.label_smoothing
    if recipe.mixup > 0:
        # A share from Beta(strength, strength), partners, and a point.
        share = rng.betavariate(recipe.mixup, recipe.mixup)
        partner = torch.tensor(rng.sample(range(len(images)), len(images)), device=images.device)
        point = rng.randrange(len(mixing_points(network)) + 1)
        loss = mixup_loss(
            network, classifier, images, labels, share=share, partner=partner, point=point, smoothing=smoothing
        )
        correct = 0
    else:
        logits = classifier(network(images))
        loss = functional.cross_entropy(logits, labels, label_smoothing=smoothing)
        correct = int((logits.argmax(dim=1) == labels).sum())
    if recipe.rotation:
        quarter = slice(max(1, len(images) // ROTATIONS))
        loss = loss + rotation_loss(network, classifier, modules["turns"], images[quarter], labels[quarter], smoothing)
    return loss, correct


def rotations(images: Tensor) -> tuple[Tensor, Tensor]:
    """Images rotated by 0, 90, 180 and 270 degrees (4 * batch, 3, size, size), and the rotation of each."""
    turned = torch.cat([torch.rot90(images, turn, dims=(2, 3)) for turn in range(ROTATIONS)])
    return turned, torch.arange(ROTATIONS, device=images.device).repeat_interleave(len(images))


def rotation_loss(
    network: nn.Module, classifier: nn.Module, turns: nn.Module, images: Tensor, labels: Tensor, smoothing: float
) -> Tensor:
    """Half the loss of the classes and half that of the rotations, over all four rotations of the images."""
    turned, turn = rotations(images)
    features = network(turned)
    of_classes = functional.cross_entropy(classifier(features), labels.repeat(ROTATIONS), label_smoothing=smoothing)
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

    An image has `share` of the representation and of the loss, its partner (batch,) the rest. Point 0 mixes the images,
    p the output of the p-th of `mixing_points`.
    """

    def mixed(x: Tensor) -> Tensor:
        return share * x + (1 - share) * x[partner]

    if point == 0:
        features = network(mixed(images))
    else:
        stage = mixing_points(network)[point - 1]
        with stage.register_forward_hook(lambda _, __, output: mixed(output)):
            features = network(images)
    logits = classifier(features)
    own = functional.cross_entropy(logits, labels, label_smoothing=smoothing)
    other = functional.cross_entropy(logits, labels[partner], label_smoothing=smoothing)
    return share * own + (1 - share) * other


def mixing_points(network: nn.Module) -> list[nn.Module]:
    """Stages whose outputs may be mixed: all of `stages`, or of `blocks`, but the last; none in other networks."""
    stages = getattr(network, "stages", getattr(network, "blocks", None))
    return list(stages)[:-1] if isinstance(stages, nn.Sequential) else []
