"""`python -m benchmarks` lists the benchmarks, `python -m benchmarks NAME --help` says what one does."""

from __future__ import annotations

import ast
import importlib
import sys
import warnings
from pathlib import Path

import typer

from hotshot.errors import HotshotWarning

SHARED = ("__init__", "__main__", "reference", "shared")


def main() -> None:
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in SHARED)
    name, *arguments = sys.argv[1:] or ["--help"]
    if name not in names:
        for known in names:
            # Without importing them: each needs other libraries.
            tree = ast.parse(Path(__file__).with_name(f"{known}.py").read_text("utf-8"))
            print(f"{known:<18} {(ast.get_docstring(tree) or '').splitlines()[0]}")
        sys.exit(0 if name == "--help" else f"There is no benchmark {name!r}; these are all.")
    benchmark = importlib.import_module(f"benchmarks.{name}")
    # The published constants suit other features; accuracy is what the tables show.
    warnings.simplefilter("ignore", HotshotWarning)
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(help=benchmark.__doc__)(benchmark.main)
    app(arguments, prog_name=f"python -m benchmarks {name}")


if __name__ == "__main__":
    main()
