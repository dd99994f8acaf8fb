"""Tables as the page shows them: cells with a text to read and a value to sort by."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from hotshot.evaluation import Evaluation
from hotshot.evaluation.statistics import AHEAD, BEHIND, UNDECIDED, verdict
from hotshot.paper.figures.text import short
from hotshot.report.numbers import count, milliseconds, percent, points
from hotshot.report.words import LONGEST_NAME
from hotshot.transport.solution import Status

VERDICTS = {AHEAD: "reference ahead", BEHIND: "reference behind", UNDECIDED: "undecided"}


@dataclass(frozen=True)
class Interval:
    """A mean and its interval on an axis from 0 to 100, with where zero is on it."""

    low: float
    mean: float
    high: float
    zero: float


@dataclass(frozen=True)
class Cell:
    """What stands in a cell, what it is sorted by (empty ones last), a smaller note, and its kind for the style."""

    text: str = ""
    value: float | str | None = None
    note: str = ""
    kind: str = ""
    interval: Interval | None = None


@dataclass(frozen=True)
class Column:
    """A name and whether it holds numbers, which stand to the right and are sorted from the largest on."""

    name: str
    numeric: bool = True


@dataclass(frozen=True)
class PageTable:
    """Rows under columns; `sorted_by` says which column they are in order of, if any."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = field(default=())
    sorted_by: int | None = None


def number(text: str, value: float, **more: Any) -> Cell:
    """A cell that is sorted by a number."""
    return Cell(text, value, **more)


def name(text: Any, **more: Any) -> Cell:
    """A cell that is sorted by its text."""
    return Cell(str(text), str(text), **more)


def result_table(found: Evaluation, shots: int, threshold: float) -> PageTable:
    """Methods at one number of shots, the best first: accuracy, paired differences, and what lies beyond the mean."""
    reference = found.reference
    order = sorted(found.methods, key=lambda method: -found[method, shots].accuracy.mean)
    axis = _axis(found, shots)
    rows = []
    for method in order:
        result = found[method, shots]
        own, difference = result.accuracy, found.difference(method, shots)
        which = verdict(difference)
        worst = min(result.recall, key=lambda label: result.recall[label])
        error = result.calibration_error
        apart = (
            [Cell("reference", kind="reference"), Cell()]
            if method == reference
            else [
                number(points(difference, signed=True), difference.mean, note=VERDICTS[which], kind=which),
                Cell("", difference.mean, interval=_interval(difference, axis)),
            ]
        )
        rows.append(
            (
                name(method, kind="reference" if method == reference else ""),
                number(points(own), own.mean),
                *apart,
                number(percent(result.share_below(threshold)), result.share_below(threshold)),
                number(
                    percent(result.recall[worst], 0), result.recall[worst], note=short(worst, LONGEST_NAME)
                ),
                Cell() if error is None else number(f"{error:.3f}", error),
                number(milliseconds(result.seconds_per_task), result.seconds_per_task),
            )
        )
    columns = (
        Column("Method", numeric=False),
        Column("Accuracy in %, 95%"),
        Column(f"{reference} minus it, paired, 95%"),
        Column("The same, drawn"),
        Column(f"Tasks below {100 * threshold:g}%"),
        Column("Worst class, recall"),
        Column("Calibration error"),
        Column("ms a task"),
    )
    return PageTable(
        f"{found.ways}-way-{shots}-shot, {count(found.tasks)} tasks", columns, tuple(rows), sorted_by=1
    )


def transport_table(found: Evaluation) -> PageTable:
    """How the transport problems and heads of each method ended; cells of methods that do not transport are empty."""
    ends = [status for status in Status if any(status in result.statuses for result in found.results)]
    rows = []
    for result in found.results:
        total = sum(result.statuses.values())
        counts = [total, *(result.statuses.get(end, 0) for end in ends)]
        rows.append(
            (
                name(result.method),
                number(str(result.shots), result.shots),
                *(number(count(n), n) if total else Cell() for n in (counts if ends else ())),
                number(count(result.stopped_early), result.stopped_early),
                number(milliseconds(result.seconds_per_task), result.seconds_per_task),
            )
        )
    problems = ("Transport problems", *(end.name.lower().replace("_", " ") for end in ends)) if ends else ()
    titles = ("Shots", *problems, "Fits stopped early", "ms a task")
    columns = (Column("Method", numeric=False), *map(Column, titles))
    return PageTable("How transport problems and fits ended", columns, tuple(rows))


def recall_table(found: Evaluation, shots: int) -> PageTable:
    """Recall of every class by every method, the worst class of the reference first."""
    recall = {method: found[method, shots].recall for method in found.methods}
    own = recall[found.reference]
    rows = tuple(
        (
            name(label),
            *(number(percent(recall[method][label], 0), recall[method][label]) for method in found.methods),
        )
        for label in sorted(own, key=lambda label: own[label])
    )
    columns = (Column("Class", numeric=False), *(Column(method) for method in found.methods))
    return PageTable(f"Recall of each class, {found.ways}-way-{shots}-shot", columns, rows)


def _axis(found: Evaluation, shots: int) -> tuple[float, float]:
    """The range that all differences of a table are drawn on; zero is in it."""
    differences = [found.difference(m, shots) for m in found.methods if m != found.reference]
    ends = [x for d in differences for x in (d.low, d.high) if math.isfinite(x)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room


def _interval(difference: Any, axis: tuple[float, float]) -> Interval | None:
    if not math.isfinite(difference.half_width):
        return None
    low, high = axis
    place = [
        round(100 * (x - low) / (high - low), 2)
        for x in (difference.low, difference.mean, difference.high, 0.0)
    ]
    return Interval(*place)
