"""What takes features of images: a network, and how images enter it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Extractor:
    """A network and how images enter it.

    Attributes
    ----------
    name : str
        Of the network, for the header of the features.
    network : function of a batch of inputs
        Gives features (batch, V).
    prepare : function of pixels in uint8 (batch, 3, side, side)
        Gives inputs of the network.
    size : int
        Side of the images to decode.
    about : dict
        What else is known: checkpoint, epochs and so on.
    """

    name: str
    network: Callable[[Tensor], Tensor]
    prepare: Callable[[Tensor], Tensor]
    size: int
    about: dict[str, Any]
