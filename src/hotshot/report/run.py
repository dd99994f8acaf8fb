"""What the page shows of one run: its finding, tables, figures, and how to run it again."""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hotshot.evaluation import Evaluation
from hotshot.evaluation.finding import finding
from hotshot.evaluation.results import check_reference
from hotshot.evaluation.stored import StoredRun
from hotshot.evaluation.tables import batch_note, percent, recall_table, result_table, transport_table, unsolved
from hotshot.evaluation.tasks import GENERALISED, check_queries
from hotshot.formatting import count, listed, queries_in_words, shots_in_words
from hotshot.paper.figures import file_content, grouped_bars, histogram
from hotshot.report.explorer import Options, explorer_or_reason, run_explorer

# Width of a bin of the histogram, in percent.
STEP = 5
SORT_NOTE = "Click a heading to sort."
HOLM_NOTE = (
    "“Ahead” and “behind” are corrected for the number of methods (Holm), and “level” means no significant difference: "
    f"a difference may be undecided although its interval excludes 0. {SORT_NOTE}"
)


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
        "results": [*results, last],
        "note": HOLM_NOTE if has_rivals else SORT_NOTE,
        "sorted_by": 1 if is_closed else None,
        "differences": _differences(evaluation) if has_rivals and evaluation.tasks > 1 else None,
        "histograms": [_histogram(evaluation, k) for k in evaluation.shots] if is_closed else [],
        "recall": [recall_table(evaluation, k) for k in evaluation.shots],
        "transport": transport_table(evaluation),
        "unsolved": unsolved(evaluation),
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
    return f"{text} {batch_note(evaluation.jointly, evaluation.methods)}" if evaluation.jointly else text


def _facts(run: StoredRun) -> dict[str, str]:
    request = run.request
    facts = {"Folder": run.folder.name, **texts_of(request, without=("methods", "data"))}
    bases = (method["parameters"].get("base") for method in request["methods"].values())
    if named := [str(base) for base in dict.fromkeys(bases) if base is not None]:
        facts["Base classes"] = ", ".join(named)
    facts |= {f"{key}, SHA-256": str(value) for key, value in request["data"].items()}
    return facts | texts_of({"versions": run.about.get("versions", "")})


def texts_of(entries: dict[str, Any], without: Sequence[str] = ()) -> dict[str, str]:
    """What was run, as terms with their texts; entries without a text are left out."""
    texts = {key.capitalize(): _text(value) for key, value in entries.items() if key not in without}
    return {term: text for term, text in texts.items() if text}


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(part)}" for key, part in value.items() if part != "")
    if isinstance(value, list):
        return listed(list(map(_text, value)))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
