"""The program answers quickly: it imports what a command needs, and nothing before that."""

from __future__ import annotations

import inspect
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command

import hotshot as package
from hotshot.bank.embedded import BANK_NAMES
from hotshot.classifiers import METHOD_NAMES
from hotshot.cli import options
from hotshot.cli.app import COMMANDS, app
from hotshot.evaluation.tasks import CLOSED, SETTINGS
from hotshot.inputs.classifier import FEW
from hotshot.inputs.samples import NONE

PROGRAM = get_command(app).commands
HEAVY = {"numpy", "scipy", "sklearn", "joblib", "pandas", "matplotlib", "jinja2", "torch", "PIL", "onnxruntime"}


def imported_by(program: str) -> set[str]:
    """Top-level packages that are imported once a program has run in a new process."""
    listing = "import atexit, sys; atexit.register(lambda: print(*sorted({m.split('.')[0] for m in sys.modules})))\n"
    run = subprocess.run([sys.executable, "-c", listing + program], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in run.stderr, run.stderr
    return set(run.stdout.splitlines()[-1].split())


def test_nothing_slow_is_imported_for_help_and_version():
    lines = [["--help"], ["--version"], ["evalute"], ["bank", "merge", "-h"], ["bank", "compact", "-h"]]
    program = f"""
import sys
from hotshot.cli import main
for line in {lines + [[name, "--help"] for name in PROGRAM]}:
    sys.argv = ["hotshot", *line]
    try:
        main()
    except SystemExit as stop:
        assert bool(stop.code) == (line == ["evalute"])
"""
    imported = imported_by(program)
    assert "hotshot" in imported
    assert not imported & HEAVY


# --help imports nothing slow, so that names and defaults of the library are written again in help texts.
def test_help_names_the_banks_methods_and_settings_of_the_library():
    flags = {param.name: param for param in PROGRAM["evaluate"].params}
    assert options.BANKS.split(" or ") == list(BANK_NAMES)
    assert flags["methods"].help.removeprefix("Comma-separated methods: ").split(";")[0].split(", ") == [*METHOD_NAMES]
    settings = flags["setting"].help.removeprefix("Evaluation setting: ").replace(" or ", ", ")
    assert [part.split()[0] for part in settings.split(", ")] == [*SETTINGS]


def test_defaults_of_flags_are_those_of_the_library():
    defaults = {name: {p.name: p.default for p in PROGRAM[name].params} for name in ("evaluate", "fit", "predict")}
    assert defaults["evaluate"]["setting"] == CLOSED.name
    assert defaults["fit"]["few"] == FEW
    assert defaults["predict"]["unknown"] == NONE


def test_the_same_flag_has_the_same_help_in_every_command():
    texts: dict[str, set[str]] = {}
    for name in PROGRAM:
        for param in PROGRAM[name].params:
            for flag in {"--json", "--force", "--seed", "--jobs", "--device", "--scheduler", "--text"} & {*param.opts}:
                texts.setdefault(flag, set()).add(param.help)
    assert {flag: len(own) for flag, own in texts.items()} == dict.fromkeys(texts, 1)
    assert len(texts) == 7


@pytest.mark.parametrize(
    "example", [example for commands in COMMANDS.values() for examples in commands.values() for example in examples]
)
def test_examples_use_flags_that_exist(example):
    _, name, *rest = shlex.split(example)
    command = PROGRAM[name]
    assert command.make_context(name, rest, resilient_parsing=True).params
    assert {word for word in rest if word.startswith("-")} <= {flag for param in command.params for flag in param.opts}


def test_help_lists_commands_in_groups_with_their_first_lines(hotshot):
    said = " ".join(hotshot("--help").stdout.replace("│", " ").split())
    places = []
    for group, commands in COMMANDS.items():
        places.append(said.index(f"─ {group} ─"))
        for command in commands:
            first = inspect.cleandoc(command.__doc__).splitlines()[0]
            places.append(said.index(f" {command.__name__} {first}"))
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("hotshot ev", ["evaluate"]),
        (
            "hotshot evaluate --methods hot,free-lunch,centr",
            ["hot,free-lunch,centroid", "hot,free-lunch,centroid-cl2n"],
        ),
        ("hotshot evaluate --setting o", ["open"]),
        ("hotshot demo --bank om", ["omniglot"]),
        ("hotshot reproduce cos", ["costs", "cost"]),
    ],
)
def test_a_shell_completes_commands_and_names(hotshot, monkeypatch, words, offered):
    monkeypatch.setenv("_HOTSHOT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    run = hotshot()
    assert run.stdout.split() == offered
    assert not run.stderr


def test_public_names_are_imported_at_their_first_use():
    assert set(package.__all__) <= set(dir(package))
    assert package.transport.solve
    with pytest.raises(AttributeError, match="module 'hotshot' has no attribute 'evalute'"):
        package.evalute  # noqa: B018
