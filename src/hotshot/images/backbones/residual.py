"""ResNet10 and ResNet18: four stages of basic blocks, averaged over the last map."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class Residual(nn.Module):
    """A residual network of basic blocks.

    Parameters
    ----------
    blocks : sequence of int
        Blocks in each stage; each stage after the first halves the map and doubles the filters.
    filters : int
        Of the first stage.
    channels : int
        Of the images.
    small : bool
        Whether the stem is one convolution of 3x3 that keeps the size, for images of 32x32, instead of 7x7 with
        stride 2 and pooling.
    """

    def __init__(
        self,
        blocks: Sequence[int] = (2, 2, 2, 2),
        filters: int = 64,
        channels: int = 3,
        small: bool = False,
    ) -> None:
        super().__init__()
        stem: list[nn.Module] = [
            nn.Conv2d(channels, filters, 3, padding=1, bias=False)
            if small
            else nn.Conv2d(channels, filters, 7, stride=2, padding=3, bias=False),
            nn.BatchNorm2d(filters),
            nn.ReLU(),
        ]
        if not small:
            stem.append(nn.MaxPool2d(3, stride=2, padding=1))
        self.stem = nn.Sequential(*stem)
        stages = []
        width = filters
        for stage, count in enumerate(blocks):
            layers = []
            for index in range(count):
                outputs = filters * 2**stage
                layers.append(BasicBlock(width, outputs, stride=2 if stage and not index else 1))
                width = outputs
            stages.append(nn.Sequential(*layers))
        self.stages = nn.Sequential(*stages)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Features (batch, V) of images (batch, channels, size, size)."""
        return self.stages(self.stem(images)).mean(dim=(2, 3))


class BasicBlock(nn.Module):
    """Two convolutions of 3x3 and a shortcut, which is projected where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: Tensor) -> Tensor:
        """The block's map."""
        y = self.relu(self.norm1(self.conv1(x)))
        return self.relu(self.norm2(self.conv2(y)) + self.shortcut(x))
