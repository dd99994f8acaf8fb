"""Methods compared over the tasks they share: slow ones are evaluated on the first few only."""

from __future__ import annotations

from collections.abc import Mapping

from hotshot.evaluation import Estimate, MethodResult, paired_difference
from hotshot.evaluation.statistics import AHEAD, BEHIND, UNDECIDED, verdict
from hotshot.evaluation.tables import Number, percent
from hotshot.paper.experiments.setting import Setting

SHARE_OF_TASKS = 8
LEAST_TASKS = 100


def few_tasks(setting: Setting) -> int:
    """How many tasks a slow method is evaluated on."""
    return min(setting.tasks, max(LEAST_TASKS, setting.tasks // SHARE_OF_TASKS))


def paired(result: MethodResult, other: MethodResult) -> Estimate:
    """Accuracy of `result` minus that of `other` over the tasks that both were evaluated on."""
    # Task i depends on the seed and on i alone, so the first ones are the same for both.
    shared = min(len(result.accuracies), len(other.accuracies))
    return paired_difference(result.accuracies[:shared], other.accuracies[:shared])


def gap(result: MethodResult, other: MethodResult) -> Number:
    """`paired`, in points of percent."""
    return percent(paired(result, other), signed=True)


def bar(result: MethodResult) -> tuple[float, float]:
    """Mean accuracy in percent and half the width of its interval, for figures."""
    return 100 * result.accuracy.mean, 100 * result.accuracy.half_width


def verdicts(differences: Mapping[str, Estimate], who: str = "H-OT") -> str:
    """Who `who` is ahead of, behind, and undecided against, in words; differences are `who` minus the one named."""
    words = {AHEAD: "ahead of", BEHIND: "behind", UNDECIDED: "undecided against"}
    parts = []
    for kind, phrase in words.items():
        names = [
            f"{name} ({percent(difference, signed=True)})"
            for name, difference in differences.items()
            if verdict(difference) == kind
        ]
        if names:
            parts.append(f"{phrase} {', '.join(names)}")
    return f"{who} is {'; '.join(parts)}."


def shots_in_words(k: int) -> str:
    """For columns and sentences: "1 shot", "5 shots"."""
    return "1 shot" if k == 1 else f"{k} shots"
