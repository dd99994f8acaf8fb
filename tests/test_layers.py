"""A module may import from its own package and from the packages above it in docs/architecture.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import hotshot

ROOT = Path(hotshot.__file__).parent
# In the order of the page. Top-level modules come before all packages, or are public names that no package imports.
FOUNDATIONS = ["formatting", "errors", "version", "arrays", "intervals", "cluster", "user_code"]
PACKAGES = [
    "files", "transport", "bank", "model", "method", "classifiers", "evaluation", "images", "backbones", "encoders",
    "inputs", "paper", "report",
]  # fmt: skip
PUBLIC_NAMES = ["__init__"]
ORDER = [*FOUNDATIONS, *PACKAGES, *PUBLIC_NAMES, "cli", "__main__"]
# Inputs become features without the method; only the validation of backbones draws few-shot tasks.
METHOD = {"transport", "bank", "model", "method", "classifiers"}
FORBIDDEN = {"images": {*METHOD, "evaluation"}, "backbones": METHOD, "encoders": {*METHOD, "evaluation"}}


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_packages(path: Path, source: str) -> set[str]:
    """Packages that a file imports: at the top, inside functions, by absolute or relative names."""
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


def forbidden_imports(path: Path, source: str) -> set[str]:
    own = package_of(path)
    allowed = {own, *ORDER[: ORDER.index(own)]} - FORBIDDEN.get(own, set())
    return imported_packages(path, source) - allowed


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_import_is_forbidden(path):
    assert not forbidden_imports(path, path.read_text())


@pytest.mark.parametrize(
    "statement",
    [
        "import hotshot.classifiers.hot",
        "from hotshot import classifiers",
        "from hotshot.evaluation.runner import evaluate",
        "def later():\n    from hotshot.cli import main",
        "from ..classifiers import HOTClassifier",
        "from .. import classifiers",
        "import importlib\nimportlib.import_module('hotshot.paper')",
        "from hotshot import HOTClassifier",
    ],
)
def test_a_forbidden_import_is_found(statement):
    assert forbidden_imports(ROOT / "method" / "made_up.py", statement)
    for own in ("images", "backbones", "encoders"):
        assert forbidden_imports(ROOT / own / "made_up.py", "from hotshot.method import fit") == {"method"}


def test_the_packages_are_the_folders():
    assert {path.name for path in ROOT.iterdir() if path.is_dir() and any(path.rglob("*.py"))} == {*PACKAGES, "cli"}
    assert {path.stem for path in ROOT.glob("*.py")} == {*FOUNDATIONS, *PUBLIC_NAMES, "__main__"}


def test_public_names_are_few_and_exist():
    assert len(hotshot.__all__) <= 16
    assert all(hasattr(hotshot, name) for name in hotshot.__all__)


def test_the_page_lists_the_packages_in_this_order():
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text("utf-8")
    table = page.partition("## Packages")[2].partition("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [*PACKAGES, "cli"]
