"""HTML tables and figures for notebooks, in one style.

matplotlib is imported when a figure is drawn; pyplot is not used, and the user's settings are not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#222222"
SETTINGS: dict[Any, Any] = {
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.titlelocation": "left",
    "text.color": INK,
    # Class names may hold dollar signs; nothing here is mathematics.
    "text.parse_math": False,
}
# Of Okabe and Ito, which people with any colour vision can tell apart.
BLUE, ORANGE, GREY = "#0072B2", "#E69F00", "#8C8C8C"
# Characters of a name beside an axis.
LONGEST = 28


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool] = ()) -> str:
    """A table of HTML cells, numbers aligned right; empty without rows."""
    if not rows:
        return ""
    sides = [f" style='text-align:{'right' if right else 'left'}'" for right in numeric or [False] * len(head)]

    def line(tag: str, cells: Sequence[str]) -> str:
        return "".join(f"<{tag}{side}>{cell}</{tag}>" for side, cell in zip(sides, cells, strict=True))

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{line('th', head)}</tr></thead><tbody>{body}</tbody></table>"


@contextmanager
def new_figure(
    height: float, widths: Sequence[float] = (1,), *, share_y: bool = False
) -> Iterator[tuple[Figure, list[Axes]]]:
    """A figure of this height in inches with panels of these relative widths, to draw on inside the `with`."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(7.0, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = list(figure.subplots(1, len(widths), sharey=share_y, squeeze=False, width_ratios=widths)[0])
        for panel in axes:
            panel.spines[["top", "right"]].set_visible(False)
        # Notebooks know figures of pyplot alone.
        vars(figure)["_repr_png_"] = lambda: _png(figure)
        yield figure, axes


def _png(figure: Any) -> bytes:
    written = BytesIO()
    figure.savefig(written, format="png", dpi=120)
    return written.getvalue()
