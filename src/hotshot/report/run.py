"""What the page shows of one run: sentences, tables, figures, and how to run it again.

The sentences say as plainly where a method loses as where it wins.
"""

import json
from base64 import b64encode
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hotshot.evaluation import Estimate, Evaluation, mean_interval
from hotshot.evaluation.finding import compared_leads, finding, holds_for_new_classes
from hotshot.evaluation.results import AHEAD, BEHIND, UNDECIDED, check_reference, verdicts
from hotshot.evaluation.stored import StoredRun
from hotshot.evaluation.tables import (
    LONGEST_NAME,
    batch_note,
    percent,
    recall_table,
    result_table,
    transport_table,
    unsolved,
)  # fmt: skip
from hotshot.evaluation.tasks import GENERALISED, check_queries
from hotshot.formatting import (
    count,
    in_words,
    listed,
    milliseconds,
    percentage,
    queries_in_words,
    shortened,
    shots_in_words,
)
from hotshot.paper.figures import file_content, grouped_bars, histogram
from hotshot.report.explorer import explorer_or_reason, run_explorer
from hotshot.report.sources import Options
from hotshot.transport import Status

# Width of a bin of the histogram, in percent.
STEP = 5
# Methods named in one sentence.
MOST_NAMED = 4
OPENINGS = {AHEAD: "Ahead of", BEHIND: "Behind", UNDECIDED: "No significant difference from"}
SORT_NOTE = "Click a heading to sort."
HOLM_NOTE = (
    "“Ahead” and “behind” are corrected for the number of methods (Holm): a difference may be undecided although its "
    f"interval excludes 0. {SORT_NOTE}"
)
LEVEL_NOTE = "“Level” means no significant difference."
# Entries of a request, and what the page calls them.
REQUESTED = {
    "setting": "Setting",
    "ways": "Ways",
    "shots": "Shots",
    "queries": "Queries per class",
    "batch": "Queries classified jointly by",
    "tasks": "Tasks",
    "seed": "Seed",
}


@dataclass(frozen=True)
class Drawing:
    """An SVG file on the page, as an image: as such it runs nothing and loads nothing, and its ids are its own."""

    label: str
    content: bytes

    @property
    def address(self) -> str:
        """The file as an address of itself."""
        return f"data:image/svg+xml;base64,{b64encode(self.content).decode()}"


@dataclass(frozen=True)
class Part:
    """One folder on the page.

    `finding` is its result in one sentence and `lead` what was run in a few. `explorer` is data for the browser, or
    the reason why there are none; `facts`, `command` and `details`, texts of several lines under a title, document the
    run. `content` is what the template shows of a part of this `kind`.
    """

    kind: str
    id: str
    heading: str
    finding: str
    lead: str
    explorer: dict[str, Any] | str
    facts: dict[str, str]
    command: str | None
    details: dict[str, str]
    content: dict[str, Any]


def run_part(run: StoredRun, part_id: str, options: Options) -> Part:
    """The part of a run; without the data it has no explorer, but the reason for that."""
    found, source = run.evaluation, options.source(run.about)
    if options.reference is not None:
        found = replace(found, reference=check_reference(options.reference, found.methods))
    explorer: dict[str, Any] | str = "It does not exist for the generalised setting."
    if found.setting != GENERALISED:
        explorer = explorer_or_reason(lambda: run_explorer(run, options), options.tasks)
    methods = f"{len(found.methods)} methods" if len(found.methods) > 1 else found.methods[0]
    return Part(
        kind="run",
        id=part_id,
        heading=f"{methods} on {source.name}",
        finding=finding(found),
        lead=_lead(run, source.name),
        explorer=explorer,
        facts=_facts(run),
        command=source.command,
        details={name: _described(method) for name, method in run.request["methods"].items()},
        content=_content(found, options.threshold),
    )


def _content(found: Evaluation, threshold: float) -> dict[str, Any]:
    """What the template shows of a run; settings with measures of their own have other tables."""
    closed = not found.setting.compared
    several = len(found.methods) > 1
    results = [result_table(found, k, threshold) for k in found.shots]
    # Notes that the last table repeats stand below that one only.
    results = [replace(each, notes=()) if each.notes == results[-1].notes else each for each in results[:-1]] + results[
        -1:
    ]
    return {
        "summaries": {shots_in_words(k).capitalize(): summary(found, k) for k in found.shots},
        "beyond": beyond_the_mean(found, threshold),
        "note": HOLM_NOTE if several else SORT_NOTE,
        "results": results,
        "sorted_by": 1 if closed else None,
        "differences": _differences(found) if several and found.tasks > 1 else None,
        "histograms": [_histogram(found, k) for k in found.shots] if closed else [],
        "converged": all_converged(found),
        "transport": transport_table(found),
        "recall": [recall_table(found, k) for k in found.shots],
    }


def _lead(run: StoredRun, data: str) -> str:
    found, request = run.evaluation, run.request
    ways = (
        f"{found.ways}-way tasks" if isinstance(found.ways, int) else f"tasks of {found.ways.replace('-', ' to ')} ways"
    )
    shots = listed([str(k).replace("-", " to ") for k in found.shots])
    each = " per number of shots" if len(found.shots) > 1 else ""
    same = ", the same for every method" if len(found.methods) > 1 else ""
    text = (
        f"{listed(found.methods)} on {data}: {ways} with {shots} shot{'s' * (found.shots != [1])}, "
        f"{count(found.tasks, 'task')}{each}{same}."
    )
    if "seed" in request:
        text += f" {queries_in_words(check_queries(request['queries']))}, seed {request['seed']}."
    if found.jointly:
        text += f" {batch_note(found.jointly, found.methods)}"
    return f"{text} {LEVEL_NOTE}" if "level with" in finding(found) else text


def _facts(run: StoredRun) -> dict[str, str]:
    request = run.request
    facts = {"Run folder": run.folder.name}
    for key, title in REQUESTED.items():
        if key in request:
            value = request[key]
            facts[title] = listed([str(k) for k in value]) if isinstance(value, list) else str(value)
    bases = (method["parameters"].get("base") for method in request["methods"].values())
    if own := dict.fromkeys(str(base) for base in bases if base is not None):
        facts["Base classes"] = ", ".join(own)
    facts |= {f"{key}, SHA-256": str(value) for key, value in request["data"].items()}
    versions = run.about.get("versions")
    if isinstance(versions, dict):
        facts["Versions"] = ", ".join(f"{package} {version}" for package, version in versions.items())
    return facts


def _described(method: dict[str, Any]) -> str:
    parameters = (f"{key} = {json.dumps(own, ensure_ascii=False)}" for key, own in method["parameters"].items())
    return "\n  ".join([str(method["class"]), *parameters])


def _differences(found: Evaluation) -> Drawing:
    """Leads of the reference with their intervals, the largest at the first number of shots on top."""
    leads = {k: compared_leads(found, k) for k in found.shots}
    first = leads[found.shots[0]]
    order = sorted(first, key=lambda method: -first[method].mean)
    series = {shots_in_words(k): [percent(own[method]) for method in order] for k, own in leads.items()}
    what = found.setting.measures.get(found.setting.compared, "accuracy")
    over = "classes" if holds_for_new_classes(found) else "tasks"
    title = f"Lead of {found.reference} over each method"
    figure = grouped_bars(order, series, label=f"difference in {what}, points, 95% over {over}", zero=True, title=title)
    return Drawing(f"{title}, with 95% intervals", file_content(figure, "svg"))


def _histogram(found: Evaluation, shots: int | str) -> Drawing:
    """Tasks by accuracy: the reference beside the best of the others."""
    others = [method for method in found.methods if method != found.reference]
    best = sorted(others, key=lambda method: -found[method, shots].accuracy.mean)[:1]
    values = {method: 100 * found[method, shots].accuracies for method in (found.reference, *best)}
    lowest = min(each.min() for each in values.values())
    edges = np.arange(STEP * min(lowest // STEP, 100 / STEP - 4), 100 + STEP / 2, STEP)
    title = f"Tasks by accuracy, {shots_in_words(shots)}"
    figure = histogram(values, edges=edges, title=title)
    return Drawing(f"{title}: {' beside '.join(values)}", file_content(figure, "svg"))


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
    leads = compared_leads(found, shots)
    standing = verdicts(leads)
    for which, opening in OPENINGS.items():
        # The smallest difference says most.
        names = sorted((name for name in others if standing[name] == which), key=lambda name: abs(leads[name].mean))
        if names:
            every = f"the other {in_words(len(others))}: " if len(names) == len(others) > 1 else ""
            distances = [f"{name} ({_distance(leads[name], which)})" for name in names[:MOST_NAMED]]
            more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
            sentences.append(f"{opening} {every}{listed([*distances, *more])}.")
    best = max(found.methods, key=lambda name: means[name].mean)
    if best != reference:
        sentences.append(f"The highest {what} is that of {best}: {percent(means[best])}%.")
    return sentences


def _distance(difference: Estimate, which: str) -> str:
    if which == UNDECIDED:
        return f"{percent(difference, signed=True)} points"
    return f"by {percent(replace(difference, mean=abs(difference.mean)))} points"


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


def _time(found: Evaluation) -> str:
    shots = found.shots[0]
    times = {name: found[name, shots].seconds_per_task for name in found.methods}
    own = times.pop(found.reference)
    text = f"At {shots_in_words(shots)}, {found.reference} takes {milliseconds(own)} ms per task on one core"
    fastest = min(times, key=lambda name: times[name], default=None)
    if fastest is None:
        return f"{text}."
    if times[fastest] > own:
        return f"{text}, less than any other method."
    return f"{text}; the fastest method, {fastest}, takes {milliseconds(times[fastest])} ms."


def all_converged(found: Evaluation) -> list[str]:
    """That every transport problem converged, if it did."""
    statuses = [result.statuses for result in found.results if result.statuses]
    if not statuses or any(set(own) != {Status.CONVERGED} for own in statuses):
        return []
    total = sum(own[Status.CONVERGED] for own in statuses)
    return [f"All {total:,} transport problems of the run converged."]
