"""Output in the terminal: tables, notes, progress, and one sentence after Ctrl-C."""

from __future__ import annotations

import json
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

from rich import console as rich_console
from rich.box import SIMPLE_HEAVY
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable
from rich.text import Text

from hotshot.errors import HotshotWarning, InterruptedRunError, LeftOutWarning
from hotshot.formatting import count, percentage, printable, shortened, shots_in_words

# These take seconds to import; their users have imported them.
if TYPE_CHECKING:
    from hotshot.evaluation.journal import Record
    from hotshot.evaluation.tables import Table

# Styles by the kind of an entry: of findings, and of claims of the paper.
STYLES = {
    "fault": "bold red", "warning": "yellow",
    "does not hold": "red", "undecided": "yellow", "holds": "green",
}  # fmt: skip
# Characters of a name that a table does not break.
LONGEST_WHOLE = 30
# Without a terminal, a line of progress is written this often.
SECONDS_BETWEEN_LINES = 10.0


class Console(rich_console.Console):
    """A console that shows control characters in names instead of obeying them."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print text line by line as `printable`, other objects unchanged."""
        lines = ("\n".join(map(printable, x.split("\n"))) if isinstance(x, str) else x for x in objects)
        super().print(*lines, **options)

    def say(self, *sentences: str, **options: Any) -> None:
        """Print sentences that are neither markup nor broken into lines."""
        self.print(*sentences, markup=False, soft_wrap=True, **options)


def print_json(document: Any) -> None:
    """Print one JSON document, in which texts stay readable."""
    print(json.dumps(document, indent=2, ensure_ascii=False))


# --- tables


def to_rich(table: Table) -> RichTable:
    """A table for a console, without its notes; text is never read as markup or escape codes."""
    from hotshot.evaluation.tables import PUBLISHED

    title = Text(printable(table.title), "table.title") if table.title else None
    shown = RichTable(title=title, title_justify="left", box=SIMPLE_HEAVY, show_edge=False, padding=(0, 1, 0, 0))
    rows = table.entries
    for i, (name, numeric) in enumerate(zip(table.columns, table.numeric, strict=True)):
        widest = max((len(printable(row[i].text)) for row in rows), default=0)
        # In a narrow terminal only sentences are broken, neither numbers nor names.
        whole = numeric or (i == 0 and widest <= LONGEST_WHOLE)
        heading = Text(_on_two_lines(printable(name), widest))
        shown.add_column(heading, justify="right" if numeric else "left", overflow="fold", no_wrap=whole)
    for row in rows:
        texts = (Text(printable(entry.text), STYLES.get(entry.kind, "")) for entry in row)
        kinds = {entry.kind for entry in row if isinstance(entry.value, int | float)}
        shown.add_row(*texts, style="dim" if kinds == {PUBLISHED} else None)
    return shown


def _on_two_lines(heading: str, widest: int) -> str:
    """A heading on two lines if it is wider than its column."""
    width = max(widest, *map(len, heading.split(" ")))
    while len(lines := textwrap.wrap(heading, width, break_on_hyphens=False)) > 2:
        width += 1
    return "\n".join(lines)


def print_table(console: Console, table: Table) -> None:
    """Print a table, and its notes below it."""
    console.print(to_rich(table))
    for note in table.notes:
        console.print(note, markup=False)


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print notes on the results."""
    for note in notes:
        console.print(f"Note: {printable(note)}", markup=False, style="yellow")


# --- progress


class Bar(Progress):
    """Progress of what is counted, such as "images", in a `with` statement; it disappears at the end.

    It is shown on `console`, or on stderr if `console` is no terminal; without any terminal it is a plain line on
    stderr every ten seconds. After Ctrl-C, `interrupted` ends the one sentence that is printed.
    """

    def __init__(self, console: Console, counted: str = "", *columns: ProgressColumn, interrupted: str = "") -> None:
        shown = console if console.is_terminal else Console(stderr=True, soft_wrap=True)
        measured = [BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn(counted), *columns, TimeRemainingColumn()]
        description = TextColumn("{task.description}", markup=False)
        columns = (SpinnerColumn(), description, *(measured if counted else [TimeElapsedColumn()]))
        super().__init__(*columns, console=shown, transient=True)
        self._counted, self._ending, self._ended = counted, interrupted, Event()
        self._named: dict[str, TaskID] = {}

    def named(self, name: str) -> TaskID:
        """The bar of this name, a new one at its first use."""
        if name not in self._named:
            self._named[name] = self.add_task(name, total=None, rate="")
        return self._named[name]

    def count(self, name: str, done: int, total: int | None) -> None:
        """Show how much is done of what has this name."""
        self.update(self.named(name), completed=done, total=total)

    def interrupted(self) -> str:
        """How the sentence after Ctrl-C ends; empty for no sentence."""
        return self._ending

    def start(self) -> None:
        """Start to show it."""
        if self.console.is_terminal:
            super().start()
        else:
            Thread(target=self._write_lines, daemon=True).start()

    def stop(self) -> None:
        """Stop to show it."""
        self._ended.set()
        if self.console.is_terminal:
            super().stop()

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        if isinstance(raised[1], KeyboardInterrupt) and self.interrupted():
            raise InterruptedRunError(f"Interrupted{self.interrupted()}") from None

    def _write_lines(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LINES):
            for task in self.tasks:
                if not task.finished:
                    of = "" if task.total is None else f" of {task.total:,.0f}"
                    counted = self._counted and (of or task.completed)
                    done = f", {task.completed:,.0f}{of} {self._counted}" if counted else ""
                    self.console.print(f"{task.description}{done}, {task.elapsed or 0:.0f} s", markup=False)


@contextmanager
def waiting(doing: str) -> Iterator[None]:
    """Show what is being done, without a count."""
    with Bar(Console(stderr=True)) as progress:
        progress.add_task(doing, total=None)
        yield


class BarWithNotes(Bar):
    """Progress that shows what the methods choose on the base classes; warnings become `notes`, each once."""

    notes: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        self._open = ExitStack()
        self._caught = self._open.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always", HotshotWarning)
        self._open.enter_context(choices_shown(lambda choice: self.update(self.named("choosing"), description=choice)))
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._open.close()
        firsts: dict[str, str] = {}
        for warning in self._caught or ():
            if issubclass(warning.category, HotshotWarning):
                text = str(warning.message)
                # Every batch may give the same warning with other numbers. Of inputs left out, each file has its own.
                firsts.setdefault(text if warning.category is LeftOutWarning else re.sub(r"\d+", "", text), text)
        self.notes = tuple(firsts.values())
        super().__exit__(*raised)


@contextmanager
def choices_shown(show: Callable[[str], None]) -> Iterator[None]:
    """Call `show` with a sentence on what the methods are choosing on the base classes."""
    from hotshot.classifiers.held_out import progress

    token = progress.set(show)
    try:
        yield
    finally:
        progress.reset(token)


class Watching(BarWithNotes):
    """Watch an evaluation in a `with` statement: `evaluate(..., watch=watching)`.

    After Ctrl-C, one sentence names `out`, the folder with the finished tasks, and what was being done. `done` tasks
    are finished; `known` of them were already in the folder. Of `several` evaluations nobody knows all tasks before.
    """

    def __init__(self, console: Console, out: Path | None = None, doing: str = "", several: bool = False) -> None:
        super().__init__(console, "tasks", TextColumn("{task.fields[rate]}"))
        self._task = self.named("choosing")
        self.update(self._task, description="preparing the base classes")
        self.out, self._doing, self._several = out, doing, several
        self.done = self.known = 0
        # Sums of accuracies and numbers of tasks by method and shots.
        self._sums: dict[tuple[str, int | str], tuple[float, int]] = {}

    def interrupted(self) -> str:
        """How many tasks are saved, and where."""
        if self.out is None:
            return f"{self._doing}. Without a run folder, nothing was saved."
        return f"{self._doing}. {self.out} holds {count(self.done, 'finished task')}: rerun the command to resume."

    def __call__(self, record: Record, was_known: bool, total: int) -> None:
        """Count one finished chunk of tasks, of `total` tasks in all."""
        method, shots = record.chunk.method, record.chunk.shots
        tasks = len(record.accuracies)
        accuracy, n_tasks = self._sums.get((method, shots), (0.0, 0))
        accuracy, n_tasks = self._sums[method, shots] = accuracy + sum(record.accuracies), n_tasks + tasks
        self.done += tasks
        self.known += tasks * was_known
        mean = percentage(accuracy / n_tasks, 2)
        elapsed, fresh = self.tasks[0].elapsed, self.done - self.known
        self.update(
            self._task,
            completed=self.done,
            total=None if self._several else total,
            description=f"{printable(method)}, {shots_in_words(shots)}: {mean}",
            rate=f"{fresh / elapsed:.0f}/s" if fresh and elapsed else "",
        )


class InputProgress(BarWithNotes):
    """Progress over inputs in a `with` statement: `watch` counts the inputs done, file by file."""

    def __init__(self, doing: str) -> None:
        super().__init__(Console(stderr=True), "inputs")
        self._doing = doing
        # Answers on standard output.
        self.printed = 0

    def watch(self, name: str, done: int, total: int | None) -> None:
        """Show how many inputs of a file are done."""
        self.count(f"{self._doing} {shortened(Path(name).name)}", done, total)

    def interrupted(self) -> str:
        """How many answers were printed."""
        return f": {count(self.printed, 'answer')} printed." if self.printed else ": nothing was written."
