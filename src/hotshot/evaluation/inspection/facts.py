"""What was measured, in words: one line per measure, the same lines for every file."""

from __future__ import annotations

import numpy as np

from hotshot.evaluation.inspection.inspection import InspectedFile
from hotshot.evaluation.inspection.measures import Measures
from hotshot.evaluation.inspection.words import count, number, percent, shown

NOTHING = "–"


def facts(file: InspectedFile) -> dict[str, str]:
    """Lines of a table: what is measured, and the value in words."""
    found = file.measures
    return {
        "samples": f"{found.n_samples:,}",
        "classes": f"{len(found.names):,}, labels are {found.label_kind}",
        "samples per class": _sizes(found),
        "features": f"{found.width:,}, {found.dtype}",
        "entries": _entries(found),
        "NaN or infinity": _bad(found),
        "duplicate rows": _duplicates(found),
        "constant features": _constant(found),
        "norms": _norms(found),
        "spread within classes": NOTHING
        if found.deviation is None
        else f"{number(found.deviation, 2)} per feature",
        "rank of covariance": _ranks(found),
        "power transform": _power(found),
        "cosine costs": _costs(file),
        "borrowing": _borrowing(file),
    }


def _sizes(found: Measures) -> str:
    if not len(found.names):
        return NOTHING
    least, most = int(found.counts.argmin()), int(found.counts.argmax())
    if found.counts[least] == found.counts[most]:
        return f"{found.counts[least]:,} in every class"
    return (
        f"{found.counts[least]:,} ({shown(found.names[least], 24)}) to {found.counts[most]:,} "
        f"({shown(found.names[most], 24)}), median {number(float(np.median(found.counts)), 6)}"
    )


def _entries(found: Measures) -> str:
    if found.smallest is None or found.largest is None:
        return "none is finite"
    return (
        f"{number(found.smallest)} to {number(found.largest)}, {percent(found.zeros)} zero, "
        f"{percent(found.negatives)} negative"
    )


def _bad(found: Measures) -> str:
    kinds = (("NaN", found.nan), ("infinite", found.infinite))
    return (
        ", ".join(f"{bad.count:,} {what} in {count(bad.samples, 'sample')}" for what, bad in kinds if bad)
        or "none"
    )


def _duplicates(found: Measures) -> str:
    if not found.duplicates.repeats and not found.duplicates.conflicts:
        return "none"
    return (
        f"{found.duplicates.repeats:,} within a class, "
        f"{count(found.duplicates.conflicts, 'vector')} in several classes"
    )


def _constant(found: Measures) -> str:
    if not len(found.constant):
        return "none"
    constant, zero = len(found.constant), len(found.all_zero)
    return f"{constant:,}" + (
        f", {'all' if zero == constant else f'{zero:,}'} of them always 0" if zero else ""
    )


def _norms(found: Measures) -> str:
    norms = found.norms
    if norms is None:
        return "no sample is finite"
    zero = f", {count(norms.zero_vectors, 'zero vector')}" if norms.zero_vectors else ""
    if norms.unit:
        return f"all 1 (unit vectors){zero}"
    return f"{number(norms.smallest)} to {number(norms.largest)}, median {number(norms.median)}{zero}"


def _ranks(found: Measures) -> str:
    ranks = found.ranks
    if ranks is None:
        return "not looked at"
    rank = f"{ranks.smallest:,}"
    if ranks.smallest < ranks.largest:
        rank += f" to {ranks.largest:,}, median {number(ranks.median, 6)}"
    full = ranks.looked_at - ranks.singular
    share = {0: "none", ranks.looked_at: "all"}.get(full, f"{full:,}")
    return (
        f"{rank}; full ({found.width:,}) in {share} of {count(ranks.looked_at, 'class', 'classes')} looked at"
        + (", harmless here" if ranks.singular else "")
    )


def _power(found: Measures) -> str:
    if found.smallest is None:
        return NOTHING
    if found.smallest < 0:
        return "not possible with negative entries: power 'auto' is 1"
    log = "log possible" if found.smallest > 0 else "log needs an offset"
    return f"possible: power 'auto' is 0.5, {log}"


def _costs(file: InspectedFile) -> str:
    spread = file.costs
    if spread is None:
        return NOTHING
    if not spread.deviation:
        return "all the same"
    return (
        f"spread {number(spread.deviation, 2)} around {number(spread.median, 2)}; epsilon {spread.epsilon:g} is "
        f"{number(spread.epsilon / spread.deviation, 2)} of the spread"
    )


def _borrowing(file: InspectedFile) -> str:
    spread = file.costs
    if spread is None:
        return NOTHING
    who = "a novel class" if file.role else "a class held out"
    return (
        f"{who} borrows from {spread.lenders:.0f} of {spread.base_classes} base classes "
        f"({spread.fewest:.0f} with a tiny epsilon, {spread.most:.0f} with a huge one)"
    )
