"""Checkpoints as folders of JSON and safetensors: weights, state of the optimiser, and what they belong to."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from hotshot.errors import InputError
from hotshot.files.atomic import replace_folder
from hotshot.files.objects import read_json_document, refuse_damage
from hotshot.files.tensors import map_tensors, write_tensors
from hotshot.images.training.recipe import Recipe
from hotshot.version import __version__

WHAT, VERSION = "checkpoint", 1
DESCRIPTION, NUMBERS = "checkpoint.json", "checkpoint.safetensors"
REMEDY = "make one with hotshot train"


def save_checkpoint(
    path: Path, modules: dict[str, nn.Module], optimiser: torch.optim.Optimizer | None, about: dict[str, Any]
) -> None:
    """Write modules and optimiser; the checkpoint of that name is replaced when all is on the disk."""
    tensors = {
        f"{name}/{key}": value
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }
    scalars: dict[str, Any] = {}
    if optimiser is not None:
        for index, state in optimiser.state_dict()["state"].items():
            for key, value in state.items():
                if isinstance(value, torch.Tensor):
                    tensors[f"optimiser/{index}/{key}"] = value
                else:
                    scalars[f"{index}/{key}"] = value
    arrays = {name: np.ascontiguousarray(x.detach().cpu().numpy()) for name, x in tensors.items()}
    content = {
        "format": f"hotshot {WHAT}",
        "version": VERSION,
        "versions": {"hotshot": __version__, "torch": str(torch.__version__)},
        "optimiser": scalars,
        **about,
    }
    with replace_folder(path, DESCRIPTION, overwrite=True) as folder:
        write_tensors(folder / NUMBERS, arrays, {})
        (folder / DESCRIPTION).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_checkpoint(path: str | Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """What a checkpoint says of itself, and its tensors by name."""
    folder = Path(path)
    about = read_json_document(folder, DESCRIPTION, WHAT, REMEDY, VERSION)
    with refuse_damage(folder, WHAT):
        # Copies: the folder is replaced while training goes on.
        arrays = {name: np.array(x) for name, x in map_tensors(folder / NUMBERS).tensors.items()}
        return about, {name: torch.from_numpy(x) for name, x in arrays.items()}


def restore_module(module: nn.Module, name: str, tensors: dict[str, torch.Tensor], path: str | Path) -> None:
    """Give a module the weights it had."""
    own = {key.removeprefix(f"{name}/"): x for key, x in tensors.items() if key.startswith(f"{name}/")}
    try:
        module.load_state_dict(own)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"{path} holds other weights than its {name} needs ({reason}): train it again."
        ) from None


def restore_optimiser(
    optimiser: torch.optim.Optimizer, about: dict[str, Any], tensors: dict[str, torch.Tensor]
) -> None:
    """Give an optimiser the state it had; rates come from the schedule."""
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        if name.startswith("optimiser/"):
            _, index, key = name.split("/", 2)
            state.setdefault(int(index), {})[key] = value
    for name, value in about["optimiser"].items():
        index, key = name.split("/", 1)
        state.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def described(recipe: Recipe) -> dict[str, Any]:
    """A recipe as it comes back from JSON, where tuples are lists."""
    found: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))
    return found
