"""Numbers as the page prints them."""

from __future__ import annotations

import math

from hotshot.evaluation import Estimate

MINUS = "\N{MINUS SIGN}"


def percent(share: float, digits: int = 1) -> str:
    """A share in [0, 1] in percent."""
    return f"{100 * share:.{digits}f}%"


def points(estimate: Estimate, *, signed: bool = False) -> str:
    """An estimate in [0, 1] as percent or percentage points, with its interval where it has one.

    Examples
    --------
    >>> points(Estimate(0.9041, 0.006, 300)), points(Estimate(-0.004, float("inf"), 1), signed=True)
    ('90.41 ± 0.60', '−0.40')
    """
    mean = f"{100 * estimate.mean:{'+' if signed else ''}.2f}".replace("-", MINUS)
    if not math.isfinite(estimate.half_width):
        return mean
    return f"{mean} ± {100 * estimate.half_width:.2f}"


def milliseconds(seconds: float) -> str:
    """Milliseconds in three figures or so."""
    value = 1000 * seconds
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def count(number: int) -> str:
    """A whole number with its thousands set apart."""
    return f"{number:,}"


def shots_in_words(shots: int) -> str:
    """`1 shot`, `5 shots`."""
    return f"{shots} shot{'s' * (shots != 1)}"


def listed(items: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)
