"""Pages made from the program itself: every command with its options, every error and warning with its remedy."""

import ast
import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx
from typer.main import get_command

import hotshot
from hotshot import errors
from hotshot.cli.app import app as program

SOURCE = Path(hotshot.__file__).parent
COMMANDS = get_command(program).commands
KINDS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}


def cell(text: str) -> str:
    """Text for one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


def printed_help(command: list[str]) -> str:
    """What `hotshot COMMAND --help` prints."""
    done = subprocess.run([sys.executable, "-m", "hotshot", *command, "--help"], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"hotshot {' '.join(command)} --help failed: {done.stderr}")
    return "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())


def command_section(name: str, level: int = 3) -> list[str]:
    """The help of a command and of its subcommands."""
    lines = ["#" * level + f" hotshot {name}", "", "```text", printed_help(name.split()), "```", ""]
    for inner in getattr(COMMANDS[name], "commands", {}) if " " not in name else ():
        lines += command_section(f"{name} {inner}", level + 1)
    return lines


def commands_page() -> str:
    """All commands, in the groups of `hotshot --help`."""
    lines = ["# Commands", "", "Every command, as `hotshot COMMAND --help` prints it.", ""]
    for group in dict.fromkeys(command.rich_help_panel for command in COMMANDS.values()):
        lines += [f"## {group}", ""]
        for name, command in COMMANDS.items():
            if command.rich_help_panel == group:
                lines += command_section(name)
    return "\n".join(lines)


def sentence(node: ast.expr) -> str | None:
    """The text of a string in the source, with what is filled in as `{name}`; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = sentence(node.left), sentence(node.right)
        return None if left is None and right is None else (left or "…") + (right or "…")
    return None


def messages(path: Path) -> list[tuple[str, str]]:
    """Kind and sentence of every error and warning that a module makes."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in KINDS and node.args and (text := sentence(node.args[0])):
            found.append((name, text))
        if name == "warn" and len(node.args) > 1 and (text := sentence(node.args[0])):
            found.append((getattr(node.args[1], "id", ""), text))
    return found


def messages_page() -> str:
    """Every error and warning, by the package it comes from."""
    lines = [
        "# Errors and warnings", "",
        "Every error is one sentence: what was wrong, what was found, and what to do. In Python all errors derive",
        "from `hotshot.errors.HotshotError`, all warnings from `HotshotWarning`; on the command line an error is one",
        "line on standard error and exit status 2 (130 after Ctrl-C). This list is made from the source; `…` stands",
        "for a value.", "",
        "| kind | meaning |", "|---|---|",
        *(f"| `{name}` | {cell(kind.__doc__ or '')} |" for name, kind in KINDS.items()), "",
    ]  # fmt: skip
    rooms: dict[str, set[tuple[str, str]]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        part = path.relative_to(SOURCE).parts
        rooms.setdefault(part[0].removesuffix(".py"), set()).update(messages(path))
    for room, found in rooms.items():
        if found:
            rows = [f"| `{kind}` | {cell(text)} |" for kind, text in sorted(found)]
            lines += [f"## {room}", "", "| kind | sentence |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def write_pages(app: Sphinx) -> None:
    """Write both pages before Sphinx reads its sources."""
    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    for name, page in {"commands": commands_page, "messages": messages_page}.items():
        path, text = folder / f"{name}.md", page() + "\n"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
