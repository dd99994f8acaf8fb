"""What an experiment found: claims, sentences, tables and figures, kept as files that the report reads."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotshot.errors import InputError
from hotshot.evaluation.tables import Table
from hotshot.paper.experiments.claims import Claim
from hotshot.paper.figures import save

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


def save_findings(folder: Path, findings: Findings, about: dict[str, Any]) -> Path:
    """Write `findings.json` and the figures; `about` says which experiment it was and what it was run on."""
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
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
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
