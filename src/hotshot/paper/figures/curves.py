"""Accuracy against a number that is varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import ParameterError
from hotshot.paper.figures.checks import estimates, names_of, numbers, padded, span
from hotshot.paper.figures.header import add_header
from hotshot.paper.figures.naming import keep_height, name_columns, number_ticks
from hotshot.paper.figures.style import COLOURS, COLUMN, MARKERS, SOFT, TEXT, drawing
from hotshot.paper.figures.text import wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Of the axes, in inches.
HEIGHT = 1.75
LIMIT_DASHES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


def lines(
    x: Any,
    series: Mapping[str, Sequence[Any]],
    *,
    x_label: str,
    label: str,
    limits: Mapping[str, float] | None = None,
    x_names: Sequence[Any] | None = None,
    log: bool = False,
    title: str = "",
) -> Figure:
    """Means against x as lines, their intervals as bands, and limits as dashed levels.

    Parameters
    ----------
    x : array (n,)
        Increasing.
    series : dict of name to list of (mean, half_width)
        One pair for each x, or None where there is no value. The half width may be None.
    x_label, label : str
        What x and the values are.
    limits : dict of name to value
        Levels that the lines are compared with; one with the name of a series has its colour.
    x_names : sequence of n names, optional
        Instead of the numbers, such as "all" for the last.
    log : bool
        Whether x has a logarithmic scale.
    title : str
    """
    places = numbers(x, "x", ("n",))
    if (np.diff(places) <= 0).any() or (log and places[0] <= 0):
        wanted = "positive and increasing on a logarithmic scale" if log else "increasing"
        raise ParameterError(f"x must be {wanted}, got {places.tolist()}: sort it.")
    estimated = estimates(series, len(places))
    levels = {
        str(name): float(numbers([value], f"limits[{name!r}]", ("1",))[0])
        for name, value in (limits or {}).items()
    }
    names = None if x_names is None else names_of(x_names, len(places), "x_names")
    low, high = span(estimated.values())
    low, high = min([low, *levels.values()]), max([high, *levels.values()])
    with drawing(COLUMN, HEIGHT + 0.5) as figure:
        axes = figure.subplots()
        handles, shown = [], []
        for i, (name, (means, halves)) in enumerate(estimated.items()):
            colour, known = COLOURS[i % len(COLOURS)], ~np.isnan(means)
            axes.fill_between(
                places,
                means - np.nan_to_num(halves),
                means + np.nan_to_num(halves),
                color=colour,
                alpha=0.18,
                linewidth=0,
            )
            handles += axes.plot(
                places[known],
                means[known],
                color=colour,
                marker=MARKERS[i % len(MARKERS)],
                markeredgecolor="white",
                markeredgewidth=0.4,
            )
            shown.append(name)
        for i, (name, level) in enumerate(levels.items()):
            own = list(estimated).index(name) if name in estimated else None
            colour = SOFT if own is None else COLOURS[own % len(COLOURS)]
            handles.append(
                axes.axhline(level, color=colour, linewidth=1, linestyle=LIMIT_DASHES[i % len(LIMIT_DASHES)])
            )
            shown.append(f"{name} (limit)" if name in estimated else name)
        axes.set_ylim(*padded(low, high))
        axes.grid(axis="y")
        axes.set_xlabel(wrapped(x_label, 2.6, TEXT))
        axes.set_ylabel(wrapped(label, HEIGHT, TEXT))
        if log:
            axes.set_xscale("log")
            axes.minorticks_off()
        if names is not None:
            name_columns(axes, places, names)
        elif log:
            number_ticks(axes, places)
        keep_height(axes, HEIGHT)
        add_header(figure, title, handles if len(shown) > 1 else (), shown)
    return figure
