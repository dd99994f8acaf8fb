"""Weights that others have published, under whatever names, into a backbone of ours.

Programs name the same network differently, but list its layers in the same order: `feature.trunk.4.C1` of one is
`layer1.0.conv1` of the next. So where names differ, layers are matched one by one, in order, by the shapes of their
tensors; layers of no shape that the network has, such as classifiers, are left out. The report says what was matched.
An order that does not fit is refused, never guessed at.
"""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotshot.errors import InputError
from hotshot.files.tensors import map_tensors

# Where programs keep the weights within what they save.
_NESTS = ("state_dict", "state", "params", "model", "model_state", "net", "backbone")
# Counts batches, which nothing uses once a network is trained.
_COUNTER = "num_batches_tracked"


@dataclass(frozen=True)
class Report:
    """What became of the tensors of a file.

    Attributes
    ----------
    matched : tuple of (name in the network, name in the file)
    left : tuple of str
        Names in the file that the network has no place for, such as those of a classifier.
    """

    matched: tuple[tuple[str, str], ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        left = (
            f", {len(self.left)} left over ({', '.join(self.left[:4])}{' …' * (len(self.left) > 4)})"
            if self.left
            else ""
        )
        first, last = self.matched[0], self.matched[-1]
        return f"{len(self.matched)} tensors matched, from {first[1]} -> {first[0]} to {last[1]} -> {last[0]}{left}."


def load_weights(network: nn.Module, path: str | Path) -> Report:
    """Give `network` the weights of a `.pt`, `.pth`, `.tar` or `.safetensors` file; nothing in the file is run.

    All tensors of the network must find their like, or nothing is changed.
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


# Shapes of a layer's tensors by what they are: weight, bias, running_mean, running_var.
Shapes = frozenset[tuple[str, tuple[int, ...]]]


def _layers(state: dict[str, Tensor]) -> list[tuple[str, Shapes]]:
    """Layers in order, each by its name and the shapes of its tensors."""
    layers: dict[str, set[tuple[str, tuple[int, ...]]]] = {}
    for name, x in state.items():
        layer, _, kind = name.rpartition(".")
        layers.setdefault(layer, set()).add((kind, tuple(x.shape)))
    return [(layer, frozenset(shapes)) for layer, shapes in layers.items()]


def _match(
    own: list[tuple[str, Shapes]], theirs: list[tuple[str, Shapes]], path: str | Path
) -> list[tuple[str, str]]:
    """Names of tensors in the network and in the file, layer by layer."""
    known = {shapes for _, shapes in own}
    # A layer of a shape that the network does not have is of no interest, wherever it stands.
    waiting = [(layer, shapes) for layer, shapes in theirs if shapes in known]
    pairs = []
    for index, (layer, shapes) in enumerate(own):
        if index >= len(waiting) or waiting[index][1] != shapes:
            raise InputError(
                f"{path} has no layer for '{layer}' after {index} that matched: it holds the weights of another "
                "network, or its layers in another order."
            )
        pairs += [
            (f"{layer}.{kind}", f"{waiting[index][0]}.{kind}".lstrip(".")) for kind, _ in sorted(shapes)
        ]
    return pairs


def _read_state(path: Path) -> dict[str, Tensor]:
    if path.suffix == ".safetensors":
        return {name: torch.from_numpy(np.array(x)) for name, x in map_tensors(path).tensors.items()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content: Any = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except (
        pickle.UnpicklingError,
        RuntimeError,
        ValueError,
        EOFError,
        KeyError,
        OSError,
        AttributeError,
    ) as error:
        reason = " ".join(str(error).split())[:160]
        raise InputError(
            f"{path} is not a file of plain weights ({reason}): save its state_dict with torch.save."
        ) from None
    while isinstance(content, dict) and not any(isinstance(x, Tensor) for x in content.values()):
        nest = next((key for key in _NESTS if isinstance(content.get(key), dict)), None)
        if nest is None:
            break
        content = content[nest]
    if isinstance(content, dict) and not any(isinstance(x, Tensor) for x in content.values()):
        content = None
    if not isinstance(content, dict):
        raise InputError(
            f"{path} holds no weights by name: save the state_dict of the network with torch.save."
        )
    return {str(name): x for name, x in content.items() if isinstance(x, Tensor)}
