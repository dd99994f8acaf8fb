"""Methods compared on several groups, such as datasets: means with intervals."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import ParameterError
from hotshot.paper.figures.checks import estimates, names_of, padded, span
from hotshot.paper.figures.header import add_header
from hotshot.paper.figures.naming import name_rows, row_pitch
from hotshot.paper.figures.style import COLOURS, COLUMN, MARKERS, POINTS, TEXT, drawing
from hotshot.paper.figures.text import wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Most points of height for each series of a group; between two groups there is as much again.
TALLEST = 7.5


def grouped_bars(
    groups: Sequence[Any],
    series: Mapping[str, Sequence[Any]],
    *,
    label: str,
    title: str = "",
    published: Collection[str] = (),
) -> Figure:
    """Means with their intervals, by group and series, as dots with bars of error.

    Dots, not bars from zero: the differences between methods are small against the values. Groups go down the page,
    so that their names are level.

    Parameters
    ----------
    groups : sequence of names
        Such as datasets or cost functions.
    series : dict of name to list of (mean, half_width)
        One pair for each group, or None where there is no value. The half width may be None.
    label : str
        What the values are, such as "accuracy (%)".
    title : str
    published : collection of names
        Series drawn hollow: numbers of others, not measured here.
    """
    group_names = names_of(groups, None, "groups")
    estimated = estimates(series, len(group_names))
    if unknown := set(published) - set(estimated):
        raise ParameterError(
            f"published must name some of the series, got {sorted(unknown)}: use their names."
        )
    n_groups, n_series = len(group_names), len(estimated)
    of_series = row_pitch(n_groups * (n_series + 1), TALLEST)
    pitch = max(of_series * (n_series + 1), 13.0)
    with drawing(COLUMN, n_groups * pitch / POINTS + 0.45) as figure:
        axes = figure.subplots()
        handles = []
        for i, (name, (means, halves)) in enumerate(estimated.items()):
            colour = COLOURS[i % len(COLOURS)]
            offset = (i - (n_series - 1) / 2) * of_series / pitch
            handles.append(
                axes.errorbar(
                    means,
                    np.arange(n_groups) + offset,
                    xerr=np.nan_to_num(halves),
                    fmt=MARKERS[i % len(MARKERS)],
                    color=colour,
                    markerfacecolor="white" if name in published else colour,
                    markeredgewidth=0.9,
                    elinewidth=1.1,
                )
            )
        for between in range(1, n_groups):
            axes.axhline(between - 0.5, color="#CCCCCC", linewidth=0.4)
        axes.set_xlim(*padded(*span(estimated.values())))
        axes.locator_params(axis="x", nbins=6)
        axes.grid(axis="x")
        axes.set_xlabel(wrapped(label, 2.2, TEXT))
        name_rows(axes, group_names, pitch=pitch, inches=1.35)
        axes.spines["left"].set_visible(False)
        add_header(figure, title, handles if n_series > 1 else (), estimated)
    return figure
