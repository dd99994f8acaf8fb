"""Tables of results: one model that the terminal, Markdown and the report's page are made from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hotshot.evaluation.statistics import Estimate, mean_interval
from hotshot.formatting import with_interval

PUBLISHED = "published"


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
    >>> print(Number(68.57, 0.55), Number(1, signed=True), Number(-0.001))
    68.57 ± 0.55 +1.00 0.00
    """

    mean: float
    half_width: float | None = None
    published: bool = False
    signed: bool = False
    places: int = 2

    def __str__(self) -> str:
        return with_interval(self.mean, self.half_width, signed=self.signed, places=self.places)


@dataclass(frozen=True)
class Interval:
    """A mean and its interval on an axis from 0 to 100, with where zero is on it."""

    low: float
    mean: float
    high: float
    zero: float


@dataclass(frozen=True)
class Entry:
    """What a reader meets in a cell.

    Attributes
    ----------
    text : str
    value : float, str or None
        What the rows are sorted by; None in an empty cell.
    note : str
        A remark in smaller print, where there is room for one.
    kind : str
        What it is, for the style: `published`, `reference`, or a verdict.
    interval : Interval or None
        To be drawn in place of the text.
    """

    text: str = ""
    value: float | str | None = None
    note: str = ""
    kind: str = ""
    interval: Interval | None = None


Cell = str | Number | Entry | None


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

    @property
    def entries(self) -> list[list[Entry]]:
        """The rows as readers meet them."""
        return [[_entry(cell) for cell in row] for row in self.rows]

    @property
    def numeric(self) -> list[bool]:
        """Whether each column holds numbers, which stand to the right."""
        columns = zip(*self.entries, strict=True) if self.rows else [()] * len(self.columns)
        return [any(isinstance(entry.value, int | float) for entry in column) for column in columns]

    def to_markdown(self) -> str:
        """The table as Markdown; published numbers are in italics."""
        lines = [list(self.columns), ["---"] * len(self.columns)]
        lines += [[_in_markdown(entry) for entry in row] for row in self.entries]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def percent(estimate: Estimate, *, signed: bool = False) -> Number:
    """An estimate in [0, 1] as a number in percent; a single task has no interval."""
    half_width = 100 * estimate.half_width
    return Number(100 * estimate.mean, half_width if math.isfinite(half_width) else None, signed=signed)


def interval(values: np.ndarray, *, signed: bool = False) -> Number:
    """The mean of values (n,) and its interval; a single value has none."""
    found = mean_interval(values)
    return Number(found.mean, found.half_width if math.isfinite(found.half_width) else None, signed=signed)


def _entry(cell: Cell) -> Entry:
    if isinstance(cell, Number):
        kind = PUBLISHED if cell.published else ""
        return Entry(str(cell), cell.mean, note=kind, kind=kind)
    if isinstance(cell, str):
        return Entry(cell, cell)
    return Entry() if cell is None else cell


def _in_markdown(entry: Entry) -> str:
    text = entry.text.replace("|", "\\|")
    return f"*{text}*" if entry.kind == PUBLISHED else text
