"""Title and legend above the axes, where they hide no data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hotshot.paper.figures.style import SMALL, TEXT
from hotshot.paper.figures.text import fitted, wrapped

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

# Inches at the edges of the figure, and below title and legend.
MARGIN, GAP = 0.04, 0.08
MOST_COLUMNS = 6


def add_header(figure: Figure, title: str, handles: Sequence[Any] = (), names: Iterable[str] = ()) -> None:
    """Title and legend at the top left; the figure grows by their height, so that the axes keep theirs."""
    width, body = figure.get_size_inches()
    heading = legend = None
    if title:
        # Bold print is about a tenth wider than what is measured.
        text = wrapped(title, 0.88 * width, TEXT)
        heading = figure.suptitle(text, x=MARGIN / width, y=1, horizontalalignment="left", in_layout=False)
    if handles:
        legend = _legend(figure, handles, fitted(names, 0.45 * width, SMALL))
    of_heading, of_legend = _height(figure, heading), _height(figure, legend)
    height = body + of_heading + of_legend
    figure.set_figheight(height)
    if heading is not None:
        heading.set_position((MARGIN / width, 1 - MARGIN / height))
    if legend is not None:
        place = (MARGIN / width, 1 - (of_heading + MARGIN) / height)
        legend.set_bbox_to_anchor(place, transform=figure.transFigure)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, 0, 1, body / height))


def _height(figure: Figure, part: Any) -> float:
    """Inches that a part takes, with the space around it."""
    if part is None:
        return 0.0
    return float(part.get_window_extent(_renderer(figure)).height) / figure.dpi + GAP


def _legend(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> Legend:
    """A legend in as many columns as fit."""
    # matplotlib leaves out names that begin with an underscore, so they are set afterwards.
    stand_ins = [str(i) for i in range(len(names))]
    columns = min(len(names), MOST_COLUMNS)
    while True:
        legend = figure.legend(handles, stand_ins, loc="upper left", ncols=columns)
        for text, name in zip(legend.get_texts(), names, strict=True):
            text.set_text(name)
        wide = legend.get_window_extent(_renderer(figure)).width / figure.dpi
        if columns == 1 or wide <= figure.get_figwidth() - 2 * MARGIN:
            return legend
        legend.remove()
        columns -= 1


def _renderer(figure: Figure) -> Any:
    return figure.canvas.get_renderer()  # type: ignore[attr-defined]
