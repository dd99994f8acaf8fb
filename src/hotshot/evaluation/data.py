"""Base classes and the classes that tasks are drawn from: read from files or an embedded bank, and checked together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hotshot.bank import BaseClasses, is_bank
from hotshot.bank.bank import EXTRACTOR, TRANSFORM
from hotshot.bank.embedded import load_bank
from hotshot.errors import InputError, ParameterError
from hotshot.files import Samples, read_features
from hotshot.formatting import count, shortened

BASE, NOVEL = "base", "novel"
# A fault stops or spoils a method, a warning costs accuracy or trust.
FAULT, WARNING = "fault", "warning"
# Severity, code and sentence of what is wrong.
Problem = tuple[str, str, str]


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


def refuse_mixed(
    base: Sequence[Any], base_about: Mapping[str, Any], novel: Sequence[Any], novel_about: Mapping[str, Any]
) -> None:
    """Raise if base and novel classes (names) overlap, or if their features come from different extractors."""
    for severity, _, sentence in (*origin_mismatches(base_about, novel_about), *class_overlap(base, novel)):
        if severity == FAULT:
            raise InputError(sentence)


def class_overlap(base: Sequence[Any], novel: Sequence[Any]) -> Iterator[Problem]:
    """Names of novel classes that base classes have, or that differ from theirs only in case, blanks and hyphens.

    A number and the same number as text are one name.
    """

    def plain(name: Any) -> str:
        return re.sub(r"[\s_-]+", " ", str(name)).strip().casefold()

    exact, alike = {str(name) for name in base}, {plain(name): name for name in base}
    shared = [name for name in novel if str(name) in exact]
    similar = [name for name in novel if str(name) not in exact and plain(name) in alike]
    if shared:
        numbers = not any(isinstance(name, str) for name in (*base, *novel))
        also = ", or give names to classes that only share a number" if numbers else ""
        classes = f"{count(len(shared), 'class', 'classes')} in both files, such as '{shortened(shared[0])}'"
        remedy = f"but novel classes must not be base classes: remove from one file{also}"
        yield FAULT, "class-overlap", f"{classes}, {remedy}."
    if similar:
        classes = f"{count(len(similar), 'class has', 'classes have')} almost the same name as a base class"
        such = f"such as '{shortened(similar[0])}' and '{shortened(alike[plain(similar[0])])}'"
        yield WARNING, "similar-classes", f"{classes}, {such}: remove from one file what is the same class."


def origin_mismatches(base: Mapping[str, Any], novel: Mapping[str, Any]) -> Iterator[Problem]:
    """What the headers of two files say differently of where their features come from."""
    for key, severity in ((EXTRACTOR, FAULT), (TRANSFORM, WARNING)):
        one, other = base.get(key), novel.get(key)
        if None not in (one, other) and one != other:
            where = f"'{shortened(one)}' in the base file and '{shortened(other)}' in the novel file"
            yield severity, f"{key}-mismatch", f"The {key} is {where}: use one kind of features."
