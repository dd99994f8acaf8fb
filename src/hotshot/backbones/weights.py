"""Load published weights with other names into a backbone.

Programs name the same network differently, but list its layers in the same order: `feature.trunk.4.C1` in one is
`layer1.0.conv1` in another. If names differ, layers are matched one by one, in order, by the shapes of their tensors;
layers with other shapes, such as classifiers, are left out. The report lists the matches. An order that does not match
is refused.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hotshot.arrays import array_hash
from hotshot.errors import InputError
from hotshot.files.child_readers import read_weights
from hotshot.files.tensors import map_tensors
from hotshot.formatting import printable

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
