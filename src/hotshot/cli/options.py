"""Options that several commands share, their limits, and what a command refuses before it begins.

What takes long to import is imported by the functions that need it, here as in all commands: `--help` needs none of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from hotshot.errors import ParameterError


def option(text: str, *flags: str, names: tuple[str, str] | None = None) -> Any:
    """An option with its help text, and the module and table of names that a shell completes."""
    return typer.Option(*flags, help=text, autocompletion=None if names is None else _completed(names))


def number(text: str, *flags: str) -> Any:
    """A numeric option with its help text; values outside the limits of its name are refused before any work."""
    return typer.Option(*flags, help=text, callback=_within_limits)


def size(text: str) -> Any:
    """An option for the ways, shots or queries of tasks; what tasks cannot have is refused before any work."""
    return typer.Option(help=text, callback=_checked_size)


def argument(text: str, metavar: str | None = None, names: tuple[str, str] | None = None) -> Any:
    """An argument with its help text."""
    completed = None if names is None else _completed(names)
    return typer.Argument(help=text, metavar=metavar, show_default=False, autocompletion=completed)


def _within_limits(param: typer.CallbackParam, value: Any) -> Any:
    from hotshot.arrays import check_numbers

    if value is not None and param.name == "jobs":
        from hotshot.evaluation.runner import count_jobs

        count_jobs(value)
    elif value is not None:
        check_numbers(**{str(param.name): value})
    return value


def _checked_size(param: typer.CallbackParam, value: str | None) -> Any:
    from hotshot.evaluation.tasks import check_queries, check_shots, check_size

    if value is None:
        return None
    if param.name == "shots":
        return check_shots(value.split(","))
    return check_queries(value) if param.name == "queries" else check_size("ways", value)


def _completed(names: tuple[str, str]) -> Callable[[str], list[str]]:
    """Shell completion of a name, the last one of a comma-separated list."""

    def complete(incomplete: str) -> list[str]:
        module, table = names
        before, comma, last = incomplete.rpartition(",")
        possible = getattr(import_module(f"hotshot.{module}"), table)
        return [f"{before}{comma}{name}" for name in possible if name.startswith(last)]

    return complete


RESUME = "Rerun the command to resume."
BANKS = "banking77 or omniglot"
BANK_NAMES, METHOD_NAMES = ("bank.embedded", "BANK_NAMES"), ("classifiers", "METHOD_NAMES")
ENCODERS = (
    "Encoder: minilm (texts), efficientnet-lite0, timm:NAME, st:NAME, openclip:NAME@WEIGHTS, hf:FOLDER, a checkpoint "
    "of hotshot train, BACKBONE@WEIGHTS, FILE.onnx, FILE.py:NAME or PACKAGE.MODULE:NAME."
)
WAYS = "Classes per task, or a range such as 5-20."

# Data of evaluations.
Base = Annotated[Path | None, option("Features of the base classes: a file of any format, or a bank.")]
Novel = Annotated[Path | None, option("Features of the novel classes: a file of any format.")]
Bank = Annotated[str | None, option(f"Embedded bank instead of files: {BANKS}.", names=BANK_NAMES)]
# Tasks.
Ways = Annotated[str, size(WAYS)]
WaysOrAll = Annotated[str | None, size(f"{WAYS} Default: 5, or all classes in the generalised setting.")]
WaysOrBanks = Annotated[str | None, size(f"{WAYS} Default: 5, or 20 for omniglot.")]
Shots = Annotated[
    str,
    size(
        "Support samples per class: a number, several such as 1,5, or a range such as 1-10, from which each class "
        "draws its own."
    ),
]
Queries = Annotated[int, number("Query samples per class.")]
AnyQueries = Annotated[
    str,
    size(
        "Query samples per class; dirichlet:2 draws unequal numbers with a mean of 15, dirichlet:2:5 with a mean of 5."
    ),
]
Seed = Annotated[int, number("Random seed.")]
Jobs = Annotated[int, number("Number of processes; -1 for one per core.")]
Scheduler = Annotated[str | None, option("Address of a Dask scheduler, such as tcp://host:8786.")]
Reference = Annotated[str | None, option("Method to compare the others with. Default: the first.")]
Threshold = Annotated[float, number("Report the share of tasks with an accuracy below this.")]
# Models, and inputs for them.
Model = Annotated[Path, argument("Folder of a model from hotshot fit.")]
Text = Annotated[str | None, option("Column of texts or image paths. Default: found by name, such as text.")]
Label = Annotated[str | None, option("Column of labels. Default: found by name, such as label.")]
Id = Annotated[str | None, option("Column of row ids. Default: found by name, such as id, or row numbers.", "--id")]
Strict = Annotated[
    bool, option("Refuse inputs that cannot be read, such as empty texts or corrupt images.", "--strict")
]
Encoder = Annotated[str | None, option("The model's encoder, if its files have moved or it is Python code of yours.")]
Device = Annotated[str, option("PyTorch device, such as cpu or cuda.")]
# Datasets of images.
Kind = Annotated[
    str, option("Layout of the dataset: auto, miniimagenet, tieredimagenet, cub, cifar-fs, omniglot or folder.")
]
SkipCorrupt = Annotated[bool, option("Leave out images that cannot be read.", "--skip-corrupt")]
# Output.
Json = Annotated[bool, option("Print one JSON document instead of text.", "--json")]
Force = Annotated[bool, option("Overwrite existing output.", "--force")]


def epilog(*examples: str) -> str:
    """Examples for the end of a help text, one per line."""
    return "\n\n".join(["Examples:" if len(examples) > 1 else "Example:", *examples])


def refuse_existing(out: Path, force: bool, *sources: str | Path | None) -> None:
    """Raise if the output exists, or is one of the sources: before the work, not after it."""
    refuse_overwriting(out, *sources)
    if os.path.exists(out) and not force:
        raise ParameterError(f"{out} exists: pass --force to overwrite it.")


def refuse_overwriting(out: Path, *sources: str | Path | None) -> None:
    """Raise if the output would replace what a command reads, with or without --force.

    A folder counts with all that is in it, a .npy file with its labels, and an encoder with its weights. Of `sources`,
    names of encoders and the like are no files, and count not.
    """
    from hotshot.files.atomic import real
    from hotshot.files.named_arrays import find_labels
    from hotshot.files.opening import split_part

    if not os.path.exists(out):
        return
    names = [str(source) for source in sources if source is not None]
    paths = [split_part(Path(part), None)[0] for name in names for part in (name, *name.split("@"))]
    labels = [find_labels(path) for path in paths if path.suffix.lower() == ".npy"]
    for path in filter(os.path.exists, [*paths, *filter(None, labels)]):
        is_inside = real(path) in real(out).parents or real(out) in real(path).parents
        if is_inside or os.path.samefile(path, out):
            raise ParameterError(f"{out} is both input and output: name another output.")
