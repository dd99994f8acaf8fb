"""What an experiment is, what it finds (claims, tables and figures), and how several are run in one folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hotshot.arrays import array_hash
from hotshot.errors import InputError
from hotshot.evaluation import MethodResult, paired_difference, tune
from hotshot.evaluation.journal import REQUEST, check_request
from hotshot.evaluation.runner import Watcher, versions
from hotshot.evaluation.tables import Number, Table, percent
from hotshot.evaluation.tasks import labels_hash
from hotshot.files.atomic import locked, write_json
from hotshot.files.objects import read_object
from hotshot.paper import figures
from hotshot.paper.setting import Setting
from hotshot.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FINDINGS = "findings.json"
TUNING_TASKS = 500
# Differences that a claim lists; where there are more, only so many of the lowest.
MOST_LISTED, LOWEST = 5, 3
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, whether it holds on the data, and the differences behind that verdict."""

    text: str
    verdict: str
    measured: str


@dataclass(frozen=True)
class Findings:
    """Results of one experiment: remarks in words, tables, figures by file name, and claims."""

    sentences: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)
    claims: Sequence[Claim] = ()


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the `paper`: its name on the command line, its title in the report, and how it is made.

    `others` says which further feature sets it needs.
    """

    name: str
    title: str
    paper: str
    run: Callable[[Setting], Findings]
    others: str = ""


def save_findings(folder: Path, findings: Findings, about: dict[str, Any]) -> dict[str, Any]:
    """Write the figures and `findings.json`, which begins with the entries of `about`; return what that holds."""
    with suppress(OSError):
        # Where this fails, writing does too, and says so of the file.
        folder.mkdir(parents=True, exist_ok=True)
    for name, figure in findings.figures.items():
        figures.save(figure, folder / name)
    document = {
        **about,
        "claims": [asdict(claim) for claim in findings.claims],
        "sentences": findings.sentences,
        "tables": [asdict(table) for table in findings.tables],
        "figures": list(findings.figures),
    }
    write_json(folder / FINDINGS, document)
    return document


def load_findings(folder: Path) -> dict[str, Any]:
    """The content of the `findings.json` that `save_findings` wrote to a folder."""
    document = read_object(folder / FINDINGS)
    if document is None or not {"experiment", "tables", "figures"} <= set(document):
        raise InputError(f"{folder} holds no findings: make them with hotshot reproduce.")
    return document


def claim(text: str, differences: Mapping[str, Number] | Number) -> Claim:
    """Decide a claim that a difference with its interval, or each of several by name, is above 0.

    It holds if all intervals are above 0, does not hold if one is below 0, and is undecided otherwise. A difference
    without an interval, or with one of 0, decides nothing.
    """
    by_name = {"": differences} if isinstance(differences, Number) else differences
    ends = [(d.mean, d.half_width or math.inf) for d in by_name.values()]
    verdict = HOLDS if all(mean - half_width > 0 for mean, half_width in ends) else UNDECIDED
    if any(mean + half_width < 0 for mean, half_width in ends):
        verdict = FAILS
    return Claim(text, verdict, listed(by_name))


def listed(differences: Mapping[str, Number]) -> str:
    """Differences as a claim shows them."""
    shown, lead = list(differences.items()), ""
    if len(shown) > MOST_LISTED:
        shown = sorted(shown, key=lambda item: item[1].mean)[:LOWEST]
        lead = f"lowest of {len(differences)}: "
    return lead + "; ".join(f"{name} {number}".strip() for name, number in shown)


def gap(result: MethodResult, other: MethodResult) -> Number:
    """Accuracy of `result` minus that of `other` in points, over the tasks that both were evaluated on."""
    return percent(paired_difference(*shared_accuracies(result, other)), signed=True)


def shared_accuracies(*results: MethodResult) -> list[np.ndarray]:
    """Accuracies of each over the tasks that all were evaluated on."""
    # Task i depends on the seed and on i alone, so the first ones are the same for all.
    shared = min(len(result.accuracies) for result in results)
    return [result.accuracies[:shared] for result in results]


def dots(table: Table, *columns: str) -> Figure:
    """A figure of some columns of a table: the numbers measured in its rows, the largest of the first on top."""
    places = [table.columns.index(column) for column in columns]
    groups = {}
    for row in table.rows:
        numbers = [cell for i in places if isinstance(cell := row[i], Number) and not cell.published]
        if len(numbers) == len(columns):
            groups[str(row[0])] = numbers
    order = sorted(groups, key=lambda name: -groups[name][0].mean)
    signed = groups[order[0]][0].signed
    # A single series has no legend to name it.
    what = f"{columns[0][:1].upper()}{columns[0][1:]}: " if len(columns) == 1 else ""
    return figures.grouped_bars(
        order,
        {column: [groups[name][i] for name in order] for i, column in enumerate(columns)},
        label="paired difference in points, 95%" if signed else "accuracy in %",
        zero=signed,
        title=f"{what}{table.title}",
    )


def reproduce(
    experiments: Sequence[Experiment],
    setting: Setting,
    out: str | Path,
    *,
    during: Callable[[str], AbstractContextManager[Watcher | None]] = lambda _: nullcontext(),
    validation: tuple[Any, Any] | None = None,
    source: dict[str, Any] | None = None,
) -> Iterator[tuple[Experiment, Findings, dict[str, Any]]]:
    """Run experiments and write their findings to a folder; yields each with its findings, and these as JSON.

    `during(name)` is the context of an experiment, such as a progress bar that watches it, and of "tuning" on the
    features and labels `validation`. `source` is where the data are, which the folder records. A folder of another
    request is refused; the same one resumes, and further experiments join those that are there.
    """
    features = setting.features
    size = {name: getattr(setting, name) for name in ("ways", "queries", "tasks", "seed")}
    about = {"data": features.name, "backbone": features.backbone, **size}
    hashes = [features.base.fingerprint, array_hash(features.X), labels_hash(features.y)]
    request = {**about, "features": hashes, "hotshot": __version__}
    out = Path(out)
    setting = replace(setting, out=out)
    with locked(out):
        check_request(out, request)
        write_json(out / REQUEST, {"source": source, **about, "request": request, **versions()})
        if validation is not None:
            with during("tuning") as watch:
                tuning = tune(
                    features.base, *validation, **{**size, "tasks": min(setting.tasks, TUNING_TASKS)}, shots=(1, 5),
                    n_jobs=setting.n_jobs, out=out / "tuning", watch=watch,
                )  # fmt: skip
            setting = replace(setting, tuned=tuning.best.parameters)
        for experiment in experiments:
            with during(experiment.name) as watch:
                findings = experiment.run(replace(setting, watch=watch))
            which = {"experiment": experiment.name, "title": experiment.title, "paper": experiment.paper}
            yield experiment, findings, save_findings(out / experiment.name, findings, {**which, "about": about})
