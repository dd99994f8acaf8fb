"""Encoders of one's own: functions and networks by name, backbones with files of weights, and checkpoints."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_numbers
from hotshot.encoders.encoder import IMAGES, TEXTS, Encoder, network_encoder, tried_encoder
from hotshot.encoders.libraries import PREFIXES, absolute
from hotshot.errors import ParameterError
from hotshot.formatting import did_you_mean
from hotshot.images.decode import DEVIATION, MEAN
from hotshot.user_code import call_named, named_object, required_arguments, short_name

# Side of the input of networks that do not tell it, in pixels.
SIZE = 84
# The name of an object may be followed by a file of weights.
OBJECT = re.compile(r"((?:.+?\.py|[\w.]+):\w+)(?:@(.+))?")


def named(name: str) -> tuple[str, str | None, Any]:
    """The name of an object without its file of weights, that file, and the object."""
    place, weights = OBJECT.fullmatch(name).groups()  # type: ignore[union-attr]
    try:
        return place, weights, named_object(place, "network")
    except ParameterError as error:
        raise ParameterError(f"{error}{did_you_mean(name.partition(':')[0] + ':', PREFIXES)}") from None


def kind_of(item: Any, name: str) -> str:
    """The attribute `kind` of an object, by default images."""
    kind = getattr(item, "kind", IMAGES)
    if kind not in (TEXTS, IMAGES):
        raise ParameterError(f"{name}.kind must be 'texts' or 'images', got {kind!r:.40}: fix it.")
    return str(kind)


def object_encoder(name: str, size: int | None, device: str) -> Encoder:
    """A function of texts or of images (n, size, size, 3) in uint8, or a `torch.nn.Module`."""
    place, weights, item = named(name)
    # Other objects are networks, or make them.
    is_function = callable(item) and (
        hasattr(item, "kind") or (not isinstance(item, type) and len(required_arguments(item)) == 1)
    )
    if not is_function:
        return module_encoder(place, SIZE if size is None else size, device, weights=weights, module=item)
    texts = kind_of(item, place) == TEXTS
    if weights or (texts and size is not None):
        raise ParameterError(f"{place} is a function that takes no {'weights' if weights else 'size'}: leave it out.")
    full, short = _full_name(place), short_name(place)
    if texts:
        return tried_encoder(full, short, item)
    side = getattr(item, "size", SIZE) if size is None else size
    check_numbers(size=side)
    return tried_encoder(f"{full}#{side}", short, lambda x: np.array(item(x), np.float32), side, {"size": side})


def module_encoder(
    name: str,
    size: int = SIZE,
    device: str = "cpu",
    *,
    weights: str | Path | None = None,
    mean: Sequence[float] = MEAN,
    deviation: Sequence[float] = DEVIATION,
    module: Any = None,
) -> Encoder:
    """Load a `torch.nn.Module` by name; ``load_encoder`` does it with the mean and deviation of ImageNet.

    ``package.module:attribute`` or ``path/to/file.py:attribute`` is a module, or a class or function without required
    arguments that returns one. It is imported and run, as ``python -m`` would run it: name only what you trust. The
    module takes images (batch, 3, size, size), less `mean` and divided by `deviation`, and must return features
    (batch, V), or maps (batch, V, h, w), which are averaged over h and w. `weights` is a file to load, and `module` the
    object, if it has already been imported.
    """
    from torch import nn

    from hotshot.backbones import decoded_size, load_weights, require_device

    module = named_object(name, "network") if module is None else module
    side = decoded_size(size)
    require_device(device)
    if callable(module) and not isinstance(module, nn.Module):
        module = call_named(module, name, "network")
    if not isinstance(module, nn.Module):
        raise ParameterError(
            f"{name} must be or return a torch.nn.Module, got {type(module).__name__}: wrap it in one."
        )
    network, short, full = module.to(device).eval(), short_name(name), _full_name(name)
    about = {"size": size, "mean": np.ravel(mean).tolist(), "deviation": np.ravel(deviation).tolist()}
    # Lazy layers get their weights when the network is tried.
    encoder = network_encoder(f"{full}#{size}", short, network, side, about, device)
    if weights is None:
        return encoder
    if not network.state_dict():
        raise ParameterError(f"{short} has no weights to replace with {weights}: leave the file out.")
    report = load_weights(network, weights)
    about |= {"weights": Path(weights).name, "matched": len(report.matched)}
    name = f"{full}@{absolute(str(weights))}#{size}"
    return network_encoder(name, short, network, side, about, device, [f"{weights}: {report}"])


def _full_name(name: str) -> str:
    """The name of an object that works from any folder: for modules in the working folder, with their file."""
    place, _, attribute = name.rpartition(":")
    if place.endswith(".py"):
        return f"{absolute(place)}:{attribute}"
    file = Path(getattr(sys.modules[place], "__file__", None) or "")
    return f"{file.resolve()}:{attribute}" if "." not in place and file.resolve().parent == Path.cwd() else name


def backbone_encoder(name: str, size: int | None, device: str) -> Encoder:
    """A backbone with published weights, BACKBONE@WEIGHTS."""
    from hotshot.backbones import as_input, create, decoded_size, load_weights, options_for

    backbone, _, weights = name.partition("@")
    size = SIZE if size is None else size
    side = decoded_size(size)
    network = create(backbone, **options_for(backbone, size))
    report = load_weights(network, weights)
    about = {"backbone": backbone, "weights": Path(weights).name, "matched": len(report.matched)}
    full, notes = f"{backbone}@{absolute(weights)}#{size}", [f"{weights}: {report}"]
    network = network.to(device).eval()
    return network_encoder(full, backbone, network, side, about, device, notes, partial(as_input, size=size))


def checkpoint_encoder(name: str, size: None, device: str) -> Encoder:
    """The backbone of a checkpoint of `hotshot train`."""
    from hotshot.backbones import as_input, load_backbone

    network, recipe, about = load_backbone(name)
    about = {"backbone": recipe.backbone, "epochs": len(about["history"]), "trained_on": list(about["names"])}
    prepare, full = partial(as_input, size=recipe.size), str(Path(name).resolve())
    network = network.to(device)
    return network_encoder(full, recipe.backbone, network, recipe.decoded_size, about, device, prepare=prepare)
