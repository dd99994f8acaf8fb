"""A bank in a notebook: a summary table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from hotshot.formatting import shortened
from hotshot.notebook import html_table

if TYPE_CHECKING:
    from hotshot.bank.classes import BaseClasses


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
