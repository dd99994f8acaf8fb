"""Views of a bank for notebooks: a summary table, and a figure of class sizes and closest classes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from hotshot.arrays import slices, to_numpy
from hotshot.base.space import Space
from hotshot.errors import InputError
from hotshot.formatting import shortened
from hotshot.notebook import BLUE, html_table, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hotshot.base.classes import BaseClasses

# Means that are compared with all others at once, pairs of classes in a figure, and characters of their names.
ROWS, PAIRS, LONGEST = 1000, 12, 22


def as_html(bank: BaseClasses) -> str:
    """Classes, samples, features, power and extractor."""
    counts = bank.counts
    kept = "" if bank.samples is not None else ", not kept"
    each = f"{counts.min():,}" if counts.min() == counts.max() else f"{counts.min():,} to {counts.max():,}"
    facts = {
        "classes": f"{len(counts):,}",
        "samples": f"{counts.sum():,}{kept}, {each} per class",
        "features": f"{bank.n_features:,}, {bank.dtype}",
        "power": f"{bank.power('auto'):g}",
        "extractor": "not known" if bank.extractor is None else shortened(bank.extractor),
    }
    return html_table(["base classes", ""], [[name, escape(fact)] for name, fact in facts.items()])


def separations(bank: BaseClasses) -> tuple[np.ndarray, np.ndarray]:
    """Nearest other class of each class (B,) and its distance (B,), in standard deviations within the class.

    Distances are between class means in the space of the method; the standard deviation is the root of the summed
    variances.
    """
    prepared = bank.prepare(Space(power=bank.power("auto")))
    means, variances = (to_numpy(x).astype(np.float64) for x in (prepared.means, prepared.variances))
    squares = (means**2).sum(axis=1)
    nearest, distance = np.zeros(len(means), dtype=int), np.zeros(len(means))
    for rows in slices(len(means), ROWS):
        found = squares[rows, None] + squares - 2 * means[rows] @ means.T
        found[np.arange(len(found)), np.arange(len(means))[rows]] = np.inf
        nearest[rows] = found.argmin(axis=1)
        distance[rows] = np.sqrt(np.maximum(found.min(axis=1), 0))
    # A class of equal samples has deviation 0.
    return nearest, distance / np.sqrt(np.maximum(variances.sum(axis=1), np.finfo(float).tiny))


def as_figure(bank: BaseClasses) -> Figure:
    """Samples per class, largest first (left), and the closest pairs of classes (right)."""
    if len(bank.names) < 2:
        raise InputError("A bank of one class cannot be plotted: add more classes.")
    nearest, separation = separations(bank)
    order = list(dict.fromkeys(min((b, c), (c, b)) for b in separation.argsort() for c in [nearest[b]]))[:PAIRS]
    values = [min(separation[b] for b in pair if nearest[b] == sum(pair) - b) for pair in order]
    with new_figure(0.9 + 0.18 * PAIRS, (2, 3)) as (figure, (sizes, closest)):
        sizes.fill_between(np.arange(len(bank.counts)) + 1, np.sort(bank.counts)[::-1], step="mid", color=BLUE)
        sizes.set(title="Samples per class", xlabel="Classes, largest first", ylabel="Samples", ylim=(0, None))
        labels = [" – ".join(shortened(bank.names[b], LONGEST, "ends") for b in pair) for pair in order]
        closest.barh(range(len(order)), values, color=BLUE)
        closest.set_yticks(range(len(order)), labels)
        closest.invert_yaxis()
        closest.set(title="Closest classes", xlabel="Distance in standard deviations")
    return figure
