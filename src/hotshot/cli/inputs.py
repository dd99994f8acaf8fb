"""Flags that several commands share, and the base and novel classes that they name.

What takes long to import is imported by the functions that need it, here as in all commands: `--help` needs none of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.errors import InputError, ParameterError

if TYPE_CHECKING:
    import numpy as np

    from hotshot.bank import BaseClasses
    from hotshot.files import FeatureSource


def number(text: str, *flags: str) -> Any:
    """A numeric option with its help text; values outside the limits of its name are refused before any work."""
    return typer.Option(*flags, help=text, callback=_within_limits)


def _within_limits(param: typer.CallbackParam, value: Any) -> Any:
    from hotshot.arrays import check_numbers
    from hotshot.evaluation.workers import count_jobs

    if value is not None and param.name == "jobs":
        count_jobs(value)
    elif value is not None:
        check_numbers(**{str(param.name): value})
    return value


def _size(param: typer.CallbackParam, value: Any) -> Any:
    from hotshot.evaluation.tasks import check_size

    return None if value is None else check_size(str(param.name), value)


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


def ways_option(text: str) -> Any:
    """An option that is a number of classes or a range, with its help text."""
    return typer.Option(help=text, callback=_size)


def bank_names() -> Iterable[str]:
    """Names of the embedded banks."""
    from hotshot.bank.embedded import BANK_NAMES

    return BANK_NAMES


def method_names() -> Iterable[str]:
    """Names of the methods."""
    from hotshot.classifiers import METHOD_NAMES

    return METHOD_NAMES


Base = Annotated[Path | None, typer.Option(help="Features of the base classes: a file of any format, or a bank.")]
Novel = Annotated[Path | None, typer.Option(help="Features of the novel classes: a file of any format.")]
BANKS = "banking77 or omniglot"
Bank = Annotated[
    str | None, typer.Option(help=f"Embedded bank instead of files: {BANKS}.", autocompletion=one_of(bank_names))
]
WAYS = "Classes per task, or a range such as 5-20."
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
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]
Device = Annotated[str, typer.Option(help="PyTorch device, such as cpu or cuda.")]
Reference = Annotated[str | None, typer.Option(help="Method to compare the others with. Default: the first.")]
Threshold = Annotated[float, number("Report the share of tasks with an accuracy below this.")]
RESUME = "Rerun the command to resume."


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
    from hotshot.files.numpy_files import find_labels
    from hotshot.files.reading import split_part

    names = [str(source) for source in sources if source is not None]
    parts = [part for name in names for part in (name, *name.split("@"))]
    paths = [split_part(Path(part), None)[0] for part in parts]
    labels = [find_labels(path) for path in paths if path.suffix.lower() == ".npy"]
    for path in (*paths, *filter(None, labels)):
        if not os.path.exists(path) or not os.path.exists(out):
            continue
        is_inside = real(path) in real(out).parents or real(out) in real(path).parents
        if is_inside or os.path.samefile(path, out):
            raise ParameterError(f"{out} is both input and output: name another output.")


def load_data(
    base: Path | None, novel: Path | None, bank: str | None, flag: str = "--novel"
) -> tuple[BaseClasses, np.ndarray, np.ndarray]:
    """Base classes, and features and labels of the classes that tasks are drawn from."""
    import numpy as np

    from hotshot.bank.embedded import load_bank
    from hotshot.evaluation.inspection import refuse_mixed
    from hotshot.files import read_features

    if bank is not None:
        if base is not None or novel is not None:
            raise ParameterError(f"Pass either --bank or --base and {flag}, not both.")
        embedded = load_bank(bank)
        return embedded.base, embedded.X_novel, embedded.y_novel
    if base is None or novel is None:
        raise ParameterError(f"Pass --base FILE and {flag} FILE, or --bank NAME for an embedded bank.")
    classes = load_base(base)
    file = read_features(novel)
    if classes.n_features != file.X.shape[1]:
        raise InputError(
            f"{novel} has {file.X.shape[1]} features and {base} has {classes.n_features}: "
            "extract both with the same model."
        )
    if file.about or len(np.intersect1d(classes.names.astype(str), file.y.astype(str))):
        refuse_mixed(classes.names.tolist(), classes.about, np.unique(file.y).tolist(), file.about)
    return classes, file.X, file.y


def load_base(path: Path) -> BaseClasses:
    """Base classes from a bank or a feature file, with the information in its header."""
    from hotshot.bank import BaseClasses, is_bank
    from hotshot.files import read_features

    if is_bank(path):
        return BaseClasses.load(path)
    file = read_features(path)
    return BaseClasses.from_samples(file.X, file.y, about=file.about)


def open_samples(path: Path, part: str | None = None, labels: Path | None = None) -> FeatureSource:
    """The samples of a feature file or a bank, to be read in batches."""
    from hotshot.bank import BaseClasses, is_bank
    from hotshot.files import open_features
    from hotshot.files.source import in_memory

    if not is_bank(path):
        return open_features(path, part=part, labels=labels)
    if part is not None or labels is not None:
        raise ParameterError(f"{path} is a bank, which has no parts and holds its own labels: leave these out.")
    bank = BaseClasses.load(path)
    samples = bank.samples
    if samples is None:
        raise InputError(f"{path} is a bank without samples: use one that was saved with them.")
    return in_memory(path, samples, lambda some: bank.names[bank.labels[some]], bank.about)


def numbers(text: str, flag: str) -> list[int]:
    """Comma-separated whole numbers."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"{flag} must be comma-separated whole numbers, such as 1,5, got {text!r}.") from None
