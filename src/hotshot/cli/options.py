"""Options that several commands share, their limits, and what a command refuses before it begins.

What takes long to import is imported by the functions that need it, here as in all commands: `--help` needs none of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from hotshot.errors import ParameterError


def number(text: str, *flags: str) -> Any:
    """A numeric option with its help text; values outside the limits of its name are refused before any work."""
    return typer.Option(*flags, help=text, callback=_within_limits)


def _within_limits(param: typer.CallbackParam, value: Any) -> Any:
    from hotshot.arrays import check_numbers

    if value is not None and param.name == "jobs":
        from hotshot.evaluation.runner import count_jobs

        count_jobs(value)
    elif value is not None:
        check_numbers(**{str(param.name): value})
    return value


def ways_option(text: str) -> Any:
    """An option that is a number of classes or a range, with its help text."""

    def check(param: typer.CallbackParam, value: Any) -> Any:
        from hotshot.evaluation.tasks import check_size

        return None if value is None else check_size(str(param.name), value)

    return typer.Option(help=text, callback=check)


def _queries(value: Any) -> Any:
    from hotshot.evaluation.tasks import check_queries

    return check_queries(value)


def one_of(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Shell completion of one name."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


def several_of(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Shell completion of the last name in a comma-separated list."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names() if name.startswith(last)]

    return complete


def bank_names() -> Iterable[str]:
    """Names of the embedded banks."""
    from hotshot.bank.embedded import BANK_NAMES

    return BANK_NAMES


def method_names() -> Iterable[str]:
    """Names of the methods."""
    from hotshot.classifiers import METHOD_NAMES

    return METHOD_NAMES


RESUME = "Rerun the command to resume."
BANKS = "banking77 or omniglot"
ENCODERS = (
    "Encoder: minilm (texts), efficientnet-lite0, timm:NAME, st:NAME, openclip:NAME@WEIGHTS, hf:FOLDER, a checkpoint "
    "of hotshot train, BACKBONE@WEIGHTS, FILE.onnx, FILE.py:NAME or PACKAGE.MODULE:NAME."
)
WAYS = "Classes per task, or a range such as 5-20."

# Data of evaluations.
Base = Annotated[Path | None, typer.Option(help="Features of the base classes: a file of any format, or a bank.")]
Novel = Annotated[Path | None, typer.Option(help="Features of the novel classes: a file of any format.")]
Bank = Annotated[
    str | None, typer.Option(help=f"Embedded bank instead of files: {BANKS}.", autocompletion=one_of(bank_names))
]
# Tasks.
Shots = Annotated[
    str,
    typer.Option(
        help="Support samples per class: a number, several such as 1,5, or a range such as 1-10, from which each class "
        "draws its own."
    ),
]
Queries = Annotated[int, number("Query samples per class.")]
AnyQueries = Annotated[
    str,
    typer.Option(
        help="Query samples per class; dirichlet:2 draws unequal numbers with a mean of 15, dirichlet:2:5 with a mean "
        "of 5.",
        callback=_queries,
    ),
]
Seed = Annotated[int, number("Random seed.")]
Jobs = Annotated[int, number("Number of processes; -1 for one per core.")]
Scheduler = Annotated[str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://host:8786.")]
Reference = Annotated[str | None, typer.Option(help="Method to compare the others with. Default: the first.")]
Threshold = Annotated[float, number("Report the share of tasks with an accuracy below this.")]
# Models, and inputs for them.
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
Device = Annotated[str, typer.Option(help="PyTorch device, such as cpu or cuda.")]
# Datasets of images.
Kind = Annotated[
    str,
    typer.Option(help="Layout of the dataset: auto, miniimagenet, tieredimagenet, cub, cifar-fs, omniglot or folder."),
]
SkipCorrupt = Annotated[bool, typer.Option("--skip-corrupt", help="Leave out images that cannot be read.")]
# Output.
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]


def epilog(*examples: str) -> str:
    """Examples for the end of a help text, one per line."""
    return "\n\n".join(["Examples:" if len(examples) > 1 else "Example:", *examples])


def numbers(text: str, flag: str) -> list[int]:
    """Comma-separated whole numbers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"{flag} must be comma-separated whole numbers, such as 1,5, got {text!r}.") from None


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
    from hotshot.files.arrays_files import find_labels
    from hotshot.files.atomic import real
    from hotshot.files.reading import split_part

    names = [str(source) for source in sources if source is not None]
    paths = [split_part(Path(part), None)[0] for name in names for part in (name, *name.split("@"))]
    labels = [find_labels(path) for path in paths if path.suffix.lower() == ".npy"]
    for path in (*paths, *filter(None, labels)):
        if not os.path.exists(path) or not os.path.exists(out):
            continue
        is_inside = real(path) in real(out).parents or real(out) in real(path).parents
        if is_inside or os.path.samefile(path, out):
            raise ParameterError(f"{out} is both input and output: name another output.")
