"""Shared by fit, predict, explain, suggest, add and remove: flags, loading of models, progress over inputs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import TaskID

from hotshot.cli.terminal import Console, ProgressWithNotes, bar
from hotshot.errors import LeftOutWarning
from hotshot.formatting import count, shortened

if TYPE_CHECKING:
    from hotshot.inputs import Columns, InputClassifier
    from hotshot.inputs.rows import Inputs

Model = Annotated[Path, typer.Argument(help="Folder of a model from hotshot fit.", show_default=False)]
Text = Annotated[str | None, typer.Option(help="Column of texts or image paths. Default: found by name, such as text.")]
Label = Annotated[str | None, typer.Option(help="Column of labels. Default: found by name, such as label.")]
Id = Annotated[
    str | None, typer.Option("--id", help="Column of row ids. Default: found by name, such as id, or row numbers.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Refuse inputs that cannot be read, such as empty texts or corrupt images.")
]
Encoder = Annotated[
    str | None, typer.Option(help="The model's encoder, if its files have moved or it is Python code of yours.")
]


def load(model: Path, device: str, encoder: str | None = None) -> InputClassifier:
    """A saved model; `encoder` is the new name of its encoder, if given."""
    from hotshot.inputs import InputClassifier

    return InputClassifier.load(model, device=device, encoder=encoder)


def opened(model: InputClassifier, data: str, columns: Columns) -> Inputs:
    """Inputs that a command line names: a file, a folder, standard input, or a text itself."""
    from hotshot.inputs.classifier import has_features
    from hotshot.inputs.rows import TEXTS
    from hotshot.inputs.tables import is_table

    is_file = os.path.exists(data) or is_table(Path(data)) or has_features(data)
    return model.opened([data] if model.kind == TEXTS and not is_file else data, columns=columns)


class InputProgress(ProgressWithNotes):
    """Progress over inputs in a `with` statement: `watch` counts the inputs done, file by file."""

    def __init__(self, console: Console, doing: str) -> None:
        super().__init__(bar(console, "inputs"))
        self._doing = doing
        self._tasks: dict[str, TaskID] = {}
        # Answers on standard output.
        self.printed = 0

    def watch(self, name: str, done: int, total: int | None) -> None:
        """Show how many inputs of a file are done."""
        self._update(f"{self._doing} {shortened(Path(name).name)}", completed=done, total=total)

    def _show(self, sentence: str) -> None:
        self._update("choosing", description=sentence)

    def _distinct(self, warned: list[tuple[type, str]]) -> list[str]:
        # The first of each kind: every batch gives the same warning with other numbers. Files are different.
        distinct = {text if kind is LeftOutWarning else kind: text for kind, text in reversed(warned)}
        return list(distinct.values())[::-1]

    def _interrupted(self) -> str:
        return f": {count(self.printed, 'answer')} printed." if self.printed else ": nothing was written."

    def _update(self, key: str, **changes: Any) -> None:
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task(key, total=None)
        self._progress.update(self._tasks[key], **changes)
