"""Conv4 and Conv6: blocks of convolution, batch normalisation, ReLU and pooling, flattened at the end."""

from __future__ import annotations

from collections import OrderedDict

from torch import Tensor, nn

# Later blocks do not pool: a map of 5x5 is small enough.
POOLED_BLOCKS = 4


class Convolutional(nn.Module):
    """A plain network; features are its last map after the ReLU and pooling, flattened.

    Parameters
    ----------
    depth : int
        Number of blocks, 4 or 6 in the literature.
    filters : int
        Of every block.
    channels : int
        Of the images.
    """

    def __init__(self, depth: int, filters: int = 64, channels: int = 3) -> None:
        super().__init__()
        inputs = [channels] + [filters] * (depth - 1)
        self.blocks = nn.Sequential(*(_block(n, filters, i < POOLED_BLOCKS) for i, n in enumerate(inputs)))
        initialise(self)

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


def initialise(network: nn.Module) -> None:
    """Draw the kernels of all convolutions so that ReLUs keep the variance of gradients (He et al. 2015)."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
