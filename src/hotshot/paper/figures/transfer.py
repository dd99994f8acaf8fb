"""Transfer weights of one novel sample over the base classes, of one domain and of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.errors import ParameterError
from hotshot.paper.figures.checks import named, names_of, numbers
from hotshot.paper.figures.header import add_header
from hotshot.paper.figures.naming import name_columns
from hotshot.paper.figures.style import COLOURS, PAGE, TEXT, drawing
from hotshot.paper.figures.text import fitted, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plans(
    panels: Mapping[str, Any], names: Mapping[str, Sequence[Any]], *, label: str, title: str = ""
) -> Figure:
    """Weights of the base classes, largest first, one panel below the other on the same scale.

    Parameters
    ----------
    panels : dict of name to array (B,)
        By setting, such as "in-domain" and "cross-domain"; each may have base classes of its own.
    names : dict of name to sequence of B names
        Of the base classes of each panel. Where not all fit, every second, third, and so on is named.
    label : str
        What the weights are.
    title : str
    """
    given = {
        name: numbers(each, f"panels[{name!r}]", ("B",)) for name, each in named(panels, "panels").items()
    }
    by_panel = named(names, "names")
    if missing := given.keys() - by_panel.keys():
        raise ParameterError(
            f"names must have the base classes of every panel, got none for {sorted(missing)}."
        )
    class_names = {
        name: names_of(by_panel[name], len(each), f"names[{name!r}]") for name, each in given.items()
    }
    low = min(0.0, *(each.min() for each in given.values()))
    high = max(0.0, *(each.max() for each in given.values())) or 1.0
    with drawing(PAGE, 2.5 * len(given)) as figure:
        all_axes = figure.subplots(len(given), 1, sharey=True, squeeze=False)[:, 0]
        for axes, name, text in zip(all_axes, given, fitted(given, 5.5, TEXT), strict=True):
            each = given[name]
            order = np.argsort(-each, kind="stable")
            axes.bar(np.arange(len(each)), each[order], width=0.74, color=COLOURS[0], linewidth=0)
            (equal,) = axes.plot(
                [-0.5, len(each) - 0.5], [each.mean()] * 2, "--", color=COLOURS[1], linewidth=0.9
            )
            axes.set_title(text, pad=2)
            axes.set_ylabel(wrapped(label, 1.0, TEXT))
            axes.set_xlim(-0.6, len(each) - 0.4)
            axes.set_ylim(low, high + 0.05 * (high - low))
        for axes, name in zip(all_axes, given, strict=True):
            order = np.argsort(-given[name], kind="stable")
            name_columns(axes, range(len(order)), [class_names[name][b] for b in order])
            axes.tick_params(axis="x", length=0)
        add_header(figure, title, [equal], ["equal weights"])
    return figure
