r"""From raw features to the space the method works in: power, centring, rotation, unit norm.

.. math::
    x \mapsto \frac{R^\top (x^\lambda - c)}{\lVert R^\top (x^\lambda - c) \rVert}

The power is Tukey's ladder (below eq. 3 of the paper); centring on the base samples, rotation to their axes
and unit norm go beyond the paper and make its constants independent of the scale of the features.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from hotshot.arrays import Array, namespace, unit_vectors
from hotshot.errors import InputError


def choose_power(power: float | str, *smallest: float) -> float:
    """`power` itself; for "auto" 0.5 where the smallest features are not negative and 1 elsewhere."""
    if power != "auto":
        return float(power)
    return 0.5 if min(smallest) >= 0 else 1.0


def power_transform(x: Array, power: float, offset: float = 0.0, name: str = "X") -> Array:
    """Tukey's ladder of powers: (x + offset)**power, and log(x + offset) where the power is 0."""
    xp = namespace(x)
    x = x + offset if offset else x
    if power == 1:
        return x
    smallest = float(xp.min(x))
    if (smallest < 0 and power != round(power)) or (smallest < 0 and power == 0):
        raise InputError(
            f"{name} has negative entries (down to {smallest:.3g}), which have no real power {power:g}: "
            "pass power=1, or features taken after a ReLU."
        )
    if power <= 0 and bool(xp.any(x == 0)):
        raise InputError(
            f"{name} has entries equal to 0, where power {power:g} is infinite: "
            "pass a positive power, or power_offset=1e-6."
        )
    return xp.log(x) if power == 0 else x**power


@dataclass(frozen=True)
class FeatureTransform:
    """How raw features of novel classes enter the space of a prepared bank.

    Attributes
    ----------
    power, offset : float
        Of the power transform.
    scale : float
        Factor before all else, a power of two that brings features of any magnitude near 1.
    centre : array (V,) or None
    axes : array (V, axes) or None
        Orthonormal directions to rotate to.
    unit : bool
        Whether the result is scaled to unit norm.
    """

    power: float
    offset: float
    scale: float
    centre: Array | None
    axes: Array | None
    unit: bool

    def same_as(self, other: FeatureTransform | None) -> bool:
        """Whether both give the same numbers."""
        if other is None:
            return False
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)]
        return all(a is b or (a is not None and b is not None and np.array_equal(a, b)) for a, b in pairs)

    def __call__(self, x: Array, name: str = "X") -> Array:
        """Transform features (…, V) to (…, axes)."""
        if self.scale != 1:
            x = x * self.scale
        x = power_transform(x, self.power, self.offset, name)
        if self.centre is not None:
            x = x - self.centre
        if self.axes is not None:
            x = x @ self.axes
        return unit_vectors(x) if self.unit else x
