"""The figures of the paper and the report: numbers and names in, `matplotlib.figure.Figure` out.

The style is in `hotshot.mplstyle`. matplotlib is imported when the first figure is drawn, not when this module is: it
takes longer to load than most commands run. pyplot is not used; the user's own settings are neither read nor changed.
"""

from __future__ import annotations

import math
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import numpy as np

from hotshot.evaluation.tables import Number
from hotshot.files.atomic import replace_file
from hotshot.formatting import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE = Path(__file__).with_name("hotshot.mplstyle")
INK, SOFT = "#222222", "#6B6B6B"
HATCHES, DASHES = ("", "/////", ".....", "\\\\\\\\\\", "xxxxx"), ("--", ":", "-.")
# Perceptually uniform, dark where there is much.
COLOUR_MAP = "magma_r"
# Widths of a column and of a page of a paper in inches, and points in an inch.
COLUMN, PAGE, POINTS = 3.4, 7.0, 72
# Size of print in points, its smallest, and the height of a line and the width of a letter over the size.
SMALL, SMALLEST, LINE, LETTER = 7.0, 5.0, 1.22, 0.6
# Points of a row at most and at least, points that all rows share, and the most rows or columns that each have a name.
TALLEST, LOWEST, ROWS_HEIGHT, MOST_NAMED, MOST_COLUMNS = 11.5, 6.1, 576.0, 120, 30
# Characters of the name of a row or column, and of one in a legend.
LONGEST, LONGEST_IN_LEGEND = 28, 40


# --- style, title, names, files


@contextmanager
def style() -> Iterator[None]:
    """The style of the figures, whatever the user's own; that is back afterwards."""
    import matplotlib.style
    from matplotlib.font_manager import fontManager

    with matplotlib.style.context(STYLE, after_reset=True), warnings.catch_warnings():
        # A character that no font has is drawn as a box in PNG, and the reader sees that.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from|Matplotlib currently does not support")
        # matplotlib complains of each family that is not there, whenever a figure is shown.
        installed = {"sans-serif", *(font.name for font in fontManager.ttflist)}
        families = matplotlib.rcParams["font.family"]
        matplotlib.rcParams["font.family"] = [family for family in families if family in installed]
        yield


@contextmanager
def drawing(width: float, height: float, title: str) -> Iterator[tuple[Figure, dict[str, Any]]]:
    """A new figure of so many inches and its legend, to be filled: what is drawn, by the name that it has there.

    Title and legend come above the axes, where they hide no data; the figure grows by their height.
    """
    with style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        legend: dict[str, Any] = {}
        FigureCanvasAgg(figure)
        yield figure, legend
        letters = width * POINTS / (LETTER * SMALL)
        names = fitted(legend, LONGEST_IN_LEGEND)
        # Beside each name stands its mark.
        columns = max(1, int(letters / (max(map(len, names), default=0) + 6)))
        # Bold and larger print takes a quarter more.
        lines = textwrap.wrap(title, int(0.8 * letters), max_lines=3, placeholder="…")
        header = figure.legend(
            [*legend.values()], ["any"] * len(names), loc="outside upper left", ncols=columns,
            title="\n".join(lines), alignment="left", title_fontproperties={"weight": "bold", "size": 8},
        )  # fmt: skip
        # Names that begin with an underscore would have been left out.
        for text, name in zip(header.get_texts(), names, strict=True):
            text.set_text(name)
        n_lines = len(lines) + math.ceil(len(names) / columns)
        figure.set_figheight(figure.get_figheight() + n_lines * 1.5 * SMALL / POINTS)
        # A layout made once more moves by fractions of a point, and every file should show the same figure.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def fitted(names: Iterable[Any], longest: int = LONGEST, n_lines: int = 1) -> list[str]:
    """Names on so many lines, without the middle where they are too long; wide letters count for their width."""
    shown = []
    for name in names:
        line = " ".join(str(name).split())
        width = sum(1.4 if c.isupper() else 2 if east_asian_width(c) in "WF" else 1 for c in line)
        room = int(longest * len(line) / width) if width else longest
        rows = textwrap.wrap(shortened(line, n_lines * room, "ends"), room, max_lines=n_lines, placeholder="…")
        shown.append("\n".join(rows))
    return shown


def row_pitch(n_rows: int, tallest: float = TALLEST) -> float:
    """Points from row to row, so that as many rows as possible fit a page and can be read."""
    return max(LOWEST, min(tallest, ROWS_HEIGHT / n_rows)) * min(1.0, MOST_NAMED / n_rows)


def name_rows(axes: Axes, names: Sequence[Any], pitch: float) -> None:
    """Names of rows 0, 1, … from the top, on several lines where rows are high; of very many rows only some."""
    step = math.ceil(len(names) / MOST_NAMED)
    size = max(SMALLEST, min(SMALL, pitch * step / LINE))
    n_lines = max(1, int(pitch * step / (LINE * size)))
    axes.set_yticks(range(0, len(names), step), labels=fitted(names[::step], n_lines=n_lines), fontsize=size)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def file_content(figure: Figure, kind: str) -> bytes:
    """A figure as "svg" or "png", without dates, so that the same figure is the same file."""
    buffer = BytesIO()
    with style():
        figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else {})
    return buffer.getvalue()


def save(figure: Figure, stem: Path) -> None:
    """Write STEM.svg and STEM.png."""
    for kind in ("svg", "png"):
        content = file_content(figure, kind)
        with replace_file(stem.with_name(f"{stem.name}.{kind}")) as file:
            file.write(content)


# --- accuracies


def grouped_bars(
    groups: Sequence[Any], series: Mapping[str, Sequence[Number]], *, label: str, zero: bool = False, title: str = ""
) -> Figure:
    """Means with their intervals, by group and series, as dots with error bars; with `zero` a line at 0.

    Dots, not bars from zero: the differences between methods are small against the values. Groups go down the page,
    so that their names are level.
    """
    pitch = max(row_pitch(len(groups) * (len(series) + 1), 7.5) * (len(series) + 1), 17.5)
    with drawing(COLUMN, len(groups) * pitch / POINTS + 0.45, title) as (figure, legend):
        axes = figure.subplots()
        dots = {}
        for i, (name, numbers) in enumerate(series.items()):
            means, half_widths = _estimates(numbers)
            rows = np.arange(len(groups)) + (i - (len(series) - 1) / 2) / (len(series) + 1)
            dots[name] = axes.errorbar(means, rows, xerr=half_widths, linestyle="none", elinewidth=1.1)
        for between in range(1, len(groups)):
            axes.axhline(between - 0.5, color="#CCCCCC", linewidth=0.4)
        if zero:
            axes.axvline(0, color=INK, linewidth=0.7)
        axes.locator_params(axis="x", nbins=6)
        axes.grid(axis="x")
        axes.set_xlabel(textwrap.fill(label, 36))
        name_rows(axes, groups, pitch)
        legend.update(dots if len(dots) > 1 else {})
    return figure


def lines(
    x: Sequence[float] | Sequence[str],
    series: Mapping[str, Sequence[Number]],
    *,
    x_label: str,
    label: str,
    limits: Mapping[str, float] | None = None,
    title: str = "",
) -> Figure:
    """Means against x as lines, their intervals as bands, and limits as dashed levels.

    Numbers in x stand on a logarithmic axis, names such as "all" at equal distances.
    """
    with drawing(COLUMN, 2.25, title) as (figure, legend):
        axes = figure.subplots()
        curves = {}
        for name, numbers in series.items():
            means, half_widths = _estimates(numbers)
            (curves[name],) = axes.plot(x, means)
            axes.fill_between(x, means - half_widths, means + half_widths, color=curves[name].get_color(), alpha=0.18)
        for (name, level), dashes in zip((limits or {}).items(), DASHES, strict=False):
            curves[name] = axes.axhline(level, color=SOFT, linewidth=1, linestyle=dashes)
        axes.locator_params(axis="y", nbins=6)
        axes.grid(axis="y")
        axes.set(xlabel=x_label, ylabel=label)
        if not isinstance(x[0], str):
            axes.set_xscale("log")
            axes.minorticks_off()
            axes.set_xticks(x, labels=[f"{number:g}" for number in x])
        legend.update(curves if len(curves) > 1 else {})
    return figure


def histogram(values: Mapping[str, np.ndarray], *, edges: np.ndarray, title: str = "") -> Figure:
    """Numbers of tasks by their accuracy in percent (tasks,), with a bar for each method side by side.

    A bin holds its lower edge, the last bin both.
    """
    width = 0.84 * np.diff(edges) / len(values)
    with drawing(COLUMN, 2.1, title) as (figure, legend):
        axes = figure.subplots()
        bars = {}
        for i, (name, accuracies) in enumerate(values.items()):
            left = edges[:-1] + 0.08 * np.diff(edges) + i * width
            hatch = HATCHES[i % len(HATCHES)]
            bars[name] = axes.bar(left, np.histogram(accuracies, edges)[0], width, align="edge", hatch=hatch)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_xticks(edges[:: 1 + len(edges) // 12])
        axes.locator_params(axis="y", integer=True, nbins=6)
        axes.grid(axis="y")
        axes.set(xlabel="accuracy of a task in %", ylabel="number of tasks")
        legend.update(bars if len(bars) > 1 else {})
    return figure


# --- transport


def heatmap(values: np.ndarray, rows: Sequence[Any], columns: Sequence[Any], *, label: str, title: str = "") -> Figure:
    """Values (B, N) between base classes (rows) and novel samples (columns) as colours, lighter where smaller."""
    n_rows, n_columns = values.shape
    pitch, step = row_pitch(n_rows), math.ceil(n_columns / MOST_COLUMNS)
    names = fitted(columns[::step])
    body = max(n_rows * pitch / POINTS, 0.8)
    # Slanted names of columns take room below the axes.
    below = LETTER * SMALL * max(map(len, names)) * math.sin(math.pi / 4) / POINTS
    with drawing(COLUMN if n_columns <= 8 else PAGE, body + below + 0.4, title) as (figure, _):
        axes = figure.subplots()
        image = axes.imshow(values, cmap=COLOUR_MAP, aspect="auto", interpolation="none")
        axes.spines[:].set_visible(False)
        share = min(1.0, 3 / body)
        bar = figure.colorbar(image, ax=axes, label=label, aspect=10 * share * body, shrink=share, anchor=(0, 1))
        bar.outline.set_visible(False)
        axes.set(xlabel="novel class", ylabel="base class")
        name_rows(axes, rows, pitch)
        axes.tick_params(axis="x", length=0)
        slanted: Any = {"rotation": 45, "rotation_mode": "anchor", "ha": "right", "va": "top"}
        axes.set_xticks(range(0, n_columns, step), labels=names, **slanted)
    return figure


def weight_panels(panels: Mapping[str, np.ndarray], *, label: str, x_label: str, title: str = "") -> Figure:
    """Weights (n,) as bars numbered from 1 in the order given, one panel below the other on one scale."""
    with drawing(COLUMN, 1.15 * len(panels) + 0.2, title) as (figure, legend):
        all_axes = figure.subplots(len(panels), 1, sharey=True, squeeze=False)[:, 0]
        for axes, heading, values in zip(all_axes, fitted(panels, 50), panels.values(), strict=True):
            axes.bar(np.arange(len(values)) + 1, values, width=0.75)
            legend["equal weights"] = axes.axhline(values.mean(), linestyle="--", color="C1", linewidth=0.9)
            axes.set(title=heading, ylabel=label, xlim=(0.4, len(values) + 0.6))
        axes.set_xlabel(x_label)
    return figure


def embedding(panels: Mapping[str, Mapping[str, np.ndarray]], names: Sequence[Any], *, title: str = "") -> Figure:
    """Points in the plane by class, one panel for each method, each on a scale of its own.

    Support samples are stars, and generated features diamonds in the colour of their class, whose number stands at its
    star. A panel has "support" (N, 2) and "generated" (G, 2), and for these "generated_labels", rows of the support.
    """
    with drawing(PAGE, 2.8, title) as (figure, legend):
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (heading, panel) in zip(all_axes, panels.items(), strict=True):
            colours = [f"C{label % 8}" for label in range(len(names))]
            of_features = [colours[label] for label in panel["generated_labels"]]
            axes.scatter(*panel["generated"].T, c=of_features, marker="D", s=4, alpha=0.5, linewidths=0)
            axes.scatter(*panel["support"].T, c=colours, marker="*", s=75, edgecolors="black", linewidths=0.6, zorder=3)
            for number, place in enumerate(panel["support"], 1):
                axes.annotate(str(number), place, (4, 4), textcoords="offset points", fontsize=SMALL, zorder=4)
            axes.set(title=heading, xticks=[], yticks=[])
            axes.set_aspect("equal", adjustable="datalim")
            axes.spines[:].set(visible=True, color="#BBBBBB")
        for number, (name, colour) in enumerate(zip(names, colours, strict=True), 1):
            (legend[f"{number} {name}"],) = axes.plot([], [], linestyle="none", marker="*", color=colour, markersize=8)
    return figure


def _estimates(numbers: Sequence[Number]) -> tuple[np.ndarray, np.ndarray]:
    """Means and half widths, 0 where there is no interval."""
    means, half_widths = np.array([(number.mean, number.half_width) for number in numbers], dtype=np.float64).T
    return means, np.where(np.isfinite(half_widths), half_widths, 0.0)
