"""Base classes and the classes that tasks are drawn from, read from files or an embedded bank, and checked together."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hotshot.bank import BaseClasses, is_bank
from hotshot.bank.embedded import load_bank
from hotshot.errors import InputError, ParameterError
from hotshot.evaluation.inspection import refuse_mixed
from hotshot.files import Samples, read_features


def load_data(
    base: Path | None, novel: Path | None, bank: str | None = None, flag: str = "--novel"
) -> tuple[BaseClasses, Samples]:
    """Base classes, and samples of the classes that tasks are drawn from; what is wrong with the pair is raised."""
    if bank is not None:
        if base is not None or novel is not None:
            raise ParameterError(f"Pass either --bank or --base and {flag}, not both.")
        embedded = load_bank(bank)
        return embedded.base, Samples(embedded.X_novel, embedded.y_novel)
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
    return classes, file


def load_base(path: Path) -> BaseClasses:
    """Base classes from a bank or a feature file, with the information in its header."""
    if is_bank(path):
        return BaseClasses.load(path)
    file = read_features(path)
    return BaseClasses.from_samples(file.X, file.y, about=file.about)
