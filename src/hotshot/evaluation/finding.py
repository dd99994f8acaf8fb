"""The finding of an evaluation in one sentence: where its reference is best, level with others, or behind."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hotshot.evaluation.results import AHEAD, BEHIND, UNDECIDED, Evaluation, verdicts
from hotshot.formatting import bounded_percentage, in_words, listed, shortened, significant
from hotshot.intervals import Estimate

# With more clauses than this the methods are left out; more numbers of shots than this are counted, not listed.
MOST_CLAUSES, MOST_SHOTS = 3, 4
Shots = int | str


@dataclass(frozen=True)
class Standing:
    """How the reference compares at one number of shots, by `compared_leads` and Holm's procedure.

    `kind` is BEHIND if it is behind any method, else UNDECIDED if it does not differ significantly from some method,
    else AHEAD. `rivals` are these methods, the most accurate first, and `lead` is that over the first, in points.
    """

    shots: Shots
    kind: str
    rivals: tuple[str, ...]
    lead: float


def finding(found: Evaluation) -> str:
    """One sentence: how the reference compares with the other methods at each number of shots."""
    name, others = shortened(found.reference), [method for method in found.methods if method != found.reference]
    if not others:
        return _single_method(found)
    if found.tasks == 1:
        return f"One task cannot show how {name} compares with {_named(others, len(others))}."
    standings = [standing(found, shots) for shots in found.shots]
    groups = _grouped(standings, lambda each: (each.kind, each.kind != AHEAD and frozenset(each.rivals)))
    if len(groups) > MOST_CLAUSES:
        groups = _grouped(standings, lambda each: each.kind)
    scope = "" if holds_for_new_classes(found) else "On these classes, "
    if found.setting.compared:
        scope = f"By {found.setting.measures[found.setting.compared]} on these classes, "
    clauses = [_clause(group, len(others), len(standings)) for group in groups]
    return f"{scope}{name} is {', '.join(clauses)}."


def standing(found: Evaluation, shots: Shots) -> Standing:
    """The standing of the reference at one number of shots."""
    leads = compared_leads(found, shots)
    decided = verdicts(leads)
    kind = next(kind for kind in (BEHIND, UNDECIDED, AHEAD) if kind in decided.values())
    rivals = sorted((method for method in leads if decided[method] == kind), key=lambda method: leads[method].mean)
    return Standing(shots, kind, tuple(rivals), 100 * leads[rivals[0]].mean)


def compared_leads(found: Evaluation, shots: Shots) -> dict[str, Estimate]:
    """Leads of the reference over each other method: over classes if there are such intervals, else over tasks."""
    leads = found.leads(shots)
    if found.setting.compared or holds_for_new_classes(found):
        return leads
    return {method: found.difference(method, shots) for method in leads}


def holds_for_new_classes(found: Evaluation) -> bool:
    """Whether there are intervals over classes: only in the closed setting, if tasks differ in their classes."""
    estimates = (found[found.reference, shots].accuracy_over_classes for shots in found.shots)
    return not found.setting.compared and all(math.isfinite(estimate.half_width) for estimate in estimates)


def _grouped(standings: Sequence[Standing], key: Callable[[Standing], Any]) -> list[list[Standing]]:
    groups: dict[Any, list[Standing]] = {}
    for each in standings:
        groups.setdefault(key(each), []).append(each)
    return list(groups.values())


def _clause(group: list[Standing], n_others: int, n_shots: int) -> str:
    """Standings of one kind, such as `best at one shot (+1.3 points over plda)`."""
    first, at = group[0], _at([each.shots for each in group], n_shots)
    same = all(set(each.rivals) == set(first.rivals) for each in group)
    rivals = _named(first.rivals, n_others) if same else "at least one other method"
    if first.kind == UNDECIDED:
        return f"level with {rivals} {at}"
    # To one decimal, small ones to two digits.
    leads = [abs(each.lead) for each in group]
    leads = [round(lead, 1) if lead >= 0.1 else float(significant(lead, 2)) for lead in leads]
    if first.kind == BEHIND:
        return f"behind {rivals} {at} (by {'up to ' * (len(group) > 1 or len(first.rivals) > 1)}{max(leads)} points)"
    gain = f"+{min(leads)} to +{max(leads)}" if len(leads) > MOST_SHOTS else listed([f"+{lead}" for lead in leads])
    if len(set(leads)) == 1:
        gain = f"+{leads[0]}"
    if n_others == 1:
        return f"ahead of {rivals} {at} ({gain} points)"
    runners_up = {each.rivals[0] for each in group}
    over = shortened(first.rivals[0]) if len(runners_up) == 1 else "the runner-up"
    return f"best {at} ({gain} points over {over})"


def _named(methods: Sequence[str], n_others: int) -> str:
    """Methods in a few words: names of one or two, and of more the first and how many."""
    if len(methods) <= 2:
        return listed([shortened(method) for method in methods])
    if len(methods) == n_others:
        return f"the other {in_words(n_others)} methods"
    return f"{shortened(methods[0])} and {in_words(len(methods) - 1)} others"


def _at(shots: Sequence[Shots], n_shots: int) -> str:
    """`at one shot`, `at one and five shots`, `at 1 to 10 shots`, `at 7 of 12 numbers of shots`."""
    if len(shots) > MOST_SHOTS:
        return f"at {len(shots)} of {n_shots} numbers of shots" if len(shots) < n_shots else "at all numbers of shots"
    words = [in_words(k) if isinstance(k, int) else k.replace("-", " to ") for k in shots]
    return f"at {listed(words)} {'shot' if list(shots) == [1] else 'shots'}"


def _single_method(found: Evaluation) -> str:
    """Its accuracy, or what else the setting compares by, at each number of shots; of many the least and the most."""
    measure, results = found.setting.compared, [found[found.reference, shots] for shots in found.shots]
    means = [(float((each.measures[measure] if measure else each.accuracies).mean()), each.shots) for each in results]
    if many := len(means) > MOST_SHOTS:
        means = [min(means, key=lambda mean: mean[0]), max(means, key=lambda mean: mean[0])]
    each = [f"{bounded_percentage(mean)} {_at([shots], 1)}" for mean, shots in means]
    shown = " to ".join(each) if many else listed(each)
    what = found.setting.measures.get(measure, "accuracy")
    return f"{shortened(found.reference)} has {'an' if what[0] in 'aA' else 'a'} {what} of {shown}."
