"""Base classes of a novel sample by weight, with the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.paper.figures.checks import names_of, numbers
from hotshot.paper.figures.header import add_header
from hotshot.paper.figures.naming import name_rows, row_pitch, row_print
from hotshot.paper.figures.style import COLOURS, COLUMN, INK, POINTS, TEXT, drawing
from hotshot.paper.figures.text import wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Most points of height of a row.
TALLEST = 13.0


def ranking(names: Sequence[Any], values: Any, *, label: str, title: str = "") -> Figure:
    """Values as horizontal bars, the largest on top, each with its number.

    Parameters
    ----------
    names : sequence of n names
        All rows have name and number up to 120; beyond, every second, third, and so on.
    values : array (n,)
    label : str
        What the values are, such as "transfer weight".
    title : str
    """
    heights = numbers(values, "values", ("n",))
    row_names = names_of(names, len(heights), "names")
    order = np.argsort(-heights, kind="stable")
    heights = heights[order]
    n = len(heights)
    pitch = row_pitch(n, TALLEST)
    with drawing(COLUMN, n * pitch / POINTS + 0.45) as figure:
        axes = figure.subplots()
        axes.barh(np.arange(n), heights, height=0.68, color=COLOURS[0], linewidth=0)
        # Room for the numbers beside the longest bars.
        low, high = min(0.0, heights.min()), max(0.0, heights.max())
        room = 0.17 * (high - low) or 1.0
        axes.set_xlim(low - room * (low < 0), high + room * (high > 0 or low == 0))
        shown = decimals(heights)
        step, size = row_print(n, pitch)
        for row in range(0, n, step):
            side = 1 if heights[row] >= 0 else -1
            axes.annotate(
                shown[row],
                (heights[row], row),
                xytext=(2.5 * side, 0),
                textcoords="offset points",
                fontsize=size,
                horizontalalignment="left" if side > 0 else "right",
                verticalalignment="center_baseline",
            )
        axes.set_xlabel(wrapped(label, 2.2, TEXT))
        axes.locator_params(axis="x", nbins=5)
        name_rows(axes, [row_names[i] for i in order], pitch=pitch)
        axes.spines["left"].set_visible(False)
        axes.axvline(0, color=INK, linewidth=0.6)
        add_header(figure, title)
    return figure


def decimals(values: np.ndarray) -> list[str]:
    """Numbers with the same decimals, three digits for the largest; "<0.001" where that leaves none.

    Examples
    --------
    >>> decimals(np.array([0.1024, 0.0872, 0.0002, 0.0]))
    ['0.102', '0.087', '<0.001', '0']
    """
    largest = float(np.abs(values).max()) or 1.0
    places = 2 - int(np.floor(np.log10(largest)))
    if -4 <= places <= 6:
        return [_number(value, max(places, 0)) for value in values]
    return [f"{value:.2e}" if value else "0" for value in values]


def _number(value: float, places: int) -> str:
    if value and round(value, places) == 0:
        return f"<{10.0**-places:.{places}f}" if value > 0 else f">\N{MINUS SIGN}{10.0**-places:.{places}f}"
    return f"{value:.{places}f}".replace("-", "\N{MINUS SIGN}") if value else "0"
