"""How to ask the paper's tables, transcribed in `tables.md` beside this file, for a number."""

import re
from pathlib import Path

from hotshot.evaluation.tables import Number

SHOTS = (1, 5)
# Rows of Tables 3 and 6, by the names of methods on the command line.
ROW_NAMES = {
    "free-lunch": "Free-Lunch",
    "ot-euclidean": "High-level OT, Euclidean",
    "ot-euclidean-weighted": "High-level OT, Euclidean, weighted means",
    "ot-cosine": "High-level OT, cosine",
    "ot-cosine-weighted": "High-level OT, cosine, weighted means",
    "hot": "H-OT",
}
# Of the power transform, by dataset (experimental setup).
POWERS = {"miniImageNet": 0.5, "tieredImageNet": 1.0, "CUB": 1.0, "CIFAR-FS": 0.8}


def published_dataset(name: str) -> str | None:
    """The paper's name of a dataset, however it is spelt; None for those not in the paper."""
    return {_plain(dataset): dataset for dataset in POWERS}.get(_plain(name))


def published_systems(dataset: str) -> list[tuple[str, str, str, list[Number | None]]]:
    """The systems that Table 1 or 2 has for a dataset: name, backbone, whose authors ran it, accuracies by shots."""
    columns = [f"{published_dataset(dataset)}, {k}" for k in SHOTS]
    systems = [
        (row["Method"], row["Backbone"], row["Run by"], [_number(row[column]) for column in columns])
        for row in (*table(1), *table(2))
        if columns[0] in row
    ]
    return [system for system in systems if any(system[-1])]


def published(number: int, row: str, column: str) -> Number | None:
    """A number of Tables 3 to 6, by names of its row and column in any spelling; None where the paper has none."""
    for name, *cells in map(dict.items, table(number)):
        if _plain(name[1]) == _plain(row):
            return next((_number(cell) for head, cell in cells if _plain(head) == _plain(column)), None)
    return None


def table(number: int) -> list[dict[str, str]]:
    """Rows of a transcribed table as printed, by the names of its columns."""
    text = Path(__file__).with_name("tables.md").read_text(encoding="utf-8")
    lines = text.split(f"## Table {number}\n")[1].split("\n## ")[0].splitlines()
    heading, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
    return [dict(zip(heading, row, strict=True)) for row in rows]


def _plain(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]", "", name.lower())
    return "cub" if plain in ("cub200", "cub2002011") else plain


def _number(printed: str) -> Number | None:
    if printed == "-":
        return None
    mean, _, half_width = printed.partition(" ± ")
    return Number(float(mean), None if half_width in ("", "n/a") else float(half_width), published=True)
