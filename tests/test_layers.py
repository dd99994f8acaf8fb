"""Imports point downward only: a module may import from the layers below its own, and from its own package."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hotshot

ROOT = Path(hotshot.__file__).parent
# From the bottom up; what stands on one line may not import each other.
LAYERS = [
    {"errors", "version"},
    {"arrays", "records", "tensors"},
    {"backbones", "features", "figures", "transport"},
    {"datasets"},
    {"base", "episodes"},
    {"banks", "hierarchy"},
    {"calibration"},
    {"heads"},
    {"method"},
    {"estimators"},
    {"inspection"},
    {"evaluation", "training"},
    {"experiments", "extraction"},
    {"report"},
    {"__init__"},
    {"cli"},
    {"__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def part(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_parts(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "hotshot":
            names = [node.module] if "." in node.module else [f"hotshot.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "hotshot"]
        for name in names:
            pieces = name.split(".")
            found.add(pieces[1] if len(pieces) > 1 and pieces[1] in LEVEL else "__init__")
    return found


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downward_only(path):
    own = part(path)
    upward = {name for name in imported_parts(path) if name != own and LEVEL[name] >= LEVEL[own]}
    assert not upward, f"{path.name} imports {upward}, which is not below {own}"


def test_every_part_has_a_layer():
    assert {part(path) for path in ROOT.rglob("*.py")} == set(LEVEL)


def test_public_names_are_few_and_exist():
    assert len(hotshot.__all__) <= 16
    assert all(hasattr(hotshot, name) for name in hotshot.__all__)
