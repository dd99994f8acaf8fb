"""What an experiment found: sentences, tables and figures, kept as files that the report reads."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotshot.errors import InputError
from hotshot.evaluation import Estimate
from hotshot.figures import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FINDINGS = "findings.json"


@dataclass(frozen=True)
class Number:
    """A number in a table, with its 95% interval where it has one.

    Attributes
    ----------
    mean, half_width : float
        Accuracies are in percent.
    published : bool
        Whether it is the paper's, not measured here.
    signed : bool
        Whether it is a difference, printed with its sign.
    places : int
        Digits after the point.

    Examples
    --------
    >>> print(Number(68.57, 0.55), Number(1, signed=True))
    68.57 ± 0.55 +1.00
    """

    mean: float
    half_width: float | None = None
    published: bool = False
    signed: bool = False
    places: int = 2

    def __str__(self) -> str:
        mean = f"{self.mean:{'+' if self.signed else ''}.{self.places}f}"
        return mean if self.half_width is None else f"{mean} ± {self.half_width:.{self.places}f}"


Cell = str | Number | None


@dataclass(frozen=True)
class Table:
    """Rows under named columns; `notes` stand below it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"Every row of '{self.title}' needs {len(self.columns)} cells.")

    def to_markdown(self) -> str:
        """The table as Markdown; published numbers are in italics."""
        lines = [self.columns, tuple("---" for _ in self.columns)]
        lines += [tuple(_in_markdown(cell) for cell in row) for row in self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


@dataclass(frozen=True)
class Findings:
    """Of one experiment.

    Attributes
    ----------
    sentences : tuple of str
        What was found, in words.
    tables : tuple of Table
    figures : dict of str to Figure
        By the name of their files.
    numbers : dict
        What was measured beyond the tables, for programs.
    """

    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: dict[str, Figure] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)


def percent(estimate: Estimate, *, signed: bool = False) -> Number:
    """An estimate in [0, 1] as a number in percent; a single task has no interval."""
    half_width = 100 * estimate.half_width
    return Number(100 * estimate.mean, half_width if math.isfinite(half_width) else None, signed=signed)


def save_findings(folder: Path, findings: Findings, about: dict[str, Any]) -> Path:
    """Write `findings.json` and the figures; `about` says which experiment it was and what it was run on."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in findings.figures.items():
        save(figure, folder / name)
    document = {
        **about,
        "sentences": findings.sentences,
        "tables": [asdict(table) for table in findings.tables],
        "figures": list(findings.figures),
        "numbers": findings.numbers,
    }
    path = folder / FINDINGS
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return path


def load_findings(folder: Path) -> dict[str, Any]:
    """The document that `save_findings` wrote."""
    try:
        found = json.loads((folder / FINDINGS).read_text(encoding="utf-8"))
        if isinstance(found, dict) and {"experiment", "tables", "figures"} <= set(found):
            return found
    except (OSError, ValueError):
        pass
    raise InputError(f"{folder} holds no findings: make them with hotshot reproduce.")


def _in_markdown(cell: Cell) -> str:
    if isinstance(cell, Number):
        return f"*{cell}*" if cell.published else str(cell)
    return "" if cell is None else cell.replace("|", "\\|")
