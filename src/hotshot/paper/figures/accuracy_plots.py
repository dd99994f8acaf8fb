"""Accuracies of several methods: by dataset, against a number that is varied, and task by task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import ParameterError
from hotshot.paper.figures import text
from hotshot.paper.figures.checks import arrays_of, estimates, names_of, numbers, padded, span
from hotshot.paper.figures.style import COLUMN, HATCHES, INK, POINTS, SOFT, TEXT, colour, drawing, marker, outlined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Most points of height for each series of a group of dots; between two groups there is as much again.
TALLEST = 7.5
# Least points of height of a group: two lines of its name.
SHORTEST = 17.5
DOTS: dict[str, Any] = {"markeredgewidth": 0.9, "elinewidth": 1.1}
# Of the axes of lines, in inches.
HEIGHT = 1.75
LIMIT_DASHES = ((0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
# Share of a bin that its bars fill.
FILLED = 0.84


def grouped_bars(
    groups: Iterable[Any], series: Mapping[str, Sequence[Any]], *, label: str, zero: bool = False, title: str = ""
) -> Figure:
    """Means with their intervals, by group and series, as dots with error bars.

    Dots, not bars from zero: the differences between methods are small against the values. Groups go down the page,
    so that their names are level. A series has a pair (mean, half width or None) for each group, None without a value;
    `label` says what the values are. With `zero` there is a line at 0, for differences.
    """
    group_names = names_of(groups, None, "groups")
    estimated = estimates(series, len(group_names))
    n_groups, n_series = len(group_names), len(estimated)
    of_series = text.row_pitch(n_groups * (n_series + 1), TALLEST)
    pitch = max(of_series * (n_series + 1), SHORTEST)
    with drawing(COLUMN, n_groups * pitch / POINTS + 0.45) as figure:
        axes = figure.subplots()
        handles = []
        for i, (means, halves) in enumerate(estimated.values()):
            places = np.arange(n_groups) + (i - (n_series - 1) / 2) * of_series / pitch
            half = np.nan_to_num(halves)
            handles.append(axes.errorbar(means, places, xerr=half, fmt=marker(i), color=colour(i), **DOTS))
        for between in range(1, n_groups):
            axes.axhline(between - 0.5, color="#CCCCCC", linewidth=0.4)
        low, high = span(estimated.values())
        if zero:
            axes.axvline(0, color=INK, linewidth=0.7)
            low, high = min(low, 0.0), max(high, 0.0)
        axes.set_xlim(*padded(low, high))
        axes.locator_params(axis="x", nbins=6)
        axes.grid(axis="x")
        axes.set_xlabel(text.wrapped(label, 1.8, TEXT))
        text.name_rows(axes, group_names, pitch=pitch, inches=1.35)
        text.add_header(figure, title, handles if n_series > 1 else (), estimated)
    return figure


def lines(
    x: Any,
    series: Mapping[str, Sequence[Any]],
    *,
    x_label: str,
    label: str,
    limits: Mapping[str, float] | None = None,
    x_names: Iterable[Any] | None = None,
    log: bool = False,
    title: str = "",
) -> Figure:
    """Means against increasing x as lines, their intervals as bands, and limits as dashed levels.

    A series has a pair (mean, half width or None) for each x, None without a value. `limits` are levels to compare
    with, in the colour of the series of the same name; `x_names` stand in place of the numbers, such as "all" for the
    last; `x_label` and `label` say what x and the values are.
    """
    places = numbers(x, "x", ("n",))
    if (np.diff(places) <= 0).any() or (log and places[0] <= 0):
        wanted = "positive and increasing on a logarithmic scale" if log else "increasing"
        raise ParameterError(f"x must be {wanted}, got {places.tolist()}: sort it.")
    estimated = estimates(series, len(places))
    levels = {
        str(name): float(numbers([value], f"limits[{name!r}]", ("1",))[0])
        for name, value in ({} if limits is None else limits).items()
    }
    names = None if x_names is None else names_of(x_names, len(places), "x_names")
    low, high = span(estimated.values())
    with drawing(COLUMN, HEIGHT + 0.5) as figure:
        axes = figure.subplots()
        handles = []
        for i, (means, halves) in enumerate(estimated.values()):
            known, half = ~np.isnan(means), np.nan_to_num(halves)
            axes.fill_between(places, means - half, means + half, color=colour(i), alpha=0.18, linewidth=0)
            handles += axes.plot(places[known], means[known], **outlined(i, 0.4))
        colours = {name: colour(i) for i, name in enumerate(estimated)}
        for i, (name, level) in enumerate(levels.items()):
            dashes = LIMIT_DASHES[i % len(LIMIT_DASHES)]
            handles.append(axes.axhline(level, color=colours.get(name, SOFT), linewidth=1, linestyle=dashes))
        axes.set_ylim(*padded(min([low, *levels.values()]), max([high, *levels.values()])))
        axes.grid(axis="y")
        axes.set_xlabel(text.wrapped(x_label, 2.6, TEXT))
        axes.set_ylabel(text.wrapped(label, HEIGHT, TEXT))
        if log:
            axes.set_xscale("log")
            axes.minorticks_off()
        if names is not None:
            text.name_columns(axes, places, names)
        elif log:
            text.number_ticks(axes, places)
        text.keep_height(axes, HEIGHT)
        shown = [*estimated, *(f"{name} (limit)" if name in estimated else name for name in levels)]
        text.add_header(figure, title, handles if len(shown) > 1 else (), shown)
    return figure


def histogram(values: Mapping[str, Any], *, edges: Any, x_label: str, label: str, title: str = "") -> Figure:
    """Counts of values (tasks,) between increasing edges, with a bar for each method side by side.

    Every value lies between the first and the last edge; a bin holds its lower edge, the last bin both.
    """
    bounds = numbers(edges, "edges", ("bins + 1",))
    if len(bounds) < 2 or (np.diff(bounds) <= 0).any():
        raise ParameterError(f"edges must be at least two increasing numbers, got {bounds.tolist()}: sort them.")
    given = arrays_of(values, "values", "tasks")
    for name, each in given.items():
        if each.min() < bounds[0] or each.max() > bounds[-1]:
            raise ParameterError(
                f"edges must enclose all values, got {bounds[0]:g} to {bounds[-1]:g} where values[{name!r}] go from "
                f"{each.min():g} to {each.max():g}: widen the edges."
            )
    bins = np.diff(bounds)
    width = FILLED * bins / len(given)
    with drawing(COLUMN, 2.1) as figure:
        axes = figure.subplots()
        handles = []
        for i, each in enumerate(given.values()):
            counts, _ = np.histogram(each, bounds)
            left = bounds[:-1] + (1 - FILLED) / 2 * bins + i * width
            look: dict[str, Any] = {"color": colour(i), "hatch": HATCHES[i % len(HATCHES)], "edgecolor": "white"}
            handles.append(axes.bar(left, counts, width, align="edge", linewidth=0.3, **look))
        axes.set_xlim(bounds[0], bounds[-1])
        axes.locator_params(axis="y", integer=True)
        axes.grid(axis="y")
        axes.set_xlabel(text.wrapped(x_label, 2.6, TEXT))
        axes.set_ylabel(text.wrapped(label, 1.6, TEXT))
        text.number_ticks(axes, bounds)
        text.add_header(figure, title, handles if len(given) > 1 else (), given)
    return figure
