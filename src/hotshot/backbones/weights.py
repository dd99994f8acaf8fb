"""Load published weights with other names into a backbone.

Programs name the same network differently, but list its layers in the same order: `feature.trunk.4.C1` in one is
`layer1.0.conv1` in another. If names differ, layers are matched one by one, in order, by the shapes of their tensors;
layers with other shapes, such as classifiers, are left out. The report lists the matches. An order that does not match
is refused.
"""

from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotshot.errors import InputError
from hotshot.files.tensors import map_tensors
from hotshot.files.torch_files import read_weights
from hotshot.formatting import printable

# Counts batches, which nothing uses once a network is trained.
_COUNTER = "num_batches_tracked"


@dataclass(frozen=True)
class Report:
    """The tensors of a file that were matched or left out.

    Attributes
    ----------
    matched : tuple of (name in the network, name in the file)
    left : tuple of str
        Names in the file without a match, such as those of a classifier or of a second copy.
    """

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
    found = {name: x for name, x in _read_state(Path(path)).items() if not name.endswith(_COUNTER)}
    own = {name: x for name, x in network.state_dict().items() if not name.endswith(_COUNTER)}
    if all(name in found and found[name].shape == x.shape for name, x in own.items()):
        pairs = [(name, name) for name in own]
    else:
        pairs = _match(_layers(own), _layers(found), path)
    network.load_state_dict({name: found[theirs].to(own[name].dtype) for name, theirs in pairs}, strict=False)
    used = {theirs for _, theirs in pairs}
    return Report(tuple(pairs), tuple(name for name in found if name not in used))


# Tensors of one layer by what they are: weight, bias, running_mean, running_var.
Layer = dict[str, Tensor]


def _layers(state: dict[str, Tensor]) -> dict[str, Layer]:
    """Layers by name, in order."""
    layers: dict[str, Layer] = {}
    for name, x in state.items():
        layer, _, kind = name.rpartition(".")
        layers.setdefault(layer, {})[kind] = x
    return layers


def _shapes(layer: Layer) -> frozenset[tuple[str, tuple[int, ...]]]:
    return frozenset((kind, tuple(x.shape)) for kind, x in layer.items())


def _content(layer: Layer) -> frozenset[tuple[str, tuple[int, ...], bytes]]:
    """A key that is equal for two layers exactly if their tensors are equal."""
    bits = {kind: x.reshape(-1).view(torch.uint8).numpy().data for kind, x in layer.items()}
    return frozenset((kind, tuple(x.shape), sha256(bits[kind]).digest()) for kind, x in layer.items())


def _placed_in_copies(equal: set[str], layers: dict[str, Layer]) -> set[str]:
    """Of layers that are equal to an earlier one, those that are copies of it.

    Normalisations that were never trained are equal without being copies: only those are whose module has matrices, and
    none that is new.
    """
    matrices = {name for name, layer in layers.items() if any(x.ndim > 1 for x in layer.values())}
    originals = {outer for name in matrices - equal for outer in _modules(name)}
    known = originals.union(*(_modules(name) for name in matrices & equal))
    nearest = {name: next((outer for outer in _modules(name) if outer in known), "") for name in equal - matrices}
    return (equal & matrices) | {name for name, outer in nearest.items() if outer in known - originals}


def _modules(layer: str) -> list[str]:
    """The modules that a layer is in, the innermost first."""
    parts = layer.split(".")
    return [".".join(parts[:n]) for n in range(len(parts) - 1, -1, -1)]


def _match(own: dict[str, Layer], theirs: dict[str, Layer], path: str | Path) -> list[tuple[str, str]]:
    """Names of tensors in the network and in the file, layer by layer."""
    known = {_shapes(layer) for layer in own.values()}
    # A layer of a shape that the network does not have is of no interest, wherever it stands.
    fitting = [name for name, layer in theirs.items() if _shapes(layer) in known]
    # Programs that register a layer twice (Chen et al. 2019: C and trunk.0) save it twice, with equal tensors.
    first: dict[Any, str] = {}
    once = [name for name in fitting if first.setdefault(_content(theirs[name]), name) == name]
    copies = set(fitting) - set(once)
    if len(once) < len(own):
        copies = _placed_in_copies(copies, {name: theirs[name] for name in fitting})
        once = [name for name in fitting if name not in copies]
    for index, (name, layer) in enumerate(own.items()):
        if index >= len(once) or _shapes(theirs[once[index]]) != _shapes(layer):
            raise InputError(
                f"{path} has no layer for '{name}' after {index} that matched: it holds the weights of another "
                "network, or its layers in another order."
            )
    if copies and len(once) > len(own):
        raise InputError(
            f"{path} holds most layers twice, but '{once[len(own)]}' is left over with tensors of its own: it "
            "holds the weights of another network, or two copies that differ."
        )
    return [
        (f"{mine}.{kind}".lstrip("."), f"{other}.{kind}".lstrip("."))
        for mine, other in zip(own, once, strict=False)
        for kind in sorted(own[mine])
    ]


def _read_state(path: Path) -> dict[str, Tensor]:
    """Tensors of a file by name, in its order."""
    if path.suffix == ".safetensors":
        file = map_tensors(path)
        found = {name: torch.from_numpy(np.array(x)) for name, x in file.tensors.items()}
        # NumPy has no brain floats: their bits come as integers.
        return {name: x.view(torch.bfloat16) if name in file.brain_floats else x for name, x in found.items()}
    found = {name: torch.from_numpy(np.array(x)) for name, x in read_weights(path).items()}
    if not found:
        raise InputError(f"{path} holds no weights by name: save the state_dict of the network with torch.save.")
    return found
