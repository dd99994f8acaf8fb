"""What the page shows of one run: sentences, tables, figures, and how to run it again.

The sentences say as plainly where a method loses as where it wins.
"""

import json
from base64 import b64encode
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hotshot.evaluation import Estimate, Evaluation, mean_interval
from hotshot.evaluation.finding import finding
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
from hotshot.report.explorer import Options, explorer_or_reason, run_explorer
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
        """The file as a data URI."""
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
    evaluation, source = run.evaluation, options.source(run.about)
    if options.reference is not None:
        evaluation = replace(evaluation, reference=check_reference(options.reference, evaluation.methods))
    explorer: dict[str, Any] | str = "It does not exist for the generalised setting."
    if evaluation.setting != GENERALISED:
        explorer = explorer_or_reason(lambda: run_explorer(run, options), options.tasks)
    methods = count(len(evaluation.methods), "method") if len(evaluation.methods) > 1 else evaluation.methods[0]
    return Part(
        kind="run",
        id=part_id,
        heading=f"{methods} on {source.name}",
        finding=finding(evaluation),
        lead=_lead(evaluation, run.request, source.name),
        explorer=explorer,
        facts=_facts(run),
        command=source.command,
        details={name: _described(method) for name, method in run.request["methods"].items()},
        content=_content(evaluation, options.threshold),
    )


def _content(evaluation: Evaluation, threshold: float) -> dict[str, Any]:
    """What the template shows of a run; settings with measures of their own have other tables."""
    is_closed, has_rivals = not evaluation.setting.compared, len(evaluation.methods) > 1
    *results, last = [result_table(evaluation, k, threshold) for k in evaluation.shots]
    # Notes that the last table repeats stand below that one only.
    results = [replace(table, notes=() if table.notes == last.notes else table.notes) for table in results]
    return {
        "summaries": {shots_in_words(k).capitalize(): summary(evaluation, k) for k in evaluation.shots},
        "beyond": beyond_the_mean(evaluation, threshold),
        "note": HOLM_NOTE if has_rivals else SORT_NOTE,
        "results": [*results, last],
        "sorted_by": 1 if is_closed else None,
        "differences": _differences(evaluation) if has_rivals and evaluation.tasks > 1 else None,
        "histograms": [_histogram(evaluation, k) for k in evaluation.shots] if is_closed else [],
        "converged": all_converged(evaluation),
        "transport": transport_table(evaluation),
        "recall": [recall_table(evaluation, k) for k in evaluation.shots],
    }


def _lead(evaluation: Evaluation, request: dict[str, Any], data: str) -> str:
    """What was run."""
    ways, shots = evaluation.ways, listed([str(k).replace("-", " to ") for k in evaluation.shots])
    tasks = f"{ways}-way tasks" if isinstance(ways, int) else f"tasks of {ways.replace('-', ' to ')} ways"
    each = " per number of shots" if len(evaluation.shots) > 1 else ""
    same = ", the same for every method" if len(evaluation.methods) > 1 else ""
    text = (
        f"{listed(evaluation.methods)} on {data}: {tasks} with {shots} shot{'s' * (evaluation.shots != [1])}, "
        f"{count(evaluation.tasks, 'task')}{each}{same}."
    )
    if "seed" in request:
        text += f" {queries_in_words(check_queries(request['queries']))}, seed {request['seed']}."
    if evaluation.jointly:
        text += f" {batch_note(evaluation.jointly, evaluation.methods)}"
    return f"{text} {LEVEL_NOTE}" if "level with" in finding(evaluation) else text


def _facts(run: StoredRun) -> dict[str, str]:
    request = run.request
    facts = {"Run folder": run.folder.name}
    for key, title in REQUESTED.items():
        if key in request:
            value = request[key]
            facts[title] = listed([str(k) for k in value]) if isinstance(value, list) else str(value)
    bases = [method["parameters"].get("base") for method in request["methods"].values()]
    if any(base is not None for base in bases):
        facts["Base classes"] = ", ".join(dict.fromkeys(str(base) for base in bases if base is not None))
    facts |= {f"{key}, SHA-256": str(value) for key, value in request["data"].items()}
    versions = run.about.get("versions")
    if isinstance(versions, dict):
        facts["Versions"] = ", ".join(f"{package} {version}" for package, version in versions.items())
    return facts


def _described(method: dict[str, Any]) -> str:
    parameters = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in method["parameters"].items())
    return "\n  ".join([str(method["class"]), *parameters])


def _differences(evaluation: Evaluation) -> Drawing:
    """Leads of the reference with their intervals, the largest at the first number of shots on top."""
    leads = {k: evaluation.leads(k) for k in evaluation.shots}
    first = leads[evaluation.shots[0]]
    order = sorted(first, key=lambda method: -first[method].mean)
    series = {shots_in_words(k): [percent(by_method[method]) for method in order] for k, by_method in leads.items()}
    what = evaluation.setting.measures.get(evaluation.setting.compared, "accuracy")
    label = f"difference in {what}, points, 95% over {'classes' if evaluation.holds_for_new_classes else 'tasks'}"
    title = f"Lead of {evaluation.reference} over each method"
    figure = grouped_bars(order, series, label=label, zero=True, title=title)
    return Drawing(f"{title}, with 95% intervals", file_content(figure, "svg"))


def _histogram(evaluation: Evaluation, shots: int | str) -> Drawing:
    """Tasks by accuracy: the reference beside the best of the others."""
    others = [method for method in evaluation.methods if method != evaluation.reference]
    best = sorted(others, key=lambda method: -evaluation[method, shots].accuracy.mean)[:1]
    values = {method: 100 * evaluation[method, shots].accuracies for method in (evaluation.reference, *best)}
    lowest = min(each.min() for each in values.values())
    edges = np.arange(STEP * min(lowest // STEP, 100 / STEP - 4), 100 + STEP / 2, STEP)
    title = f"Tasks by accuracy, {shots_in_words(shots)}"
    figure = histogram(values, edges=edges, title=title)
    return Drawing(f"{title}: {' beside '.join(values)}", file_content(figure, "svg"))


def summary(evaluation: Evaluation, shots: int | str) -> list[str]:
    """How the reference compares with every other method at one number of shots.

    By accuracy and for new classes of the same kind if the run has intervals over classes, else by what the setting
    compares by and for these classes.
    """
    reference, measure = evaluation.reference, evaluation.setting.compared
    results = {name: evaluation[name, shots] for name in evaluation.methods}
    means = {
        name: mean_interval(result.measures[measure]) if measure else result.accuracy_over_classes
        for name, result in results.items()
    }
    what = evaluation.setting.measures[measure] if measure else "accuracy"
    sentences = [f"{what[:1].upper()}{what[1:]} of {reference}: {percent(means[reference])}%."]
    n_others = len(means) - 1
    if not n_others:
        return sentences
    if evaluation.tasks == 1:
        return [*sentences, "One task cannot show a difference between methods."]
    if not measure and not evaluation.holds_for_new_classes:
        sentences.append("Every task has all classes: these differences hold for these classes only.")
    leads = evaluation.leads(shots)
    standing = verdicts(leads)
    for which, opening in OPENINGS.items():
        # The smallest difference says most.
        names = sorted((name for name in leads if standing[name] == which), key=lambda name: abs(leads[name].mean))
        if names:
            every = f"the other {in_words(n_others)}: " if len(names) == n_others > 1 else ""
            distances = [f"{name} ({_distance(leads[name], which)})" for name in names[:MOST_NAMED]]
            more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
            sentences.append(f"{opening} {every}{listed([*distances, *more])}.")
    best = max(means, key=lambda name: means[name].mean)
    if best != reference:
        sentences.append(f"The highest {what} is that of {best}: {percent(means[best])}%.")
    return sentences


def _distance(difference: Estimate, which: str) -> str:
    if which == UNDECIDED:
        return f"{percent(difference, signed=True)} points"
    return f"by {percent(replace(difference, mean=abs(difference.mean)))} points"


def beyond_the_mean(evaluation: Evaluation, threshold: float) -> list[str]:
    """Bad tasks and classes in the closed setting, time, and transport problems that did not converge."""
    reference, sentences = evaluation.reference, []
    for shots in evaluation.shots if not evaluation.setting.compared else ():
        result = evaluation[reference, shots]
        low = int(np.sum(result.accuracies < threshold))
        how_many = f"{low:,} of {evaluation.tasks:,} tasks" if low else "no task"
        worst = min(result.recall, key=lambda name: result.recall[name])
        sentences.append(
            f"At {shots_in_words(shots)}, {how_many} of {reference} {'are' if low > 1 else 'is'} below "
            f"{100 * threshold:g}%. Its worst class is “{shortened(worst, LONGEST_NAME, keep='ends')}”: "
            f"{percentage(result.recall[worst], 0)} of its queries are right."
        )
    shots = evaluation.shots[0]
    times = {name: evaluation[name, shots].seconds_per_task for name in evaluation.methods}
    text = f"At {shots_in_words(shots)}, {reference} takes {milliseconds(times[reference])} ms per task on one core"
    fastest = min(times, key=lambda name: times[name])
    if fastest != reference:
        text += f"; the fastest method, {fastest}, takes {milliseconds(times[fastest])} ms"
    elif len(times) > 1:
        text += ", less than any other method"
    return [*sentences, f"{text}.", *unsolved(evaluation)]


def all_converged(evaluation: Evaluation) -> list[str]:
    """That every transport problem converged, if it did."""
    statuses = [result.statuses for result in evaluation.results if result.statuses]
    if not statuses or any(set(counts) != {Status.CONVERGED} for counts in statuses):
        return []
    return [f"All {sum(c[Status.CONVERGED] for c in statuses):,} transport problems of the run converged."]
