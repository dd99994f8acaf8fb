"""The program answers quickly: it imports what a command needs, and nothing before that."""

from __future__ import annotations

import inspect
import shlex
import subprocess
import sys

import pytest

import hotshot as package
from hotshot.bank.embedded import BANK_NAMES
from hotshot.classifiers import METHOD_NAMES
from hotshot.cli import inputs
from hotshot.cli.app import COMMANDS, EXAMPLES, MODULES, load_command
from hotshot.evaluation.tasks import CLOSED, SETTINGS
from hotshot.inputs.answers import NONE
from hotshot.inputs.classifier import FEW

HEAVY = {"numpy", "scipy", "sklearn", "joblib", "pandas", "matplotlib", "jinja2", "torch", "PIL", "onnxruntime"}


def imported_by(program: str) -> set[str]:
    """Top-level packages that are imported once a program has run in a new process."""
    listing = "import atexit, sys; atexit.register(lambda: print(*sorted({m.split('.')[0] for m in sys.modules})))\n"
    run = subprocess.run([sys.executable, "-c", listing + program], capture_output=True, text=True, timeout=120)
    assert "Traceback" not in run.stderr, run.stderr
    return set(run.stdout.splitlines()[-1].split())


def command_line(*arguments: str) -> str:
    return f"import sys; sys.argv = {['hotshot', *arguments]}; from hotshot.cli import main; main()"


@pytest.mark.parametrize("program", [
    "import hotshot", command_line("--help"), command_line("--version"), command_line("evalute")
])  # fmt: skip
def test_nothing_slow_is_imported_for_help_and_version(program):
    imported = imported_by(program)
    assert "hotshot" in imported
    assert not imported & HEAVY


def test_nothing_slow_is_imported_for_the_help_of_any_command():
    lines = [[name, "--help"] for name in MODULES] + [["bank", "merge", "-h"], ["bank", "compact", "-h"]]
    program = f"""
import sys
from hotshot.cli import main
for line in {lines}:
    sys.argv = ["hotshot", *line]
    try:
        main()
    except SystemExit as stop:
        assert not stop.code
"""
    assert not imported_by(program) & HEAVY


def test_the_version_needs_no_tables():
    assert "rich" not in imported_by(command_line("--version"))


def test_commands_import_neither_plotting_nor_training_libraries():
    names = [name for name in MODULES if name not in ("train", "extract")]
    loaded = f"from hotshot.cli.app import load_command; [load_command(name) for name in {names}]"
    assert not imported_by(loaded) & {"matplotlib", "jinja2", "torch", "onnxruntime", "PIL"}


# --help imports nothing slow, so that names and defaults of the library are written again in help texts.
def test_help_names_the_banks_methods_and_settings_of_the_library():
    flags = {param.name: param for param in load_command("evaluate").params}
    assert inputs.BANKS.split(" or ") == list(BANK_NAMES)
    assert flags["methods"].help.removeprefix("Comma-separated methods: ").split(";")[0].split(", ") == [*METHOD_NAMES]
    settings = flags["setting"].help.removeprefix("Evaluation setting: ").replace(" or ", ", ")
    assert [part.split()[0] for part in settings.split(", ")] == [*SETTINGS]


def test_defaults_of_flags_are_those_of_the_library():
    defaults = {name: {p.name: p.default for p in load_command(name).params} for name in ("evaluate", "fit", "predict")}
    assert defaults["evaluate"]["setting"] == CLOSED.name
    assert defaults["fit"]["few"] == FEW
    assert defaults["predict"]["unknown"] == NONE


def test_the_same_flag_has_the_same_help_in_every_command():
    texts: dict[str, set[str]] = {}
    for name in MODULES:
        for param in load_command(name).params:
            for flag in {"--json", "--force", "--seed", "--jobs", "--device", "--scheduler", "--text"} & {*param.opts}:
                texts.setdefault(flag, set()).add(param.help)
    assert {flag: len(own) for flag, own in texts.items()} == dict.fromkeys(texts, 1)
    assert len(texts) == 7


@pytest.mark.parametrize("example", [example for examples in EXAMPLES.values() for example in examples])
def test_examples_use_flags_that_exist(example):
    _, name, *rest = shlex.split(example)
    command = load_command(name)
    assert command.make_context(name, rest, resilient_parsing=True).params
    assert {word for word in rest if word.startswith("-")} <= {flag for param in command.params for flag in param.opts}


@pytest.mark.parametrize(
    ("name", "line"), [(n, line) for rows in COMMANDS.values() for n, (_, line, _) in rows.items()]
)
def test_help_lists_the_first_line_of_each_command(name, line):
    assert inspect.cleandoc(load_command(name).help).splitlines()[0] == line


def test_help_lists_commands_in_groups(hotshot):
    said = hotshot("--help").stdout
    places = [
        said.index(word)
        for group, rows in COMMANDS.items()
        for word in (f"─ {group} ─", *(f"│ {name} " for name in rows))
    ]
    assert places == sorted(places)


def test_a_misspelt_command_gets_a_suggestion(hotshot):
    run = hotshot("evalute")
    assert run.returncode == 2
    assert "Did you mean 'evaluate'?" in run.stderr


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
