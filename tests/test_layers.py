"""Imports point downward only: a module may import from the rooms below its own, and from its own room."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import hotshot

ROOT = Path(hotshot.__file__).parent
# From the bottom up. Files beside the rooms are either below all of them or faces of them that no room imports.
FOUNDATIONS = ["formatting", "errors", "version", "arrays", "cluster", "user_code", "notebook"]
ROOMS = [
    "files",
    "transport",
    "base",
    "method",
    "estimators",
    "evaluation",
    "images",
    "encoders",
    "inputs",
    "paper",
    "report",
]
FACES = ["features", "backbones", "training", "extraction", "figures", "experiments", "__init__"]
ORDER = [*FOUNDATIONS, *ROOMS, *FACES, "cli", "__main__"]
# Inputs become features without the method; the validation of backbones draws few-shot tasks, and that is all.
NOT_THE_METHOD = {"transport", "base", "method", "estimators"}
WITHOUT = {"images": NOT_THE_METHOD, "encoders": {*NOT_THE_METHOD, "evaluation"}}


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_rooms(path: Path, source: str) -> set[str]:
    """Rooms that a file imports from anywhere in it: at the top, inside functions, absolutely or relatively."""
    package = ["hotshot", *path.relative_to(ROOT).with_suffix("").parts][:-1]
    found = set()
    for node in ast.walk(ast.parse(source)):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            modules = [f"{module}.{alias.name}" for alias in node.names] if module == "hotshot" else [module]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            modules = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        for name in modules:
            pieces = name.split(".")
            if pieces[0] == "hotshot":
                found.add(pieces[1] if len(pieces) > 1 and pieces[1] in ORDER else "__init__")
    return found


def upward(path: Path, source: str) -> set[str]:
    own = room(path)
    allowed = {own, *ORDER[: ORDER.index(own)]} - WITHOUT.get(own, set())
    return imported_rooms(path, source) - allowed


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downward_only(path):
    assert not upward(path, path.read_text())


@pytest.mark.parametrize(
    "statement",
    [
        "import hotshot.estimators.hot",
        "from hotshot import estimators",
        "from hotshot.evaluation.runner import evaluate",
        "def later():\n    from hotshot.cli import main",
        "from ..estimators import HOTClassifier",
        "from .. import estimators",
        "import importlib\nimportlib.import_module('hotshot.paper')",
        "from hotshot import HOTClassifier",
    ],
)
def test_an_import_that_points_upward_is_seen(statement):
    assert upward(ROOT / "method" / "made_up.py", statement)


@pytest.mark.parametrize("own", ["images", "encoders"])
def test_images_and_encoders_do_not_import_the_method(own):
    assert upward(ROOT / own / "made_up.py", "from hotshot.method import fit") == {"method"}


def test_the_rooms_are_the_folders():
    assert {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.rglob("*.py"))} == {*ROOMS, "cli"}
    assert {path.stem for path in ROOT.glob("*.py")} == {*FOUNDATIONS, *FACES, "__main__"}


def test_public_names_are_few_and_exist():
    assert len(hotshot.__all__) <= 16
    assert all(hasattr(hotshot, name) for name in hotshot.__all__)
