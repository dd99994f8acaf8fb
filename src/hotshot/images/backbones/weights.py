"""Weights that others have published, under whatever names, into a backbone of ours.

Programs name the same network differently, but list its layers in the same order: `feature.trunk.4.C1` of one is
`layer1.0.conv1` of the next. So where names differ, layers are matched one by one, in order, by the shapes of their
tensors; layers of no shape that the network has, such as classifiers, are left out. The report says what was matched.
An order that does not fit is refused, never guessed at.
"""

from __future__ import annotations

import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from hotshot.errors import InputError
from hotshot.files.source import check_size
from hotshot.files.tensors import map_tensors

# Where programs keep the weights within what they save, and how deep at most.
_NESTS = ("state_dict", "state", "params", "model", "model_state", "net", "backbone")
_DEEPEST = 8
# Counts batches, which nothing uses once a network is trained.
_COUNTER = "num_batches_tracked"


@dataclass(frozen=True)
class Report:
    """What became of the tensors of a file.

    Attributes
    ----------
    matched : tuple of (name in the network, name in the file)
    left : tuple of str
        Names in the file that the network has no place for, such as those of a classifier or of a second copy.
    """

    matched: tuple[tuple[str, str], ...]
    left: tuple[str, ...]

    def __str__(self) -> str:
        (first, theirs), (last, their_last) = self.matched[0], self.matched[-1]
        text = f"{len(self.matched)} tensors matched, from {theirs} -> {first} to {their_last} -> {last}"
        if self.left:
            text += f", {len(self.left)} left over ({', '.join(self.left[:4])}{' …' * (len(self.left) > 4)})"
        return f"{text}."


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


@dataclass(frozen=True, eq=False)
class _Layer:
    """Tensors of one layer by what they are: weight, bias, running_mean, running_var."""

    name: str
    tensors: dict[str, Tensor]

    @property
    def shapes(self) -> frozenset[tuple[str, tuple[int, ...]]]:
        return frozenset((kind, tuple(x.shape)) for kind, x in self.tensors.items())

    def tensor_names(self) -> list[str]:
        return [f"{self.name}.{kind}".lstrip(".") for kind in sorted(self.tensors)]

    def equals(self, other: _Layer) -> bool:
        return self.shapes == other.shapes and all(
            torch.equal(x, other.tensors[kind]) for kind, x in self.tensors.items()
        )


def _layers(state: dict[str, Tensor]) -> list[_Layer]:
    """Layers in order."""
    layers: dict[str, dict[str, Tensor]] = {}
    for name, x in state.items():
        layer, _, kind = name.rpartition(".")
        layers.setdefault(layer, {})[kind] = x
    return [_Layer(name, tensors) for name, tensors in layers.items()]


def _match(own: list[_Layer], theirs: list[_Layer], path: str | Path) -> list[tuple[str, str]]:
    """Names of tensors in the network and in the file, layer by layer."""
    known = {layer.shapes for layer in own}
    # A layer of a shape that the network does not have is of no interest, wherever it stands.
    fitting = [layer for layer in theirs if layer.shapes in known]
    # Programs that register a layer twice (Chen et al. 2019: C and trunk.0) save it twice, with equal tensors.
    copies = [x for i, x in enumerate(fitting) if any(x.equals(before) for before in fitting[:i])]
    once = [layer for layer in fitting if layer not in copies]
    if len(once) < len(own) and all(x.ndim < 2 for layer in copies for x in layer.tensors.values()):
        # Normalisations that were never trained are equal without being copies.
        copies, once = [], fitting
    for index, layer in enumerate(own):
        if index >= len(once) or once[index].shapes != layer.shapes:
            raise InputError(
                f"{path} has no layer for '{layer.name}' after {index} that matched: it holds the weights of another "
                "network, or its layers in another order."
            )
    if copies and len(once) > len(own):
        raise InputError(
            f"{path} holds most layers twice, but '{once[len(own)].name}' is left over with tensors of its own: it "
            "holds the weights of another network, or two copies that differ."
        )
    return [
        pair
        for mine, other in zip(own, once, strict=False)
        for pair in zip(mine.tensor_names(), other.tensor_names(), strict=True)
    ]


def _read_state(path: Path) -> dict[str, Tensor]:
    """Tensors of a file by name, in its order."""
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    content = _load(path)
    for _ in range(_DEEPEST):
        if not isinstance(content, dict) or any(isinstance(x, Tensor) for x in content.values()):
            break
        content = next((content[key] for key in _NESTS if isinstance(content.get(key), dict)), None)
    if not isinstance(content, dict):
        content = {}
    found = {str(name): x for name, x in content.items() if isinstance(x, Tensor) and _is_plain(x)}
    if not found:
        raise InputError(f"{path} holds no weights by name: save the state_dict of the network with torch.save.")
    return found


def _load(path: Path) -> Any:
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                check_size(path, sum(member.file_size for member in archive.infolist()), "weights")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except InputError:
        raise
    except Exception as error:
        # Damaged files end PyTorch's reader in many ways: UnpicklingError, RuntimeError, EOFError, TypeError and more.
        reason = " ".join(str(error).split())[:160]
        raise InputError(
            f"{path} is not a file of plain weights ({reason}): save its state_dict with torch.save."
        ) from None


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    file = map_tensors(path)
    found = {name: torch.from_numpy(np.array(x)) for name, x in file.tensors.items()}
    # NumPy has no brain floats: their bits come as integers.
    return {name: x.view(torch.bfloat16) if name in file.brain_floats else x for name, x in found.items()}


def _is_plain(x: Tensor) -> bool:
    """Whether a tensor has all its numbers in memory, so that they can be copied."""
    return x.layout is torch.strided and x.device.type == "cpu" and not x.is_quantized and not x.is_complex()
