"""`hotshot report` and `hotshot reproduce`: a page on runs, and the paper's tables and figures on your features."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from hotshot.cli import options
from hotshot.cli.evaluate import source_of
from hotshot.cli.options import argument, number, option
from hotshot.cli.terminal import Console, Watching, print_json, print_notes, to_rich, waiting
from hotshot.errors import ParameterError
from hotshot.formatting import did_you_mean

if TYPE_CHECKING:
    from hotshot.paper import Claim, Experiment, FeatureSet, Findings

# Fewer for the small embedded banks, and fewest with many ways: the time of a task grows with their square.
TASKS, TASKS_OF_BANK, LEAST_TASKS_OF_BANK = 2000, 200, 40
PAGE = "report.html"


def report(
    runs: Annotated[list[Path], argument("Folders from evaluate or reproduce.", "run")],
    out: Annotated[Path, option("File for the page.", "--out", "-o")] = Path("report.html"),
    base: options.Base = None,
    novel: options.Novel = None,
    bank: options.Bank = None,
    reference: options.Reference = None,
    threshold: options.Threshold = 0.5,
    tasks: Annotated[int, option("Tasks per number of shots to explain in the report; 0 for none.")] = 24,
    title: Annotated[str | None, option("Title of the page.")] = None,
    json: options.Json = False,
) -> None:
    """Write an HTML report on one or more runs.

    Pass --base and --novel, or --bank, if the features have moved since the runs.
    """
    with waiting("starting"):
        from hotshot.report import Source, make_report, write_report
        from hotshot.report.page import check_report
    notes: list[str] = []
    check_report(out)
    with waiting("fitting tasks for the task explorer"):
        page = make_report(
            runs, data=Source(base=base, novel=novel, bank=bank), reference=reference, threshold=threshold, tasks=tasks,
            title=title, tell=notes.append,
        )  # fmt: skip
        write_report(out, page)
    if json:
        print_json({"report": str(out), "bytes": len(page.encode()), "notes": notes})
        return
    print_notes(Console(stderr=True), notes)
    Console().say(f"Report: {out}")


def reproduce(
    experiments: Annotated[
        list[str] | None, argument("Names of experiments, see --list.", "experiment", names=("paper", "EXPERIMENTS"))
    ] = None,
    every: Annotated[bool, option("Run all experiments.", "--all")] = False,
    list_all: Annotated[bool, option("List the experiments and exit.", "--list")] = False,
    base: options.Base = None,
    novel: options.Novel = None,
    val: Annotated[
        Path | None, option("Features of the validation classes: adds a row for H-OT tuned on them.")
    ] = None,
    bank: options.Bank = None,
    name: Annotated[
        str | None, option("Name of the dataset in the paper, such as miniImageNet, to show its numbers.")
    ] = None,
    backbone: Annotated[str, option("Name of the backbone in the paper, such as WRN28+RTloss.")] = "",
    other: Annotated[
        list[str] | None,
        option("Another dataset or backbone: NAME=BASE,NOVEL or NAME=BASE,NOVEL,BACKBONE. Repeatable."),
    ] = None,
    ways: Annotated[int | None, number("Classes per task. Default: 5, or 20 for omniglot.")] = None,
    queries: options.Queries = 15,
    tasks: Annotated[
        int | None, number("Tasks per evaluation. Default: 2000, 200 for banking77, or 40 for omniglot.")
    ] = None,
    seed: options.Seed = 0,
    jobs: options.Jobs = -1,
    out: Annotated[Path, option(f"Folder for tables, figures and report. {options.RESUME}")] = Path("reproduction"),
    json: options.Json = False,
) -> None:
    """Reproduce the paper's tables and figures with your own features."""
    with waiting("starting"):
        from hotshot.bank.embedded import load_bank
        from hotshot.evaluation.data import load_data
        from hotshot.evaluation.tables import Table
        from hotshot.files import read_features
        from hotshot.files.atomic import locked
        from hotshot.paper import EXPERIMENTS, FeatureSet, Setting
        from hotshot.paper.findings import reproduce
        from hotshot.report import make_report, write_report
        from hotshot.report.page import check_report
    if list_all:
        rows = tuple((e.name, e.title, e.paper, e.others) for e in EXPERIMENTS.values())
        Console().print(to_rich(Table("Experiments", ("name", "what it shows", "in the paper", "needs"), rows)))
        return
    if not (every or experiments):
        raise ParameterError(f"Pass names of experiments, or --all: {', '.join(EXPERIMENTS)}.")
    chosen = list(EXPERIMENTS if every else dict.fromkeys(experiments or ()))
    for unknown in (name for name in chosen if name not in EXPERIMENTS):
        close = did_you_mean(unknown, EXPERIMENTS)
        raise ParameterError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {unknown!r}.{close}")
    console = Console(stderr=json)
    with waiting("reading the features"):
        classes, samples = load_data(base, novel, bank)
        given = FeatureSet(name or bank or Path(str(novel)).stem, classes, samples.X, samples.y, backbone)
        others = tuple(map(_other, other or ()))
        validation = None if val is None else tuple(read_features(val))
    titles = [features.title for features in (given, *others)]
    twice = next((title for title in titles if titles.count(title) > 1), None)
    if twice is not None:
        raise ParameterError(f"Each --other needs its own NAME or BACKBONE, got {twice!r} twice: rename one.")
    if ways is None:
        ways = 5 if bank is None else load_bank(bank).ways
    usual = TASKS if bank is None else max(LEAST_TASKS_OF_BANK, 25 * TASKS_OF_BANK // max(ways, 5) ** 2)
    if tasks is None and bank is not None:
        console.print(f"Embedded bank: {usual} tasks per evaluation instead of {TASKS}.", markup=False)
    setting = Setting(given, others, ways, queries, usual if tasks is None else tasks, seed, jobs)
    watching: Watching

    def during(doing: str) -> Watching:
        nonlocal watching
        watching = Watching(console, out, f" in {doing}", several=True)
        return watching

    with locked(out):
        check_report(out / PAGE)
    found = []
    runs = reproduce(
        [EXPERIMENTS[name] for name in chosen], setting, out, during=during, validation=validation,
        source=source_of(base, novel, bank),
    )  # fmt: skip
    for experiment, findings, document in runs:
        found.append((findings, document))
        _print(console, experiment, findings, watching.notes)
    _print_claims(console, [claim for findings, _ in found for claim in findings.claims])
    with waiting("fitting tasks for the task explorer"):
        write_report(out / PAGE, make_report([out], lambda _: (classes, samples)))
    if json:
        print_json([document for _, document in found])
    else:
        console.say(f"Tables and figures: {out}. Report: {out / PAGE}")


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


def _print(console: Console, experiment: Experiment, findings: Findings, notes: Iterable[str]) -> None:
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
    console.print(to_rich(Table("", ("claim", "verdict", "measured, with 95% intervals"), rows)))
