"""What the page shows of a reproduction of the paper: a verdict for each table and figure, with its details."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hotshot.errors import InputError
from hotshot.evaluation.tables import PUBLISHED, Number, Table
from hotshot.files.objects import LONGEST_DOCUMENT, read_object, refuse_damage
from hotshot.files.opening import opened
from hotshot.formatting import count, listed
from hotshot.paper import EXPERIMENTS, Claim, load_findings
from hotshot.paper.findings import FAILS, FINDINGS, HOLDS, UNDECIDED
from hotshot.report.explorer import Options, evaluated_together, explorer_or_reason, run_explorer
from hotshot.report.run import Drawing, Part, texts_of

# How a number of claims with one verdict is said, of one and of more.
VERBS = {HOLDS: ("holds", "hold"), FAILS: (FAILS, "do not hold"), UNDECIDED: ("is undecided", "are undecided")}


def is_reproduction(folder: Path) -> bool:
    """Whether a folder holds what at least one experiment found."""
    return any(folder.glob(f"*/{FINDINGS}"))


def reproduction_part(folder: Path, part_id: str, options: Options) -> Part:
    """The part of a reproduction, its experiments in the order of the paper."""
    path = folder / "run.json"
    about = (read_object(path) if path.exists() else None) or {}
    source, order = options.source(about), list(EXPERIMENTS)
    names = sorted(path.parent.name for path in folder.glob(f"*/{FINDINGS}"))
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    experiments = [_experiment(folder / name, f"{part_id}-{i}") for i, name in enumerate(names, 1)]
    verdicts = [claim.verdict for experiment in experiments for claim in experiment["claims"]]
    data, how_many = about.get("data") or source.name, count(len(names), "experiment")
    finding = f"{how_many} of the paper on {data}, without a claim to check."
    if verdicts:
        finding = f"Of {len(verdicts)} claims of the paper, {_counted(verdicts)} on {data}."
    return Part(
        kind="reproduction",
        id=part_id,
        heading=f"The paper on {data}",
        finding=finding,
        lead=f"{how_many} of the paper. Numbers marked “{PUBLISHED}” are the paper's; all "
        "others were measured here. A claim holds if the 95% intervals of all its differences lie above 0, and does "
        "not hold if one lies below.",
        explorer=explorer_or_reason(lambda: run_explorer(evaluated_together(folder, about), options), options.tasks),
        facts={"Folder": folder.name, **texts_of(about, without=("source", "request"))},
        command=source.command,
        details={},
        content={"experiments": experiments},
    )


def _counted(verdicts: Iterable[str]) -> str:
    """`2 hold, 1 does not hold and 3 are undecided`, without the verdicts that no claim has."""
    counts = Counter(verdicts)
    return listed([f"{counts[kind]} {verbs[counts[kind] > 1]}" for kind, verbs in VERBS.items() if counts[kind]])


def _verdict(verdicts: list[str]) -> dict[str, str]:
    """The verdict on a table or figure of the paper in a few words, and its kind, for the style."""
    if len(set(verdicts)) != 1:
        return {"kind": "", "text": _counted(verdicts) or "no claim"}
    return {"kind": verdicts[0], "text": verdicts[0] + f" ({len(verdicts)} claims)" * (len(verdicts) > 1)}


def _experiment(folder: Path, section: str) -> dict[str, Any]:
    """What the template shows of one experiment."""
    document = load_findings(folder)
    with refuse_damage(folder, "experiment"):
        title = str(document.get("title", document["experiment"]))
        claims = [
            Claim(*(str(claim[key]) for key in ("text", "verdict", "measured"))) for claim in document.get("claims", ())
        ]
        stems = [Path(str(stem)).name for stem in document["figures"]]
        return {
            "id": section,
            "title": title,
            "paper": str(document.get("paper", "")),
            "claims": claims,
            "verdict": _verdict([claim.verdict for claim in claims]),
            "sentences": [str(sentence) for sentence in document.get("sentences", ())],
            "tables": [_table(table) for table in document["tables"]],
            "figures": [Drawing(f"{title}: {stem}", _read_svg(folder / f"{stem}.svg")) for stem in stems],
        }


def _read_svg(path: Path) -> bytes:
    with opened(path, LONGEST_DOCUMENT) as file:
        content = file.read()
    if b"<svg" not in content:
        raise InputError(f"{path} is not SVG: make it again.")
    return content


def _table(document: dict[str, Any]) -> Table:
    columns, notes = (tuple(str(text) for text in document.get(key, ())) for key in ("columns", "notes"))
    return Table(str(document["title"]), columns, tuple(tuple(map(_cell, row)) for row in document["rows"]), notes)


def _cell(cell: Any) -> str | Number | None:
    if not isinstance(cell, dict):
        return None if cell is None else str(cell)
    half = None if cell.get("half_width") is None else float(cell["half_width"])
    published, signed = (cell.get(key) is True for key in ("published", "signed"))
    return Number(float(cell["mean"]), half, published, signed, int(cell.get("places", 2)))
