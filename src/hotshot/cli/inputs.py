"""What commands take: the flags that several have, and the base and novel classes that these name."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from hotshot.arrays import check_numbers
from hotshot.base import BaseClasses
from hotshot.base.classes import is_bank
from hotshot.base.embedded import BANK_NAMES, load_bank
from hotshot.errors import InputError, ParameterError
from hotshot.evaluation.inspection.printed import filled
from hotshot.evaluation.inspection.problems import FAULT, SENTENCES, class_overlap, origin_mismatches
from hotshot.evaluation.tasks import check_queries, check_size
from hotshot.evaluation.workers import count_jobs
from hotshot.files import FeatureSource, open_features, read_features
from hotshot.files.source import in_memory


def number(text: str) -> Any:
    """An option that is a number, with its help: beyond the limits of its name it is refused before anything begins."""
    return typer.Option(help=text, callback=_within_limits)


def _within_limits(param: typer.CallbackParam, value: Any) -> Any:
    if value is not None and param.name == "jobs":
        count_jobs(value)
    elif value is not None:
        check_numbers(**{str(param.name): value})
    return value


def _size(param: typer.CallbackParam, value: Any) -> Any:
    return None if value is None else check_size(str(param.name), value)


def _queries(value: Any) -> Any:
    return check_queries(value)


def one_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """What a shell completes a name to."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def several_of(names: Iterable[str]) -> Callable[[str], list[str]]:
    """What a shell completes the last of several names with commas to."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete


def ways_option(text: str) -> Any:
    """An option that is a number of classes or a range, with its help."""
    return typer.Option(help=text, callback=_size)


Base = Annotated[Path | None, typer.Option(help="Features of the base classes, in a file of any format, or a bank.")]
Novel = Annotated[Path | None, typer.Option(help="Features of the novel classes, in a file of any format.")]
Bank = Annotated[
    str | None,
    typer.Option(help=f"Embedded bank instead of files: {', '.join(BANK_NAMES)}.", autocompletion=one_of(BANK_NAMES)),
]
Ways = Annotated[
    str | None,
    ways_option(
        "Classes per task, or a range such as 5-20 to draw them from. Default: 5, all in the generalised setting."
    ),
]
Shots = Annotated[
    str,
    typer.Option(help="Support samples per class, several in turn; of a range such as 1-10 each class draws its own."),
]
Queries = Annotated[int, number("Query samples per class.")]
AnyQueries = Annotated[
    str,
    typer.Option(
        help="Query samples per class; dirichlet:2 divides 15 per class unequally, dirichlet:2:5 as many as 5.",
        callback=_queries,
    ),
]
Seed = Annotated[int, number("Seed of the tasks.")]
Jobs = Annotated[int, number("Processes; -1 is one per core.")]
Scheduler = Annotated[str | None, typer.Option(help="Dask scheduler to compute on, such as tcp://host:8786.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of tables.")]
Reference = Annotated[str | None, typer.Option(help="Method the others are compared to; the first by default.")]
Threshold = Annotated[float, number("Count tasks with an accuracy below this.")]


def load_data(
    base: Path | None, novel: Path | None, bank: str | None, flag: str = "--novel"
) -> tuple[BaseClasses, np.ndarray, np.ndarray]:
    """Base classes, and features and labels of the classes that tasks are drawn from."""
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
            f"{novel} has {file.X.shape[1]} features where {base} has {classes.n_features}: "
            "extract both with the same model."
        )
    if file.about or len(np.intersect1d(classes.names.astype(str), file.y.astype(str))):
        overlap = class_overlap(classes.names.tolist(), np.unique(file.y).tolist())
        for code, values in (*origin_mismatches(classes.about, file.about), *overlap):
            if code in SENTENCES[FAULT]:
                raise InputError(filled(SENTENCES[FAULT][code], values))
    return classes, file.X, file.y


def load_base(path: Path) -> BaseClasses:
    """Base classes from a bank or a file of features, with what its header says of them."""
    if is_bank(path):
        return BaseClasses.load(path)
    file = read_features(path)
    return BaseClasses.from_samples(file.X, file.y, about=file.about)


def open_samples(path: Path, part: str | None = None, labels: Path | None = None) -> FeatureSource:
    """The samples in a file of features or in a bank, to be read in batches."""
    if not is_bank(path):
        return open_features(path, part=part, labels=labels)
    if part is not None or labels is not None:
        raise ParameterError(f"{path} is a bank, which has no parts and holds its own labels: leave these out.")
    bank = BaseClasses.load(path)
    samples = bank.samples
    if samples is None:
        raise InputError(f"{path} is a bank without samples: use one that was saved with them.")
    return in_memory(path, samples, lambda some: bank.names[bank.labels[some]], bank.about, streams=True)


def numbers(text: str, flag: str) -> list[int]:
    """Whole numbers with commas between them."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ParameterError(f"{flag} must be whole numbers with commas, such as 1,5, got {text!r}.") from None
