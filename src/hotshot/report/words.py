"""What an evaluation found, in sentences that say as plainly where a method loses as where it wins."""

from __future__ import annotations

import math

import numpy as np

from hotshot.evaluation import Estimate, Evaluation
from hotshot.evaluation.statistics import AHEAD, BEHIND, UNDECIDED, verdict
from hotshot.paper.figures.text import short
from hotshot.report.numbers import count, listed, milliseconds, percent, points, shots_in_words
from hotshot.transport.solution import Status

# Methods named in one sentence.
MOST_NAMED = 4
# Characters of a class name in a sentence or below a number.
LONGEST_NAME = 60


def summary(found: Evaluation, shots: int) -> list[str]:
    """How the reference compares to every other method at one number of shots."""
    reference = found.reference
    own = found[reference, shots].accuracy
    sentences = [f"{reference} is right in {points(own)}% of all queries."]
    others = [name for name in found.methods if name != reference]
    if not others:
        return sentences
    if not math.isfinite(own.half_width):
        return [*sentences, "One task decides nothing between methods."]
    differences = {name: found.difference(name, shots) for name in others}
    groups = {
        which: sorted(
            (name for name in others if verdict(differences[name]) == which),
            key=lambda name: abs(differences[name].mean),
        )
        for which in (AHEAD, BEHIND, UNDECIDED)
    }
    for which in (AHEAD, BEHIND):
        if groups[which]:
            sentences.append(
                f"It is {which} {'' if which == BEHIND else 'of '}"
                f"{_named(groups[which], len(others), differences)}."
            )
    if groups[UNDECIDED]:
        sentences.append(
            f"Nothing is decided between it and {_named(groups[UNDECIDED], len(others), differences)}."
        )
    best = max(found.methods, key=lambda name: found[name, shots].accuracy.mean)
    if best != reference:
        sentences.append(f"The highest mean is that of {best}: {points(found[best, shots].accuracy)}%.")
    return sentences


def beyond_the_mean(found: Evaluation, threshold: float) -> list[str]:
    """Bad tasks, time, and whether every problem was solved."""
    reference = found.reference
    sentences = []
    for shots in found.shots:
        own = found[reference, shots]
        low = int(np.sum(own.accuracies < threshold))
        how_many = "no task" if not low else f"{count(low)} of {count(found.tasks)} tasks"
        worst = min(own.recall, key=lambda name: own.recall[name])
        sentences.append(
            f"At {shots_in_words(shots)}, {how_many} of {reference} "
            f"{'are' if low > 1 else 'is'} below {100 * threshold:g}%. Its worst class is "
            f"“{short(worst, LONGEST_NAME)}”: {percent(own.recall[worst], 0)} of its queries are right."
        )
    return [*sentences, _time(found), *transport(found)]


def transport(found: Evaluation) -> list[str]:
    """How the transport problems and the heads ended."""
    sentences = []
    results = [result for result in found.results if result.statuses]
    if results and all(set(result.statuses) == {Status.CONVERGED} for result in results):
        total = sum(result.statuses[Status.CONVERGED] for result in results)
        sentences.append(f"All {count(total)} transport problems of the run converged.")
    for result in results:
        total = sum(result.statuses.values())
        for status, number in result.statuses.items():
            if status is not Status.CONVERGED:
                sentences.append(
                    f"{result.method} at {shots_in_words(result.shots)}: {count(number)} of {count(total)} transport "
                    f"problems ended as {status.name}. {status.explanation}"
                )
    for result in found.results:
        if result.stopped_early:
            sentences.append(
                f"{result.method} at {shots_in_words(result.shots)}: {count(result.stopped_early)} of "
                f"{count(found.tasks)} fits stopped before their minimum."
            )
    return sentences


def _time(found: Evaluation) -> str:
    shots = found.shots[0]
    times = {name: found[name, shots].seconds_per_task for name in found.methods}
    own = times.pop(found.reference)
    text = f"At {shots_in_words(shots)} a task takes {found.reference} {milliseconds(own)} ms of one core"
    if not times:
        return f"{text}."
    fastest = min(times, key=lambda name: times[name])
    if times[fastest] > own:
        return f"{text}, less than any other method."
    return f"{text}; {fastest}, the fastest, takes {milliseconds(times[fastest])} ms."


def _named(names: list[str], others: int, differences: dict[str, Estimate]) -> str:
    """Methods with their distances, the nearest first; how far away the nearest is says most."""
    shown = [
        f"{name} ({'by ' if verdict(differences[name]) != UNDECIDED else ''}{_distance(differences[name])})"
        for name in names[:MOST_NAMED]
    ]
    more = len(names) - len(shown)
    if more:
        shown.append(f"{more} more")
    every = f"all {others} others: " if len(names) == others > 1 else ""
    return every + listed(shown)


def _distance(difference: Estimate) -> str:
    if verdict(difference) == UNDECIDED:
        return f"{points(difference, signed=True)} points"
    return f"{points(Estimate(abs(difference.mean), difference.half_width, difference.n))} points"
