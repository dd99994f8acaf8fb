"""Training of backbones on base classes, with the rotations and manifold mixup of S2M2; it resumes."""

import math
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer

from hotshot.arrays import slices, unit_vectors
from hotshot.backbones.checkpoints import (
    Recipe,
    load_backbone,
    read_checkpoint,
    restore_module,
    restore_optimiser,
    save_checkpoint,
)
from hotshot.backbones.networks import as_input, create, feature_width, normalise
from hotshot.errors import InputError
from hotshot.evaluation.tasks import Episodes
from hotshot.files.atomic import locked, recover, remove_leftovers
from hotshot.images.decode import DecodedSplit

LAST, BEST = "last", "best"
# Images that features are taken of at once, where nothing needs gradients.
IMAGES_AT_ONCE = 256
# Tasks of the validation classes after every epoch.
WAYS, SHOTS, QUERIES, TASKS = 5, 5, 15, 200
# Images of the base classes that are enough for their mean.
ENOUGH_FOR_MEAN = 2000

# How much brightness, contrast and saturation may be scaled, up or down.
COLOUR = 0.4
_GREY = (0.299, 0.587, 0.114)
ROTATIONS = 4

# Called with batches done, batches in all, and the mean loss.
Watch = Callable[[int, int, float], None] | None
Modules = dict[str, nn.Module]
# The loss of logits (batch, classes) for labels.
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Epoch:
    """Mean loss, training accuracy (none with mixup) and few-shot accuracy on validation classes of an epoch."""

    number: int
    loss: float
    accuracy: float | None
    validation: float | None
    seconds: float


def train(
    base: DecodedSplit,
    val: DecodedSplit | None,
    recipe: Recipe,
    folder: str | Path,
    *,
    device: str = "cpu",
    watch: Watch = None,
    after_epoch: Callable[[Epoch], None] | None = None,
) -> nn.Module:
    """Train on the base classes; the checkpoints `last` and `best` in `folder` are written after every epoch.

    If `folder` holds a checkpoint of the same recipe, training resumes and ends with the same weights as without the
    interruption: an epoch depends only on the seed and its number. Validation classes choose the best epoch, by the
    accuracy of nearest centroids on 5-way-5-shot tasks; its backbone, or that of the last epoch, is returned.
    """
    with locked(folder) as place:
        torch.manual_seed(recipe.seed)
        network = create(recipe.backbone, **recipe.options)
        width = feature_width(network, recipe.size)
        modules = {"backbone": network, "classifier": nn.Linear(width, len(base.names))}
        if recipe.rotation:
            modules["turns"] = nn.Linear(width, ROTATIONS)
        for module in modules.values():
            module.to(device)
        optimiser = _optimiser(recipe, modules)
        history: list[dict[str, Any]] = []
        if recover(place / LAST).exists():
            about, tensors = read_checkpoint(place / LAST)
            _check_same(about, recipe, base, place)
            for name, module in modules.items():
                restore_module(module, name, tensors, place / LAST)
            restore_optimiser(optimiser, tensors)
            history = about["history"]
            # Where all epochs are done, no checkpoint is written that would do it.
            remove_leftovers(place / LAST)
        for number in range(len(history), recipe.epochs):
            start = time.perf_counter()
            loss, accuracy = _epoch(base, recipe, modules, optimiser, number, device, watch)
            validation = None if val is None else _validation(network, base, val, recipe.size, device)
            epoch = Epoch(number + 1, loss, accuracy, validation, time.perf_counter() - start)
            history.append({key: value for key, value in asdict(epoch).items() if key != "number"})
            about = {"recipe": recipe.as_json(), "names": list(base.names), "width": width, "history": history}
            # `last` ends the epoch: whatever is written before it is written again, and the same, where it is missing.
            # Of equal epochs the last is the best.
            if max(range(len(history)), key=lambda i: (history[i]["validation"] or 0.0, i)) == number:
                save_checkpoint(place / BEST, {"backbone": network}, None, about)
            save_checkpoint(place / LAST, modules, optimiser, about)
            if after_epoch is not None:
                after_epoch(epoch)
        return load_backbone(place / BEST)[0]


def _check_same(about: dict[str, Any], recipe: Recipe, base: DecodedSplit, folder: Path) -> None:
    saved = {**about.get("recipe", {}), "names": about.get("names")}
    wanted = {**recipe.as_json(), "names": list(base.names)}
    different = [name for name in wanted if saved.get(name) != wanted[name]]
    if different:
        raise InputError(f"{folder} holds a training that differs in {', '.join(different)}: choose another folder.")


def _epoch(
    base: DecodedSplit, recipe: Recipe, modules: Modules, optimiser: Optimizer, number: int, device: str, watch: Watch
) -> tuple[float, float | None]:
    """One pass over the images; order and augmentation depend only on the seed and the epoch."""
    generator = torch.Generator().manual_seed(recipe.seed + 1_000_003 * number)
    rng = random.Random(f"{recipe.seed} {number}")
    torch.manual_seed(rng.getrandbits(32))
    order = torch.randperm(len(base), generator=generator).numpy()
    # A last batch of one image would have no variance to normalise by.
    batches = [np.sort(order[rows]) for rows in slices(len(order), recipe.batch_size) if len(order[rows]) > 1]
    if not batches:
        raise InputError("The base classes have a single image: train on more.")
    for module in modules.values():
        module.train()
    losses, right, seen = 0.0, 0, 0
    for done, rows in enumerate(batches):
        for group in optimiser.param_groups:
            group["lr"] = _rate(recipe, number + done / len(batches))
        pixels = _pixels(base.images[rows], device)
        labels = torch.from_numpy(base.labels[rows].astype(np.int64)).to(device)
        if recipe.augment:
            images = augment(pixels, recipe.size, generator, flip=recipe.flip)
        else:
            images = as_input(pixels, recipe.size)
        loss, correct = batch_loss(recipe, modules, images, labels, rng)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        losses += float(loss.detach()) * len(rows)
        right, seen = right + correct, seen + len(rows)
        if not math.isfinite(losses):
            slower = f"train with a smaller learning rate than {recipe.learning_rate:g}"
            raise InputError(f"The loss is {losses} in epoch {number + 1}: {slower}.")
        if watch is not None:
            watch(done + 1, len(batches), losses / seen)
    return losses / seen, None if recipe.mixup > 0 else right / seen


def _pixels(images: np.ndarray, device: str) -> Tensor:
    """Images as uint8 (batch, 3, side, side)."""
    return torch.from_numpy(np.array(images)).permute(0, 3, 1, 2).to(device)


def _optimiser(recipe: Recipe, modules: Modules) -> Optimizer:
    parameters = [p for module in modules.values() for p in module.parameters()]
    rate, decay, momentum = recipe.learning_rate, recipe.weight_decay, recipe.momentum
    if recipe.optimiser == "adam":
        return torch.optim.Adam(parameters, lr=rate, weight_decay=decay)
    return torch.optim.SGD(parameters, lr=rate, momentum=momentum, nesterov=momentum > 0, weight_decay=decay)


def _rate(recipe: Recipe, epochs_done: float) -> float:
    """The learning rate after so many epochs, which may be a fraction."""
    share = epochs_done / recipe.epochs
    if recipe.schedule == "cosine":
        return recipe.learning_rate * (1 + math.cos(math.pi * share)) / 2
    if recipe.schedule == "steps":
        return recipe.learning_rate * 0.1 ** ((share >= 0.6) + (share >= 0.8))
    return recipe.learning_rate


# --- images of a batch


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


# --- losses of a batch


def batch_loss(
    recipe: Recipe, modules: Modules, images: Tensor, labels: Tensor, rng: random.Random
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


# --- validation


def _validation(network: nn.Module, base: DecodedSplit, val: DecodedSplit, size: int, device: str) -> float | None:
    """Few-shot accuracy on validation classes, centred by evenly spaced images of the base classes; None if too few."""
    counts = np.bincount(val.labels)
    if len(counts) < 2 or counts.min() < 2:
        return None
    step = max(1, len(base) // ENOUGH_FOR_MEAN)
    centre = features_of(network, base.images[::step], size, device).mean(axis=0)
    return few_shot_accuracy(features_of(network, val.images, size, device), val.labels, centre)


def features_of(network: nn.Module, images: np.ndarray, size: int, device: str = "cpu") -> np.ndarray:
    """Features (n, V) of decoded images."""
    network.eval()
    with torch.inference_mode():
        batches = (as_input(_pixels(images[rows], device), size) for rows in slices(len(images), IMAGES_AT_ONCE))
        return np.concatenate([network(batch).cpu().numpy() for batch in batches])


def few_shot_accuracy(features: np.ndarray, labels: np.ndarray, centre: np.ndarray) -> float:
    """Mean accuracy of nearest centroids (centred, unit norm) on tasks that are the same for every epoch."""
    smallest = int(np.bincount(labels).min())
    ways = min(WAYS, len(np.unique(labels)))
    shots = max(1, min(SHOTS, smallest - 1))
    episodes = Episodes(labels, ways=ways, shots=shots, queries=min(QUERIES, smallest - shots), seed=0)
    z = unit_vectors(features - centre)
    right = []
    for index in range(TASKS):
        task = episodes[index]
        classes = np.unique(task.support_labels)
        centroids = np.stack([z[task.support[task.support_labels == c]].mean(axis=0) for c in classes])
        distances = (centroids**2).sum(axis=1) - 2 * z[task.query] @ centroids.T
        right.append((classes[distances.argmin(axis=1)] == task.query_labels).mean())
    return float(np.mean(right))
