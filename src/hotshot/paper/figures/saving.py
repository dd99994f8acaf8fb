"""Figures as files: SVG to print and to zoom, PNG to paste, the same bytes every time."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotshot.errors import ParameterError
from hotshot.paper.figures.style import DOTS_PER_INCH, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Without dates, so that the same figure is the same file.
METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "png": {}, "pdf": {"CreationDate": None}}


def save(figure: Figure, path_stem: str | Path, *, pdf: bool = False) -> list[Path]:
    """Write STEM.svg, STEM.png and, where asked, STEM.pdf; folders are made.

    Parameters
    ----------
    figure : Figure
    path_stem : str or Path
        Path without a suffix, such as `figures/plan`.
    pdf : bool
        Whether a PDF file is written too.

    Returns
    -------
    list of Path
        The files, in this order.
    """
    stem = Path(path_stem)
    if not stem.name:
        raise ParameterError(
            f"path_stem must end in the name of a file without suffix, got {str(path_stem)!r}."
        )
    paths = []
    for kind in ["svg", "png"] + ["pdf"] * pdf:
        path = stem.with_name(f"{stem.name}.{kind}")
        content = file_content(figure, kind)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise ParameterError(
                f"The figure cannot be written to {path} ({error.strerror}): choose another place."
            ) from None
        paths.append(path)
    return paths


def file_content(figure: Figure, kind: str) -> bytes:
    """A figure as "svg", "png" or "pdf"."""
    buffer = BytesIO()
    with settings():
        figure.savefig(buffer, format=kind, dpi=DOTS_PER_INCH, metadata=METADATA[kind])
    return buffer.getvalue()
