"""Where the data of a stored run are, as its folder says, and how they are read again."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.arrays import check_features
from hotshot.base import BaseClasses
from hotshot.errors import InputError
from hotshot.files import Kept


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
Data = tuple[BaseClasses, np.ndarray, np.ndarray, Kept]
Reader = Callable[[Source], Data | tuple[BaseClasses, np.ndarray, np.ndarray]]


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
    kept = rest[0] if rest else Kept.numbered(len(X))
    if len(kept) != len(X):
        raise InputError(
            f"`read` returned {len(X)} novel samples and {len(kept)} ids: it must return one id per sample."
        )
    return base, X, np.asarray(y), kept
