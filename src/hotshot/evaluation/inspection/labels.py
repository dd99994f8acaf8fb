"""What is wrong with the labels of a file, or with the numbers of samples they leave to a class."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hotshot.evaluation.inspection.findings import BASE, FAULT, NOVEL, WARNING, Row
from hotshot.evaluation.inspection.measures import Measures
from hotshot.evaluation.inspection.words import count, shown, similar_names

FEW_BASE_CLASSES = 10
# Query samples of a class in the usual task.
QUERIES = 15


def label_findings(found: Measures, role: str | None) -> Iterator[Row]:
    """Findings about the labels of a file, whose role is "base", "novel", or None where it may become either."""
    yield from _labels(found)
    if role != NOVEL:
        yield from _as_base(found, role)
    if role != BASE and len(found.names) < 2:
        yield (
            WARNING,
            "one-class",
            "There are fewer than two classes, so there is nothing to tell apart: add classes.",
        )
    if role == NOVEL and len(found.names) and found.counts.min() <= QUERIES:
        name, least = found.names[int(found.counts.argmin())], int(found.counts.min())
        yield (
            WARNING,
            "few-novel-samples",
            f"Class '{shown(name)}' has {count(least, 'sample')}, too few for one shot and {QUERIES} queries: "
            "leave it out of evaluations, or ask for fewer --queries.",
        )


def _labels(found: Measures) -> Iterator[Row]:
    if found.missing_labels:
        yield (
            FAULT,
            "missing-labels",
            f"{count(found.missing_labels, 'sample has', 'samples have')} no label (NaN or infinity): label or remove "
            "them.",
        )
    if any(isinstance(name, float) and name != int(name) for name in found.names):
        yield (
            FAULT,
            "fractional-labels",
            "Labels are numbers with fractions, which no classifier takes for classes: point at the column of labels.",
        )
    blank = sum(int(n) for name, n in zip(found.names, found.counts, strict=True) if not str(name).strip())
    if blank:
        yield (
            WARNING,
            "blank-labels",
            f"{count(blank, 'sample has', 'samples have')} an empty label, which counts as a class of its own: label "
            "or remove them.",
        )
    if len(found.names) > 20 and len(found.names) > found.n_samples / 2:
        yield (
            WARNING,
            "labels-like-ids",
            f"There are {len(found.names):,} classes for {found.n_samples:,} samples, so the labels look like names "
            "of samples: point at the column of classes.",
        )
    alike = similar_names(found.names)
    if alike:
        first, second = alike[0]
        yield (
            WARNING,
            "similar-names",
            f"{count(len(alike), 'class has', 'classes have')} a name that differs from another only in case, spaces, "
            f"hyphens or underscores, such as '{shown(second)}' from '{shown(first)}': if they are the same class, "
            "give them the same name.",
        )


def _as_base(found: Measures, role: str | None) -> Iterator[Row]:
    alone = int(np.sum(found.counts == 1))
    if alone:
        name = shown(found.names[int(np.argmax(found.counts == 1))])
        which = f"Class '{name}' has" if alone == 1 else f"{alone:,} classes, such as '{name}', have"
        yield (
            WARNING,
            "one-sample-classes",
            f"{which} one sample and, as {'a base class' if alone == 1 else 'base classes'}, can only borrow the "
            "covariance of all classes together: add samples, or leave out.",
        )
    if role == BASE and len(found.names) < FEW_BASE_CLASSES:
        yield (
            WARNING,
            "few-base-classes",
            f"{count(len(found.names), 'base class', 'base classes')} can lend little to novel classes: use "
            f"{FEW_BASE_CLASSES} or more, the more the better.",
        )
