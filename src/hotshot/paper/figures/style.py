"""One style for all figures: sizes, colours, markers, and the settings in which every figure is drawn and saved.

matplotlib is imported when the first figure is drawn, not when this package is: it takes longer to load than most
commands run. Nothing of pyplot is used and the user's own matplotlib settings are neither read nor changed.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotshot.errors import ParameterError
from hotshot.files.atomic import replace_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Widths of a column and of a page of a paper in inches.
COLUMN, PAGE = 3.4, 7.0
POINTS, DOTS_PER_INCH = 72, 200
MOST_TICKS = 9
# Sizes of print in points: titles and labels, names and numbers, and names where there are very many.
TEXT, SMALL, SMALLEST = 8.0, 7.0, 5.0

# Okabe and Ito's colours, which people with any colour vision can tell apart, with grey for their yellow, which is too
# light for lines. Every series has its own marker or hatch as well, for print in grey; where there are more series than
# colours, the two together tell them apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "<", ">", "h")
HATCHES = ("", "/////", ".....", "\\\\\\\\\\", "xxxxx", "-----", "ooo")
INK, SOFT, GRID = "#222222", "#6B6B6B", "#E3E3E3"
# Of files: without dates, so that the same figure is the same file.
METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "png": {}, "pdf": {"CreationDate": None}}
# Fonts for characters that DejaVu Sans lacks, where the machine has them.
OTHER_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Microsoft YaHei", "PingFang SC", "SimHei",
    "Hiragino Sans", "Yu Gothic", "IPAexGothic", "Malgun Gothic", "Apple SD Gothic Neo", "Arial Unicode MS",
)  # fmt: skip

SETTINGS: dict[Any, Any] = {
    # DejaVu Sans comes with matplotlib; Verdana has its widths, for browsers without it.
    "font.sans-serif": ["DejaVu Sans", "Verdana"],
    "font.size": TEXT,
    # Class names may hold dollar signs; nothing here is mathematics.
    "text.parse_math": False,
    # Hinted letters have other widths at other resolutions, and names would no longer fit.
    "text.hinting": "none",
    "text.color": INK,
    "axes.titlesize": TEXT,
    "axes.titlelocation": "left",
    "axes.labelsize": TEXT,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.limits": (-5, 6),
    "axes.formatter.useoffset": False,
    "figure.titlesize": TEXT,
    "figure.titleweight": "bold",
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    **{f"{axis}tick.labelsize": SMALL for axis in "xy"},
    **{f"{axis}tick.color": INK for axis in "xy"},
    **{f"{axis}tick.major.width": 0.6 for axis in "xy"},
    **{f"{axis}tick.major.size": 2.5 for axis in "xy"},
    **{f"{axis}tick.major.pad": 2 for axis in "xy"},
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "hatch.linewidth": 0.5,
    "hatch.color": "white",
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.borderpad": 0,
    "legend.borderaxespad": 0,
    "legend.handlelength": 2.0,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.8,
    "patch.linewidth": 0.5,
    # Text stays text in SVG: searchable, and in any script that the reader's machine has a font for.
    "svg.fonttype": "none",
    "svg.hashsalt": "hotshot",
}


def colour(series: int) -> str:
    """Of the series of that number, counted from 0."""
    return COLOURS[series % len(COLOURS)]


def marker(series: int) -> str:
    """Of the series of that number, counted from 0."""
    return MARKERS[series % len(MARKERS)]


def outlined(series: int, width: float) -> dict[str, Any]:
    """The marker of a series in its colour, with a white outline of so many points."""
    return {"color": colour(series), "marker": marker(series), "markeredgecolor": "white", "markeredgewidth": width}


@contextmanager
def settings() -> Iterator[None]:
    """The settings above, whatever the user's own; those are back afterwards."""
    import matplotlib
    from matplotlib.font_manager import fontManager

    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()
        installed = {font.name for font in fontManager.ttflist}
        families = ["sans-serif", *(name for name in OTHER_FONTS if name in installed)]
        matplotlib.rcParams.update({**SETTINGS, "font.family": families})
        # A character that the font lacks is drawn as a box in PNG, and the reader sees that.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        log = logging.getLogger("matplotlib.font_manager")
        level = log.level
        # Not every other font has a bold face, which is no news to the reader.
        log.setLevel(logging.ERROR)
        try:
            yield
        finally:
            log.setLevel(level)


@contextmanager
def drawing(width: float, height: float) -> Iterator[Figure]:
    """A new figure of so many inches, to be filled inside the `with`; afterwards its layout is final."""
    with settings():
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        # matplotlib makes ticks when it draws, by the settings of that moment, and a layout made once more moves by
        # fractions of a point: both are settled here, so that every file shows the same figure.
        _settle_ticks(figure)
        figure.draw_without_rendering()
        figure.set_layout_engine("none")


def _settle_ticks(figure: Figure) -> None:
    """Let each axis have as many ticks as fit now: a later layout may leave room for others with wider numbers."""
    from matplotlib.ticker import AutoLocator

    figure.draw_without_rendering()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            locator = axis.get_major_locator()
            if isinstance(locator, AutoLocator):
                locator.set_params(nbins=max(1, min(axis.get_tick_space(), MOST_TICKS)))


def save(figure: Figure, path_stem: str | Path, *, pdf: bool = False) -> list[Path]:
    """Write STEM.svg, STEM.png and, where asked, STEM.pdf, and return their paths in this order.

    Folders are made, and the same figure gives the same bytes.
    """
    stem = Path(path_stem)
    if not stem.name:
        raise ParameterError(f"path_stem must end in the name of a file without suffix, got {str(path_stem)!r}.")
    with suppress(OSError):
        # Where this fails, writing does too, and says so of the file.
        stem.parent.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind in ["svg", "png"] + ["pdf"] * pdf:
        path = stem.with_name(f"{stem.name}.{kind}")
        content = file_content(figure, kind)
        with replace_file(path) as file:
            file.write(content)
        paths.append(path)
    return paths


def file_content(figure: Figure, kind: str) -> bytes:
    """A figure as "svg", "png" or "pdf"."""
    buffer = BytesIO()
    with settings():
        figure.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=METADATA[kind])
    return buffer.getvalue()
