"""A progress bar that knows the rate, the time left and the running mean, and what to say after Ctrl-C."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from hotshot.errors import InterruptedRunError, ScaleWarning
from hotshot.evaluation.chunks import Record
from hotshot.formatting import count, percentage, shots_in_words


class RateColumn(ProgressColumn):
    """Units of work per second since the start, as tasks."""

    def render(self, task: Task) -> Text:
        """The rate, or nothing while there is none."""
        fresh = task.fields.get("fresh", 0)
        if not fresh or not task.elapsed:
            return Text("")
        return Text(f"{fresh / task.elapsed:.0f}/s")


class Watching:
    """Watch an evaluation in a `with` statement: `evaluate(..., watch=watching)`.

    Parameters
    ----------
    console : Console
    total : int or None
        Tasks over all methods and shots; None where only the end will tell.
    out : Path or None
        The folder that keeps finished tasks, to be named after Ctrl-C.
    doing : str
        What is being done, for the same sentence.

    Attributes
    ----------
    done, known : int
        Tasks that are finished, and those of them that the folder held already.
    notes : list of str
        What methods said of features whose scale their parameters were not made for, each once.
    """

    def __init__(self, console: Console, total: int | None, out: Path | None = None, doing: str = "") -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("tasks"),
            RateColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._bar = self._progress.add_task("preparing the base classes", total=total, fresh=0)
        self._out, self._doing = out, doing
        self._warnings = warnings.catch_warnings(record=True)
        self.done = self.known = self._fresh = 0
        self.notes: list[str] = []
        self._sums: dict[tuple[str, int], tuple[float, int]] = {}

    def __enter__(self) -> Watching:
        self._caught = self._warnings.__enter__()
        warnings.simplefilter("always", ScaleWarning)
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
        self._warnings.__exit__(kind, error, trace)
        caught = self._caught or ()
        self.notes = list(dict.fromkeys(str(w.message) for w in caught if w.category is ScaleWarning))
        if isinstance(error, KeyboardInterrupt):
            kept = (
                "Nothing was kept without a run folder."
                if self._out is None
                else f"{self._out} holds {count(self.done, 'finished task')}: rerun the command to resume."
            )
            raise InterruptedRunError(f"Interrupted{self._doing}. {kept}") from None

    def __call__(self, record: Record, was_known: bool, total: int) -> None:
        """Take note of one finished unit."""
        tasks = len(record.correct)
        asked = record.queries * len(record.correct[0])
        key = (record.chunk.method, record.chunk.shots)
        before, seen = self._sums.get(key, (0.0, 0))
        right, seen = before + sum(map(sum, record.correct)) / asked, seen + tasks
        self._sums[key] = (right, seen)
        self.done += tasks
        self.known += tasks * was_known
        self._fresh += tasks * (not was_known)
        label = f"{key[0]}, {shots_in_words(key[1])}: {percentage(right / seen, 2)}"
        self._progress.update(self._bar, completed=self.done, description=label, fresh=self._fresh)
