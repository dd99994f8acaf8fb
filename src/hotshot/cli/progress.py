"""A progress bar that knows the rate, the time left and the running mean."""

from __future__ import annotations

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

from hotshot.evaluation.chunks import Record


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

    `total` is the number of tasks over all methods and shots; None where only the end will tell.
    """

    def __init__(self, console: Console, total: int | None) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("tasks"),
            RateColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._bar = self._progress.add_task("preparing the base classes", total=total, fresh=0)
        self.done = self.known = self._fresh = 0
        self._sums: dict[tuple[str, int], tuple[float, int]] = {}

    def __enter__(self) -> Watching:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, record: Record, was_known: bool, total: int) -> None:
        """Take note of one finished unit."""
        tasks = len(record.correct)
        asked = record.queries * len(record.correct[0])
        key = (record.chunk.method, record.chunk.shots)
        before, count = self._sums.get(key, (0.0, 0))
        mean = before + sum(map(sum, record.correct)) / asked
        self._sums[key] = (mean, count + tasks)
        self.done += tasks
        self.known += tasks * was_known
        self._fresh += tasks * (not was_known)
        label = f"{key[0]}, {key[1]} shot{'s' * (key[1] > 1)}: {100 * mean / (count + tasks):.2f}%"
        self._progress.update(self._bar, completed=self.done, description=label, fresh=self._fresh)
