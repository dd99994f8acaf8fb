"""The finding of an evaluation in one sentence: where its reference is best, level with others, or behind."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotshot.evaluation.results import AHEAD, BEHIND, UNDECIDED, Evaluation, verdicts
from hotshot.formatting import bounded_percentage, in_words, listed, shortened, significant

# Of numbers of shots: with more than these a sentence does not name the rivals at each, or counts them.
MOST_CLAUSES, MOST_SHOTS = 3, 4
Shots = int | str


@dataclass(frozen=True)
class Standing:
    """How the reference compares at one number of shots, by `Evaluation.leads` and Holm's procedure.

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
    groups: dict[Any, list[Standing]] = {}
    for each in (_standing(found, shots) for shots in found.shots):
        # Where there are many numbers of shots, rivals are left out of the sentence if they differ.
        rivals = frozenset(each.rivals) if len(found.shots) <= MOST_CLAUSES and each.kind != AHEAD else None
        groups.setdefault((each.kind, rivals), []).append(each)
    scope = "" if found.holds_for_new_classes else "On these classes, "
    if found.setting.compared:
        scope = f"By {found.setting.measures[found.setting.compared]} on these classes, "
    clauses = [_clause(group, len(others), len(found.shots)) for group in groups.values()]
    return f"{scope}{name} is {', '.join(clauses)}."


def _standing(found: Evaluation, shots: Shots) -> Standing:
    leads = found.leads(shots)
    decided = verdicts(leads)
    kind = next(kind for kind in (BEHIND, UNDECIDED, AHEAD) if kind in decided.values())
    rivals = sorted((method for method in leads if decided[method] == kind), key=lambda method: leads[method].mean)
    return Standing(shots, kind, tuple(rivals), 100 * leads[rivals[0]].mean)


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
    gain = f"+{min(leads)}" if len({*leads}) == 1 else f"+{min(leads)} to +{max(leads)}"
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
    measure, means = found.setting.compared, []
    for shots in found.shots:
        result = found[found.reference, shots]
        means.append((float((result.measures[measure] if measure else result.accuracies).mean()), shots))
    if many := len(means) > MOST_SHOTS:
        means = [min(means, key=lambda mean: mean[0]), max(means, key=lambda mean: mean[0])]
    each = [f"{bounded_percentage(mean)} {_at([shots], 1)}" for mean, shots in means]
    what = found.setting.measures.get(measure, "accuracy")
    article = "an" if what[0] in "aA" else "a"
    return f"{shortened(found.reference)} has {article} {what} of {' to '.join(each) if many else listed(each)}."
