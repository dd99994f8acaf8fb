"""Numbers and names as a person reads them, safe to print whatever a file holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np

LONGEST_NAME = 40


def shown(name: Any, longest: int = LONGEST_NAME) -> str:
    """A name from a file on one line, without control characters, and not too long."""
    text = _printable(name)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def shown_end(path: str, longest: int = LONGEST_NAME) -> str:
    """A path; of a long one the end, which tells it from others."""
    text = _printable(path)
    return text if len(text) <= longest else f"…{text[1 - longest :]}"


def _printable(name: Any) -> str:
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(name))


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number with its noun: 1 sample, 2,000 samples."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def number(value: float, digits: int = 3) -> str:
    """A number to so many digits, with an exponent only where it needs many zeros."""
    if value and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits}g}"
    return np.format_float_positional(value, precision=digits, fractional=False, trim="-")


def percent(share: float) -> str:
    """A share in percent that is 0 or 100 only where it is exactly so."""
    if 0 < share < 0.001:
        return "under 0.1%"
    if 0.999 < share < 1:
        return "over 99.9%"
    return f"{number(100 * share, 2 if share < 0.1 else 3)}%"


def similar_names(names: Iterable[Any], others: Iterable[Any] | None = None) -> list[tuple[Any, Any]]:
    """Pairs of different names, or of names and others, that differ only in case, spaces, hyphens or underscores."""
    seen: dict[str, Any] = {}
    pairs = []
    for name in names:
        first = seen.setdefault(_plain(name), name)
        if others is None and first is not name:
            pairs.append((first, name))
    for other in others or ():
        first = seen.get(_plain(other), other)
        if str(first) != str(other):
            pairs.append((first, other))
    return pairs


def _plain(name: Any) -> str:
    return re.sub(r"[\s_-]+", " ", str(name)).strip().casefold()
