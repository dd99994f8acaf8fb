"""What is wrong with one file, what may be, and what is worth knowing: one sentence each, with the remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hotshot.estimators.classifier import USUAL_DEVIATION
from hotshot.evaluation.inspection.costs import CostSpread
from hotshot.evaluation.inspection.counting import BadEntries
from hotshot.evaluation.inspection.measures import Measures
from hotshot.evaluation.inspection.words import count, number, percent, shown

# A fault stops or spoils a method, a warning costs accuracy or trust, a note costs nothing.
FAULT, WARNING, NOTE = SEVERITIES = ("fault", "warning", "note")
BASE, NOVEL, BOTH = "base", "novel", "both"
# Negative entries this rare and this small against the largest entry look like rounding after a ReLU.
STRAY_NEGATIVES, STRAY_SIZE = 0.01, 1e-3

# Severity, code and sentence.
Row = tuple[str, str, str]


@dataclass(frozen=True)
class Finding:
    """One finding: how bad, a code that stays, and a sentence.

    `file` is the name of the file it is about; `role` is that file's, or "both" where it is about a novel file and
    the base file together.
    """

    severity: str
    code: str
    sentence: str
    file: str
    role: str | None


def feature_findings(found: Measures, role: str | None) -> Iterator[Row]:
    """Findings about the numbers in a file."""
    yield from _entries(found)
    if len(found.constant) == found.width and found.n_samples > 1:
        yield (
            FAULT,
            "all-constant",
            "All samples are the same, so no method can tell them apart: extract the features again.",
        )
        return
    yield from _rows(found)
    yield from _features(found)
    if role != NOVEL:
        yield from _scale(found)


def cost_findings(spread: CostSpread | None) -> Iterator[Row]:
    """Whether epsilon suits the spread of the costs."""
    if spread is None or spread.plan == "selective" or not spread.deviation:
        return
    about = (
        f"{spread.lenders:.0f} of {spread.base_classes} base classes lend to a novel class on average, with the "
        f"default epsilon {spread.epsilon:g} against costs that spread by {number(spread.deviation, 2)}"
    )
    if spread.plan == "uniform":
        yield (
            WARNING,
            "epsilon-large",
            f"The transport hardly prefers any base class ({about}): the classes may not differ, else pass a smaller "
            "epsilon to hot or let tune choose it.",
        )
    else:
        yield (
            WARNING,
            "epsilon-small",
            f"The transport is nearly a hard assignment ({about}): pass a larger epsilon to hot or let tune choose "
            "it.",
        )


def _entries(found: Measures) -> Iterator[Row]:
    if found.nan is not None:
        yield FAULT, "nan", f"{_described(found, found.nan, 'NaN')}: {_bad_remedy(found, found.nan)}."
    if found.infinite is not None:
        remedy = _bad_remedy(found, found.infinite)
        if found.dtype == np.float16:
            remedy = "extract the features again in float32, as float16 ends at 65504"
        yield FAULT, "infinity", f"{_described(found, found.infinite, 'infinite')}: {remedy}."


def _described(found: Measures, bad: BadEntries, what: str) -> str:
    label = found.label_of(bad.row)
    return (
        f"{count(bad.count, 'entry is', 'entries are')} {what}, in {count(bad.samples, 'sample')} and "
        f"{count(bad.features, 'feature')}, the first in row {bad.row}, column {bad.column}"
        + ("" if label is None else f", class '{shown(label)}'")
    )


def _bad_remedy(found: Measures, bad: BadEntries) -> str:
    if bad.samples == found.n_samples and bad.features < found.width:
        return f"leave out {'this feature' if bad.features == 1 else 'these features'} or extract again"
    return f"remove {'this sample' if bad.samples == 1 else 'these samples'} or extract again"


def _rows(found: Measures) -> Iterator[Row]:
    duplicates = found.duplicates
    if duplicates.conflict is not None:
        first, second = duplicates.conflict
        yield (
            WARNING,
            "conflicting-duplicates",
            f"{count(duplicates.conflicts, 'vector occurs', 'vectors occur')} under different labels, such as row "
            f"{first} ('{shown(found.label_of(first))}') and row {second} ('{shown(found.label_of(second))}'): keep "
            "the right label.",
        )
    if duplicates.repeat is not None:
        first, second = duplicates.repeat
        yield (
            WARNING,
            "duplicates",
            f"{count(duplicates.repeats, 'row repeats', 'rows repeat')} an earlier row of the same class, such as row "
            f"{second} (equal to row {first}), so a query may be in its own support: remove the copies.",
        )
    if found.norms is not None and found.norms.zero_vectors:
        yield (
            WARNING,
            "zero-vectors",
            f"{count(found.norms.zero_vectors, 'sample is', 'samples are')} all zeros and without direction, so "
            "cosine and matching can only guess: check what the extractor made of them.",
        )


def _features(found: Measures) -> Iterator[Row]:
    constant, zero = len(found.constant), len(found.all_zero)
    if constant:
        columns = ", ".join(map(str, found.constant[:5])) + (", …" if constant > 5 else "")
        some = f", {zero:,} of them 0" if 0 < zero < constant else ""
        yield (
            NOTE,
            "constant-features",
            f"{count(constant, 'feature is', 'features are')} {'always 0' if zero == constant else 'constant'} in all "
            f"samples{some} (column {columns}): harmless, leave out to save time.",
        )
    if found.dtype.kind in "iub":
        yield (
            NOTE,
            "whole-numbers",
            f"Features are whole numbers ({found.dtype}), perhaps pixels or compressed: if they are codes, decode them "
            "before use.",
        )
    smallest, largest = found.smallest or 0.0, found.largest or 0.0
    if 0 < found.negatives < STRAY_NEGATIVES and -smallest < STRAY_SIZE * largest:
        yield (
            NOTE,
            "stray-negatives",
            f"Negative entries are few ({percent(found.negatives)}) and small (down to {number(smallest, 2)}), which "
            "looks like rounding: set them to 0 to allow the power transform 0.5.",
        )


def _scale(found: Measures) -> Iterator[Row]:
    low, high = USUAL_DEVIATION
    deviation = found.deviation
    if deviation and not low <= deviation <= high:
        factor = number(math.sqrt(low * high) / deviation, 1)
        yield (
            WARNING,
            "scale",
            f"Features deviate by {number(deviation, 2)} within classes where {low:g} to {high:g} is usual, which "
            f"free-lunch and the published parameter sets depend on: for these, multiply the features by {factor}.",
        )
