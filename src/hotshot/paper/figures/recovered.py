"""Weights that are known, against weights that methods have learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import ParameterError
from hotshot.paper.figures.checks import named, names_of, numbers
from hotshot.paper.figures.header import add_header
from hotshot.paper.figures.naming import name_rows, row_pitch
from hotshot.paper.figures.style import COLOURS, COLUMN, MARKERS, POINTS, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def weights(truth: Any, learned: Mapping[str, Any], names: Sequence[Any], *, title: str = "") -> Figure:
    """True weights of the base classes as bars, and on them what each method has learned.

    Parameters
    ----------
    truth : array (B,)
    learned : dict of name to array (B,)
    names : sequence of B names
        Of the base classes, which are shown by true weight, largest on top.
    title : str
    """
    true = numbers(truth, "truth", ("B",))
    found = {
        name: numbers(each, f"learned[{name!r}]", ("B",)) for name, each in named(learned, "learned").items()
    }
    for name, each in found.items():
        if each.shape != true.shape:
            raise ParameterError(
                f"learned[{name!r}] must have a weight for each of the {len(true)} base classes, got {len(each)}."
            )
    class_names = names_of(names, len(true), "names")
    order = np.argsort(-true, kind="stable")
    n = len(true)
    pitch = row_pitch(n)
    rows = np.arange(n)
    with drawing(COLUMN, n * pitch / POINTS + 0.45) as figure:
        axes = figure.subplots()
        handles: list[Any] = [axes.barh(rows, true[order], height=0.78, color="#D5D5D5", linewidth=0)]
        for i, each in enumerate(found.values()):
            handles += axes.plot(
                each[order],
                rows,
                linestyle="none",
                marker=MARKERS[i % len(MARKERS)],
                color=COLOURS[i % len(COLOURS)],
                markeredgecolor="white",
                markeredgewidth=0.3,
            )
        low = min(0.0, true.min(), *(each.min() for each in found.values()))
        high = max(true.max(), *(each.max() for each in found.values()))
        axes.set_xlim(low - 0.02 * (high - low), high + 0.05 * (high - low) or 1)
        axes.grid(axis="x")
        axes.set_xlabel("weight")
        name_rows(axes, [class_names[b] for b in order], pitch=pitch)
        axes.spines["left"].set_visible(False)
        add_header(figure, title, handles, ["truth", *found])
    return figure
