"""Conv4 and Conv6, which flatten their last map, and residual networks, which average over it.

ResNet10 and ResNet18, ResNet12 as in MetaOptNet, and WRN-28-10.
"""

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from hotshot.arrays import LIMITS, check_number, check_numbers
from hotshot.errors import ParameterError

# Later blocks of a Conv6 do not pool: a map of 5x5 is small enough.
POOLED_BLOCKS = 4
# Each block of a ResNet12 halves the map, so that no image has pixels for more.
MOST_BLOCKS = 8


def _convolution(inputs: int, outputs: int, side: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, side, stride=stride, padding=side // 2, bias=False)


def _initialise(network: nn.Module) -> None:
    """Initialise the kernels of all convolutions as He et al. (2015): ReLUs keep the variance of gradients."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


class Convolutional(nn.Module):
    """A plain network of `depth` blocks, 4 or 6 in the literature; features are its last map, flattened."""

    def __init__(self, depth: int, filters: int = 64, channels: int = 3) -> None:
        super().__init__()
        check_numbers(filters=filters, channels=channels)
        inputs = [channels] + [filters] * (depth - 1)
        self.blocks = nn.Sequential(*(_block(n, filters, i < POOLED_BLOCKS) for i, n in enumerate(inputs)))
        _initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """Features (batch, V) of images (batch, channels, size, size)."""
        return self.blocks(images).flatten(1)


def _block(inputs: int, outputs: int, pool: bool) -> nn.Sequential:
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        conv=nn.Conv2d(inputs, outputs, 3, padding=1), norm=nn.BatchNorm2d(outputs)
    )
    if pool:
        layers["pool"] = nn.MaxPool2d(2)
    # Published after the ReLU; a maximum commutes with it, and the ReLU of a quarter of the map costs a quarter.
    layers["relu"] = nn.ReLU()
    return nn.Sequential(layers)


class Residual(nn.Module):
    """Four stages of basic blocks; each stage after the first halves the map and doubles the filters.

    With `small` the stem is one convolution of 3x3 that keeps the size, for images of 32x32, instead of 7x7 with stride
    2 and pooling.
    """

    def __init__(self, blocks: Sequence[int], filters: int = 64, channels: int = 3, small: bool = False) -> None:
        super().__init__()
        check_numbers(channels=channels)
        # The last stage has eight times as many.
        check_number("filters", filters, 1, LIMITS["filters"][1] // 8)
        entry = _convolution(channels, filters) if small else _convolution(channels, filters, 7, stride=2)
        self.stem = nn.Sequential(entry, nn.BatchNorm2d(filters), nn.ReLU())
        if not small:
            self.stem.append(nn.MaxPool2d(3, stride=2, padding=1))
        self.stages = nn.Sequential()
        for stage, count in enumerate(blocks):
            outputs = filters * 2**stage
            first = _BasicBlock(outputs // 2, outputs, stride=2) if stage else _BasicBlock(filters, filters, stride=1)
            others = (_BasicBlock(outputs, outputs, stride=1) for _ in range(count - 1))
            self.stages.append(nn.Sequential(first, *others))
        _initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """Features (batch, V) of images (batch, channels, size, size)."""
        return self.stages(self.stem(images)).mean(dim=(2, 3))


class _BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, projected if the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
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


class Residual12(nn.Module):
    """Four wide blocks of three convolutions, each with pooling and DropBlock.

    Blocks end in a leaky ReLU as published; the last one ends in a plain ReLU, which makes the features non-negative.
    Filters of (64, 128, 256, 512) are the narrower variant of the literature. While training, DropBlock blanks
    `drop_rate` of the map in the last two blocks, in squares of side `block_size`.
    """

    def __init__(
        self,
        filters: Sequence[int] = (64, 160, 320, 640),
        channels: int = 3,
        drop_rate: float = 0.0,
        block_size: int = 5,
    ) -> None:
        super().__init__()
        if not isinstance(filters, (list, tuple)) or not 1 <= len(filters) <= MOST_BLOCKS:
            several = f"1 to {MOST_BLOCKS} numbers, such as (64, 128, 256, 512)"
            raise ParameterError(f"filters must be {several}, got {filters!r:.60}.")
        for number in filters:
            check_numbers(filters=number, channels=channels)
        blocks = []
        for i, (inputs, outputs) in enumerate(pairwise([channels, *filters])):
            leak = 0.1 if i + 1 < len(filters) else 0.0
            blocks.append(_Block12(inputs, outputs, leak, DropBlock(drop_rate if i >= 2 else 0.0, block_size)))
        self.blocks = nn.Sequential(*blocks)
        _initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """Features (batch, V) of images (batch, channels, size, size)."""
        return self.blocks(images).mean(dim=(2, 3))


class _Block12(nn.Module):
    """Three convolutions of 3x3 with a projected shortcut, then pooling."""

    def __init__(self, inputs: int, outputs: int, leak: float, drop: nn.Module) -> None:
        super().__init__()
        self.conv1, self.norm1 = _convolution(inputs, outputs), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = _convolution(outputs, outputs), nn.BatchNorm2d(outputs)
        self.conv3, self.norm3 = _convolution(outputs, outputs), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential(_convolution(inputs, outputs, 1), nn.BatchNorm2d(outputs))
        self.inner, self.last = nn.LeakyReLU(0.1), nn.LeakyReLU(leak)
        self.pool = nn.MaxPool2d(2)
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(self.norm1(self.conv1(x)))
        y = self.inner(self.norm2(self.conv2(y)))
        y = self.norm3(self.conv3(y)) + self.shortcut(x)
        return self.drop(self.pool(self.last(y)))


class DropBlock(nn.Module):
    """Blank squares of the map while training and scale up the rest (Ghiasi, Lin, Le 2018)."""

    def __init__(self, rate: float, block_size: int) -> None:
        super().__init__()
        self.rate, self.block_size = rate, block_size

    def forward(self, x: Tensor) -> Tensor:
        """The map, with squares blanked."""
        if not self.training or self.rate == 0:
            return x
        height, width = x.shape[2:]
        side = min(self.block_size, height, width)
        # So many corners that squares around them cover the share wanted, as far as they do not overlap.
        rate = self.rate * height * width / (side**2 * (height - side + 1) * (width - side + 1))
        corners = torch.rand(*x.shape[:2], height - side + 1, width - side + 1, device=x.device) < rate
        padded = functional.pad(corners.to(x.dtype), (side - 1,) * 4)
        kept = 1 - functional.max_pool2d(padded, side, stride=1)
        return x * kept * (kept.numel() / kept.sum().clamp(min=1))


class WideResidual(nn.Module):
    """Three stages of (depth - 4) / 6 wide pre-activation blocks, with 16, 32 and 64 times `widening` filters."""

    def __init__(self, depth: int, widening: int, channels: int = 3) -> None:
        super().__init__()
        self.stem = _convolution(channels, 16)
        self.blocks = nn.Sequential()
        width = 16
        for stage, stride in enumerate((1, 2, 2)):
            for index in range((depth - 4) // 6):
                outputs = 16 * 2**stage * widening
                self.blocks.append(_WideBlock(width, outputs, stride if index == 0 else 1))
                width = outputs
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        _initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """Features (batch, V) of images (batch, channels, size, size)."""
        return self.relu(self.norm(self.blocks(self.stem(images)))).mean(dim=(2, 3))


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
