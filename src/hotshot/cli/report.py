"""`hotshot report`: one HTML page on runs and reproductions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from hotshot.cli import options
from hotshot.cli.terminal import Console, print_notes, waiting


def report(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders from evaluate or reproduce.", metavar="run...", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the page.")] = Path("report.html"),
    base: options.Base = None,
    novel: options.Novel = None,
    bank: options.Bank = None,
    reference: options.Reference = None,
    threshold: options.Threshold = 0.5,
    tasks: Annotated[int, typer.Option(help="Tasks per number of shots to explain in the report; 0 for none.")] = 24,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    as_json: options.Json = False,
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
        text = make_report(
            runs,
            data=Source(base=base, novel=novel, bank=bank),
            reference=reference,
            threshold=threshold,
            tasks=tasks,
            title=title,
            tell=notes.append,
        )
        write_report(out, text)
    if as_json:
        print(json.dumps({"report": str(out), "bytes": len(text.encode()), "notes": notes}))
        return
    print_notes(Console(stderr=True), notes)
    Console().print(f"Report: {out}", markup=False, soft_wrap=True)
