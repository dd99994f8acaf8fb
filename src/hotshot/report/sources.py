"""Where the data of a stored run are, as its folder says, and how they are read again."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_features
from hotshot.bank import BaseClasses
from hotshot.errors import InputError
from hotshot.files import Samples
from hotshot.report.inputs import PageInputs


@dataclass(frozen=True)
class Source:
    """Where the data of a run come from.

    Attributes
    ----------
    base, novel : Path or None
        Feature files of base and novel classes.
    bank : str or None
        Name of an embedded bank, in place of files.
    command : str or None
        The command that was run.

    Examples
    --------
    >>> Source(bank="banking77").name
    'banking77'
    """

    base: Path | None = None
    novel: Path | None = None
    bank: str | None = None
    command: str | None = None

    @property
    def name(self) -> str:
        """What people call the data: the bank, or the file of the novel classes."""
        return self.bank or (self.novel.name if self.novel is not None else "unnamed features")


# Base classes, features and labels of the novel classes, and what these were taken of, which a reader may leave out.
Data = tuple[BaseClasses, np.ndarray, np.ndarray, Samples]
Reader = Callable[[Source], Data | tuple[BaseClasses, np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Options:
    """How a whole page is made; the arguments of `make_report`, and the texts and thumbnails that its parts share."""

    read: Reader
    data: Source | None
    tasks: int
    reference: str | None
    threshold: float
    inputs: PageInputs

    def source(self, about: dict[str, Any]) -> Source:
        """The source that a `run.json` names, with the data where they are now."""
        source, data = source_of(about), self.data
        if data is None:
            return source
        if data.bank is not None:
            return replace(source, base=data.base, novel=data.novel, bank=data.bank)
        named = {key: path for key in ("base", "novel") if (path := getattr(data, key)) is not None}
        return replace(source, bank=None, **named) if named else source


def source_of(about: dict[str, Any]) -> Source:
    """The source that a `run.json` names; an empty one where it names none."""
    found = about.get("source")
    if not isinstance(found, dict):
        return Source()
    texts = {key: value for key, value in found.items() if isinstance(value, str) and value}
    paths = {key: Path(texts[key]) for key in ("base", "novel") if key in texts}
    return Source(**paths, bank=texts.get("bank"), command=texts.get("command"))


def read_source(source: Source, read: Reader) -> Data:
    """The data, or one sentence on why they cannot be had."""
    if source.bank is None and (source.base is None or source.novel is None):
        raise InputError("The folder does not record where the data are: pass them with --base and --novel.")
    try:
        base, X, y, *rest = read(source)
    except InputError as error:
        raise InputError(f"{error} Pass the files of the run with --base and --novel.") from None
    X = check_features(X, "X_novel")
    kept = rest[0] if rest else Samples(X)
    if len(kept) != len(X):
        raise InputError(
            f"`read` returned {len(X)} novel samples and {len(kept)} ids: it must return one id per sample."
        )
    return base, X, np.asarray(y), kept
