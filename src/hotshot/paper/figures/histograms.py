"""How many tasks fall into which range of accuracy, method beside method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import ParameterError
from hotshot.paper.figures.checks import named, numbers
from hotshot.paper.figures.header import add_header
from hotshot.paper.figures.naming import number_ticks
from hotshot.paper.figures.style import COLOURS, COLUMN, HATCHES, TEXT, drawing
from hotshot.paper.figures.text import wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Share of a bin that its bars fill.
FILLED = 0.84


def histogram(values: Mapping[str, Any], *, edges: Any, x_label: str, label: str, title: str = "") -> Figure:
    """Counts of values between edges, with a bar for each method side by side.

    Parameters
    ----------
    values : dict of name to array (tasks,)
    edges : array (bins + 1,)
        Increasing; every value lies between the first and the last. A bin holds its lower edge, the last bin both.
    x_label, label : str
        What the values are, and what is counted.
    title : str
    """
    bounds = numbers(edges, "edges", ("bins + 1",))
    if len(bounds) < 2 or (np.diff(bounds) <= 0).any():
        raise ParameterError(
            f"edges must be at least two increasing numbers, got {bounds.tolist()}: sort them."
        )
    given = {
        name: numbers(each, f"values[{name!r}]", ("tasks",)) for name, each in named(values, "values").items()
    }
    for name, each in given.items():
        if each.min() < bounds[0] or each.max() > bounds[-1]:
            raise ParameterError(
                f"edges must enclose all values, got {bounds[0]:g} to {bounds[-1]:g} where values[{name!r}] go from "
                f"{each.min():g} to {each.max():g}: widen the edges."
            )
    bins = np.diff(bounds)
    with drawing(COLUMN, 2.1) as figure:
        axes = figure.subplots()
        handles = []
        for i, each in enumerate(given.values()):
            counts, _ = np.histogram(each, bounds)
            width = FILLED * bins / len(given)
            left = bounds[:-1] + (1 - FILLED) / 2 * bins + i * width
            handles.append(
                axes.bar(
                    left,
                    counts,
                    width,
                    align="edge",
                    color=COLOURS[i % len(COLOURS)],
                    hatch=HATCHES[i % len(HATCHES)],
                    edgecolor="white",
                    linewidth=0.3,
                )
            )
        axes.set_xlim(bounds[0], bounds[-1])
        axes.locator_params(axis="y", integer=True)
        axes.grid(axis="y")
        axes.set_xlabel(wrapped(x_label, 2.6, TEXT))
        axes.set_ylabel(wrapped(label, 1.6, TEXT))
        number_ticks(axes, bounds)
        add_header(figure, title, handles if len(given) > 1 else (), given)
    return figure
