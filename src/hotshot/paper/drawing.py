"""What all figures share: the style in `hotshot.mplstyle`, names that fit, title and legend, files.

matplotlib is imported when the first figure is drawn, not when this package is: it takes longer to load than most
commands run. Nothing of pyplot is used and the user's own matplotlib settings are neither read nor changed.
"""

from __future__ import annotations

import logging
import math
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from hotshot.files.atomic import replace_file
from hotshot.formatting import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Widths of a column and of a page of a paper in inches.
COLUMN, PAGE = 3.4, 7.0
POINTS = 72
# Sizes of print in points: names and numbers, and names where there are very many.
SMALL, SMALLEST = 7.0, 5.0
# Distance of lines of text, and the usual width of a letter, both over the size of the print.
LINE, LETTER = 1.22, 0.6
# Points of height of a row in a long figure at most and at least, points that all rows share, and rows with a name.
TALLEST, LOWEST, ROWS_HEIGHT, MOST_NAMED = 11.5, 6.1, 576.0, 120
# Characters of the name of a row or column, and of one in a legend.
LONGEST, LONGEST_IN_LEGEND = 28, 40
MOST_TITLE_LINES = 3
STYLE = Path(__file__).with_name("hotshot.mplstyle")


@contextmanager
def style() -> Iterator[None]:
    """The style of the figures, whatever the user's own; that is back afterwards."""
    import matplotlib.style
    from matplotlib.font_manager import fontManager

    log = logging.getLogger("matplotlib.font_manager")
    level = log.level
    with matplotlib.style.context(STYLE, after_reset=True), warnings.catch_warnings():
        # A character that no font has is drawn as a box in PNG, and the reader sees that.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        # matplotlib complains of each that is not there, whenever a figure is shown.
        installed = {"sans-serif", *(font.name for font in fontManager.ttflist)}
        families = matplotlib.rcParams["font.family"]
        matplotlib.rcParams["font.family"] = [family for family in families if family in installed]
        # Not every other font has a bold face, which is no news to the reader.
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """A new figure of so many inches, to be filled inside the `with`; afterwards its layout is final."""
    with style():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
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
    """Names of rows 0, 1, … from the top, on several lines where rows are high.

    Of more than 120 rows every second, third, and so on has one.
    """
    step = math.ceil(len(names) / MOST_NAMED)
    size = max(SMALLEST, min(SMALL, pitch * step / LINE))
    n_lines = max(1, int(pitch * step / (LINE * size)))
    axes.set_yticks(range(0, len(names), step), labels=fitted(names[::step], n_lines=n_lines), fontsize=size)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def name_columns(axes: Axes, names: Sequence[Any], width: float) -> None:
    """Names of columns 0, 1, … that share so many inches: level where they fit, else slanted, else upright.

    Where upright names could not be read, every second, third, and so on has one. The figure grows by the height of
    names that are not level.
    """
    shown = fitted(names)
    pitch = width * POINTS / len(names)
    longest = LETTER * SMALL * max(map(len, shown))
    axes.tick_params(axis="x", length=0)
    if longest <= pitch:
        axes.set_xticks(range(len(names)), labels=shown)
        return
    angle, step, size = 45, 1, SMALL
    if pitch < 1.5 * LINE * SMALL:
        angle, step = 90, math.ceil(LINE * SMALLEST / pitch)
        size = min(SMALL, pitch * step / LINE)
    place: Any = {"rotation_mode": "anchor", "ha": "right", "va": "center" if angle == 90 else "top"}
    axes.set_xticks(range(0, len(names), step), labels=shown[::step], rotation=angle, fontsize=size, **place)
    figure: Any = axes.get_figure()
    figure.set_figheight(figure.get_figheight() + longest * math.sin(math.radians(angle)) / POINTS)


def add_header(figure: Figure, title: str, handles: Sequence[Any] = (), names: Iterable[Any] = ()) -> None:
    """Title and legend above the axes, where they hide no data; the figure grows by their height."""
    letters = figure.get_figwidth() * POINTS / (LETTER * SMALL)
    shown = fitted(names, LONGEST_IN_LEGEND)
    # Beside each name stands its mark.
    columns = max(1, min(len(shown), int(letters / (max(map(len, shown), default=0) + 6))))
    # Bold and larger print takes a quarter more.
    lines = textwrap.wrap(title, int(0.8 * letters), max_lines=MOST_TITLE_LINES, placeholder="…")
    # Names that begin with an underscore would be left out, so they are set afterwards.
    legend = figure.legend(
        handles, [str(i) for i in range(len(shown))], loc="outside upper left", ncols=columns,
        title="\n".join(lines), alignment="left", title_fontproperties={"weight": "bold", "size": 8},
    )  # fmt: skip
    for text, name in zip(legend.get_texts(), shown, strict=True):
        text.set_text(name)
    n_lines = len(lines) + math.ceil(len(shown) / columns)
    figure.set_figheight(figure.get_figheight() + n_lines * 1.5 * SMALL / POINTS)


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
