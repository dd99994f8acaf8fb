"""Weights of a network by name, in files of `torch.save`, read without torch and by a child process.

Programs save more than weights: options, devices, the state of an optimiser. Other objects of torch are ignored;
anything else is refused, as in every pickle (see `unpickling`).
"""

import math
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.files.child import GROWTH_OF_COMPRESSED, Items, read_in_child
from hotshot.files.source import check_size
from hotshot.files.torch_files import TORCH_NAMES, Tensor, load_value
from hotshot.files.unpickling import Dictionary, Known, as_text, refuse_invalid

# Where programs keep the weights within what they save, and how deep at most.
_NESTS = ("state_dict", "state", "params", "model", "model_state", "net", "backbone")
_DEEPEST = 8
_CONTAINERS = ("builtins.set", "collections.Counter")


class _Names(dict[str, Known]):
    """The names of tensors; other names of torch are accepted and ignored."""

    def get(self, text: str, default: Any = None) -> Any:
        if text in self or not (text.startswith("torch.") or text in _CONTAINERS):
            return super().get(text, default)
        return Known(text, lambda *_: Dictionary())


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Weights by name, in the order of the file, mapped; empty if it holds none."""
    found = read_in_child("state_dicts", path, GROWTH_OF_COMPRESSED)
    return dict(zip(found.keys, found.values, strict=True))


def read_raw(path: Path, name: str) -> Items:
    """The weights; runs in the child."""
    with path.open("rb") as file, refuse_invalid(file, name, "file of weights", "its state_dict with torch.save"):
        content = load_value(file, path, _Names(TORCH_NAMES))
        for _ in range(_DEEPEST):
            if not isinstance(content, dict) or any(type(x) is Tensor for x in content.values()):
                break
            content = {as_text(key): value for key, value in content.items()}
            content = next((content[key] for key in _NESTS if isinstance(content.get(key), dict)), None)
        items = content.items() if isinstance(content, dict) else ()
        found = {as_text(key) or str(key): value for key, value in items if type(value) is Tensor}
        # A tensor may be one number, expanded.
        check_size(path, sum(4 * math.prod(tensor.size) for tensor in found.values()), "weights")
        return Items(tuple(found), tuple(np.asarray(tensor.numbers(), order="C") for tensor in found.values()))
