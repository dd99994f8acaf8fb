"""`hotshot report`: one HTML page on runs and reproductions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from hotshot.cli import options
from hotshot.cli.options import argument, option
from hotshot.cli.terminal import Console, print_json, print_notes, waiting


def report(
    runs: Annotated[list[Path], argument("Folders from evaluate or reproduce.", "run...")],
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
