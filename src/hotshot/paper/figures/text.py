"""All text of a figure, made to fit: users name their classes, in any script and at any length.

From a single name to the names along an axis, and to title and legend, which stand above the axes and hide no data.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.paper.figures.style import POINTS, SMALL, SMALLEST, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

ELLIPSIS = "…"
# Height of a line of text over the size of its print, and the least distance of slanted lines.
LINE, SLANTED_LINE = 1.22, 1.1
# Height of a row of a long figure in points, at most and at least, and as many rows as all have a name.
TALLEST, LOWEST, MOST_NAMED = 11.5, 6.1, 120
# Inches that the rows of a long figure share, and the longest name beside them.
ROWS_HEIGHT, NAME_WIDTH = 8.0, 1.75
# The longest name below a column in inches, and the least space between level names in points.
COLUMN_NAME, SPACE = 1.2, 4.0
# Inches at the edges of the figure, and below title and legend.
MARGIN, GAP = 0.04, 0.08
MOST_COLUMNS = 6


def clean(text: Any) -> str:
    """`text` on one line, without characters that cannot be drawn or that an SVG file may not hold."""
    kept = []
    for character in " ".join(str(text).split()):
        if character.isprintable():
            kept.append(character)
        elif unicodedata.category(character) != "Cf":
            kept.append("\N{REPLACEMENT CHARACTER}")
    return "".join(kept)


def short(name: Any, most: int = 32) -> str:
    """A name on one line and at most `most` characters wide; of a longer one the middle is left out.

    Wide characters, as of Chinese, count twice.

    Examples
    --------
    >>> short("card_payment_wrong_exchange_rate", 20)
    'card_payme…ange_rate'
    """
    text = clean(name)
    if sum(map(_columns, text)) <= most:
        return text
    room = most - 1
    return _leading(text, room - room // 2) + ELLIPSIS + _leading(text[::-1], room // 2)[::-1]


def fitted(names: Iterable[Any], inches: float, size: float) -> list[str]:
    """Names shortened until each is at most so many inches wide in print of so many points."""
    return [_fitted(clean(name), inches * POINTS, size) for name in names]


def _fitted(text: str, points: float, size: float) -> str:
    most = sum(map(_columns, text))
    shown = text
    while most > 1 and (width := text_width(shown, size)) > points:
        most = min(most - 1, int(most * points / width) + 1)
        shown = short(text, max(most, 1))
    return shown


def wrapped(text: Any, inches: float, size: float, lines: int = 3) -> str:
    """A sentence or name in at most so many lines of a width, broken at spaces, and in long words at underscores."""
    points = inches * POINTS
    pieces: list[str] = []
    for word in re.findall(r"\S+\s*", clean(text)):
        long = text_width(word.rstrip(), size) > points
        pieces += re.findall(r"[^_/-]*[_/-]*\s*", word) if long else [word]
    rows = [""]
    for piece in pieces:
        if rows[-1] and len(rows) < lines and text_width((rows[-1] + piece).rstrip(), size) > points:
            rows.append("")
        rows[-1] += piece
    return "\n".join(_fitted(row.rstrip(), points, size) for row in rows)


def text_width(text: str, size: float) -> float:
    """Width in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)
    return float(width)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _leading(text: str, most: int) -> str:
    """The longest beginning of `text` that is at most so many characters wide."""
    width = 0
    for i, character in enumerate(text):
        width += _columns(character)
        if width > most:
            return text[:i]
    return text


def row_pitch(n_rows: int, tallest: float = TALLEST) -> float:
    """Points from row to row, so that as many rows as possible fit a page and can be read."""
    return float(np.clip(ROWS_HEIGHT * POINTS / n_rows, LOWEST, tallest)) * min(1.0, MOST_NAMED / n_rows)


def row_print(n_rows: int, pitch: float) -> tuple[int, float]:
    """Which rows have a name, every first, second, third …, and the size of its print."""
    step = -(-n_rows // MOST_NAMED)
    return step, float(np.clip(pitch * step / LINE, SMALLEST, SMALL))


def name_rows(axes: Axes, names: Sequence[str], *, pitch: float, inches: float = NAME_WIDTH) -> None:
    """Names of rows 0, 1, … from the top, on several lines where rows are high.

    All have one up to 120; of more rows every second, third, and so on.
    """
    step, size = row_print(len(names), pitch)
    lines = max(1, int(pitch * step / (LINE * size)))
    shown = [wrapped(name, inches, size, lines) for name in names[::step]]
    axes.set_yticks(range(0, len(names), step), labels=shown, fontsize=size)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def name_columns(axes: Axes, places: Any, names: Sequence[str]) -> None:
    """Names below the axes: level where they fit, else slanted, else upright.

    Where upright ones would touch they are smaller, and where they could not be read every second, third, and so on
    is left out.
    """
    shown = fitted(names, COLUMN_NAME, SMALL)
    middles = _middles(axes, places)
    halves = np.array([text_width(name, SMALL) / 2 for name in shown])
    if (np.diff(middles) >= halves[1:] + halves[:-1] + SPACE).all():
        axes.set_xticks(places, labels=shown)
        return
    pitch = float(np.diff(middles).min())
    if pitch * np.sin(np.pi / 4) >= SLANTED_LINE * SMALL:
        axes.set_xticks(places, labels=shown, **_turned(45, SMALL))
        return
    step = int(np.ceil(LINE * SMALLEST / pitch))
    size = min(SMALL, pitch * step / LINE)
    axes.set_xticks(places[::step], labels=fitted(names[::step], COLUMN_NAME, size), **_turned(90, size))


def keep_height(axes: Axes, inches: float) -> None:
    """Let the figure grow or shrink until the axes, whatever the names below them take, are so high."""
    figure: Any = axes.get_figure()
    figure.get_layout_engine().execute(figure)
    figure.set_figheight(figure.get_figheight() + inches - axes.get_window_extent().height / figure.dpi)


def number_ticks(axes: Axes, places: Any) -> None:
    """Ticks at all places below the axes, with numbers at all but those that would touch the next one."""
    names = [f"{place:g}" for place in places]
    middles = _middles(axes, places)
    halves = [text_width(name, SMALL) / 2 for name in names]
    kept = [len(names) - 1]
    for i in range(len(names) - 2, -1, -1):
        if middles[i] + halves[i] + SPACE <= middles[kept[-1]] - halves[kept[-1]]:
            kept.append(i)
    axes.set_xticks(places, labels=[name if i in kept else "" for i, name in enumerate(names)])


def _middles(axes: Axes, places: Any) -> np.ndarray:
    """Where places along the x axis are in the figure, in points; the layout is made for it."""
    figure: Any = axes.get_figure()
    axes.set_xticks([])
    figure.get_layout_engine().execute(figure)
    return axes.transData.transform([(place, 0) for place in places])[:, 0] * POINTS / figure.dpi


def _turned(angle: float, size: float) -> dict[str, Any]:
    """How names below a column are set that are not level."""
    vertical = "center" if angle == 90 else "top"
    place = {"rotation_mode": "anchor", "horizontalalignment": "right", "verticalalignment": vertical}
    return {"rotation": angle, "fontsize": size, **place}


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
