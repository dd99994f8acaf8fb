"""The figures of the paper and the report: numbers and names in, `matplotlib.figure.Figure` out.

Examples
--------
>>> from hotshot.paper.figures import ranking
>>> figure = ranking(["lion", "wolf", "couch"], [0.42, 0.31, 0.05], label="transfer weight")
>>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
['lion', 'wolf', 'couch']
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.evaluation.tables import Number
from hotshot.paper.drawing import (
    COLUMN,
    PAGE,
    POINTS,
    SMALL,
    add_header,
    drawing,
    fitted,
    name_columns,
    name_rows,
    row_pitch,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT = "#222222", "#6B6B6B"
HATCHES = ("", "/////", ".....", "\\\\\\\\\\", "xxxxx")
DASHES = ("--", ":", "-.")
# Perceptually uniform, dark where there is much.
COLOUR_MAP = "magma_r"
# Beyond so many cells or points an image replaces their outlines in vector files.
MOST_OUTLINED = 4000
CIRCLE = {"boxstyle": "circle,pad=0.2", "facecolor": "white", "linewidth": 0.8}


def grouped_bars(
    groups: Sequence[Any], series: Mapping[str, Sequence[Number]], *, label: str, zero: bool = False, title: str = ""
) -> Figure:
    """Means with their intervals, by group and series, as dots with error bars; with `zero` a line at 0.

    Dots, not bars from zero: the differences between methods are small against the values. Groups go down the page,
    so that their names are level.
    """
    pitch = max(row_pitch(len(groups) * (len(series) + 1), 7.5) * (len(series) + 1), 17.5)
    with drawing(COLUMN, len(groups) * pitch / POINTS + 0.45) as figure:
        axes = figure.subplots()
        handles = []
        for i, numbers in enumerate(series.values()):
            means, half = _estimates(numbers)
            places = np.arange(len(groups)) + (i - (len(series) - 1) / 2) / (len(series) + 1)
            handles.append(axes.errorbar(means, places, xerr=half, linestyle="none", elinewidth=1.1))
        for between in range(1, len(groups)):
            axes.axhline(between - 0.5, color="#CCCCCC", linewidth=0.4)
        if zero:
            axes.axvline(0, color=INK, linewidth=0.7)
        axes.locator_params(axis="x", nbins=6)
        axes.grid(axis="x")
        axes.set_xlabel(textwrap.fill(label, 36))
        name_rows(axes, groups, pitch)
        add_header(figure, title, *((handles, series) if len(series) > 1 else ()))
    return figure


def lines(
    x: Sequence[float],
    series: Mapping[str, Sequence[Number]],
    *,
    x_label: str,
    label: str,
    limits: Mapping[str, float] | None = None,
    x_names: Sequence[str] | None = None,
    log: bool = False,
    title: str = "",
) -> Figure:
    """Means against x as lines, their intervals as bands, and limits as dashed levels.

    `x_names` stand in place of the numbers, such as "all" for the last.
    """
    with drawing(COLUMN, 2.25) as figure:
        axes = figure.subplots()
        handles = []
        for numbers in series.values():
            means, half = _estimates(numbers)
            handles += axes.plot(x, means)
            axes.fill_between(x, means - half, means + half, color=handles[-1].get_color(), alpha=0.18)
        for level, dashes in zip((limits or {}).values(), DASHES, strict=False):
            handles.append(axes.axhline(level, color=SOFT, linewidth=1, linestyle=dashes))
        axes.locator_params(axis="y", nbins=6)
        axes.grid(axis="y")
        axes.set(xlabel=x_label, ylabel=label)
        if log:
            axes.set_xscale("log")
            axes.minorticks_off()
        axes.set_xticks(x, labels=[f"{number:g}" for number in x] if x_names is None else x_names)
        add_header(figure, title, *((handles, [*series, *(limits or ())]) if len(handles) > 1 else ()))
    return figure


def histogram(
    values: Mapping[str, np.ndarray], *, edges: np.ndarray, x_label: str, label: str, title: str = ""
) -> Figure:
    """Counts of values (tasks,) between increasing edges, with a bar for each method side by side.

    A bin holds its lower edge, the last bin both.
    """
    width = 0.84 * np.diff(edges) / len(values)
    with drawing(COLUMN, 2.1) as figure:
        axes = figure.subplots()
        handles = []
        for i, each in enumerate(values.values()):
            counts, _ = np.histogram(each, edges)
            left = edges[:-1] + 0.08 * np.diff(edges) + i * width
            handles.append(axes.bar(left, counts, width, align="edge", hatch=HATCHES[i % len(HATCHES)]))
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xticks(edges[:: 1 + len(edges) // 12])
        axes.locator_params(axis="y", integer=True, nbins=6)
        axes.grid(axis="y")
        axes.set(xlabel=x_label, ylabel=label)
        add_header(figure, title, *((handles, values) if len(values) > 1 else ()))
    return figure


def heatmap(values: np.ndarray, rows: Sequence[Any], columns: Sequence[Any], *, label: str, title: str = "") -> Figure:
    """Values (B, N) between base classes (rows) and novel samples (columns) as colours, lighter where smaller."""
    n_rows, n_columns = values.shape
    width = COLUMN if n_columns <= 8 else PAGE
    pitch = row_pitch(n_rows)
    body = max(n_rows * pitch / POINTS, 0.8)
    with drawing(width, body + 0.4) as figure:
        axes = figure.subplots()
        edges = np.arange(n_columns + 1) - 0.5, np.arange(n_rows + 1) - 0.5
        mesh = axes.pcolormesh(*edges, values, cmap=COLOUR_MAP, edgecolors="white")
        mesh.set(linewidth=0.3 if n_columns <= 40 else 0, rasterized=values.size > MOST_OUTLINED)
        axes.spines[:].set_visible(False)
        share = min(1.0, 3 / body)
        bar = figure.colorbar(mesh, ax=axes, label=label, aspect=10 * share * body, shrink=share, anchor=(0, 1))
        bar.outline.set_visible(False)
        axes.set(xlabel="novel class", ylabel="base class")
        name_rows(axes, rows, pitch)
        name_columns(axes, columns, 0.35 * width if width == COLUMN else 0.6 * width)
        add_header(figure, title)
    return figure


def ranking(names: Sequence[Any], values: Sequence[float], *, label: str, title: str = "") -> Figure:
    """Values (n,) as horizontal bars from the top, each with its name and number."""
    pitch = row_pitch(len(names), 13.0)
    with drawing(COLUMN, len(names) * pitch / POINTS + 0.45) as figure:
        axes = figure.subplots()
        bars = axes.barh(np.arange(len(names)), values, height=0.68)
        axes.bar_label(bars, fmt="%.3g", padding=2, fontsize=SMALL)
        # Room for the numbers beside the longest bars.
        axes.margins(x=0.17)
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel(label)
        name_rows(axes, names, pitch)
        add_header(figure, title)
    return figure


def weights(truth: np.ndarray, learned: Mapping[str, np.ndarray], names: Sequence[Any], *, title: str = "") -> Figure:
    """True weights (B,) of the base classes as bars, largest on top, and on them what each method has learned."""
    order = np.argsort(-truth, kind="stable")
    rows, pitch = np.arange(len(order)), row_pitch(len(order))
    with drawing(COLUMN, len(order) * pitch / POINTS + 0.45) as figure:
        axes = figure.subplots()
        handles: list[Any] = [axes.barh(rows, truth[order], height=0.78, color="#D5D5D5")]
        for each in learned.values():
            handles += axes.plot(each[order], rows, linestyle="none")
        axes.grid(axis="x")
        axes.set(xlabel="weight", ylabel="base class")
        name_rows(axes, [names[b] for b in order], pitch)
        add_header(figure, title, handles, ["true weight", *learned])
    return figure


def plans(panels: Mapping[str, tuple[np.ndarray, Sequence[Any]]], *, label: str, title: str = "") -> Figure:
    """Weights (B,) of base classes with their names, largest first, one panel below the other on the same scale.

    Panels are settings, such as "in-domain" and "cross-domain"; each may have base classes of its own.
    """
    with drawing(PAGE, 1.6 * len(panels)) as figure:
        all_axes = figure.subplots(len(panels), 1, sharey=True, squeeze=False)[:, 0]
        for axes, heading, (values, names) in zip(all_axes, fitted(panels, 90), panels.values(), strict=True):
            order = np.argsort(-values, kind="stable")
            axes.bar(np.arange(len(order)), values[order], width=0.74)
            equal = _equal_weights(axes, values)
            axes.set(title=heading, ylabel=label, xlabel="base class, largest weight first")
            axes.set_xlim(-0.6, len(order) - 0.4)
            name_columns(axes, [names[b] for b in order], 0.9 * PAGE)
        add_header(figure, title, [equal], ["equal weights"])
    return figure


def sample_weights(panels: Mapping[str, np.ndarray], *, label: str, title: str = "") -> Figure:
    """Weights (J,) of the samples within a base class, a panel for each novel sample on one scale.

    Samples have the same place in all panels: those with the largest weight in the first panel are on the left.
    """
    order = np.argsort(-next(iter(panels.values())), kind="stable")
    with drawing(COLUMN, 1.05 * len(panels) + 0.4) as figure:
        all_axes = figure.subplots(len(panels), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, heading, values in zip(all_axes, fitted(panels, 50), panels.values(), strict=True):
            axes.bar(np.arange(1, len(order) + 1), values[order], width=0.75)
            equal = _equal_weights(axes, values)
            axes.set_title(heading)
        axes.set_xlim(0.5, len(order) + 0.5)
        axes.set_xlabel("samples of the base class, in the order of the first panel", fontsize=SMALL)
        figure.supylabel(label, fontsize=8)
        add_header(figure, title, [equal], ["equal weights"])
    return figure


def embedding(panels: Mapping[str, Mapping[str, np.ndarray]], names: Sequence[Any], *, title: str = "") -> Figure:
    """Points in the plane by class, one panel for each method, each on a scale of its own.

    Support samples are stars and generated features small diamonds. Each class has a colour, and a number above the
    middle of its features. A panel has "support" (N*K, 2) and "generated" (G, 2), with "support_labels" and
    "generated_labels", indices into names.
    """
    with drawing(PAGE, 2.8) as figure:
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (heading, panel) in zip(all_axes, panels.items(), strict=True):
            for part, look in (
                ("generated", {"marker": "D", "s": 4, "alpha": 0.5, "linewidths": 0}),
                ("support", {"marker": "*", "s": 75, "edgecolors": "black", "linewidths": 0.6, "zorder": 3}),
            ):
                colours = [_colour(label) for label in panel[f"{part}_labels"]]
                axes.scatter(*panel[part].T, c=colours, rasterized=len(colours) > MOST_OUTLINED, **look)
            for label in np.unique(panel["generated_labels"]):
                middle = np.median(panel["generated"][panel["generated_labels"] == label], axis=0)
                axes.annotate(
                    str(label + 1), middle, (0, 11), textcoords="offset points", fontsize=SMALL, ha="center",
                    va="center", bbox={**CIRCLE, "edgecolor": _colour(label)}, zorder=4,
                )  # fmt: skip
            axes.set(title=heading, xticks=[], yticks=[])
            axes.set_aspect("equal", adjustable="datalim")
            axes.spines[:].set(visible=True, color="#BBBBBB")
        key = {"support": ("*", SOFT, 8.0), "generated": ("D", SOFT, 3.0)}
        key |= {f"{i + 1} {name}": ("o", _colour(i), 4.2) for i, name in enumerate(names)}
        handles = [
            axes.plot([], [], linestyle="none", marker=mark, color=own, markersize=size)[0]
            for mark, own, size in key.values()
        ]
        add_header(figure, title, handles, key)
    return figure


def _colour(series: int) -> str:
    return f"C{series % 8}"


def _estimates(numbers: Sequence[Number]) -> tuple[np.ndarray, np.ndarray]:
    """Means and half widths, 0 where there is no interval."""
    means, half = np.array([(number.mean, number.half_width) for number in numbers], dtype=np.float64).T
    return means, np.where(np.isfinite(half), half, 0.0)


def _equal_weights(axes: Axes, values: np.ndarray) -> Any:
    """A dashed line at the height that all would have if they were equal."""
    return axes.axhline(values.mean(), linestyle="--", color="C1", linewidth=0.9)
