"""Methods compared over the tasks they share, and what that says of the paper's claims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hotshot.evaluation import Estimate, MethodResult, paired_difference
from hotshot.evaluation import results as compared
from hotshot.evaluation.tables import Number, percent

# Differences that a claim lists; where there are more, only so many of the lowest.
MOST_LISTED, LOWEST = 5, 3
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, whether it "holds", "does not hold" or is "undecided", and by what."""

    text: str
    verdict: str
    measured: str


def claim(text: str, differences: Mapping[str, Number]) -> Claim:
    """A claim that some differences are above 0: it holds where all are, by their intervals, and fails with one below.

    Examples
    --------
    >>> claim("A is ahead of B.", {"": Number(1.5, 0.2, signed=True)})
    Claim(text='A is ahead of B.', verdict='holds', measured='+1.50 ± 0.20')
    """
    widths = {name: math.inf if d.half_width is None else d.half_width for name, d in differences.items()}
    if any(d.mean + widths[name] < 0 for name, d in differences.items()):
        verdict = FAILS
    elif all(d.mean - widths[name] > 0 for name, d in differences.items()):
        verdict = HOLDS
    else:
        verdict = UNDECIDED
    return Claim(text, verdict, listed(differences))


def listed(differences: Mapping[str, Number]) -> str:
    """Differences as a claim shows them."""
    shown, lead = list(differences.items()), ""
    if len(shown) > MOST_LISTED:
        shown = sorted(shown, key=lambda item: item[1].mean)[:LOWEST]
        lead = f"lowest of {len(differences)}: "
    return lead + "; ".join(f"{name} {number}".strip() for name, number in shown)


def paired(result: MethodResult, other: MethodResult) -> Estimate:
    """Accuracy of `result` minus that of `other` over the tasks that both were evaluated on."""
    return paired_difference(*shared_accuracies(result, other))


def shared_accuracies(*results: MethodResult) -> list[np.ndarray]:
    """Accuracies of each over the tasks that all were evaluated on."""
    # Task i depends on the seed and on i alone, so the first ones are the same for all.
    shared = min(len(result.accuracies) for result in results)
    return [result.accuracies[:shared] for result in results]


def gap(result: MethodResult, other: MethodResult) -> Number:
    """`paired`, in points of percent."""
    return percent(paired(result, other), signed=True)


def bar(result: MethodResult) -> tuple[float, float]:
    """Mean accuracy in percent and half the width of its interval, for figures."""
    return 100 * result.accuracy.mean, 100 * result.accuracy.half_width


def shots_in_words(k: int) -> str:
    """For columns and sentences: "1 shot", "5 shots"."""
    return "1 shot" if k == 1 else f"{k} shots"


def standing(differences: Mapping[str, Estimate]) -> str:
    """Which methods H-OT is ahead of and behind, in words; differences are H-OT minus the method named."""
    phrases = {
        compared.AHEAD: "H-OT is ahead of",
        compared.BEHIND: "H-OT is behind",
        compared.UNDECIDED: "No significant difference from",
    }
    sentences = []
    for kind, phrase in phrases.items():
        names = [
            f"{name} ({percent(difference, signed=True)})"
            for name, difference in differences.items()
            if compared.verdict(difference) == kind
        ]
        if names:
            sentences.append(f"{phrase} {', '.join(names)}.")
    return " ".join(sentences)
