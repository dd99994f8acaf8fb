"""`hotshot reproduce`: tables and figures of the paper, on the user's own features."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from hotshot.base.embedded import load_bank
from hotshot.cli.data import load_data
from hotshot.cli.evaluate import source_of
from hotshot.cli.progress import Watching
from hotshot.cli.report import read_source
from hotshot.cli.tables import scale_notes
from hotshot.errors import InterruptedRunError, ParameterError, ScaleWarning
from hotshot.evaluation import tune
from hotshot.evaluation.runner import versions
from hotshot.files import read_features
from hotshot.files.atomic import write_json
from hotshot.paper.claims import FAILS, HOLDS, UNDECIDED
from hotshot.paper.experiments import (
    EXPERIMENTS,
    Claim,
    Experiment,
    FeatureSet,
    Findings,
    Number,
    Setting,
    save_findings,
)
from hotshot.report import make_report, write_report

# Fewer for an embedded bank, which is there to be looked at, and fewest where it has many ways: the time that a task
# takes grows with their square.
TASKS, TASKS_OF_BANK, LEAST_TASKS_OF_BANK = 2000, 200, 40
TUNING_TASKS = 500
COLOURS = {HOLDS: "green", FAILS: "red", UNDECIDED: "yellow"}


@dataclass(frozen=True)
class Sources:
    """Where the features of a reproduction come from, as the command line names them."""

    base: Path | None
    novel: Path | None
    val: Path | None
    bank: str | None
    name: str | None
    backbone: str
    others: tuple[str, ...]


def run_list() -> None:
    """Print every experiment."""
    table = RichTable(
        "name", "what it shows", "in the paper", "needs", title="Experiments", title_justify="left"
    )
    for experiment in EXPERIMENTS.values():
        table.add_row(experiment.name, experiment.title, experiment.paper, experiment.others)
    Console().print(table)


def run_reproduce(
    names: list[str], sources: Sources, size: dict[str, Any], *, tasks: int | None, out: Path, as_json: bool
) -> None:
    """Run experiments one by one, print their tables, and make a page of all that the folder holds."""
    chosen = _chosen(names)
    console = Console(stderr=as_json)
    setting = _setting(sources, size, tasks, out)
    if tasks is None and sources.bank is not None:
        console.print(f"On an embedded bank: {setting.tasks} tasks where {TASKS} is usual.", markup=False)
    out.mkdir(parents=True, exist_ok=True)
    source = source_of(sources.base, sources.novel, sources.bank, None)
    numbers = {"ways": setting.ways, "queries": setting.queries, "tasks": setting.tasks, "seed": setting.seed}
    about_data = {"data": setting.features.name, "backbone": setting.features.backbone}
    write_json(out / "run.json", {"source": source, **about_data, **numbers, **versions()})
    if sources.val is not None:
        setting = replace(setting, tuned=_tuned(setting, sources.val, console))
    documents: list[dict[str, Any]] = []
    claims: list[Claim] = []
    for experiment in chosen:
        about = {
            "experiment": experiment.name,
            "title": experiment.title,
            "paper": experiment.paper,
            "about": {**about_data, **numbers},
        }
        findings, notes = _run(experiment, setting, console)
        path = save_findings(out / experiment.name, findings, about)
        documents.append(json.loads(path.read_text(encoding="utf-8")))
        claims += findings.claims
        _print(console, experiment, findings, notes)
    _print_claims(console, claims)
    page = out / "report.html"
    with console.status("Fitting the tasks to look into again …"):
        write_report(page, make_report([out], read_source))
    if as_json:
        print(json.dumps(documents, indent=2))
        return
    console.print(f"Tables and figures: {out}. All of it as a page: {page}", markup=False, soft_wrap=True)


def _chosen(names: list[str]) -> list[Experiment]:
    if not names:
        raise ParameterError(f"Name experiments, or pass --all: {', '.join(EXPERIMENTS)}.")
    for name in names:
        if name not in EXPERIMENTS:
            raise ParameterError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {name!r}.")
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]


def _setting(sources: Sources, size: dict[str, Any], tasks: int | None, out: Path) -> Setting:
    base, X, y = load_data(sources.base, sources.novel, sources.bank)
    name = sources.name or sources.bank or Path(str(sources.novel)).stem
    own = FeatureSet(name, base, X, y, sources.backbone)
    others = tuple(_other(text) for text in sources.others)
    named = [", ".join(filter(None, (features.name, features.backbone))) for features in (own, *others)]
    twice = [text for text in named if named.count(text) > 1]
    if twice:
        raise ParameterError(
            f"--other must be another dataset or another backbone, but {twice[0]!r} is there twice: give each its own "
            "NAME or BACKBONE."
        )
    if size["ways"] is None:
        size = {**size, "ways": 5 if sources.bank is None else load_bank(sources.bank).ways}
    if tasks is None:
        few = 25 * TASKS_OF_BANK // max(size["ways"], 5) ** 2
        tasks = TASKS if sources.bank is None else max(LEAST_TASKS_OF_BANK, few)
    return Setting(own, others, tasks=tasks, out=out, **size)


def _other(text: str) -> FeatureSet:
    """`NAME=BASE,NOVEL` or `NAME=BASE,NOVEL,BACKBONE` as a feature set."""
    name, _, files = text.partition("=")
    parts = files.split(",")
    if not name or len(parts) not in (2, 3):
        raise ParameterError(f"--other must be NAME=BASE,NOVEL or NAME=BASE,NOVEL,BACKBONE, got {text!r}.")
    base, X, y = load_data(Path(parts[0]), Path(parts[1]), None)
    return FeatureSet(name, base, X, y, parts[2] if len(parts) == 3 else "")


def _tuned(setting: Setting, val: Path, console: Console) -> dict[str, Any]:
    """Parameters that suit the validation classes."""
    X, y = read_features(val)
    with Watching(console, None) as watching:
        found = tune(
            setting.features.base, X, y, ways=setting.ways, shots=(1, 5), queries=setting.queries,
            tasks=min(setting.tasks, TUNING_TASKS), seed=setting.seed, n_jobs=setting.n_jobs,
            out=None if setting.out is None else setting.out / "tuning", watch=watching,
        )  # fmt: skip
    return found.best.parameters


def _run(experiment: Experiment, setting: Setting, console: Console) -> tuple[Findings, list[str]]:
    with Watching(console, None) as watching, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ScaleWarning)
        try:
            return experiment.run(replace(setting, watch=watching)), scale_notes(caught)
        except KeyboardInterrupt:
            raise InterruptedRunError(
                f"Interrupted in {experiment.name}: what is finished is in {setting.out}; the same command goes on "
                "from there."
            ) from None


def _print(console: Console, experiment: Experiment, findings: Findings, notes: list[str]) -> None:
    console.rule(f"{experiment.name}: {experiment.title}, {experiment.paper}", align="left")
    for found in findings.tables:
        table = RichTable(title=found.title, title_justify="left")
        for i, column in enumerate(found.columns):
            numeric = any(isinstance(row[i], Number) for row in found.rows)
            table.add_column(column, justify="right" if numeric else "left", overflow="fold")
        for row in found.rows:
            cells = ["" if cell is None else str(cell) for cell in row]
            published = any(isinstance(cell, Number) and cell.published for cell in row)
            table.add_row(*cells, style="dim" if published and not _measured(row) else None)
        console.print(table)
        for note in found.notes:
            console.print(note, style="dim", markup=False)
    for sentence in (*findings.sentences, *(f"Note: {note}" for note in notes)):
        console.print(sentence, markup=False)


def _print_claims(console: Console, claims: list[Claim]) -> None:
    if not claims:
        return
    console.rule("What the paper says, on these features", align="left")
    table = RichTable("claim", "verdict", "measured, with 95% intervals")
    for claim in claims:
        table.add_row(
            Text(claim.text), Text(claim.verdict, style=COLOURS[claim.verdict]), Text(claim.measured)
        )
    console.print(table)


def _measured(row: tuple[Any, ...]) -> bool:
    return any(isinstance(cell, Number) and not cell.published for cell in row)
