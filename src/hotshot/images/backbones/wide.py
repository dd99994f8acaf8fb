"""WRN-28-10: three stages of wide pre-activation blocks, averaged over the last map."""

from __future__ import annotations

from torch import Tensor, nn


class WideResidual(nn.Module):
    """A wide residual network as S2M2 trains it.

    Parameters
    ----------
    depth : int
        6n + 4 for n blocks a stage.
    widening : int
        Factor on the 16, 32 and 64 filters of the stages.
    channels : int
        Of the images.
    """

    def __init__(self, depth: int = 28, widening: int = 10, channels: int = 3) -> None:
        super().__init__()
        count = (depth - 4) // 6
        self.stem = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        blocks: list[nn.Module] = []
        width = 16
        for stage, stride in enumerate((1, 2, 2)):
            for index in range(count):
                outputs = 16 * 2**stage * widening
                blocks.append(WideBlock(width, outputs, stride if index == 0 else 1))
                width = outputs
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        """Features (batch, V) of images (batch, channels, size, size)."""
        return self.relu(self.norm(self.blocks(self.stem(images)))).mean(dim=(2, 3))


class WideBlock(nn.Module):
    """Normalisation and ReLU before each of two convolutions; a projected shortcut where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.relu = nn.ReLU()
        self.projection: nn.Module | None = None
        if stride != 1 or inputs != outputs:
            self.projection = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The block's map."""
        active = self.relu(self.norm1(x))
        y = self.conv2(self.relu(self.norm2(self.conv1(active))))
        # A projection sees what the convolutions see, an identity what came in.
        return y + (x if self.projection is None else self.projection(active))
