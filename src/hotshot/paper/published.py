"""The paper's tables, transcribed as printed, and how to ask them for a number.

The tables contradict each other once: for Free-Lunch on CIFAR-FS, Table 2 prints 74.9 ± 0.4 and Table 3 74.94 ± 0.64.
Both are kept where they stand.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from hotshot.evaluation.tables import Number

SHOTS = (1, 5)

# Method, backbone, whose authors ran it, then accuracy at 1 and 5 shots on miniImageNet, tieredImageNet and CUB.
TABLE_1 = """
E3BM            | ResNet25     | E3BM            | 64.3 ± n/a   | 81.0 ± n/a   | 70.0 ± n/a   | 85.0 ± n/a   | -            | -
LEO             | WRN28        | LEO             | 61.76 ± 0.08 | 77.59 ± 0.12 | 66.33 ± 0.05 | 81.44 ± 0.09 | -            | -
MAML            | ResNet18     | Baseline++      | 49.61 ± 0.92 | 65.72 ± 0.77 | -            | -            | 69.96 ± 1.01 | 82.70 ± 0.65
Baseline++      | ResNet18     | Baseline++      | 51.87 ± 0.77 | 75.68 ± 0.63 | -            | -            | 67.02 ± 0.90 | 83.58 ± 0.54
Negative-Cosine | ResNet12     | Negative-Cosine | 63.85 ± 0.81 | 81.57 ± 0.56 | -            | -            | 72.66 ± 0.85 | 89.40 ± 0.34
DeepEMD         | ResNet12     | DeepEMD         | 65.91 ± 0.82 | 82.41 ± 0.56 | 71.16 ± 0.87 | 86.03 ± 0.58 | 75.65 ± 0.83 | 88.69 ± 0.50
MatchNet        | ResNet12     | DeepEMD         | 63.08 ± 0.80 | 75.99 ± 0.60 | 68.50 ± 0.92 | 80.60 ± 0.71 | 71.87 ± 0.85 | 85.08 ± 0.57
MatchNet        | ResNet34     | POT             | -            | 68.32 ± 0.66 | -            | -            | -            | 84.66 ± 0.55
MatchNet +POT   | ResNet34     | POT             | -            | 68.51 ± 0.64 | -            | -            | -            | 85.50 ± 0.66
ProtoNet        | ResNet12     | DeepEMD         | 60.37 ± 0.83 | 78.02 ± 0.57 | 65.65 ± 0.92 | 83.40 ± 0.65 | 66.09 ± 0.92 | 82.50 ± 0.58
ProtoNet        | ResNet34     | POT             | -            | 73.99 ± 0.64 | -            | -            | -            | 87.33 ± 0.48
ProtoNet +POT   | ResNet34     | POT             | -            | 75.15 ± 0.63 | -            | -            | -            | 88.34 ± 0.46
Free-Lunch      | ResNet12     | H-OT            | 64.73 ± 0.44 | 81.15 ± 0.42 | 71.40 ± 0.31 | 85.56 ± 0.40 | 74.13 ± 0.86 | 87.91 ± 0.45
H-OT            | ResNet12     | H-OT            | 65.63 ± 0.32 | 82.87 ± 0.43 | 73.71 ± 0.26 | 87.46 ± 0.35 | 76.28 ± 0.40 | 89.87 ± 0.36
Free-Lunch      | WRN28+RTloss | Free-Lunch, on tieredImageNet H-OT | 68.57 ± 0.55 | 82.88 ± 0.42 | 75.10 ± 0.32 | 88.42 ± 0.40 | 79.56 ± 0.87 | 90.67 ± 0.35
H-OT            | WRN28+RTloss | H-OT            | 69.04 ± 0.29 | 84.36 ± 0.41 | 75.91 ± 0.35 | 89.33 ± 0.48 | 81.23 ± 0.35 | 91.45 ± 0.38
"""  # noqa: E501

# The same for CIFAR-FS.
TABLE_2 = """
MAML       | 32-32-32-32     | RFS  | 58.9 ± 1.9 | 71.5 ± 1.0
ProtoNet   | 64-64-64-64     | RFS  | 55.5 ± 0.7 | 72.0 ± 0.6
RelaNet    | 64-96-128-256   | RFS  | 55.0 ± 1.0 | 69.3 ± 0.8
R2D2       | 96-192-384-512  | RFS  | 65.3 ± 0.2 | 79.4 ± 0.1
Shot-Free  | ResNet12        | RFS  | 69.2 ± n/a | 84.7 ± n/a
MetaOpt    | ResNet12        | RFS  | 72.6 ± 0.7 | 84.3 ± 0.5
RFS        | ResNet12        | RFS  | 73.9 ± 0.8 | 86.9 ± 0.5
Free-Lunch | ResNet12        | H-OT | 73.8 ± 0.4 | 86.0 ± 0.4
H-OT       | ResNet12        | H-OT | 74.5 ± 0.4 | 87.1 ± 0.3
Free-Lunch | WRN28+RTloss    | H-OT | 74.9 ± 0.4 | 86.2 ± 0.5
H-OT       | WRN28+RTloss    | H-OT | 75.4 ± 0.3 | 87.5 ± 0.3
"""

# Rows of Tables 3 and 6, by the names of methods on the command line.
ROW_NAMES = {
    "free-lunch": "Free-Lunch",
    "ot-euclidean": "High-level OT, Euclidean",
    "ot-euclidean-weighted": "High-level OT, Euclidean, weighted means",
    "ot-cosine": "High-level OT, cosine",
    "ot-cosine-weighted": "High-level OT, cosine, weighted means",
    "hot": "H-OT",
}

# Cost functions at 1 shot: miniImageNet, CUB, CIFAR-FS, tieredImageNet.
TABLE_3 = """
free-lunch            | 68.57 ± 0.55 | 79.56 ± 0.87 | 74.94 ± 0.64 | 75.10 ± 0.32
ot-euclidean          | 68.79 ± 0.31 | 80.29 ± 0.25 | 75.09 ± 0.33 | 75.31 ± 0.36
ot-euclidean-weighted | 68.80 ± 0.32 | 80.33 ± 0.27 | 75.13 ± 0.31 | 75.35 ± 0.40
ot-cosine             | 68.82 ± 0.36 | 81.01 ± 0.41 | 75.12 ± 0.31 | 75.52 ± 0.36
ot-cosine-weighted    | 68.78 ± 0.33 | 81.02 ± 0.30 | 75.10 ± 0.34 | 75.55 ± 0.41
hot                   | 69.04 ± 0.29 | 81.23 ± 0.35 | 75.42 ± 0.32 | 75.91 ± 0.35
"""

# Backbones on miniImageNet at 1 shot: Free-Lunch, H-OT.
TABLE_4 = """
Conv4        | 54.62 ± 0.64 | 55.23 ± 0.59
Conv6        | 57.14 ± 0.45 | 58.01 ± 0.42
ResNet10     | 64.41 ± 0.33 | 65.22 ± 0.37
Resnet18     | 61.50 ± 0.47 | 62.61 ± 0.41
WRN28+RTloss | 68.57 ± 0.55 | 69.04 ± 0.29
"""

# Seconds per task on a Pentium PC of 3.7 GHz: Free-Lunch at 1 and 5 shots, H-OT at 1 and 5 shots.
TABLE_5 = """
miniImageNet   | 2.34 | 8.41  | 2.91 | 10.06
tieredImageNet | 5.76 | 24.61 | 9.31 | 41.12
CUB            | 2.11 | 8.24  | 2.60 | 11.12
CIFAR-FS       | 2.22 | 8.52  | 3.06 | 9.72
"""

# So many of the nearest base classes lend, None being all of them, on CUB at 1 shot.
TABLE_6_COLUMNS = (1, 2, 5, 10, None)
TABLE_6 = """
free-lunch   | 78.37 ± 0.75 | 79.56 ± 0.87 | 78.97 ± 0.80 | 78.49 ± 0.91 | 69.14 ± 0.88
ot-euclidean | 80.08 ± 0.24 | 80.11 ± 0.23 | 80.15 ± 0.23 | 80.20 ± 0.26 | 80.29 ± 0.25
hot          | 80.77 ± 0.33 | 80.79 ± 0.30 | 80.87 ± 0.32 | 81.05 ± 0.32 | 81.23 ± 0.35
"""

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


def cells(table: str) -> list[list[str]]:
    """A transcribed table as rows of text."""
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _number(printed: str) -> Number | None:
    if printed == "-":
        return None
    mean, _, half_width = printed.partition(" ± ")
    return Number(float(mean), None if half_width in ("", "n/a") else float(half_width), published=True)


def _by_cell(table: str, columns: Sequence[Any]) -> dict[tuple[Any, Any], Number | None]:
    """Numbers by the name of their row, and by their column."""
    return {
        (row, column): _number(printed)
        for row, *found in cells(table)
        for column, printed in zip(columns, found, strict=True)
    }


def _systems(table: str, column: int) -> tuple[System, ...]:
    """Rows with a number at either shots, which stand in `column` and the next."""
    rows = [
        System(name, backbone, source, {k: _number(found[column + i]) for i, k in enumerate(SHOTS)})
        for name, backbone, source, *found in cells(table)
    ]
    return tuple(row for row in rows if any(row.accuracies.values()))


_DATASETS = {_plain(name): name for name in POWERS} | {"cub200": "CUB", "cub2002011": "CUB"}
_SYSTEMS = {
    "miniImageNet": _systems(TABLE_1, 0),
    "tieredImageNet": _systems(TABLE_1, 2),
    "CUB": _systems(TABLE_1, 4),
    "CIFAR-FS": _systems(TABLE_2, 0),
}
_COSTS = _by_cell(TABLE_3, ("miniImageNet", "CUB", "CIFAR-FS", "tieredImageNet"))
_BACKBONES = {(_plain(name), method): own for (name, method), own in _by_cell(TABLE_4, ("free-lunch", "hot")).items()}
_SPEEDS = _by_cell(TABLE_5, list(product(("free-lunch", "hot"), SHOTS)))
_RETRIEVED = _by_cell(TABLE_6, TABLE_6_COLUMNS)
