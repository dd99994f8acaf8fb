"""Every number on the command line has limits, and no command line is answered by a traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from hotshot.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
# Values beyond any limit. Jobs are never refused for being many: no more than a few per core are started.
BEYOND = ["9" * 23, "-" + "9" * 23, "9" * 400, "nan", "inf", "1e999", "", "x"]
# Without these, another mistake would be found first.
NEEDED = {"inspect": ["x.npz"], "convert": ["x.npz", "y.npz"], "report": ["."]}
NEEDED |= {"predict": ["x.model", "y.csv"], "explain": ["x.model"], "suggest": ["x.model", "y.csv"]}


def options():
    """Every option that is a number, as the program lists it; versions of Typer keep its type in different places."""
    for name, command in get_command(app).commands.items():
        for param in command.params:
            kind = str(getattr(param, "type", None) or getattr(param, "type_descriptor", ""))
            if re.search(r"\b(int|float)", kind, re.IGNORECASE) and param.opts[0] != "--jobs":
                yield name, param.opts[0]


@pytest.mark.parametrize(("command", "option"), list(options()))
def test_every_number_has_limits(hotshot, command, option):
    for value in BEYOND:
        run = hotshot(command, *NEEDED.get(command, []), f"{option}={value}")
        said = run.noted
        name = option.removeprefix("--").replace("-", "_")
        assert run.returncode == 2, said
        assert f"hotshot: {name} must be" in said or f"Invalid value for '{option}'" in said
        assert "Traceback" not in said


def test_there_are_numbers_to_check():
    assert {("train", "--seed"), ("evaluate", "--tasks"), ("report", "--tasks"), ("extract", "--size")} < {*options()}


def test_a_sample_of_fuzzed_command_lines():
    for extra in ("torch", "PIL", "onnx", "onnxruntime", "pyarrow", "distributed"):
        pytest.importorskip(extra)
    if not sys.platform.startswith("linux"):
        pytest.skip("the fuzzer needs Linux")
    command = [sys.executable, "-m", "benchmarks", "fuzz_commands", "--cases", "2", "--seconds", "600", "--seed", "3"]
    found = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=900)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "2 command lines, seed 3: 0 findings." in found.stdout
