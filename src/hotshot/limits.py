"""How small and how large the numbers that a user passes may be, for the library and the command line alike."""

from numbers import Integral, Real
from typing import Any

from hotshot.errors import ParameterError

# Beyond them a number is a slip that would take all memory or never end. Where they are whole, so must it be.
LIMITS: dict[str, tuple[float, float]] = {
    "ways": (2, 10_000),
    "shots": (1, 100_000),
    "queries": (1, 100_000),
    "tasks": (1, 10_000_000),
    "seed": (0, 2**63 - 1),
    "candidates": (1, 100_000),
    "factor": (2, 1000),
    "threshold": (0.0, 1.0),
    # Of images, networks and their training.
    "size": (1, 4096),
    "channels": (1, 1024),
    "filters": (1, 2048),
    "epochs": (1, 1_000_000),
    "batch_size": (2, 65_536),
    "learning_rate": (1e-30, 1e12),
    "momentum": (0.0, 1.0),
    "weight_decay": (0.0, 1e12),
    "label_smoothing": (0.0, 1.0),
    "mixup": (0.0, 1000.0),
}


def check_numbers(**values: Any) -> None:
    """Raise unless each of these numbers is within the limits of its name."""
    for name, value in values.items():
        check_number(name, value, *LIMITS[name])


def check_number(name: str, value: Any, least: float, most: float) -> None:
    """Raise unless `value` is a number from `least` to `most`, whole where these are."""
    kind: Any
    kind, noun = (Integral, "an integer") if isinstance(least, int) else (Real, "a number")
    if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
        raise ParameterError(f"{name} must be {noun} from {least:,} to {most:,}, got {value!r:.60}.")
