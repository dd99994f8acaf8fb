"""How a backbone is trained: every choice, in one place that is saved with the result."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from hotshot.errors import ParameterError

OPTIMISERS, SCHEDULES = ("sgd", "adam"), ("cosine", "steps", "constant")
# Pixels beyond the size of the input that the cached images have on each side, as a share, for random crops.
MARGIN = 1 / 7


@dataclass(frozen=True)
class Recipe:
    """Parameters of `train`.

    Attributes
    ----------
    backbone, options
        Name for `hotshot.images.backbones.create`, and its options.
    size : int
        Side of the input in pixels.
    epochs, batch_size : int
    optimiser : {"sgd", "adam"}
    learning_rate, momentum, weight_decay : float
        Momentum is Nesterov's, of SGD.
    schedule : {"cosine", "steps", "constant"}
        The rate falls to zero along a cosine, or to a tenth after 60% and again after 80% of the epochs.
    label_smoothing : float
    rotation : bool
        Train on the four rotations of a quarter of each batch too, with a second head (S2M2_R).
    mixup : float
        Strength of manifold mixup, the parameter of its Beta distribution (2 in S2M2); 0 is none.
    augment : bool
        Random crops and colours.
    flip : bool
        Mirror half of the images too, where left and right mean nothing.
    seed : int
    """

    backbone: str = "conv4"
    options: dict[str, Any] = field(default_factory=dict)
    size: int = 84
    epochs: int = 60
    batch_size: int = 128
    optimiser: str = "sgd"
    learning_rate: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 5e-4
    schedule: str = "cosine"
    label_smoothing: float = 0.0
    rotation: bool = False
    mixup: float = 0.0
    augment: bool = True
    flip: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        positive = ("size", "epochs", "batch_size", "learning_rate")
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in positive and not value > 0:
                raise ParameterError(f"{f.name} must be positive, got {value!r}.")
            if f.name in ("momentum", "weight_decay", "label_smoothing", "mixup") and not value >= 0:
                raise ParameterError(f"{f.name} must not be negative, got {value!r}.")
        if self.optimiser not in OPTIMISERS:
            raise ParameterError(f"optimiser must be one of {', '.join(OPTIMISERS)}, got {self.optimiser!r}.")
        if self.schedule not in SCHEDULES:
            raise ParameterError(f"schedule must be one of {', '.join(SCHEDULES)}, got {self.schedule!r}.")

    @property
    def cached_size(self) -> int:
        """Side of the images to decode: some margin for random crops."""
        return round(self.size * (1 + MARGIN)) if self.augment else self.size
