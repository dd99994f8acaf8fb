"""What an experiment is, and what it finds: claims, sentences, tables and figures, kept as files for the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotshot.errors import InputError
from hotshot.evaluation.tables import Table
from hotshot.files.atomic import write_json
from hotshot.paper.claims import Claim
from hotshot.paper.figures import save
from hotshot.paper.setting import Setting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FINDINGS = "findings.json"


@dataclass(frozen=True)
class Findings:
    """Of one experiment.

    Attributes
    ----------
    sentences : tuple of str
        What was found, in words.
    tables : tuple of Table
    figures : dict of str to Figure
        By the name of their files.
    numbers : dict
        What was measured beyond the tables, for programs.
    claims : tuple of Claim
        What the paper says of it, and whether that holds here.
    """

    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: dict[str, Figure] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper.

    Attributes
    ----------
    name : str
        On the command line.
    title : str
    paper : str
        Where it is in the paper, such as "Table 3".
    run : function of a Setting
        Gives Findings.
    others : str
        What further feature sets it needs, in words; empty where one will do.
    """

    name: str
    title: str
    paper: str
    run: Callable[[Setting], Findings]
    others: str = ""


def save_findings(folder: Path, findings: Findings, about: dict[str, Any]) -> Path:
    """Write the figures and `findings.json`; `about` says which experiment it was and what it was run on."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in findings.figures.items():
        save(figure, folder / name)
    document = {
        **about,
        "claims": [asdict(claim) for claim in findings.claims],
        "sentences": findings.sentences,
        "tables": [asdict(table) for table in findings.tables],
        "figures": list(findings.figures),
        "numbers": findings.numbers,
    }
    path = folder / FINDINGS
    write_json(path, document)
    return path


def load_findings(folder: Path) -> dict[str, Any]:
    """The document that `save_findings` wrote."""
    try:
        found = json.loads((folder / FINDINGS).read_text(encoding="utf-8"))
        if isinstance(found, dict) and {"experiment", "tables", "figures"} <= set(found):
            return found
    except (OSError, ValueError):
        pass
    raise InputError(f"{folder} holds no findings: make them with hotshot reproduce.")
