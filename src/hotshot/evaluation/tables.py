"""Tables of numbers with their intervals, as experiments find them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hotshot.evaluation import Estimate, mean_interval


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
        # What rounds to zero has no sign of its own.
        mean = f"{round(self.mean, self.places) + 0.0:{'+' if self.signed else ''}.{self.places}f}"
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


def percent(estimate: Estimate, *, signed: bool = False) -> Number:
    """An estimate in [0, 1] as a number in percent; a single task has no interval."""
    half_width = 100 * estimate.half_width
    return Number(100 * estimate.mean, half_width if math.isfinite(half_width) else None, signed=signed)


def interval(values: np.ndarray, *, signed: bool = False) -> Number:
    """The mean of values (n,) and its interval; a single value has none."""
    found = mean_interval(values)
    return Number(found.mean, found.half_width if math.isfinite(found.half_width) else None, signed=signed)


def _in_markdown(cell: Cell) -> str:
    if isinstance(cell, Number):
        return f"*{cell}*" if cell.published else str(cell)
    return "" if cell is None else cell.replace("|", "\\|")
