"""Explanations as a table in HTML and as plain data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.formatting import shortened, whole_percentage, with_interval
from hotshot.notebook import BLUE, GREY, ORANGE, html_table

if TYPE_CHECKING:
    from hotshot.classifiers.explanation import Explanation

# The parts of a gap, as attributes of `Reason`, and their colours.
PARTS = {"own": ("examples", BLUE), "lent": ("lent means", ORANGE), "rest": ("rest", GREY)}
# Rows of a table, and the width of its longest bar in pixels.
MOST_ROWS, BAR = 50, 90


def named_lenders(lenders: Iterable[tuple[Any, float]]) -> str:
    """Names and percentages, such as "``a`` 31%, ``b`` 12%"."""
    return ", ".join(f"`{name}` {whole_percentage(weight)}" for name, weight in lenders)


def as_dict(explanation: Explanation) -> dict[str, Any]:
    """Plain data, with the sums of each reason."""
    found: dict[str, Any] = _plain(asdict(explanation))
    for plain, reason in zip(found["reasons"], explanation.reasons, strict=True):
        plain.update(own=reason.own, lent=reason.lent, rejected=reason.rejected)
    return found


def _plain(value: Any) -> Any:
    """The same without tuples and NumPy's types."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def as_html(explanation: Explanation) -> str:
    """Two tables: the lenders of each class and, if there are queries, the parts of the gap of each."""
    loans = [
        [_name(loan.label if loan.name is None else f"{loan.label} ({loan.name})"),
         escape(whole_percentage(loan.own_share)),
         ", ".join(f"{_name(name)} {escape(whole_percentage(weight))}" for name, weight in loan.lenders[:3])]
        for loan in explanation.loans[:MOST_ROWS]
    ]  # fmt: skip
    reasons = explanation.reasons[:MOST_ROWS]
    largest = max((abs(getattr(reason, part)) for reason in reasons for part in PARTS), default=1.0)
    rows = [
        [str(r.index), f"{_name(r.label)} {escape(whole_percentage(r.probability))}",
         f"{_name(r.rival)} {escape(whole_percentage(r.rival_probability))}", with_interval(r.gap)]
        + [_bar(getattr(r, part), largest, colour, with_interval(getattr(r, part), signed=True))
           for part, (_, colour) in PARTS.items()]
        for r in reasons
    ]  # fmt: skip
    tables = html_table(["class", "own share of the mean", "largest lenders"], loans)
    tables += html_table(["query", "class", "runner-up", "gap", *(name for name, _ in PARTS.values())], rows)
    hidden = max(len(explanation.loans), len(explanation.reasons)) - MOST_ROWS
    more = f"<p>The first {MOST_ROWS} rows of each table.</p>" if hidden > 0 else ""
    return f"<div>{tables or escape(str(explanation))}{more}</div>"


def _name(name: Any) -> str:
    return escape(shortened(name))


def _bar(value: float, largest: float, colour: str, text: str) -> str:
    """A bar from the middle, to the right for a positive value and to the left for a negative one."""
    width = round(BAR / 2 * min(abs(value) / (largest or 1), 1))
    left = BAR // 2 - (width if value < 0 else 0)
    return (
        f"<span style='display:inline-block;width:{BAR}px'><span style='display:inline-block;height:0.7em;"
        f"margin-left:{left}px;width:{width}px;background:{colour}'></span></span> {escape(text)}"
    )
