"""What `train` and `extract` share: splits of a dataset as decoded images, and the progress bar."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hotshot.images.datasets import DecodedSplit, decode, open_dataset
from hotshot.images.datasets.glyphs import make_glyphs

GLYPHS = "glyphs"


def bar(console: Console, unit: str) -> Progress:
    """A bar that leaves nothing behind."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def counting(progress: Progress, what: str) -> Callable[[int, int], None]:
    """A function of what is done and the total that moves a new bar."""
    task = progress.add_task(what, total=None)
    return lambda done, total: progress.update(task, completed=done, total=total)


def decoded_splits(
    dataset: Path | None, kind: str, size: int, cache: Path, skip_corrupt: bool, console: Console
) -> tuple[str, dict[str, DecodedSplit]]:
    """The name of a dataset and its splits at this size; drawn characters where no dataset is named."""
    if dataset is None:
        with console.status("drawing characters"):
            return GLYPHS, make_glyphs(size)
    opened = open_dataset(dataset, kind, skip_corrupt=skip_corrupt)
    for note in opened.about.get("notes", ()):
        console.print(f"Note: {note}", markup=False, style="yellow")
    found = {}
    for name, split in opened.splits.items():
        with bar(console, "images") as progress:
            found[name] = decode(split, size, cache, counting(progress, f"decoding {name}"))
    return opened.name, found
