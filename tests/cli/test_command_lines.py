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
        said = " ".join(run.stderr.split())
        name = option.removeprefix("--").replace("-", "_")
        assert run.returncode == 2, said
        assert f"hotshot: {name} must be" in said or f"Invalid value for '{option}'" in said
        assert "Traceback" not in said


def test_there_are_numbers_to_check():
    assert {("train", "--seed"), ("evaluate", "--tasks"), ("report", "--tasks"), ("extract", "--size")} < {*options()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "--bank", "banking77", "--jobs", "0"], "n_jobs must be a positive integer"),
        (["evaluate", "--bank", "banking77", "--shots", "1,1"], "shots must be one number or up to 100 different ones"),
        (["evaluate", "--bank", "banking77", "--shots", "1," * 50_000 + "1"], "shots must be one number or up to"),
        (["demo", "--shots", "9" * 5000], "shots must be a number or a range such as 1-10"),
        (["evaluate", "--bank", "banking77", "--ways", "9" * 23], "ways must be a number or a range such as 5-20"),
        (["evaluate", "--bank", "banking77", "--ways", "1"], "ways must be an integer from 2 to 10,000, got 1"),
        (["tune", "--bank", "banking77", "--ways", "20-5"], "ways must be a number or a range such as 5-20"),
        (["demo", "--queries", "foo"], "queries must be a number or dirichlet:ALPHA such as dirichlet:2, got 'foo'"),
        (["demo", "--queries", "dirichlet:0"], "ALPHA of queries=dirichlet:ALPHA must be a number from 0.01"),
        (["tune", "--bank", "banking77", "--grid", "epsilon=nan"], "epsilon"),
        (["evaluate", "--bank", "\x1b[31mred"], r"bank must be one of banking77, omniglot, got '\x1b[31mred'"),
        (["inspect", "\x1b]0;title\x07.npz"], r"There is no file \x1b]0;title\x07.npz"),
        (["inspect", "\udcff.npz"], r"There is no file \udcff.npz"),
    ],
    ids=lambda x: " ".join(x)[:40] if isinstance(x, list) else "",
)
def test_mistakes_are_one_sentence(hotshot, arguments, message):
    run = hotshot(*arguments)
    assert run.returncode == 2
    assert message in " ".join(run.stderr.split())
    assert re.sub(r"\n", "", run.stderr).isprintable()
    assert len(run.stderr) < 3000


def test_a_sample_of_fuzzed_command_lines():
    for extra in ("torch", "PIL", "onnx", "onnxruntime", "pyarrow", "distributed"):
        pytest.importorskip(extra)
    if not sys.platform.startswith("linux"):
        pytest.skip("the fuzzer needs Linux")
    command = [sys.executable, "-m", "benchmarks", "fuzz_commands", "--cases", "2", "--seconds", "600", "--seed", "3"]
    found = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=900)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "2 command lines, seed 3: 0 findings." in found.stdout


def test_a_name_too_long_is_one_sentence(hotshot):
    run = hotshot("inspect", "x" * 300)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert "File name too long" in run.stderr


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "Not enough memory: use less data, or ask for less at once."),
        (RecursionError(), "A path or a file is nested too deeply: use another."),
        (PermissionError(13, "Permission denied", "secret"), "secret: Permission denied: use another file or folder"),
        (OSError("odd"), "odd: use another file or folder, or free disk space."),
    ],
)
def test_errors_of_the_system_are_one_sentence(hotshot, monkeypatch, error, sentence):
    def fail(*_):
        raise error

    monkeypatch.setattr("hotshot.bank.embedded.load_bank", fail)
    run = hotshot("demo")
    assert run.returncode == 2
    assert run.stderr.startswith(f"hotshot: {sentence}")
    assert run.stderr.count("\n") == 1
