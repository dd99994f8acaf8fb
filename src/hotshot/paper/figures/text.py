"""Names and sentences that fit: users name their classes, in any script and at any length."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from hotshot.paper.figures.style import POINTS

ELLIPSIS = "…"


def clean(text: Any) -> str:
    """`text` on one line, without characters that cannot be drawn or that an SVG file may not hold."""
    kept = []
    for character in " ".join(str(text).split()):
        if character.isprintable():
            kept.append(character)
        elif unicodedata.category(character) != "Cf":
            kept.append("\N{REPLACEMENT CHARACTER}")
    return "".join(kept)


def short(name: Any, most: int = 32) -> str:
    """A name on one line and at most `most` characters wide; of a longer one the middle is left out.

    Wide characters, as of Chinese, count twice.

    Examples
    --------
    >>> short("card_payment_wrong_exchange_rate", 20)
    'card_payme…ange_rate'
    """
    text = clean(name)
    if sum(map(_columns, text)) <= most:
        return text
    room = most - 1
    head = _leading(text, room - room // 2)
    tail = _leading(text[::-1], room // 2)[::-1]
    return f"{head}{ELLIPSIS}{tail}"


def fitted(names: Iterable[Any], inches: float, size: float) -> list[str]:
    """Names shortened until each is at most so many inches wide in print of so many points."""
    return [_fitted(clean(name), inches * POINTS, size) for name in names]


def _fitted(text: str, points: float, size: float) -> str:
    most = sum(map(_columns, text))
    shown = text
    while most > 1 and (width := text_width(shown, size)) > points:
        most = min(most - 1, int(most * points / width) + 1)
        shown = short(text, max(most, 1))
    return shown


def wrapped(text: Any, inches: float, size: float, lines: int = 3) -> str:
    """A sentence or name in at most so many lines of a width, broken at spaces, and in long words at underscores."""
    points = inches * POINTS
    pieces: list[str] = []
    for word in re.findall(r"\S+\s*", clean(text)):
        long = text_width(word.rstrip(), size) > points
        pieces += re.findall(r"[^_/-]*[_/-]*\s*", word) if long else [word]
    rows = [""]
    for piece in pieces:
        if rows[-1] and len(rows) < lines and text_width((rows[-1] + piece).rstrip(), size) > points:
            rows.append("")
        rows[-1] += piece
    return "\n".join(_fitted(row.rstrip(), points, size) for row in rows)


def text_width(text: str, size: float) -> float:
    """Width in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _leading(text: str, most: int) -> str:
    """The longest beginning of `text` that is at most so many characters wide."""
    width = 0
    for i, character in enumerate(text):
        width += _columns(character)
        if width > most:
            return text[:i]
    return text
