"""Conv4 and Conv6, which flatten their last map, and residual networks, which average over it.

The width of flattened features grows with the image: 1600 at 84x84. ResNet10 and ResNet18 have 512 features, ResNet12
(as in MetaOptNet) and WRN-28-10 have 640.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from hotshot.arrays import LIMITS, check_number, check_numbers
from hotshot.errors import ParameterError
from hotshot.images.decode import DEVIATION, MEAN

COLOURS = 3
# Later blocks of a Conv6 do not pool: a map of 5x5 is small enough.
POOLED_BLOCKS = 4
# Each block of a ResNet12 halves the map, so that no image has pixels for more.
MOST_BLOCKS = 8
# Side up to which a stem that divides the map by four would leave too little of it.
SMALL_IMAGES = 48


def as_input(images: Tensor, size: int, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION) -> Tensor:
    """Images for validation and extraction: the centre (batch, 3, size, size) of pixels in uint8, normalised."""
    top, left = ((side - size) // 2 for side in images.shape[2:])
    return normalise(images[:, :, top : top + size, left : left + size].float() / 255, mean, deviation)


def normalise(images: Tensor, mean: Sequence[float] = MEAN, deviation: Sequence[float] = DEVIATION) -> Tensor:
    """Pixels in [0, 1], normalised with a mean and deviation, by default those of ImageNet."""
    middle, scale = (torch.tensor(x, dtype=torch.float32, device=images.device) for x in (mean, deviation))
    return (images - middle[:, None, None]) / scale[:, None, None]


def _network(**parts: nn.Module) -> nn.Module:
    """A network of parts; convolutions begin as in He et al. (2015), so that ReLUs keep the variance of gradients."""
    network = nn.Sequential(OrderedDict(parts))
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


class _Mean(nn.Module):
    """The mean of maps (batch, V, h, w) over h and w."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps.mean(dim=(2, 3))


def _convolution(inputs: int, outputs: int, side: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, side, stride=stride, padding=side // 2, bias=False)


def convolutional(depth: int, filters: int = 64) -> nn.Module:
    """A plain network of `depth` blocks, 4 or 6 in the literature; features are its last map, flattened."""
    check_numbers(filters=filters)
    blocks = nn.Sequential()
    for index in range(depth):
        inputs = filters if index else COLOURS
        layers = {"conv": nn.Conv2d(inputs, filters, 3, padding=1), "norm": nn.BatchNorm2d(filters)}
        if index < POOLED_BLOCKS:
            layers["pool"] = nn.MaxPool2d(2)
        # Published after the ReLU; a maximum commutes with it, and the ReLU of a quarter of the map costs a quarter.
        blocks.append(nn.Sequential(OrderedDict(layers, relu=nn.ReLU())))
    return _network(blocks=blocks, features=nn.Flatten())


def residual(blocks: Sequence[int], filters: int = 64, small: bool = False) -> nn.Module:
    """Four stages of basic blocks; each stage after the first halves the map and doubles the filters.

    With `small` the stem is one convolution of 3x3 that keeps the size, for images of 32x32, instead of 7x7 with stride
    2 and pooling.
    """
    # The last stage has eight times as many.
    check_number("filters", filters, 1, LIMITS["filters"][1] // 8)
    entry = _convolution(COLOURS, filters) if small else _convolution(COLOURS, filters, 7, stride=2)
    stem = nn.Sequential(entry, nn.BatchNorm2d(filters), nn.ReLU())
    if not small:
        stem.append(nn.MaxPool2d(3, stride=2, padding=1))
    stages, width = nn.Sequential(), filters
    for stage, count in enumerate(blocks):
        outputs = filters * 2**stage
        first = _BasicBlock(width, outputs, stride=2 if stage else 1)
        stages.append(nn.Sequential(first, *(_BasicBlock(outputs, outputs) for _ in range(count - 1))))
        width = outputs
    return _network(stem=stem, stages=stages, features=_Mean())


class _BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, projected if the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1, self.norm1 = _convolution(inputs, outputs, stride=stride), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = _convolution(outputs, outputs), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(_convolution(inputs, outputs, 1, stride=stride), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.norm1(self.conv1(x)))
        return self.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def residual12(filters: Sequence[int] = (64, 160, 320, 640)) -> nn.Module:
    """Four wide blocks of three convolutions, each with pooling.

    Blocks end in a leaky ReLU as published; the last one ends in a plain ReLU, which makes the features non-negative.
    Filters of (64, 128, 256, 512) are the narrower variant of the literature.
    """
    if not isinstance(filters, (list, tuple)) or not 1 <= len(filters) <= MOST_BLOCKS:
        several = f"1 to {MOST_BLOCKS} numbers, such as (64, 128, 256, 512)"
        raise ParameterError(f"filters must be {several}, got {filters!r:.60}.")
    for number in filters:
        check_numbers(filters=number)
    leaks = [0.1] * (len(filters) - 1) + [0.0]
    pairs = zip(pairwise([COLOURS, *filters]), leaks, strict=True)
    blocks = nn.Sequential(*(_Block12(inputs, outputs, leak) for (inputs, outputs), leak in pairs))
    return _network(blocks=blocks, features=_Mean())


class _Block12(nn.Module):
    """Three convolutions of 3x3 with a projected shortcut, then pooling."""

    def __init__(self, inputs: int, outputs: int, leak: float) -> None:
        super().__init__()
        self.conv1, self.norm1 = _convolution(inputs, outputs), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = _convolution(outputs, outputs), nn.BatchNorm2d(outputs)
        self.conv3, self.norm3 = _convolution(outputs, outputs), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential(_convolution(inputs, outputs, 1), nn.BatchNorm2d(outputs))
        self.inner, self.last, self.pool = nn.LeakyReLU(0.1), nn.LeakyReLU(leak), nn.MaxPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(self.norm1(self.conv1(x)))
        y = self.inner(self.norm2(self.conv2(y)))
        return self.pool(self.last(self.norm3(self.conv3(y)) + self.shortcut(x)))


def wide_residual(depth: int, widening: int) -> nn.Module:
    """Three stages of (depth - 4) / 6 wide pre-activation blocks, with 16, 32 and 64 times `widening` filters."""
    stem, blocks, width = _convolution(COLOURS, 16), nn.Sequential(), 16
    for stage in range(3):
        for index in range((depth - 4) // 6):
            outputs = 16 * 2**stage * widening
            blocks.append(_WideBlock(width, outputs, stride=2 if stage and not index else 1))
            width = outputs
    return _network(stem=stem, blocks=blocks, norm=nn.BatchNorm2d(width), relu=nn.ReLU(), features=_Mean())


class _WideBlock(nn.Module):
    """Normalisation and ReLU before each of two convolutions, and a shortcut, projected if the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(inputs), _convolution(inputs, outputs, stride=stride)
        self.norm2, self.conv2 = nn.BatchNorm2d(outputs), _convolution(outputs, outputs)
        self.relu = nn.ReLU()
        self.projection: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.projection = _convolution(inputs, outputs, 1, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        active = self.relu(self.norm1(x))
        y = self.conv2(self.relu(self.norm2(self.conv1(active))))
        # A projection sees what the convolutions see, an identity what came in.
        return y + (x if self.projection is None else self.projection(active))


_NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "conv4": partial(convolutional, 4),  # Vinyals et al. 2016
    "conv6": partial(convolutional, 6),  # Chen et al. 2019
    "resnet10": partial(residual, (1, 1, 1, 1)),  # Chen et al. 2019
    "resnet12": residual12,  # Lee et al. 2019
    "resnet18": partial(residual, (2, 2, 2, 2)),  # He et al. 2016
    "wrn28_10": partial(wide_residual, 28, 10),  # Zagoruyko and Komodakis 2016
}
BACKBONES = tuple(_NETWORKS)


def create(name: str, **options: Any) -> nn.Module:
    """A network by name: a module whose call takes images (batch, 3, size, size) to features (batch, V).

    Options are those of the network, such as `small=True` for images of 32x32, or `filters` for a narrower network.
    """
    if name not in _NETWORKS:
        raise ParameterError(f"backbone must be one of {', '.join(BACKBONES)}, got {name!r}.")
    try:
        return _NETWORKS[name](**options)
    except ParameterError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        reason = str(error).split(") ")[-1].splitlines()[0].rstrip(".")
        raise ParameterError(f"{name} has no such option, or not with this value ({reason}): change it.") from None


def options_for(name: str, size: int) -> dict[str, Any]:
    """The usual options for images of this size: ResNet10 and ResNet18 get a stem for small images."""
    return {"small": True} if name in ("resnet10", "resnet18") and size <= SMALL_IMAGES else {}


def feature_width(network: nn.Module, size: int) -> int:
    """Width V of the features of images of this size."""
    was_training = network.training
    try:
        with torch.no_grad():
            return int(network.eval()(torch.zeros(1, COLOURS, size, size)).shape[1])
    except RuntimeError:
        raise ParameterError(f"size is too small for this network, got {size}: use larger images.") from None
    finally:
        network.train(was_training)


def require_device(device: str) -> None:
    """Refuse a device that PyTorch does not have."""
    try:
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError):  # The latter where PyTorch is built without CUDA.
        raise ParameterError(f"device must be available in PyTorch, such as cpu, got {device!r}.") from None
