"""Weights of networks in files: a training's recipe and checkpoints, and published weights with other names.

Checkpoints are folders of JSON and safetensors. Other programs name the same network differently, but list its layers
in the same order: `feature.trunk.4.C1` in one is `layer1.0.conv1` in another. If names differ, layers are matched one
by one, in order, by the shapes of their tensors; layers with other shapes, such as classifiers, are left out. The
report lists the matches. An order that does not match is refused.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from hotshot.arrays import LIMITS, array_hash, check_numbers
from hotshot.backbones.networks import create
from hotshot.errors import InputError, ParameterError
from hotshot.files.atomic import replace_folder, write_json
from hotshot.files.child_readers import read_weights
from hotshot.files.objects import need, read_json_document, refuse_damage
from hotshot.files.tensors import map_tensors, write_tensors
from hotshot.formatting import printable, reason
from hotshot.version import __version__

OPTIMISERS, SCHEDULES = ("sgd", "adam"), ("cosine", "steps", "constant")
# Pixels beyond the size of the input that the decoded images have on each side, as a share, for random crops.
MARGIN = 1 / 7
# Of a batch; what a network makes of them is hundreds of times as large.
MOST_PIXELS = 2**27
WHAT, VERSION = "checkpoint", 1
DESCRIPTION, TENSORS = "checkpoint.json", "checkpoint.safetensors"
# Characters of the options of a backbone, as JSON.
_LONGEST_OPTIONS = 1000


@dataclass(frozen=True)
class Recipe:
    """Every parameter of `train`, saved with the result.

    `backbone` and `options` are those of `hotshot.backbones.create`, `size` is the side of the input in pixels. SGD has
    Nesterov momentum. The learning rate falls to zero along a cosine, or to a tenth after 60% and again after 80% of
    the epochs ("steps"). `rotation` trains on the four rotations of a quarter of each batch too, with a second head
    (S2M2_R); `mixup` is the strength of manifold mixup, the parameter of its Beta distribution (2 in S2M2). `augment`
    crops and colours at random, `flip` mirrors half of the images.
    """

    backbone: str = "conv4"
    options: dict[str, Any] = field(default_factory=dict)
    size: int = 84
    epochs: int = 60
    batch_size: int = 128
    optimiser: str = "sgd"
    learning_rate: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: str = "cosine"
    label_smoothing: float = 0.0
    rotation: bool = False
    mixup: float = 0.0
    augment: bool = True
    flip: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        check_numbers(**{name: getattr(self, name) for name in LIMITS if hasattr(self, name)})
        if self.batch_size * self.size**2 > MOST_PIXELS:
            raise ParameterError(f"{self.batch_size} images of size {self.size} are too many for one step: use fewer.")
        for name, choices in (("optimiser", OPTIMISERS), ("schedule", SCHEDULES)):
            if getattr(self, name) not in choices:
                raise ParameterError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}.")

    @property
    def decoded_size(self) -> int:
        """Side of the images to decode."""
        return decoded_size(self.size) if self.augment else self.size

    def as_json(self) -> dict[str, Any]:
        """The recipe as JSON, where tuples become lists."""
        return dict(json.loads(json.dumps(asdict(self))))


def decoded_size(size: int) -> int:
    """Side of the images to decode for inputs of this size: with some margin, for random crops."""
    check_numbers(size=size)
    return round(size * (1 + MARGIN))


def save_checkpoint(
    path: Path, modules: dict[str, nn.Module], optimiser: Optimizer | None, about: dict[str, Any]
) -> None:
    """Write modules and optimiser; the checkpoint is replaced only when everything is on the disk."""
    tensors = {f"{name}/{key}": value for name, module in modules.items() for key, value in module.state_dict().items()}
    for index, state in {} if optimiser is None else optimiser.state_dict()["state"].items():
        # Without momentum, SGD stores None.
        tensors |= {f"optimiser/{index}/{key}": x for key, x in state.items() if isinstance(x, Tensor)}
    arrays = {name: np.ascontiguousarray(x.detach().cpu().numpy()) for name, x in tensors.items()}
    versions = {"hotshot": __version__, "torch": str(torch.__version__)}
    document = {"format": f"hotshot {WHAT}", "version": VERSION, "versions": versions, **about}
    with replace_folder(path, DESCRIPTION, overwrite=True) as folder:
        write_tensors(folder / TENSORS, arrays, {})
        write_json(folder / DESCRIPTION, document)


def read_checkpoint(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The description of a checkpoint, and its tensors by name."""
    folder = Path(path)
    about = read_json_document(folder, DESCRIPTION, WHAT, "make one with hotshot train", VERSION)
    with refuse_damage(folder, WHAT):
        # Copies: the folder is replaced while training goes on.
        arrays = {name: np.array(x) for name, x in map_tensors(folder / TENSORS).tensors.items()}
        for key, kind in (("recipe", dict), ("names", list), ("history", list)):
            need(isinstance(about[key], kind), f"its {key} is {about[key]!r:.40}")
        return about, {name: torch.from_numpy(x) for name, x in arrays.items()}


def load_backbone(path: str | Path) -> tuple[nn.Module, Recipe, dict[str, Any]]:
    """The backbone of a checkpoint, ready to extract features, its recipe, and its description."""
    about, tensors = read_checkpoint(path)
    with refuse_damage(Path(path), "recipe of a training"):
        recipe = Recipe(**about["recipe"])
        for name, usual in asdict(Recipe()).items():
            value = getattr(recipe, name)
            wanted = (int, float) if isinstance(usual, float) else type(usual)
            need(isinstance(value, wanted), f"its {name} is {value!r:.40}")
        need(len(json.dumps(recipe.options)) <= _LONGEST_OPTIONS, "its options are too many")
    # Without memory of its own: an edited recipe may ask for any.
    with torch.device("meta"):
        network = create(recipe.backbone, **recipe.options)
    restore_module(network, "backbone", tensors, path, assign=True)
    return network.eval(), recipe, about


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(f"{prefix}/"): x for key, x in tensors.items() if key.startswith(f"{prefix}/")}


def restore_module(
    module: nn.Module, name: str, tensors: dict[str, Tensor], path: str | Path, assign: bool = False
) -> None:
    """Restore the weights of a module: copies, or the tensors themselves."""
    try:
        module.load_state_dict(_below(name, tensors), assign=assign)
    except RuntimeError as error:
        raise InputError(
            f"{path} has weights that do not match its {name} ({reason(error)}): train it again."
        ) from None


def restore_optimiser(optimiser: Optimizer, tensors: dict[str, Tensor]) -> None:
    """Restore the state of an optimiser; learning rates come from the schedule."""
    state: dict[int, dict[str, Any]] = {}
    for name, value in _below("optimiser", tensors).items():
        index, key = name.split("/", 1)
        state.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


# --- published weights

# Counts batches, which nothing uses once a network is trained.
_COUNTER = "num_batches_tracked"
# Tensors of one layer by what they are: weight, bias, running_mean, running_var.
Layer = dict[str, Any]


@dataclass(frozen=True)
class Report:
    """The tensors of a file that were matched, as (name in the network, name in the file), or left out."""

    matched: tuple[tuple[str, str], ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        (first, theirs), (last, their_last) = self.matched[0], self.matched[-1]
        text = f"{len(self.matched)} tensors matched, from {theirs} -> {first} to {their_last} -> {last}"
        if self.left:
            text += f", {len(self.left)} left over ({', '.join(self.left[:4])}{' …' * (len(self.left) > 4)})"
        return printable(f"{text}.")


def load_weights(network: nn.Module, path: str | Path) -> Report:
    """Load the weights of a `.pt`, `.pth`, `.tar` or `.safetensors` file; code in the file is never run.

    All tensors of the network must have a match, or nothing is changed.
    """
    theirs = {name: x for name, x in _read_state(Path(path)).items() if not name.endswith(_COUNTER)}
    ours = {name: x for name, x in network.state_dict().items() if not name.endswith(_COUNTER)}
    if all(name in theirs and theirs[name].shape == x.shape for name, x in ours.items()):
        pairs = [(name, name) for name in ours]
    else:
        pairs = _match(_layers(ours), _layers(theirs), path)
    state = {name: torch.from_numpy(np.array(theirs[other])).to(ours[name].dtype) for name, other in pairs}
    network.load_state_dict(state, strict=False)
    used = {other for _, other in pairs}
    return Report(tuple(pairs), tuple(name for name in theirs if name not in used))


def _read_state(path: Path) -> dict[str, np.ndarray]:
    """Tensors of a file by name, in its order."""
    if path.suffix == ".safetensors":
        return map_tensors(path).tensors
    weights = read_weights(path)
    if not weights:
        raise InputError(f"{path} holds no weights by name: save the state_dict of the network with torch.save.")
    return weights


def _layers(state: dict[str, Any]) -> dict[str, Layer]:
    """Layers by name, in order."""
    layers: dict[str, Layer] = {}
    for name, x in state.items():
        layer, _, kind = name.rpartition(".")
        layers.setdefault(layer, {})[kind] = x
    return layers


def _shapes(layer: Layer) -> frozenset[tuple[str, tuple[int, ...]]]:
    return frozenset((kind, tuple(x.shape)) for kind, x in layer.items())


def _once(layers: dict[str, Layer]) -> list[str]:
    """Names of layers without copies of earlier ones: some programs register a layer twice, and save it twice.

    Normalisations that were never trained are equal without being copies: only those behind a copied matrix are.
    """
    names, seen, is_copied = [], set(), False
    for name, layer in layers.items():
        content = frozenset((kind, x.shape, array_hash(np.atleast_1d(x))) for kind, x in layer.items())
        if any(x.ndim > 1 for x in layer.values()):
            is_copied = content in seen
        if not (is_copied and content in seen):
            names.append(name)
        seen.add(content)
    return names


def _match(ours: dict[str, Layer], theirs: dict[str, Layer], path: str | Path) -> list[tuple[str, str]]:
    """Names of tensors in the network and in the file, layer by layer."""
    shapes = {_shapes(layer) for layer in ours.values()}
    # A layer of a shape that the network does not have is of no interest, wherever it stands.
    fitting = {name: layer for name, layer in theirs.items() if _shapes(layer) in shapes}
    names = _once(fitting)
    for index, (name, layer) in enumerate(ours.items()):
        if index >= len(names) or _shapes(theirs[names[index]]) != _shapes(layer):
            raise InputError(
                f"{path} has no layer for '{name}' after {index} that matched: it holds the weights of another "
                "network, or its layers in another order."
            )
    if len(ours) < len(names) < len(fitting):
        raise InputError(
            f"{path} holds most layers twice, but '{names[len(ours)]}' is left over with tensors of its own: it "
            "holds the weights of another network, or two copies that differ."
        )
    return [
        (f"{mine}.{kind}".lstrip("."), f"{other}.{kind}".lstrip("."))
        for mine, other in zip(ours, names, strict=False)
        for kind in sorted(ours[mine])
    ]
