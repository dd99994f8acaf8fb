"""Which samples of a base class count, for one novel sample and for another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.paper.figures.checks import named, numbers
from hotshot.paper.figures.header import add_header
from hotshot.paper.figures.style import COLOURS, COLUMN, POINTS, TEXT, drawing
from hotshot.paper.figures.text import fitted, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def sample_weights(panels: Mapping[str, Any], *, label: str, title: str = "") -> Figure:
    """Weights of the samples within a base class, in their order, one panel below the other on the same scale.

    Parameters
    ----------
    panels : dict of name to array (J,)
        By novel sample.
    label : str
        What the weights are.
    title : str
    """
    given = {
        name: numbers(each, f"panels[{name!r}]", ("J",)) for name, each in named(panels, "panels").items()
    }
    longest = max(map(len, given.values()))
    low = min(0.0, *(each.min() for each in given.values()))
    high = max(0.0, *(each.max() for each in given.values())) or 1.0
    with drawing(COLUMN, 1.05 * len(given) + 0.4) as figure:
        all_axes = figure.subplots(len(given), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        names = fitted(given, 2.6, TEXT)
        for axes, name, each in zip(all_axes, names, given.values(), strict=True):
            axes.vlines(
                np.arange(1, len(each) + 1),
                0,
                each,
                color=COLOURS[0],
                linewidth=float(np.clip(0.75 * 2.7 * POINTS / longest, 0.25, 4)),
            )
            (equal,) = axes.plot(
                [0.5, len(each) + 0.5], [each.mean()] * 2, "--", color=COLOURS[1], linewidth=0.9
            )
            axes.set_title(name, pad=2)
        axes.set_xlim(0.5, longest + 0.5)
        axes.set_ylim(low, high + 0.06 * (high - low))
        axes.set_xlabel("sample of the base class")
        figure.supylabel(wrapped(label, 0.9 * figure.get_figheight(), TEXT), fontsize=TEXT)
        add_header(figure, title, [equal], ["equal weights"])
    return figure
