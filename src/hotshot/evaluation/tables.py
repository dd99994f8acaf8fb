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
    """What a reader meets in a cell: a text, or an interval to be drawn in its place.

    Rows are sorted by `value`, None in an empty cell. `note` is a remark in smaller print, where there is room for one;
    `kind` is for the style: `published`, `reference`, or a verdict.
    """

    text: str = ""
    value: float | str | None = None
    note: str = ""
    kind: str = ""
    interval: Interval | None = None


Cell = str | Number | Entry | None


@dataclass(frozen=True)
class Table:
    """A table: rows of texts, numbers, entries or None under named columns, and notes below it.

    Examples
    --------
    >>> print(Table("Accuracies", ("method", "accuracy"), (("hot", Number(68.57, 0.55)),)).to_markdown())
    | method | accuracy |
    | --- | --- |
    | hot | 68.57 ± 0.55 |
    """

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

    With a `threshold` for bad tasks also what lies beyond the mean accuracy, the best method first and leads drawn on
    one axis.
    """
    leads, closed = found.leads(shots), not found.setting.compared
    standing = verdicts(leads)
    order, axis = found.methods, None
    if closed and threshold is not None:
        order = sorted(order, key=lambda method: -found[method, shots].accuracy.mean)
        axis = _axis(leads.values())
    rows = []
    for method in order:
        result, lead = found[method, shots], _lead_cell(found, leads.get(method), standing.get(method))
        cells: dict[str, Cell] = {"method": Entry(method, method, kind=REFERENCE if method == found.reference else "")}
        if not closed:
            cells |= _measures(found, result, lead)
        else:
            cells["accuracy %"] = percent(result.accuracy_over_classes)
            cells["over tasks"] = _half_width(result.accuracy)
        if closed and leads:
            cells[_lead(found)] = lead
            if axis is not None:
                cells["lead (chart)"] = _chart(leads[method], axis) if method in leads else None
            paired = found.difference(method, shots)
            cells["paired, over tasks"] = _half_width(paired) if method in leads else None
        if closed and threshold is not None:
            cells |= _details(result, threshold)
        rows.append(cells)
    title = _title(found, shots) + ("" if closed else ", in percent")
    jointly = (batch_note(found.jointly, found.methods),) if found.jointly and threshold is None else ()
    notes = (*jointly, *interval_notes(found, shots))
    return Table(title, tuple(rows[0]), tuple(tuple(row.values()) for row in rows), notes)


def _measures(found: Evaluation, result: MethodResult, lead: Cell) -> dict[str, Cell]:
    """What the setting measures; the measure that methods are compared by has an interval."""
    setting = found.setting
    cells: dict[str, Cell] = {"accuracy": Number(100 * result.accuracy.mean)} if setting.has_accuracy else {}
    for name, title in setting.measures.items():
        values = result.measures.get(name)
        cells[title] = None if values is None else Number(100 * float(values.mean()))
        if name == setting.compared and values is not None:
            bound = rule_of_three(mean_interval(values))
            cells[title] = Entry(bound, 100 * float(values.mean())) if bound else percent(mean_interval(values))
        if name == setting.compared:
            cells[_lead(found)] = lead
    return cells


def _lead_cell(found: Evaluation, lead: Estimate | None, standing: str | None) -> Entry:
    """The lead of the reference over a method, with the verdict on it."""
    if lead is None or standing is None:
        return Entry(REFERENCE, kind=REFERENCE)
    star = " *" if found.setting.compared and standing != UNDECIDED else ""
    is_sure = math.isfinite(lead.half_width) or found.setting.compared
    note = VERDICTS[standing] if is_sure else "undecided for new classes"
    return Entry(f"{percent(lead, signed=True)}{star}", 100 * lead.mean, note=note, kind=standing)


def interval_notes(found: Evaluation, shots: int | str) -> tuple[str, ...]:
    """What the intervals of a table hold for, in sentences."""
    if found.tasks == 1:
        return ("A single task has no interval.",)
    setting, results = found.setting, [found[method, shots] for method in found.methods]
    several = len(found.methods) > 1
    what = setting.measures.get(setting.compared, "accuracy")
    lead = f"{_lead(found)}: {what} of {found.reference} minus that of the method, in points, paired task by task"
    if setting.compared:
        note = "Intervals are 95% over tasks and hold for these classes only."
        if several:
            note = f"{lead}; * if significant after Holm's correction for the number of methods. {note}"
        return note, *_bound_notes(mean_interval(result.measures[setting.compared]) for result in results)
    over_classes = found[found.reference, shots].accuracy_over_classes
    note = f"{lead}." if several else "Accuracy is in percent."
    if math.isfinite(over_classes.half_width):
        note += (
            " Intervals are 95%: those beside the numbers are over classes and hold for new classes of the same kind, "
            f"those over tasks hold for these {over_classes.n} classes only."
        )
    else:
        note += (
            f" Every task has all {over_classes.n} classes, so there are no intervals over classes and no conclusions "
            "about new classes; intervals over tasks are 95% and hold for these classes only."
        )
    return note, *_bound_notes(result.accuracy for result in results)


def rule_of_three(estimate: Estimate) -> str:
    """`> 99.70` if every query of 1,000 tasks was right: at 95%, no more than 3/n of all tasks have an error then.

    `< 0.30` if every query was wrong; empty if values differ, or if there are too few of them for a bound.
    """
    if estimate.half_width or estimate.mean not in (0, 1) or estimate.n <= 3:
        return ""
    error = 300 / estimate.n
    return f"> {100 - error:.2f}" if estimate.mean else f"< {error:.2f}"


def _bound_notes(estimates: Iterable[Estimate]) -> tuple[str, ...]:
    """What the bounds in a table mean."""
    bounds = dict.fromkeys(bound for estimate in estimates if (bound := rule_of_three(estimate)))
    return tuple(
        f"{bound}: all queries were {'right' if bound[0] == '>' else 'wrong'}, which is not certainty; this is the 95% "
        "bound for these classes by the rule of three, 3 / tasks."
        for bound in bounds
    )


def _lead(found: Evaluation) -> str:
    """A short heading for the reference minus a method."""
    return f"lead of {found.reference if len(found.reference) <= LONGEST_REFERENCE else REFERENCE}"


def detail_table(found: Evaluation, threshold: float) -> Table:
    """What lies beyond the mean: bad tasks, bad classes, calibration, time."""
    rows = [{"method": r.method, "shots": _shots(r.shots), **_details(r, threshold)} for r in found.results]
    return Table("beyond the mean", tuple(rows[0]), tuple(tuple(row.values()) for row in rows))


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


def _title(found: Evaluation, shots: int | str) -> str:
    jointly = ", queries classified jointly" if found.jointly else ""
    return f"{setting_in_words(found.ways, shots)}, {count(found.tasks, 'task')}{jointly}"


def batch_note(jointly: Sequence[str], methods: Sequence[str]) -> str:
    """A sentence on who classified the queries of a task jointly."""
    others = ", the other methods one by one" if set(methods) - set(jointly) else ""
    return f"{listed(list(jointly))} classified the queries of a task jointly{others}."


def _half_width(estimate: Estimate) -> Entry:
    """The interval alone, where the mean stands beside it, or the bound that it has without an interval."""
    width = 100 * estimate.half_width
    return Entry(plus_minus(width) or rule_of_three(estimate), width) if math.isfinite(width) else Entry()


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


def _axis(differences: Iterable[Estimate]) -> tuple[float, float]:
    """The range that all differences of a table are drawn on; zero is in it."""
    ends = [x for d in differences for x in (d.low, d.high) if math.isfinite(x)]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.06 * (high - low) if high > low else 1.0
    return low - room, high + room


def _chart(difference: Estimate, axis: tuple[float, float]) -> Entry:
    if not math.isfinite(difference.half_width):
        return Entry("", difference.mean)
    low, high = axis
    ends = (difference.low, difference.mean, difference.high, 0.0)
    places = (round(100 * (x - low) / (high - low), 2) for x in ends)
    return Entry("", difference.mean, interval=Interval(*places))
