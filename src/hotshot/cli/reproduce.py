"""`hotshot reproduce`: tables and figures of the paper on the user's own features."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotshot.cli import options
from hotshot.cli.evaluate import source_of
from hotshot.cli.terminal import Console, Watching, to_rich, waiting
from hotshot.errors import ParameterError
from hotshot.formatting import did_you_mean
from hotshot.version import __version__

if TYPE_CHECKING:
    from hotshot.paper import Claim, Experiment, FeatureSet, Findings, Setting

# Fewer for the small embedded banks, and fewest with many ways: the time of a task grows with their square.
TASKS, TASKS_OF_BANK, LEAST_TASKS_OF_BANK = 2000, 200, 40
TUNING_TASKS = 500
PAGE = "report.html"
# Colours of the verdicts on claims.
STYLES = {"holds": "green", "does not hold": "red", "undecided": "yellow"}


def _experiments() -> Iterable[str]:
    from hotshot.paper import EXPERIMENTS

    return EXPERIMENTS


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of experiments, see --list.",
            metavar="[experiment]...",
            autocompletion=options.one_of(_experiments),
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Run all experiments.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
    base: options.Base = None,
    novel: options.Novel = None,
    val: Annotated[
        Path | None, typer.Option(help="Features of the validation classes: adds a row for H-OT tuned on them.")
    ] = None,
    bank: options.Bank = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the dataset in the paper, such as miniImageNet, to show its numbers.")
    ] = None,
    backbone: Annotated[str, typer.Option(help="Name of the backbone in the paper, such as WRN28+RTloss.")] = "",
    other: Annotated[
        list[str] | None,
        typer.Option(help="Another dataset or backbone: NAME=BASE,NOVEL or NAME=BASE,NOVEL,BACKBONE. Repeatable."),
    ] = None,
    ways: Annotated[int | None, options.number("Classes per task. Default: 5, or 20 for omniglot.")] = None,
    queries: options.Queries = 15,
    tasks: Annotated[
        int | None, options.number("Tasks per evaluation. Default: 2000, 200 for banking77, or 40 for omniglot.")
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    out: Annotated[Path, typer.Option(help=f"Folder for tables, figures and report. {options.RESUME}")] = Path(
        "reproduction"
    ),
    as_json: options.Json = False,
) -> None:
    """Reproduce the paper's tables and figures with your own features."""
    with waiting("starting"):
        from hotshot.evaluation.data import load_data
    from hotshot.arrays import array_hash
    from hotshot.bank.embedded import load_bank
    from hotshot.evaluation.journal import REQUEST, check_request
    from hotshot.evaluation.runner import versions
    from hotshot.evaluation.tables import Table
    from hotshot.evaluation.tasks import labels_hash
    from hotshot.files.atomic import locked, write_json
    from hotshot.paper import EXPERIMENTS, FeatureSet, Setting, save_findings
    from hotshot.report import make_report, write_report
    from hotshot.report.page import check_report

    if list_all:
        rows = tuple((e.name, e.title, e.paper, e.others) for e in EXPERIMENTS.values())
        Console().print(to_rich(Table("Experiments", ("name", "what it shows", "in the paper", "needs"), rows)))
        return
    chosen = _chosen(list(EXPERIMENTS) if every else experiments or [])
    console = Console(stderr=as_json)
    with waiting("reading the features"):
        classes, samples = load_data(base, novel, bank)
        own = FeatureSet(name or bank or Path(str(novel)).stem, classes, samples.X, samples.y, backbone)
        others = tuple(map(_other, other or ()))
    _check_titles([own, *others])
    if ways is None:
        ways = 5 if bank is None else load_bank(bank).ways
    usual = TASKS if bank is None else max(LEAST_TASKS_OF_BANK, 25 * TASKS_OF_BANK // max(ways, 5) ** 2)
    n_tasks = usual if tasks is None else tasks
    size: dict[str, Any] = {"ways": ways, "queries": queries, "tasks": n_tasks, "seed": seed}
    setting = Setting(own, others, **size, n_jobs=jobs, out=out)
    if tasks is None and bank is not None:
        console.print(f"Embedded bank: {setting.tasks} tasks per evaluation instead of {TASKS}.", markup=False)
    about = {"data": own.name, "backbone": backbone, **size}
    features = [own.base.fingerprint, array_hash(own.X), labels_hash(own.y)]
    request = {**about, "features": features, "hotshot": __version__}
    with locked(out):
        check_request(out, request)
        source = source_of(base, novel, bank)
        write_json(out / REQUEST, {"source": source, **about, "request": request, **versions()})
        check_report(out / PAGE)
        if val is not None:
            setting = replace(setting, tuned=_tuned(setting, val, console))
        documents: list[dict[str, Any]] = []
        claims: list[Claim] = []
        for experiment in chosen:
            with Watching(console, out, f" in {experiment.name}", several=True) as watching:
                findings = experiment.run(replace(setting, watch=watching))
            which = {"experiment": experiment.name, "title": experiment.title, "paper": experiment.paper}
            documents.append(save_findings(out / experiment.name, findings, {**which, "about": about}))
            claims += findings.claims
            _print(console, experiment, findings, watching.notes)
        _print_claims(console, claims)
        with waiting("fitting tasks for the task explorer"):
            write_report(out / PAGE, make_report([out], lambda _: (classes, samples)))
    if as_json:
        print(json.dumps(documents, indent=2))
        return
    console.print(f"Tables and figures: {out}. Report: {out / PAGE}", markup=False, soft_wrap=True)


def _chosen(names: list[str]) -> list[Experiment]:
    from hotshot.paper import EXPERIMENTS

    if not names:
        raise ParameterError(f"Pass names of experiments, or --all: {', '.join(EXPERIMENTS)}.")
    for name in names:
        if name not in EXPERIMENTS:
            raise ParameterError(
                f"experiment must be one of {', '.join(EXPERIMENTS)}, got {name!r}.{did_you_mean(name, EXPERIMENTS)}"
            )
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]


def _check_titles(sets: list[FeatureSet]) -> None:
    titles = [features.title for features in sets]
    twice = [title for title in titles if titles.count(title) > 1]
    if twice:
        raise ParameterError(f"Each --other needs its own NAME or BACKBONE, got {twice[0]!r} twice: rename one.")


def _other(text: str) -> FeatureSet:
    """`NAME=BASE,NOVEL` or `NAME=BASE,NOVEL,BACKBONE` as a feature set."""
    from hotshot.evaluation.data import load_data
    from hotshot.paper import FeatureSet

    name, _, files = text.partition("=")
    parts = files.split(",")
    if not name or len(parts) not in (2, 3):
        raise ParameterError(f"--other must be NAME=BASE,NOVEL or NAME=BASE,NOVEL,BACKBONE, got {text!r}.")
    base, (X, y) = load_data(Path(parts[0]), Path(parts[1]))
    return FeatureSet(name, base, X, y, *parts[2:])


def _tuned(setting: Setting, val: Path, console: Console) -> dict[str, Any]:
    """The best parameters on the validation classes."""
    from hotshot import evaluation
    from hotshot.files import read_features

    X, y = read_features(val)
    out = None if setting.out is None else setting.out / "tuning"
    with Watching(console, out, " in tuning", several=True) as watching:
        tasks = min(setting.tasks, TUNING_TASKS)
        same: dict[str, Any] = {name: getattr(setting, name) for name in ("ways", "queries", "seed", "n_jobs")}
        found = evaluation.tune(setting.features.base, X, y, **same, shots=(1, 5), tasks=tasks, out=out, watch=watching)
    return found.best.parameters


def _print(console: Console, experiment: Experiment, findings: Findings, notes: list[str]) -> None:
    console.rule(f"{experiment.name}: {experiment.title}, {experiment.paper}", align="left")
    for table in findings.tables:
        console.print(to_rich(table))
        for note in table.notes:
            console.print(note, style="dim", markup=False)
    for sentence in (*findings.sentences, *(f"Note: {note}" for note in notes)):
        console.print(sentence, markup=False)


def _print_claims(console: Console, claims: list[Claim]) -> None:
    if not claims:
        return
    from hotshot.evaluation.tables import Entry, Table

    console.rule("Claims of the paper, on these features", align="left")
    rows = tuple((c.text, Entry(c.verdict, c.verdict, kind=c.verdict), c.measured) for c in claims)
    console.print(to_rich(Table("", ("claim", "verdict", "measured, with 95% intervals"), rows), STYLES))
