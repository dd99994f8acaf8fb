"""What the page says of a reproduction of the paper: a section for each of its experiments."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from hotshot.errors import HotshotError, InputError
from hotshot.files.objects import refuse_damage
from hotshot.paper.experiments import EXPERIMENTS, Claim, Number, Table, load_findings
from hotshot.paper.experiments.claims import FAILS, HOLDS, UNDECIDED
from hotshot.paper.experiments.findings import FINDINGS
from hotshot.report.drawing import inline_svg
from hotshot.report.explorers import reproduction_explorer
from hotshot.report.numbers import MINUS
from hotshot.report.run_parts import Facts
from hotshot.report.sources import Reader, Source
from hotshot.report.tables import Cell, Column, PageTable

# What a section shows by itself; all else in its document says what was run.
SHOWN = frozenset(
    ("experiment", "title", "paper", "claims", "sentences", "tables", "figures", "numbers", "source")
)
PUBLISHED = "published"


@dataclass(frozen=True)
class ExperimentPart:
    """One experiment on the page."""

    id: str
    title: str
    paper: str
    claims: list[Claim]
    sentences: list[str]
    tables: list[PageTable]
    figures: list[Markup]
    about: dict[str, str]


@dataclass(frozen=True)
class ReproductionPart:
    """One reproduction on the page."""

    id: str
    heading: str
    lead: str
    verdicts: str
    experiments: list[ExperimentPart]
    explorer: dict[str, Any] | None
    why_not: str
    facts: Facts

    kind = "reproduction"


def is_reproduction(folder: Path) -> bool:
    """Whether a folder holds what at least one experiment found."""
    return any(folder.glob(f"*/{FINDINGS}"))


def about_reproduction(folder: Path) -> dict[str, Any]:
    """What `run.json` of a reproduction says, if there is one."""
    try:
        found = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def reproduction_part(
    folder: Path, part_id: str, source: Source, read: Reader, *, most: int = 24
) -> ReproductionPart:
    """The part of a reproduction, its experiments in the order of the paper."""
    about = about_reproduction(folder)
    names = [path.parent.name for path in folder.glob(f"*/{FINDINGS}")]
    known = list(EXPERIMENTS)
    names.sort(key=lambda name: (known.index(name) if name in known else len(known), name))
    experiments = [_experiment_part(folder / name, f"{part_id}-{i}") for i, name in enumerate(names, 1)]
    explorer, why_not = None, "No tasks were asked for."
    if most:
        try:
            if not {"ways", "queries", "seed"} <= set(about):
                raise InputError("The folder does not say which tasks were drawn.")
            explorer = reproduction_explorer(folder, about, source, read, most)
        except HotshotError as error:
            why_not = str(error)
    shown = {key.capitalize(): _text(about[key]) for key in about if key not in ("source", "request")}
    return ReproductionPart(
        id=part_id,
        heading=f"The paper on {about.get('data') or source.name}",
        lead=f"{len(experiments)} experiments of the paper; numbers marked “{PUBLISHED}” are its own, all others were "
        "measured.",
        verdicts=_verdicts(experiments),
        experiments=experiments,
        explorer=explorer,
        why_not=why_not,
        facts=Facts({"Folder": folder.name, **shown}, source.command, {}),
    )


def _verdicts(experiments: list[ExperimentPart]) -> str:
    """How many of the paper's claims hold."""
    counts = Counter(claim.verdict for part in experiments for claim in part.claims)
    if not counts:
        return ""
    return (
        f"Of {counts.total()} claims of the paper {counts[HOLDS]} hold on these features, {counts[FAILS]} do not, and "
        f"{counts[UNDECIDED]} are undecided: a claim holds where the 95% intervals of all its differences lie above 0, "
        "and does not where one lies below."
    )


def _experiment_part(folder: Path, part_id: str) -> ExperimentPart:
    document = load_findings(folder)
    with refuse_damage(folder, "experiment"):
        return ExperimentPart(
            id=part_id,
            title=str(document.get("title", document["experiment"])),
            paper=str(document.get("paper", "")),
            claims=[
                Claim(str(claim["text"]), str(claim["verdict"]), _set(str(claim["measured"])))
                for claim in document.get("claims", ())
            ],
            sentences=[_set(str(sentence)) for sentence in document.get("sentences", ())],
            tables=[_table(table) for table in document["tables"]],
            figures=[
                inline_svg(
                    (folder / f"{Path(str(stem)).name}.svg").read_text(encoding="utf-8"),
                    f"{part_id}-{i}-",
                    f"{document.get('title', document['experiment'])}: {stem}",
                )
                for i, stem in enumerate(document["figures"])
            ],
            about={key.capitalize(): _text(value) for key, value in document.items() if key not in SHOWN},
        )


def _table(found: dict[str, Any]) -> PageTable:
    table = Table(
        str(found["title"]),
        tuple(str(column) for column in found["columns"]),
        tuple(tuple(_number(cell) for cell in row) for row in found["rows"]),
        tuple(str(note) for note in found.get("notes", ())),
    )
    rows = tuple(tuple(_cell(cell) for cell in row) for row in table.rows)
    columns = tuple(
        Column(title, numeric=any(isinstance(row[i], Number) for row in table.rows))
        for i, title in enumerate(table.columns)
    )
    return PageTable(table.title, columns, rows, table.notes)


def _number(cell: Any) -> str | Number | None:
    if isinstance(cell, dict):
        half = cell.get("half_width")
        return Number(
            float(cell["mean"]),
            None if half is None else float(half),
            cell.get("published") is True,
            cell.get("signed") is True,
            int(cell.get("places", 2)),
        )
    return None if cell is None else str(cell)


def _cell(cell: str | Number | None) -> Cell:
    if cell is None:
        return Cell()
    if isinstance(cell, str):
        return Cell(cell, cell)
    note = PUBLISHED if cell.published else ""
    return Cell(_set(str(cell)), cell.mean, note=note, kind=note)


def _set(text: str) -> str:
    """Numbers as a printer sets them: a true minus before digits, and no line broken at ±."""
    return re.sub(r"(?<![^\s(])-(?=\d)", MINUS, text).replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(own)}" for key, own in value.items() if own != "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
