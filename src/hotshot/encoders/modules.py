"""A user's network as an encoder: a `torch.nn.Module` by name."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from hotshot.errors import ParameterError
from hotshot.images.backbones import require_device
from hotshot.images.backbones.weights import Report, load_weights
from hotshot.images.extraction import Extractor, check_normalisation, side_of, tried
from hotshot.images.training.augmentation import DEVIATION, MEAN, as_input
from hotshot.user_code import call_named, importing_from, named_object, short_name


def module_extractor(
    name: str,
    size: int,
    device: str = "cpu",
    *,
    weights: str | Path | None = None,
    mean: Sequence[float] = MEAN,
    deviation: Sequence[float] = DEVIATION,
    found: Any = None,
) -> tuple[Extractor, Report | None]:
    """A module by name, and how its weights were matched if a file of weights is given.

    The code that `name` points to is imported and run, as `python -m` would run it: name only what you trust.

    Parameters
    ----------
    name : str
        `package.module:attribute` or `path/to/file.py:attribute`, of a `torch.nn.Module`, or of a class or function
        without required arguments that returns one. Modules in the working folder are found too.
    size : int
        Side of the images (batch, 3, size, size) that the module takes. It must return features (batch, V), or maps
        (batch, V, h, w), which are averaged over h and w; it is tested on synthetic images before any extraction.
    device : str
        PyTorch device, such as "cuda".
    weights : path, optional
        File for `hotshot.images.backbones.weights.load_weights`; by default the module is used as it is.
    mean, deviation : three numbers each
        Mean and deviation to normalise pixels in [0, 1] with, by default those of ImageNet.
    found : object, optional
        The object of this name, if it has already been imported.
    """
    found = named_object(name, "network") if found is None else found
    side = side_of(size)
    check_normalisation(mean, deviation)
    require_device(device)
    network = _network(found, name).to(device).eval()
    short = short_name(name)
    known = {"size": size, "mean": list(map(float, mean)), "deviation": list(map(float, deviation))}
    untried = Extractor(short, network, partial(as_input, size=size, mean=mean, deviation=deviation), side, known)
    extractor = tried(untried, device)
    if weights is None:
        return extractor, None
    if not network.state_dict():
        raise ParameterError(f"{short} has no weights to replace with {weights}: leave the file out.")
    report = load_weights(network, weights)
    known |= {"weights": Path(weights).name, "matched": len(report.matched)}
    return tried(replace(untried, about=known), device), report


def _network(found: Any, name: str) -> nn.Module:
    """The module that a named object is or returns."""
    if callable(found) and not isinstance(found, nn.Module):
        with importing_from(name):
            found = call_named(found, name, "network", {})
    if not isinstance(found, nn.Module):
        raise ParameterError(f"{name} must be or return a torch.nn.Module, got {type(found).__name__}: wrap it in one.")
    return found
