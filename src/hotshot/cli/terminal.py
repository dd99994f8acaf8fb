"""Output in the terminal: tables, notes, progress, and one sentence after Ctrl-C."""

from __future__ import annotations

import json
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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


def to_rich(table: Table, styles: Mapping[str, str] | None = None) -> RichTable:
    """A table for a console, without its notes; rows of published numbers only are dim.

    `styles` are styles by the kind of an entry. Text is never read as markup or escape codes.
    """
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
        texts = (Text(printable(entry.text), (styles or {}).get(entry.kind, "")) for entry in row)
        kinds = {entry.kind for entry in row if isinstance(entry.value, int | float)}
        shown.add_row(*texts, style="dim" if kinds == {PUBLISHED} else None)
    return shown


def _on_two_lines(heading: str, widest: int) -> str:
    """A heading on two lines if it is wider than its column."""
    width = max(widest, *map(len, heading.split(" ")))
    while len(lines := textwrap.wrap(heading, width, break_on_hyphens=False)) > 2:
        width += 1
    return "\n".join(lines)


def print_table(console: Console, table: Table, styles: Mapping[str, str] | None = None) -> None:
    """Print a table, and its notes below it."""
    console.print(to_rich(table, styles))
    for note in table.notes:
        console.print(note, markup=False)


def print_notes(console: Console, notes: Iterable[str]) -> None:
    """Print notes on the results."""
    for note in notes:
        console.print(f"Note: {printable(note)}", markup=False, style="yellow")


# --- progress


class Bar(Progress):
    """Progress that disappears at the end; without a terminal, a plain line on stderr every ten seconds.

    It is shown on `console`, or on stderr if `console` is no terminal.
    """

    def __init__(self, console: Console, counted: str, *columns: ProgressColumn) -> None:
        shown = console if console.is_terminal else Console(stderr=True, soft_wrap=True)
        description = TextColumn("{task.description}", markup=False)
        super().__init__(SpinnerColumn(), description, *columns, console=shown, transient=True)
        self._counted, self._ended = counted, Event()
        self._named: dict[str, TaskID] = {}

    def named(self, name: str) -> TaskID:
        """The bar of this name, a new one at its first use."""
        if name not in self._named:
            self._named[name] = self.add_task(name, total=None)
        return self._named[name]

    def count(self, name: str, done: int, total: int | None) -> None:
        """Show how much is done of what has this name."""
        self.update(self.named(name), completed=done, total=total)

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

    def _write_lines(self) -> None:
        while not self._ended.wait(SECONDS_BETWEEN_LINES):
            for task in self.tasks:
                if not task.finished:
                    of = "" if task.total is None else f" of {task.total:,.0f}"
                    counted = self._counted and (of or task.completed)
                    done = f", {task.completed:,.0f}{of} {self._counted}" if counted else ""
                    self.console.print(f"{task.description}{done}, {task.elapsed or 0:.0f} s", markup=False)


def bar(console: Console, counted: str, *more: ProgressColumn) -> Bar:
    """Progress of what is counted, such as "images", for a `with` statement."""
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn(counted), *more, TimeRemainingColumn())
    return Bar(console, counted, *columns)


@contextmanager
def waiting(doing: str) -> Iterator[None]:
    """Show what is being done, without a count."""
    with Bar(Console(stderr=True), "", TimeElapsedColumn()) as progress:
        progress.add_task(doing, total=None)
        yield


class ProgressWithNotes:
    """Progress in a `with` statement: warnings become `notes`, each once, and Ctrl-C becomes one sentence.

    What the methods choose on the base classes is shown meanwhile.
    """

    def __init__(self, console: Console, counted: str, *columns: ProgressColumn) -> None:
        self._progress = bar(console, counted, *columns)
        self._warnings = warnings.catch_warnings(record=True)
        self.notes: list[str] = []

    def __enter__(self) -> Self:
        from hotshot.classifiers.held_out import progress

        self._caught = self._warnings.__enter__()
        warnings.simplefilter("always", HotshotWarning)
        self._progress.start()
        self._token = progress.set(self._show)
        return self

    def __exit__(self, *raised: Any) -> None:
        self._token.var.reset(self._token)
        self._progress.stop()
        self._warnings.__exit__(*raised)
        firsts: dict[str, str] = {}
        for warning in self._caught or ():
            if issubclass(warning.category, HotshotWarning):
                text = str(warning.message)
                # Every batch may give the same warning with other numbers. Of inputs left out, each file has its own.
                firsts.setdefault(text if warning.category is LeftOutWarning else re.sub(r"\d+", "", text), text)
        self.notes = list(firsts.values())
        if isinstance(raised[1], KeyboardInterrupt):
            raise InterruptedRunError(f"Interrupted{self._interrupted()}") from None

    def _show(self, sentence: str) -> None:
        raise NotImplementedError

    def _interrupted(self) -> str:
        raise NotImplementedError


class Watching(ProgressWithNotes):
    """Watch an evaluation in a `with` statement: `evaluate(..., watch=watching)`.

    After Ctrl-C, one sentence names `out`, the folder with the finished tasks, and what was being done. `done` tasks
    are finished; `known` of them were already in the folder. Of `several` evaluations nobody knows all tasks before.
    """

    def __init__(self, console: Console, out: Path | None = None, doing: str = "", several: bool = False) -> None:
        super().__init__(console, "tasks", TextColumn("{task.fields[rate]}"))
        self._task = self._progress.add_task("preparing the base classes", total=None, rate="")
        self.out, self._doing, self._several = out, doing, several
        self.done = self.known = 0
        # Sums of accuracies and numbers of tasks by method and shots.
        self._sums: dict[tuple[str, int | str], tuple[float, int]] = {}

    def _show(self, sentence: str) -> None:
        self._progress.update(self._task, description=sentence)

    def _interrupted(self) -> str:
        if self.out is None:
            return f"{self._doing}. Without a run folder, nothing was saved."
        return f"{self._doing}. {self.out} holds {count(self.done, 'finished task')}: rerun the command to resume."

    def __call__(self, record: Record, was_known: bool, total: int) -> None:
        """Count one finished chunk of tasks, of `total` tasks in all."""
        method, shots, accuracies = record.chunk.method, record.chunk.shots, record.accuracies
        tasks = len(accuracies)
        before, n_before = self._sums.get((method, shots), (0.0, 0))
        self._sums[method, shots] = accuracy, n_tasks = before + sum(accuracies), n_before + tasks
        self.done += tasks
        self.known += tasks * was_known
        label = f"{printable(method)}, {shots_in_words(shots)}: {percentage(accuracy / n_tasks, 2)}"
        elapsed, fresh = self._progress.tasks[0].elapsed, self.done - self.known
        rate = f"{fresh / elapsed:.0f}/s" if fresh and elapsed else ""
        of = None if self._several else total
        self._progress.update(self._task, completed=self.done, total=of, description=label, rate=rate)


class InputProgress(ProgressWithNotes):
    """Progress over inputs in a `with` statement: `watch` counts the inputs done, file by file."""

    def __init__(self, console: Console, doing: str) -> None:
        super().__init__(console, "inputs")
        self._doing = doing
        # Answers on standard output.
        self.printed = 0

    def watch(self, name: str, done: int, total: int | None) -> None:
        """Show how many inputs of a file are done."""
        self._progress.count(f"{self._doing} {shortened(Path(name).name)}", done, total)

    def _show(self, sentence: str) -> None:
        self._progress.update(self._progress.named("choosing"), description=sentence)

    def _interrupted(self) -> str:
        return f": {count(self.printed, 'answer')} printed." if self.printed else ": nothing was written."
