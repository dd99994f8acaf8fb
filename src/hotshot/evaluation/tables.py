"""Tables: one model that the terminal, Markdown and the page are made from, and an evaluation in its terms."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from hotshot.classifiers.held_out import Choice
from hotshot.evaluation.results import AHEAD, BEHIND, UNDECIDED, Evaluation, MethodResult, verdicts
from hotshot.formatting import (
    count,
    listed,
    milliseconds,
    percentage,
    plus_minus,
    setting_in_words,
    shortened,
    shots_in_words,
    with_interval,
)
from hotshot.intervals import Estimate, mean_interval
from hotshot.transport import Status

PUBLISHED = "published"
VERDICTS = {AHEAD: "reference ahead", BEHIND: "reference behind", UNDECIDED: "undecided"}
REFERENCE = "reference"
NO_SPREAD = "A mean without an interval is the same in every task. That is not certainty."
# Characters of a method in a heading.
LONGEST_REFERENCE = 13
# Characters of a class name below a number or in a sentence.
LONGEST_NAME = 60


@dataclass(frozen=True)
class Number:
    """A number in a table, with its 95% interval where it has one.

    Accuracies are in percent. `published` numbers are from the paper, not measured; `signed` ones are differences.
    """

    mean: float
    half_width: float | None = None
    published: bool = False
    signed: bool = False
    places: int = 2

    def __str__(self) -> str:
        return with_interval(self.mean, self.half_width, signed=self.signed, places=self.places)


@dataclass(frozen=True)
class Entry:
    """What a reader meets in a cell.

    Rows are sorted by `value`, None in an empty cell. `note` is a remark in smaller print, where there is room for one;
    `kind` is for the style: `published`, `reference`, or a verdict.
    """

    text: str = ""
    value: float | str | None = None
    note: str = ""
    kind: str = ""


Cell = str | Number | Entry | None


@dataclass(frozen=True)
class Table:
    """A table: rows of texts, numbers, entries or None under named columns, and notes below it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"Every row of '{self.title}' needs {len(self.columns)} cells.")
        numbers = (cell for row in self.rows for cell in row if isinstance(cell, Number))
        if any(cell.half_width == 0 for cell in numbers) and NO_SPREAD not in self.notes:
            object.__setattr__(self, "notes", (*self.notes, NO_SPREAD))

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

    def to_html(self) -> str:
        """The table as HTML for a notebook, without its notes."""
        sides = [f" style='text-align:{'right' if is_number else 'left'}'" for is_number in self.numeric]

        def line(tag: str, texts: Iterable[str]) -> str:
            cells = (f"<{tag}{side}>{escape(text)}</{tag}>" for side, text in zip(sides, texts, strict=True))
            return f"<tr>{''.join(cells)}</tr>"

        head, body = line("th", self.columns), (line("td", (entry.text for entry in row)) for row in self.entries)
        return f"<p><b>{escape(self.title)}</b></p><table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"

    def __str__(self) -> str:
        lines = [self.columns, *([entry.text for entry in row] for row in self.entries)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        sides = [str.rjust if right else str.ljust for right in self.numeric]
        return "\n".join(
            "  ".join(side(text, width) for side, text, width in zip(sides, line, widths, strict=True)).rstrip()
            for line in lines
        )


def percent(estimate: Estimate, *, signed: bool = False, factor: float = 100) -> Number:
    """An estimate in [0, 1] as a number in percent; a single task has no interval."""
    half_width = factor * estimate.half_width
    return Number(factor * estimate.mean, half_width if math.isfinite(half_width) else None, signed=signed)


def interval(values: np.ndarray, *, signed: bool = False) -> Number:
    """The mean of values (n,) and its interval; a single value has none."""
    return percent(mean_interval(values), signed=signed, factor=1)


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


# --- results of an evaluation, as tables


def result_table(found: Evaluation, shots: int | str, threshold: float | None = None) -> Table:
    """Methods at one number of shots: accuracy or what their setting measures, and the reference's paired lead.

    With a `threshold` for bad tasks also what lies beyond the mean accuracy, and the best method first.
    """
    leads, closed = found.leads(shots), not found.setting.compared
    standing = verdicts(leads)
    order = found.methods
    if closed and threshold is not None:
        order = sorted(order, key=lambda method: -found[method, shots].accuracy.mean)
    rows = []
    for method in order:
        result = found[method, shots]
        lead: Cell = Entry(REFERENCE, kind=REFERENCE)
        if method in leads:
            star = " *" if not closed and standing[method] != UNDECIDED else ""
            text = f"{percent(leads[method], signed=True)}{star}"
            lead = Entry(text, 100 * leads[method].mean, note=VERDICTS[standing[method]], kind=standing[method])
        cells: dict[str, Cell] = {"method": Entry(method, method, kind=REFERENCE if method == found.reference else "")}
        if not closed:
            cells |= _measures(found, result, lead)
        else:
            cells["accuracy %"] = percent(result.accuracy_over_classes)
            cells["over tasks"] = _half_width(result.accuracy)
            if leads:
                cells[_lead(found)] = lead
                paired = found.difference(method, shots)
                cells["paired, over tasks"] = _half_width(paired) if method in leads else None
            if threshold is not None:
                cells |= _details(result, threshold)
        rows.append(cells)
    title = _title(found, shots) + ("" if closed else ", in percent")
    jointly = (batch_note(found.jointly, found.methods),) if found.jointly and threshold is None else ()
    return _table(title, rows, (*jointly, _interval_note(found, shots)))


def _table(title: str, rows: Sequence[dict[str, Cell]], notes: tuple[str, ...] = ()) -> Table:
    """A table of rows by the names of their columns."""
    return Table(title, tuple(rows[0]), tuple(tuple(row.values()) for row in rows), notes)


def _title(found: Evaluation, shots: int | str) -> str:
    jointly = ", queries classified jointly" if found.jointly else ""
    return f"{setting_in_words(found.ways, shots)}, {count(found.tasks, 'task')}{jointly}"


def _measures(found: Evaluation, result: MethodResult, lead: Cell) -> dict[str, Cell]:
    """What the setting measures; the measure that methods are compared by has an interval."""
    setting = found.setting
    # Where the accuracy on novel classes is a measure, it is this.
    cells: dict[str, Cell] = {}
    if "novel_accuracy" not in setting.measures:
        cells["accuracy"] = Number(100 * result.accuracy.mean)
    for name, title in setting.measures.items():
        values = result.measures.get(name)
        cells[title] = None if values is None else Number(100 * float(values.mean()))
        if name == setting.compared:
            cells |= {title: interval(100 * result.measures[name]), _lead(found): lead}
    return cells


def _interval_note(found: Evaluation, shots: int | str) -> str:
    """What the intervals of a table hold for."""
    if found.tasks == 1:
        return "A single task has no interval."
    setting = found.setting
    what = setting.measures.get(setting.compared, "accuracy")
    lead = f"{_lead(found)}: {what} of {found.reference} minus that of the method, in points, paired task by task"
    if setting.compared:
        note = "Intervals are 95% over tasks and hold for these classes only."
        star = "* if significant after Holm's correction for the number of methods"
        return f"{lead}; {star}. {note}" if len(found.methods) > 1 else note
    note = f"{lead}." if len(found.methods) > 1 else "Accuracy is in percent."
    n_classes = found[found.reference, shots].accuracy_over_classes.n
    if found.holds_for_new_classes:
        return (
            f"{note} Intervals are 95%: those beside the numbers are over classes and hold for new classes of the same "
            f"kind, those over tasks hold for these {n_classes} classes only."
        )
    return (
        f"{note} Every task has all {n_classes} classes, so there are no intervals over classes and no conclusions "
        "about new classes; intervals over tasks are 95% and hold for these classes only."
    )


def _lead(found: Evaluation) -> str:
    """A short heading for the reference minus a method."""
    return f"lead of {found.reference if len(found.reference) <= LONGEST_REFERENCE else REFERENCE}"


def detail_table(found: Evaluation, threshold: float) -> Table:
    """What lies beyond the mean: bad tasks, bad classes, calibration, time."""
    rows = [{"method": r.method, "shots": _shots(r.shots), **_details(r, threshold)} for r in found.results]
    return _table("beyond the mean", rows)


def transport_table(found: Evaluation) -> Table:
    """How the transport problems and heads of each method ended; cells of methods that do not transport are empty."""
    ends = [status for status in Status if any(status in result.statuses for result in found.results)]
    rows = []
    for result in found.results:
        total = sum(result.statuses.values())
        counts = (total, *(result.statuses.get(end, 0) for end in ends)) if ends else ()
        problems = (_whole(n) if total else None for n in counts)
        rows.append((result.method, _shots(result.shots), *problems, _whole(result.stopped_early), _time(result)))
    names = ("transport problems", *(end.name.lower().replace("_", " ") for end in ends)) if ends else ()
    columns = ("method", "shots", *names, "fits stopped early", "ms per task")
    return Table("How transport problems and fits ended", columns, tuple(rows))


def recall_table(found: Evaluation, shots: int | str) -> Table:
    """Recall of every class by every method, the worst class of the reference first."""
    recall = {method: found[method, shots].recall for method in found.methods}
    of_reference = recall[found.reference]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (str(label), *(_share(recall[method][label], 0) for method in found.methods))
        for label in sorted(of_reference, key=lambda label: of_reference[label])
    )
    title = f"Recall of each class, {setting_in_words(found.ways, shots)}"
    return Table(title, ("class", *found.methods), rows)


def choice_table(choice: Choice) -> Table:
    """The settings that were tried on held-out base classes, in order, and what was chosen."""
    rows = tuple(
        (t.parameter, str(t.value), Number(t.gain, t.half_width, signed=True), _whole(t.classes), "yes" * t.taken)
        for t in choice.trials
    )
    chosen = ", ".join(f"{name}={value}" for name, value in choice.settings.items())
    seen = "The extractor was trained on these classes: only the power is chosen."
    return Table(
        "Settings tried on held-out base classes",
        ("parameter", "value", "gain in points, 95% over classes", "classes", "chosen"),
        rows,
        (f"Chosen: {chosen}.", *([seen] if choice.seen_in_training else [])),
    )


def unsolved(found: Evaluation) -> list[str]:
    """A sentence for every method some of whose problems did not end as they should."""
    sentences = []
    for result in found.results:
        total = sum(result.statuses.values())
        who = f"{result.method} at {shots_in_words(result.shots)}"
        sentences += [
            f"{who}: {number:,} of {total:,} transport problems ended as {status.name}. {status.explanation}"
            for status, number in result.statuses.items()
            if status is not Status.CONVERGED
        ]
        if result.stopped_early:
            sentences.append(f"{who}: {result.stopped_early:,} of {found.tasks:,} fits stopped before they converged.")
    return sentences


def batch_note(jointly: Sequence[str], methods: Sequence[str]) -> str:
    """A sentence on who classified the queries of a task jointly."""
    others = ", the other methods one by one" if set(methods) - set(jointly) else ""
    return f"{listed(list(jointly))} classified the queries of a task jointly{others}."


def _half_width(estimate: Estimate) -> Entry:
    """The interval alone, where the mean stands beside it."""
    width = 100 * estimate.half_width
    return Entry(plus_minus(width), width) if math.isfinite(width) else Entry()


def _details(result: MethodResult, threshold: float) -> dict[str, Cell]:
    worst = min(result.recall, key=lambda label: result.recall[label])
    error = result.calibration_error
    return {
        f"tasks below {100 * threshold:g}%": _share(result.share_below(threshold), 1),
        "calibration error": None if error is None else Number(error, places=3),
        "ms per task": _time(result),
        "recall of worst class": _share(result.recall[worst], 0, note=shortened(worst, LONGEST_NAME, keep="ends")),
    }


def _share(share: float, places: int, note: str = "") -> Entry:
    return Entry(percentage(share, places), share, note=note)


def _whole(number: int) -> Entry:
    return Entry(f"{number:,}", number)


def _shots(shots: int | str) -> Entry:
    """Ranges are sorted behind the number they begin with."""
    return Entry(f"{shots:,}", shots) if isinstance(shots, int) else Entry(shots, int(shots.split("-")[0]) + 0.5)


def _time(result: MethodResult) -> Entry:
    return Entry(milliseconds(result.seconds_per_task), result.seconds_per_task)
