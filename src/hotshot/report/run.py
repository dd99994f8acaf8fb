"""What the page shows of one run: sentences, tables, figures, and how to run it again."""

import json
from base64 import b64encode
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hotshot.evaluation import Evaluation
from hotshot.evaluation.finding import compared_leads, finding, holds_for_new_classes
from hotshot.evaluation.results import check_reference
from hotshot.evaluation.stored import StoredRun
from hotshot.evaluation.tables import Table, batch_note, percent, recall_table, result_table, transport_table
from hotshot.evaluation.tasks import GENERALISED, check_queries
from hotshot.formatting import count, listed, queries_in_words, shots_in_words
from hotshot.paper.figures import file_content, grouped_bars, histogram
from hotshot.report.sentences import all_converged, beyond_the_mean, summary
from hotshot.report.sources import Options
from hotshot.report.task_explorer import explorer_or_reason, run_explorer

# Width of a bin of the histogram, in percent.
STEP = 5
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
    None and then `why_not` is the reason; `facts`, `command` and `details`, texts of several lines under a title,
    document the run. `content` is what the template shows of a part of this `kind`.
    """

    kind: str
    id: str
    heading: str
    finding: str
    lead: str
    explorer: dict[str, Any] | None
    why_not: str
    facts: dict[str, str]
    command: str | None
    details: dict[str, str]
    content: dict[str, Any]


def run_part(run: StoredRun, part_id: str, options: Options) -> Part:
    """The part of a run; without the data it has no explorer, but the reason for that."""
    found, source = run.evaluation, options.source(run.about)
    if options.reference is not None:
        found = replace(found, reference=check_reference(options.reference, found.methods))
    if found.setting == GENERALISED:
        explorer, why_not = None, "It does not exist for the generalised setting."
    else:
        explorer, why_not = explorer_or_reason(lambda: run_explorer(run, source, options), options.tasks)
    titles = {k: shots_in_words(k).capitalize() for k in found.shots}
    methods = f"{len(found.methods)} methods" if len(found.methods) > 1 else found.methods[0]
    return Part(
        kind="run",
        id=part_id,
        heading=f"{methods} on {source.name}",
        finding=finding(found),
        lead=_lead(run, source.name),
        explorer=explorer,
        why_not=why_not,
        facts=_facts(run),
        command=source.command,
        details={name: _described(method) for name, method in run.request["methods"].items()},
        content=_content(found, titles, options.threshold),
    )


def _content(found: Evaluation, titles: dict[int | str, str], threshold: float) -> dict[str, Any]:
    """What the template shows of a run; settings with measures of their own have other tables."""
    closed = not found.setting.compared
    several = len(found.methods) > 1
    return {
        "summaries": {title: summary(found, k) for k, title in titles.items()},
        "beyond": beyond_the_mean(found, threshold),
        "note": HOLM_NOTE if several else SORT_NOTE,
        "results": _notes_once([result_table(found, k, threshold) for k in found.shots]),
        "sorted_by": 1 if closed else None,
        "differences": _differences(found) if several and found.tasks > 1 else None,
        "histograms": [_histogram(found, k) for k in found.shots] if closed else [],
        "converged": all_converged(found),
        "transport": transport_table(found),
        "recall": [recall_table(found, k) for k in found.shots],
    }


def _notes_once(tables: list[Table]) -> list[Table]:
    """The tables, without notes that the last one repeats."""
    *first, last = tables
    return [*(replace(own, notes=()) if own.notes == last.notes else own for own in first), last]


def _lead(run: StoredRun, data: str) -> str:
    found, request = run.evaluation, run.request
    ways = (
        f"{found.ways}-way tasks" if isinstance(found.ways, int) else f"tasks of {found.ways.replace('-', ' to ')} ways"
    )
    shots = listed([str(k) if isinstance(k, int) else k.replace("-", " to ") for k in found.shots])
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
    for key, value in request["data"].items():
        facts[f"{key}, SHA-256"] = str(value)
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
    figure = histogram(values, edges=edges, x_label="accuracy of a task in %", label="number of tasks", title=title)
    return Drawing(f"{title}: {' beside '.join(values)}", file_content(figure, "svg"))
