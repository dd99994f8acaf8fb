"""What the paper says of its experiments, and whether that holds on the features at hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hotshot.evaluation.tables import Number

# Differences that a claim lists; where there are more, only so many of the lowest.
MOST_LISTED, LOWEST = 5, 3
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, whether it "holds", "does not hold" or is "undecided", and by what."""

    text: str
    verdict: str
    measured: str


def claim(text: str, differences: Mapping[str, Number]) -> Claim:
    """A claim that some differences are above 0: it holds where all are, by their intervals, and fails with one below.

    Examples
    --------
    >>> claim("A is ahead of B.", {"": Number(1.5, 0.2, signed=True)})
    Claim(text='A is ahead of B.', verdict='holds', measured='+1.50 ± 0.20')
    """
    widths = {name: math.inf if d.half_width is None else d.half_width for name, d in differences.items()}
    if any(d.mean + widths[name] < 0 for name, d in differences.items()):
        verdict = FAILS
    elif all(d.mean - widths[name] > 0 for name, d in differences.items()):
        verdict = HOLDS
    else:
        verdict = UNDECIDED
    return Claim(text, verdict, listed(differences))


def listed(differences: Mapping[str, Number]) -> str:
    """Differences as a claim shows them."""
    shown, lead = list(differences.items()), ""
    if len(shown) > MOST_LISTED:
        shown = sorted(shown, key=lambda item: item[1].mean)[:LOWEST]
        lead = f"lowest of {len(differences)}: "
    return lead + "; ".join(f"{name} {number}".strip() for name, number in shown)
