"""`hotshot report`: runs and reproductions as one page."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from hotshot.cli.data import load_data
from hotshot.report import Source, make_report, write_report
from hotshot.report.sources import Data


def run_report(
    *,
    runs: list[Path],
    out: Path,
    base: Path | None,
    novel: Path | None,
    bank: str | None,
    reference: str | None,
    threshold: float,
    tasks: int,
    title: str | None,
    as_json: bool,
) -> None:
    """Make the page, write it, say where it is."""
    console = Console(stderr=True)
    notes: list[str] = []
    with console.status("Fitting the tasks to look into again …"):
        text = make_report(
            runs,
            read_source,
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
    else:
        for note in notes:
            console.print(f"Note: {note}", markup=False, style="yellow")
        Console().print(f"Report: {out}", markup=False, soft_wrap=True)


def read_source(source: Source) -> Data:
    """Base classes and novel samples, from where a run says that they are."""
    return load_data(source.base, source.novel, source.bank)
