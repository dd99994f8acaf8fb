"""Names along the axes that fit beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.paper.figures.style import POINTS, SMALL, SMALLEST
from hotshot.paper.figures.text import fitted, text_width, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Height of a line of text over the size of its print, and the least distance of slanted lines.
LINE, SLANTED_LINE = 1.22, 1.1
# Height of a row of a long figure in points, at most and at least, and as many rows as all have a name.
TALLEST, LOWEST, MOST_NAMED = 11.5, 6.1, 120
# Inches that the rows of a long figure share, and the longest name beside them.
ROWS_HEIGHT, NAME_WIDTH = 8.0, 1.75
# Least space between level names in points.
SPACE = 4.0


def row_pitch(n_rows: int, tallest: float = TALLEST) -> float:
    """Points from row to row, so that as many rows as possible fit a page and can be read."""
    return float(np.clip(ROWS_HEIGHT * POINTS / n_rows, LOWEST, tallest)) * min(1.0, MOST_NAMED / n_rows)


def row_print(n_rows: int, pitch: float) -> tuple[int, float]:
    """Which rows have a name, every first, second, third …, and the size of its print."""
    step = -(-n_rows // MOST_NAMED)
    return step, float(np.clip(pitch * step / LINE, SMALLEST, SMALL))


def name_rows(axes: Axes, names: Sequence[str], *, pitch: float, inches: float = NAME_WIDTH) -> None:
    """Names of rows 0, 1, … from the top, on several lines where rows are high.

    All have one up to 120; of more rows every second, third, and so on.
    """
    step, size = row_print(len(names), pitch)
    lines = max(1, int(pitch * step / (LINE * size)))
    shown = [wrapped(name, inches, size, lines) for name in names[::step]]
    axes.set_yticks(range(0, len(names), step), labels=shown, fontsize=size)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def name_columns(axes: Axes, places: Any, names: Sequence[str], *, inches: float = 1.2) -> None:
    """Names below the axes: level where they fit, else slanted, else upright.

    Where upright ones would touch they are smaller, and where they could not be read every second, third, and so on
    is left out.
    """
    shown = fitted(names, inches, SMALL)
    middles = _middles(axes, places)
    halves = np.array([text_width(name, SMALL) / 2 for name in shown])
    if (np.diff(middles) >= halves[1:] + halves[:-1] + SPACE).all():
        axes.set_xticks(places, labels=shown)
        return
    pitch = float(np.diff(middles).min())
    if pitch * np.sin(np.pi / 4) >= SLANTED_LINE * SMALL:
        axes.set_xticks(places, labels=shown)
        _turn(axes, 45, SMALL)
        return
    step = int(np.ceil(LINE * SMALLEST / pitch))
    size = min(SMALL, pitch * step / LINE)
    axes.set_xticks(places[::step], labels=fitted(names[::step], inches, size))
    _turn(axes, 90, size)


def keep_height(axes: Axes, inches: float) -> None:
    """Let the figure grow or shrink until the axes, whatever the names below them take, are so high."""
    figure: Any = axes.get_figure()
    figure.get_layout_engine().execute(figure)
    figure.set_figheight(figure.get_figheight() + inches - axes.get_window_extent().height / figure.dpi)


def number_ticks(axes: Axes, places: Any) -> None:
    """Ticks at all places below the axes, with numbers at all but those that would touch the next one."""
    names = [f"{place:g}" for place in places]
    middles = _middles(axes, places)
    halves = [text_width(name, SMALL) / 2 for name in names]
    kept = [len(names) - 1]
    for i in range(len(names) - 2, -1, -1):
        if middles[i] + halves[i] + SPACE <= middles[kept[-1]] - halves[kept[-1]]:
            kept.append(i)
    axes.set_xticks(places, labels=[name if i in kept else "" for i, name in enumerate(names)])


def _middles(axes: Axes, places: Any) -> np.ndarray:
    """Where places along the x axis are in the figure, in points; the layout is made for it."""
    figure: Any = axes.get_figure()
    axes.set_xticks([])
    figure.get_layout_engine().execute(figure)
    pixels = axes.transData.transform([(place, 0) for place in places])[:, 0]
    return pixels * POINTS / figure.dpi


def _turn(axes: Axes, angle: float, size: float) -> None:
    for label in axes.get_xticklabels():
        label.set(
            rotation=angle,
            rotation_mode="anchor",
            horizontalalignment="right",
            verticalalignment="center" if angle == 90 else "top",
            fontsize=size,
        )
