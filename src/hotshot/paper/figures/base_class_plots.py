"""What base classes cost and lend: as a matrix, and as bars by size, against the truth, across domains, by sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import ParameterError
from hotshot.paper.figures import text
from hotshot.paper.figures.checks import arrays_of, named, names_of, numbers
from hotshot.paper.figures.style import COLOURS, COLUMN, INK, PAGE, POINTS, TEXT, drawing, outlined

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Most points of height of a row of a ranking.
TALLEST = 13.0
# Perceptually uniform, dark where there is much.
COLOUR_MAP = "magma_r"
# Inches: the least width of a column and of all, what the colour bar takes, its height, and the longest name.
CELL, CELLS, BAR, BAR_HEIGHT, NAME = 0.18, 0.95, 0.8, 3.0, 2.1
# Beyond so many cells an image replaces their outlines in vector files.
MOST_OUTLINED = 6000


def heatmap(values: Any, rows: Iterable[Any], columns: Iterable[Any], *, label: str, title: str = "") -> Figure:
    """Values (B, N) between base classes (rows) and novel samples (columns) as colours, lighter where smaller.

    All rows are named up to 120; beyond, every second, third, and so on. `label` says what the colours mean.
    """
    values = numbers(values, "values", ("B", "N"))
    row_names = names_of(rows, values.shape[0], "rows")
    column_names = names_of(columns, values.shape[1], "columns")
    n_rows, n_columns = values.shape
    width = COLUMN if n_columns <= 8 else PAGE
    pitch = text.row_pitch(n_rows)
    body = max(n_rows * pitch / POINTS, 0.8)
    low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    with drawing(width, body + 1.0) as figure:
        axes = figure.subplots()
        edges = np.arange(n_columns + 1) - 0.5, np.arange(n_rows + 1) - 0.5
        mesh = axes.pcolormesh(*edges, values, cmap=COLOUR_MAP, vmin=low, vmax=high, edgecolors="white")
        mesh.set(linewidth=0.3 if n_columns <= 40 else 0, rasterized=values.size > MOST_OUTLINED)
        axes.spines[:].set_visible(False)
        inches = min(NAME, max(0.8, width - BAR - max(CELLS, CELL * n_columns)))
        text.name_rows(axes, row_names, pitch=pitch, inches=inches)
        share = min(1.0, BAR_HEIGHT / body)
        bar = figure.colorbar(mesh, ax=axes, aspect=share * body / 0.1, shrink=share, anchor=(0, 1), pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label(text.wrapped(label, share * body, TEXT))
        axes.set(xlabel="novel class", ylabel="base class")
        text.name_columns(axes, range(n_columns), column_names)
        axes.tick_params(axis="x", length=0)
        text.keep_height(axes, body)
        text.add_header(figure, title)
    return figure


def ranking(names: Iterable[Any], values: Any, *, label: str, title: str = "") -> Figure:
    """Values (n,) as horizontal bars, the largest on top, each with its name and number.

    All rows have them up to 120; beyond, every second, third, and so on. `label` says what the values are.
    """
    heights = numbers(values, "values", ("n",))
    row_names = names_of(names, len(heights), "names")
    order = np.argsort(-heights, kind="stable")
    heights = heights[order]
    n = len(heights)
    pitch = text.row_pitch(n, TALLEST)
    with drawing(COLUMN, n * pitch / POINTS + 0.45) as figure:
        axes = figure.subplots()
        axes.barh(np.arange(n), heights, height=0.68, color=COLOURS[0], linewidth=0)
        # Room for the numbers beside the longest bars.
        low, high = min(0.0, heights.min()), max(0.0, heights.max())
        room = 0.17 * (high - low) or 1.0
        axes.set_xlim(low - room * (low < 0), high + room * (high > 0 or low == 0))
        shown = decimals(heights)
        step, size = text.row_print(n, pitch)
        for row in range(0, n, step):
            side, away = ("left", 2.5) if heights[row] >= 0 else ("right", -2.5)
            axes.annotate(
                shown[row],
                (heights[row], row),
                xytext=(away, 0),
                textcoords="offset points",
                fontsize=size,
                horizontalalignment=side,
                verticalalignment="center_baseline",
            )
        axes.set_xlabel(text.wrapped(label, 2.2, TEXT))
        axes.locator_params(axis="x", nbins=5)
        text.name_rows(axes, [row_names[i] for i in order], pitch=pitch)
        axes.axvline(0, color=INK, linewidth=0.6)
        text.add_header(figure, title)
    return figure


def weights(truth: Any, learned: Mapping[str, Any], names: Iterable[Any], *, title: str = "") -> Figure:
    """True weights (B,) of the base classes as bars, largest on top, and on them what each method has learned."""
    true = numbers(truth, "truth", ("B",))
    found = arrays_of(learned, "learned", "B")
    for name, each in found.items():
        if each.shape != true.shape:
            raise ParameterError(
                f"learned[{name!r}] must have a weight for each of the {len(true)} base classes, got {len(each)}."
            )
    class_names = names_of(names, len(true), "names")
    order = np.argsort(-true, kind="stable")
    n = len(true)
    pitch = text.row_pitch(n)
    rows = np.arange(n)
    with drawing(COLUMN, n * pitch / POINTS + 0.45) as figure:
        axes = figure.subplots()
        handles: list[Any] = [axes.barh(rows, true[order], height=0.78, color="#D5D5D5", linewidth=0)]
        for i, each in enumerate(found.values()):
            handles += axes.plot(each[order], rows, linestyle="none", **outlined(i, 0.3))
        low = min(0.0, true.min(), *(each.min() for each in found.values()))
        high = max(true.max(), *(each.max() for each in found.values()))
        axes.set_xlim(low - 0.02 * (high - low), high + 0.05 * (high - low) or 1)
        axes.grid(axis="x")
        axes.set(xlabel="weight", ylabel="base class")
        text.name_rows(axes, [class_names[b] for b in order], pitch=pitch)
        text.add_header(figure, title, handles, ["true weight", *found])
    return figure


def plans(panels: Mapping[str, Any], names: Mapping[str, Iterable[Any]], *, label: str, title: str = "") -> Figure:
    """Weights (B,) of the base classes, largest first, one panel below the other on the same scale.

    Panels are settings, such as "in-domain" and "cross-domain"; each may have base classes of its own. Where not all of
    its names fit, every second, third, and so on is shown. `label` says what the weights are.
    """
    given = arrays_of(panels, "panels", "B")
    by_panel = named(names, "names")
    if missing := given.keys() - by_panel.keys():
        raise ParameterError(f"names must have the base classes of every panel, got none for {sorted(missing)}.")
    class_names = [names_of(by_panel[name], len(each), f"names[{name!r}]") for name, each in given.items()]
    low, high = _range(given.values())
    with drawing(PAGE, 2.5 * len(given)) as figure:
        all_axes = figure.subplots(len(given), 1, sharey=True, squeeze=False)[:, 0]
        orders = [np.argsort(-each, kind="stable") for each in given.values()]
        titles = text.fitted(given, 5.5, TEXT)
        for axes, heading, each, order in zip(all_axes, titles, given.values(), orders, strict=True):
            axes.bar(np.arange(len(each)), each[order], width=0.74, color=COLOURS[0], linewidth=0)
            equal = _equal_weights(axes, (-0.5, len(each) - 0.5), each)
            axes.set_title(heading, pad=2)
            axes.set_ylabel(text.wrapped(label, 1.0, TEXT))
            axes.set_xlim(-0.6, len(each) - 0.4)
            axes.set_ylim(low, high + 0.05 * (high - low))
            axes.set_xlabel("base class, largest weight first")
        for axes, own_names, order in zip(all_axes, class_names, orders, strict=True):
            text.name_columns(axes, range(len(order)), [own_names[b] for b in order])
            axes.tick_params(axis="x", length=0)
        text.add_header(figure, title, [equal], ["equal weights"])
    return figure


def sample_weights(panels: Mapping[str, Any], *, label: str, title: str = "") -> Figure:
    """Weights (J,) of the samples within a base class, a panel for each novel sample on one scale.

    Samples have the same place in all panels: those with the largest weight in the first panel are on the left.
    """
    given = arrays_of(panels, "panels", "J")
    if len(sizes := {len(each) for each in given.values()}) > 1:
        raise ParameterError(f"panels must have weights of the same samples, got {sorted(sizes)} weights.")
    order = np.argsort(-next(iter(given.values())), kind="stable")
    low, high = _range(given.values())
    with drawing(COLUMN, 1.05 * len(given) + 0.4) as figure:
        all_axes = figure.subplots(len(given), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        thickness = float(np.clip(0.75 * 2.7 * POINTS / len(order), 0.25, 4))
        for axes, heading, each in zip(all_axes, text.fitted(given, 2.6, TEXT), given.values(), strict=True):
            axes.vlines(np.arange(1, len(each) + 1), 0, each[order], color=COLOURS[0], linewidth=thickness)
            equal = _equal_weights(axes, (0.5, len(each) + 0.5), each)
            axes.set_title(heading, pad=2)
        axes.set_xlim(0.5, len(order) + 0.5)
        axes.set_ylim(low, high + 0.06 * (high - low))
        axes.set_xlabel(text.wrapped("samples of the base class, in the order of the first panel", 2.6, TEXT))
        figure.supylabel(text.wrapped(label, 0.9 * figure.get_figheight(), TEXT), fontsize=TEXT)
        text.add_header(figure, title, [equal], ["equal weights"])
    return figure


def _range(arrays: Iterable[np.ndarray]) -> tuple[float, float]:
    """The least and the largest value of all, with 0 between them."""
    joined = np.concatenate([[0.0], *arrays])
    return float(joined.min()), float(joined.max()) or 1.0


def _equal_weights(axes: Axes, ends: tuple[float, float], weights: np.ndarray) -> Any:
    """A dashed line at the height that all would have if they were equal."""
    (line,) = axes.plot(ends, [weights.mean()] * 2, "--", color=COLOURS[1], linewidth=0.9)
    return line


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
