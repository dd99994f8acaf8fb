"""The wheel holds the package and nothing else, and runs without the repository and without network."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from hotshot.version import __version__

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / ".git").exists() or shutil.which("git") is None:
    pytest.skip("the tracked files are known in a git checkout only", allow_module_level=True)
pytest.importorskip("build")
sys.path.insert(0, str(ROOT / "scripts"))
import check_wheel

# Settings are chosen from a tenth of the held-out tasks, as in the rest of the suite, and only one is tried.
QUICK_DEMO = """
import runpy, sys
from hotshot.classifiers import HOTClassifier, confidence, held_out
HOTClassifier._choices = {name: values[: 1 + (name == "mean_rule")] for name, values in HOTClassifier._choices.items()}
held_out.TASKS, held_out.FIRST_TASKS, confidence.SCORED_QUERIES = 8, 4, 480
sys.argv = ["hotshot", "demo", "--tasks", "2", "--methods", "hot,centroid", "--shots", "1"]
print(sys.modules["hotshot"].__file__)
runpy.run_module("hotshot", run_name="__main__")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return check_wheel.build(tmp_path_factory.mktemp("dist"), "--no-isolation")


def test_the_wheel_holds_every_tracked_file_of_the_package_and_no_other(wheel):
    tracked = {name.removeprefix("src/") for name in check_wheel.tracked_files() if name.startswith("src/")}
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    about = {name for name in held if name.startswith(f"hotshot-{__version__}.dist-info/")}
    assert held - about == tracked
    assert {name.split("/", 1)[1] for name in about} >= {"METADATA", "entry_points.txt", "licenses/LICENSE"}


def test_the_source_archive_holds_what_the_build_and_a_reader_need(wheel):
    (path,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert held >= {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"}
    assert not any(name.startswith(("tests", "benchmarks", "docs")) for name in held)


def test_the_demo_runs_from_the_wheel_without_network(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "wheel")
    environment = check_wheel.offline(tmp_path, tmp_path / "wheel")
    command = [sys.executable, "-P", "-c", QUICK_DEMO]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(str(tmp_path / "wheel"))
    assert "is answered" in " ".join(run.stdout.split())


def test_the_network_is_blocked_in_that_run(tmp_path):
    for call in ("socket.create_connection(('127.0.0.1', 9))", "urllib.request.urlopen('http://example.org')"):
        command = [sys.executable, "-c", f"import socket, urllib.request; {call}"]
        run = subprocess.run(command, env=check_wheel.offline(tmp_path), capture_output=True, text=True)
        assert "The network is blocked" in run.stderr


def test_the_version_is_the_same_everywhere():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f'\n  version: "{__version__}"\n' in (ROOT / "packaging" / "recipe.yaml").read_text()
    assert re.search(rf"^## {re.escape(__version__)} ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


def test_the_recipe_needs_what_the_package_needs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "packaging" / "recipe.yaml").read_text().replace("matplotlib-base", "matplotlib")
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    assert {" >=".join(d.split(">=")) for d in project["dependencies"]} == set(re.findall(r"- ([\w-]+ >=[\d.]+)", run))


def test_the_documents_name_benchmarks_that_exist():
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "Makefile"]
    command = r"-m\s+benchmarks\s+([a-z]\w+)"
    named = {name for path in documents for name in re.findall(command, path.read_text("utf-8"))}
    assert len(named) > 15
    assert {name for name in named if not (ROOT / "benchmarks" / f"{name}.py").exists()} == set()


def test_every_benchmark_starts():
    for extra in ("torch", "PIL", "onnx", "onnxruntime", "ot", "psutil"):
        pytest.importorskip(extra)
    names = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__", "__main__", "reference", "shared"}
    program = "import importlib, sys; [importlib.import_module('benchmarks.' + name).main for name in sys.argv[1:]]"
    subprocess.run([sys.executable, "-c", program, *sorted(names)], cwd=ROOT, check=True)
