"""The finding of an evaluation in one sentence: where its reference is best, level with others, or behind."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from hotshot.evaluation.results import AHEAD, BEHIND, UNDECIDED, Evaluation, verdicts
from hotshot.formatting import bounded_percentage, in_words, listed, shortened, significant
from hotshot.intervals import Estimate

# With more clauses than this the methods are left out; more numbers of shots than this are counted, not listed.
MOST_CLAUSES, MOST_SHOTS = 3, 4
Shots = int | str


@dataclass(frozen=True)
class Standing:
    """How the reference compares at one number of shots.

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
    groups = _grouped(standings, lambda own: (own.kind, own.kind != AHEAD and frozenset(own.rivals)))
    if len(groups) > MOST_CLAUSES:
        groups = _grouped(standings, lambda own: own.kind)
    clauses = [_clause(group, len(others), len(standings)) for group in groups]
    return f"{_scope(found)}{name} is {', '.join(clauses)}."


def standing(found: Evaluation, shots: Shots) -> Standing:
    """The standing of the reference by `compared_leads` and Holm's procedure."""
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
    return not found.setting.compared and all(math.isfinite(own.half_width) for own in estimates)


def _scope(found: Evaluation) -> str:
    """What the verdicts hold for, if not for new classes."""
    if found.setting.compared:
        return f"By {found.setting.measures[found.setting.compared]} on these classes, "
    return "" if holds_for_new_classes(found) else "On these classes, "


def _grouped(standings: Sequence[Standing], key: Callable[[Standing], Hashable]) -> list[list[Standing]]:
    groups: dict[Hashable, list[Standing]] = defaultdict(list)
    for own in standings:
        groups[key(own)].append(own)
    return list(groups.values())


def _clause(group: list[Standing], n_others: int, n_shots: int) -> str:
    """Standings of one kind, such as `best at one shot (+1.3 points over plda)`."""
    first, at = group[0], _at([own.shots for own in group], n_shots)
    same = all(set(own.rivals) == set(first.rivals) for own in group)
    rivals = _named(first.rivals, n_others) if same else "at least one other method"
    if first.kind == UNDECIDED:
        return f"level with {rivals} {at}"
    leads = [_points(own.lead) for own in group]
    if first.kind == BEHIND:
        return f"behind {rivals} {at} (by {'up to ' * (len(group) > 1 or len(first.rivals) > 1)}{max(leads)} points)"
    gain = f"{_gains(leads)} points"
    if n_others == 1:
        return f"ahead of {rivals} {at} ({gain})"
    runners_up = {own.rivals[0] for own in group}
    return f"best {at} ({gain} over {shortened(first.rivals[0]) if len(runners_up) == 1 else 'the runner-up'})"


def _gains(leads: Sequence[float]) -> str:
    """`+1.3`, `+1.3 and +0.4`, and of many `+0.4 to +1.3`."""
    if len(set(leads)) == 1:
        return f"+{leads[0]}"
    return listed([f"+{lead}" for lead in leads]) if len(leads) <= MOST_SHOTS else f"+{min(leads)} to +{max(leads)}"


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


def _points(lead: float) -> float:
    """Points of percent to one decimal, small ones to two digits."""
    return round(abs(lead), 1) if abs(lead) >= 0.1 else float(significant(abs(lead), 2))


def _single_method(found: Evaluation) -> str:
    """Its accuracy, or what else the setting compares by, at each number of shots; of many the least and the most."""
    measure = found.setting.compared
    results = [found[found.reference, shots] for shots in found.shots]
    means = [(float((own.measures[measure] if measure else own.accuracies).mean()), own.shots) for own in results]
    if many := len(means) > MOST_SHOTS:
        means.sort(key=lambda own: own[0])
        means = [means[0], means[-1]]
    shown = [f"{bounded_percentage(mean)} {_at([shots], 1)}" for mean, shots in means]
    what = found.setting.measures[measure] if measure else "accuracy"
    article = "an" if what[0] in "aA" else "a"
    return f"{shortened(found.reference)} has {article} {what} of {' to '.join(shown) if many else listed(shown)}."
