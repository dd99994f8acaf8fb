"""What fit, predict, explain, add and remove share: flags of tables and models, and progress over inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import TaskID

from hotshot.cli.images import prepare_process
from hotshot.cli.terminal import Console, Noting, bar
from hotshot.errors import ParameterError
from hotshot.formatting import shortened
from hotshot.inputs.classifier import InputClassifier

Model = Annotated[Path, typer.Argument(help="Model of hotshot fit, a folder.", show_default=False)]
Text = Annotated[str | None, typer.Option(help="Column of the texts, or of the paths of images. Default: by its name.")]
Label = Annotated[str | None, typer.Option(help="Column of the labels. Default: by its name, such as label.")]
Id = Annotated[
    str | None, typer.Option("--id", help="Column that names the rows. Default: id, or else they are numbered.")
]
Device = Annotated[str, typer.Option(help="PyTorch device of the encoder, such as cpu or cuda.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite the output where it exists.")]
Encoder = Annotated[
    str | None, typer.Option(help="Encoder in place of the one that the model remembers, where its files have moved.")
]


def load(model: Path, device: str, encoder: str | None = None) -> InputClassifier:
    """A saved model, with another way to its encoder where one is given."""
    prepare_process()
    found = InputClassifier.load(model, device=device)
    if encoder is not None:
        if found.encoder is None:
            raise ParameterError(f"{model} takes files of features and has no encoder: leave --encoder out.")
        found.encoder = encoder
    return found


def refuse_existing(out: Path, force: bool) -> None:
    """Raise where the output is there already: before the work, not after it."""
    if out.exists() and not force:
        raise ParameterError(f"{out} exists: pass --force to overwrite it, or name another.")


class Working(Noting):
    """Progress over inputs in a `with` statement: `watch` counts the inputs done, file by file."""

    def __init__(self, console: Console, doing: str) -> None:
        super().__init__(bar(console, "inputs"))
        self._doing = doing
        self._tasks: dict[str, TaskID] = {}

    def watch(self, name: str, done: int, total: int | None) -> None:
        """Take note of the inputs of a file that are done."""
        self._update(f"{self._doing} {shortened(Path(name).name)}", completed=done, total=total)

    def _tell(self, sentence: str) -> None:
        self._update("choosing", description=sentence)

    def _distinct(self, warned: list[tuple[type, str]]) -> list[str]:
        # Of each kind the first: every batch says the same in other numbers.
        return list(dict(reversed(warned)).values())[::-1]

    def _interrupted(self) -> str:
        return ": nothing was written."

    def _update(self, key: str, **changes: Any) -> None:
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task(key, total=None)
        self._progress.update(self._tasks[key], **changes)
