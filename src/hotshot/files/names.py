"""Names, labels and sizes from files, as sentences may hold them: short and printable whatever is in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

_SHOWN = 8
_LONGEST = 60


def quoted(label: Any) -> str:
    """A label or a name from a file, in quotes, safe to print."""
    text = repr(label.item() if isinstance(label, np.generic) else label)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def printable(text: str, longest: int = 200) -> str:
    """Text on one line without control characters, of at most so many characters of the original."""
    short = " ".join(text[:longest].split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)


def listing(items: Iterable[str]) -> str:
    """The first few of many things, with commas."""
    items = list(items)
    return ", ".join(items[:_SHOWN]) + (f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else "")


def readable_size(n_bytes: int) -> str:
    """Bytes as a person says them: 1.5 MB."""
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    power = min((len(str(n_bytes)) - 1) // 3, 6)
    return f"{n_bytes / 1000**power:.3g} {'kMGTPE'[power - 1]}B"
