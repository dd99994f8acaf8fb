"""ResNet12 as in MetaOptNet: four blocks of three convolutions, each with pooling and DropBlock."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional


class Residual12(nn.Module):
    """Four wide blocks, averaged over the last map.

    Blocks end in a leaky ReLU as published, but for the last: its plain ReLU makes the features non-negative.

    Parameters
    ----------
    filters : sequence of int
        Of the blocks; (64, 128, 256, 512) is the narrower variant of the literature.
    channels : int
        Of the images.
    drop_rate : float
        Share of the map that DropBlock blanks in the last two blocks while training.
    block_size : int
        Side of the squares it blanks.
    """

    def __init__(
        self,
        filters: Sequence[int] = (64, 160, 320, 640),
        channels: int = 3,
        drop_rate: float = 0.0,
        block_size: int = 5,
    ) -> None:
        super().__init__()
        widths = [channels, *filters]
        self.blocks = nn.Sequential(
            *(
                Block12(
                    widths[i],
                    widths[i + 1],
                    leak=0.1 if i + 1 < len(filters) else 0.0,
                    drop=DropBlock(drop_rate if i >= 2 else 0.0, block_size),
                )
                for i in range(len(filters))
            )
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="leaky_relu")

    def forward(self, images: Tensor) -> Tensor:
        """Features (batch, V) of images (batch, channels, size, size)."""
        return self.blocks(images).mean(dim=(2, 3))


class Block12(nn.Module):
    """Three convolutions of 3x3 with a projected shortcut, then pooling."""

    def __init__(self, inputs: int, outputs: int, leak: float, drop: nn.Module) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.conv3 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm3 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.inner, self.last = nn.LeakyReLU(0.1), nn.LeakyReLU(leak)
        self.pool = nn.MaxPool2d(2)
        self.drop = drop

    def forward(self, x: Tensor) -> Tensor:
        """The block's map."""
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
