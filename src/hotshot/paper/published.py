"""How to ask the paper's tables, transcribed in `tables.md` beside this file, for a number."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

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

# Columns of Table 6: so many of the nearest base classes lend, None being all of them.
TABLE_6_COLUMNS = (1, 2, 5, 10, None)

# Of the power transform, by dataset (experimental setup).
POWERS = {"miniImageNet": 0.5, "tieredImageNet": 1.0, "CUB": 1.0, "CIFAR-FS": 0.8}


@dataclass(frozen=True)
class System:
    """A row of Table 1 or 2 for one dataset: `source` is the system whose authors ran it, `accuracies` are by shots."""

    name: str
    backbone: str
    source: str
    accuracies: dict[int, Number | None]


def published_dataset(name: str) -> str | None:
    """The paper's name of a dataset, however it is spelt; None for those not in the paper.

    Examples
    --------
    >>> published_dataset("mini-imagenet"), published_dataset("cifar_fs"), published_dataset("banking77")
    ('miniImageNet', 'CIFAR-FS', None)
    """
    return _DATASETS.get(_plain(name))


def published_systems(dataset: str) -> tuple[System, ...]:
    """The systems that Table 1 or 2 has for a dataset, in the paper's order."""
    return _SYSTEMS.get(published_dataset(dataset) or "", ())


def published_cost(dataset: str, method: str) -> Number | None:
    """Accuracy at 1 shot in Table 3, by the method's name on the command line."""
    return _COSTS.get((method, published_dataset(dataset)))


def published_backbone(backbone: str, method: str) -> Number | None:
    """Accuracy on miniImageNet at 1 shot in Table 4, of "free-lunch" or "hot"."""
    return _BACKBONES.get((_plain(backbone), method))


def published_speed(dataset: str, method: str, shots: int) -> Number | None:
    """Seconds per task in Table 5, of "free-lunch" or "hot"."""
    return _SPEEDS.get((published_dataset(dataset), (method, shots)))


def published_retrieved(method: str, k: int | None) -> Number | None:
    """Accuracy on CUB at 1 shot in Table 6 where the nearest k base classes lend, or all of them."""
    return _RETRIEVED.get((method, k))


def published_power(dataset: str) -> float | None:
    """Power of the transform that the paper took for a dataset."""
    return POWERS.get(published_dataset(dataset) or "")


def table(number: int) -> list[list[str]]:
    """Rows of a transcribed table, without its heading, as printed."""
    lines = _TABLES.split(f"## Table {number}\n")[1].split("\n## ")[0].splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _number(printed: str) -> Number | None:
    if printed == "-":
        return None
    mean, _, half_width = printed.partition(" ± ")
    return Number(float(mean), None if half_width in ("", "n/a") else float(half_width), published=True)


def _by_cell(number: int, columns: Sequence[Any]) -> dict[tuple[Any, Any], Number | None]:
    """Numbers by the name of their row, and by their column."""
    return {
        (row, column): _number(printed)
        for row, *found in table(number)
        for column, printed in zip(columns, found, strict=True)
    }


def _systems(number: int, column: int) -> tuple[System, ...]:
    """Rows with a number at either shots, which stand in `column` and the next."""
    rows = [
        System(name, backbone, source, {k: _number(found[column + i]) for i, k in enumerate(SHOTS)})
        for name, backbone, source, *found in table(number)
    ]
    return tuple(row for row in rows if any(row.accuracies.values()))


_TABLES = (Path(__file__).parent / "tables.md").read_text(encoding="utf-8")
_DATASETS = {_plain(name): name for name in POWERS} | {"cub200": "CUB", "cub2002011": "CUB"}
_SYSTEMS = {
    "miniImageNet": _systems(1, 0),
    "tieredImageNet": _systems(1, 2),
    "CUB": _systems(1, 4),
    "CIFAR-FS": _systems(2, 0),
}
_COSTS = _by_cell(3, ("miniImageNet", "CUB", "CIFAR-FS", "tieredImageNet"))
_BACKBONES = {(_plain(name), method): own for (name, method), own in _by_cell(4, ("free-lunch", "hot")).items()}
_SPEEDS = _by_cell(5, list(product(("free-lunch", "hot"), SHOTS)))
_RETRIEVED = _by_cell(6, TABLE_6_COLUMNS)
