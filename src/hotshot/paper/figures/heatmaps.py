"""A matrix between base classes and novel samples: learned cost or plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.paper.figures.checks import names_of, numbers
from hotshot.paper.figures.style import COLUMN, PAGE, POINTS, TEXT, drawing
from hotshot.paper.figures.text import add_header, keep_height, name_columns, name_rows, row_pitch, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Perceptually uniform, dark where there is much.
COLOUR_MAP = "magma_r"
# Inches: the least width of a column and of all, what the colour bar takes, its height, and the longest name.
CELL, CELLS, BAR, BAR_HEIGHT, NAME = 0.18, 0.95, 0.62, 3.0, 2.1
# Beyond so many cells an image replaces their outlines in vector files.
MOST_OUTLINED = 6000


def heatmap(values: Any, rows: Iterable[Any], columns: Iterable[Any], *, label: str, title: str = "") -> Figure:
    """Values between base classes (rows) and novel samples (columns) as colours, lighter where smaller.

    Parameters
    ----------
    values : array (B, N)
    rows, columns : sequences of B and N names
        All rows are named up to 120; beyond, every second, third, and so on.
    label : str
        What the colours mean, such as "learned cost".
    title : str
    """
    values = numbers(values, "values", ("B", "N"))
    row_names = names_of(rows, values.shape[0], "rows")
    column_names = names_of(columns, values.shape[1], "columns")
    n_rows, n_columns = values.shape
    width = COLUMN if n_columns <= 8 else PAGE
    pitch = row_pitch(n_rows)
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
        name_rows(axes, row_names, pitch=pitch, inches=inches)
        share = min(1.0, BAR_HEIGHT / body)
        bar = figure.colorbar(mesh, ax=axes, aspect=share * body / 0.1, shrink=share, anchor=(0, 1), pad=0.02)
        bar.outline.set_visible(False)
        bar.set_label(wrapped(label, share * body, TEXT))
        name_columns(axes, range(n_columns), column_names)
        axes.tick_params(axis="x", length=0)
        keep_height(axes, body)
        add_header(figure, title)
    return figure
