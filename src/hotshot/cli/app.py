"""All commands in one."""

import os
import sys
from typing import Annotated, NoReturn

import typer

from hotshot import __version__
from hotshot.cli.bank import bank
from hotshot.cli.convert import convert
from hotshot.cli.demo import demo
from hotshot.cli.evaluate import evaluate
from hotshot.cli.export import export
from hotshot.cli.extract import extract
from hotshot.cli.inspect import inspect
from hotshot.cli.report import report
from hotshot.cli.reproduce import reproduce
from hotshot.cli.terminal import Console
from hotshot.cli.train import train
from hotshot.cli.tune import tune
from hotshot.errors import HotshotError, InterruptedRunError
from hotshot.formatting import shortened

FAILED, INTERRUPTED = 2, 130
# A sentence that quotes more than this of what it got says no more.
LONGEST_SENTENCE = 2000
app = typer.Typer(
    help="Few-shot classification by hierarchical optimal transport.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hotshot {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Few-shot classification by hierarchical optimal transport."""


for command in (demo, evaluate, tune, inspect, convert, train, extract, reproduce, report, export):
    app.command()(command)
app.add_typer(bank, name="bank")


def main() -> None:
    """Run the command line; an error is one sentence and exit code 2 (130 after Ctrl-C), never a traceback."""
    # joblib's helper process, which cleans up after a run that was stopped, needs not tell of it.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:resource_tracker:UserWarning")
    try:
        app(prog_name="hotshot")
    except InterruptedRunError as error:
        _stop(str(error), INTERRUPTED)
    except HotshotError as error:
        _stop(str(error))
    except OSError as error:
        named = "" if error.filename is None else f"{error.filename}: "
        _stop(f"{named}{error.strerror or error}: name another file or folder, or make room.")
    except RecursionError:
        _stop("A path or a file is nested too deeply: name another.")
    except MemoryError:
        _stop("This needs more memory than there is: ask for less at once.")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _stop(sentence: str, code: int = FAILED) -> NoReturn:
    """Print a sentence on one line, whatever it quotes, and end."""
    short = shortened(sentence, LONGEST_SENTENCE, "ends")
    Console(stderr=True, soft_wrap=True).print(f"hotshot: {short}", style="red", markup=False)
    sys.exit(code)
