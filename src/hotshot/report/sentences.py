"""What an evaluation found, in sentences that say as plainly where a method loses as where it wins."""

import numpy as np

from hotshot.evaluation import Estimate, Evaluation, mean_interval
from hotshot.evaluation.finding import compared_leads, holds_for_new_classes
from hotshot.evaluation.results import AHEAD, BEHIND, UNDECIDED, verdicts
from hotshot.evaluation.tables import LONGEST_NAME, percent, unsolved
from hotshot.formatting import in_words, listed, milliseconds, percentage, shortened, shots_in_words
from hotshot.transport import Status

# Methods named in one sentence.
MOST_NAMED = 4
OPENINGS = {AHEAD: "Ahead of", BEHIND: "Behind", UNDECIDED: "No significant difference from"}


def summary(found: Evaluation, shots: int | str) -> list[str]:
    """How the reference compares with every other method at one number of shots.

    By accuracy and for new classes of the same kind if the run has intervals over classes, else by what the setting
    compares by and for these classes.
    """
    reference, measure = found.reference, found.setting.compared
    means = {
        name: mean_interval(result.measures[measure]) if measure else result.accuracy_over_classes
        for name in found.methods
        for result in [found[name, shots]]
    }
    what = found.setting.measures[measure] if measure else "accuracy"
    sentences = [f"{what[:1].upper()}{what[1:]} of {reference}: {percent(means[reference])}%."]
    others = [name for name in found.methods if name != reference]
    if not others:
        return sentences
    if found.tasks == 1:
        return [*sentences, "One task cannot show a difference between methods."]
    if not measure and not holds_for_new_classes(found):
        sentences.append("Every task has all classes: these differences hold for these classes only.")
    sentences += _compared(compared_leads(found, shots), others)
    best = max(found.methods, key=lambda name: means[name].mean)
    if best != reference:
        sentences.append(f"The highest {what} is that of {best}: {percent(means[best])}%.")
    return sentences


def _compared(differences: dict[str, Estimate], others: list[str]) -> list[str]:
    """A sentence for each verdict on some of the differences to the reference."""
    sentences = []
    standing = verdicts(differences)
    for which, opening in OPENINGS.items():
        names = [name for name in others if standing[name] == which]
        # The smallest difference says most.
        names.sort(key=lambda name: abs(differences[name].mean))
        if names:
            every = f"the other {in_words(len(others))}: " if len(names) == len(others) > 1 else ""
            sentences.append(f"{opening} {every}{_with_distances(names, differences, which)}.")
    return sentences


def beyond_the_mean(found: Evaluation, threshold: float) -> list[str]:
    """Bad tasks and classes in the closed setting, time, and transport problems that did not converge."""
    sentences = []
    for shots in found.shots if not found.setting.compared else ():
        own = found[found.reference, shots]
        low = int(np.sum(own.accuracies < threshold))
        how_many = f"{low:,} of {found.tasks:,} tasks" if low else "no task"
        worst = min(own.recall, key=lambda name: own.recall[name])
        sentences.append(
            f"At {shots_in_words(shots)}, {how_many} of {found.reference} "
            f"{'are' if low > 1 else 'is'} below {100 * threshold:g}%. Its worst class is "
            f"“{shortened(worst, LONGEST_NAME, keep='ends')}”: {percentage(own.recall[worst], 0)} of its queries are "
            "right."
        )
    return [*sentences, _time(found), *unsolved(found)]


def all_converged(found: Evaluation) -> list[str]:
    """That every transport problem converged, if it did."""
    statuses = [result.statuses for result in found.results if result.statuses]
    if not statuses or any(set(own) != {Status.CONVERGED} for own in statuses):
        return []
    total = sum(own[Status.CONVERGED] for own in statuses)
    return [f"All {total:,} transport problems of the run converged."]


def _time(found: Evaluation) -> str:
    shots = found.shots[0]
    times = {name: found[name, shots].seconds_per_task for name in found.methods}
    own = times.pop(found.reference)
    text = f"At {shots_in_words(shots)}, {found.reference} takes {milliseconds(own)} ms per task on one core"
    if not times:
        return f"{text}."
    fastest = min(times, key=lambda name: times[name])
    if times[fastest] > own:
        return f"{text}, less than any other method."
    return f"{text}; the fastest method, {fastest}, takes {milliseconds(times[fastest])} ms."


def _with_distances(names: list[str], differences: dict[str, Estimate], which: str) -> str:
    shown = [f"{name} ({_distance(differences[name], which)})" for name in names[:MOST_NAMED]]
    more = len(names) - len(shown)
    return listed([*shown, f"{more} more"] if more else shown)


def _distance(difference: Estimate, which: str) -> str:
    if which == UNDECIDED:
        return f"{percent(difference, signed=True)} points"
    return f"by {percent(Estimate(abs(difference.mean), difference.half_width, difference.n))} points"
